//! Any bytes through everything that a relay does with a frame: what comes out is what went in.

#![no_main]

use bytes::Bytes;
use greenroom_protocol::batch::OpenBatches;
use greenroom_protocol::{Frame, FrameKind, Outbound, RawId, Successor, malformed_reply};

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let frame = Frame::parse(Bytes::copy_from_slice(text));
    let view = frame.to_transport_frame();
    if let Ok(valid) = std::str::from_utf8(frame.text()) {
        let back = Frame::from_transport_frame(&view).expect("values serialise");
        assert_eq!(back.kind(), frame.kind(), "{valid}");
    }
    if let Some(reply) = malformed_reply(&frame) {
        assert_eq!(reply.into_frame().kind(), FrameKind::Error);
    }
    match frame.kind() {
        FrameKind::Request | FrameKind::Result | FrameKind::Error => {
            let there = Outbound::with_id(&frame, &RawId::Int(-7)).into_frame();
            assert_eq!((there.kind(), there.method()), (frame.kind(), frame.method()));
            let back = Outbound::with_id(&there, &frame.raw_id().expect("an id")).into_frame();
            assert_eq!(back.text(), frame.text());
        }
        FrameKind::Batch => {
            let mut batches = OpenBatches::default();
            let split = batches.split(&frame);
            let mut reply = split.reply;
            for (entry, slot) in split.forward {
                let Some(slot) = slot else { continue };
                assert!(reply.is_none(), "the array came too early");
                let id = entry.raw_id().expect("an id");
                reply = batches.regroup(slot, Outbound::result(&id, Bytes::from_static(b"null")));
            }
            assert!(batches.is_empty());
            if let Some(reply) = reply {
                let reply = reply.into_frame();
                assert!(
                    reply.entries().iter().all(|entry| matches!(entry.kind(), FrameKind::Result | FrameKind::Error))
                );
            }
        }
        FrameKind::Notification | FrameKind::Malformed | FrameKind::Noise => {}
    }
    if let Some(Ok(inner)) = Successor::open(&frame) {
        let method = inner.method_in(&frame).into_owned();
        let plain = Outbound::call(None, frame.part(inner.method).as_bytes(), frame.share(inner.params)).into_frame();
        // The params of the message inside may be what no message can carry, a number for example.
        if plain.kind() == FrameKind::Notification {
            assert_eq!(plain.method(), method);
            assert_eq!(plain.share(plain.envelope().params), frame.share(inner.params));
        }
    }
});
