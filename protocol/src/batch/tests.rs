use bytes::Bytes;

use super::*;
use crate::id::RawId;

/// What happens to a batch, in order; slots are numbered as they are taken.
enum Step {
    Slot,
    Dispatched,
    Settle(usize, &'static str),
    Abandon(usize),
}

use Step::{Abandon, Dispatched, Settle, Slot as Take};

/// Plays steps on one batch and returns what came out, with the step at which it came.
fn play(entries: usize, steps: &[Step]) -> Vec<(usize, Vec<&'static str>)> {
    let mut batches = OpenBatches::default();
    let batch = batches.open(entries);
    let (mut slots, mut out) = (Vec::new(), Vec::new());
    for (index, step) in steps.iter().enumerate() {
        let replies = match step {
            Take => {
                slots.push(batches.take_slot(batch));
                None
            }
            Dispatched => batches.dispatched(batch),
            Settle(slot, reply) => batches.settle(slots[*slot], *reply),
            Abandon(slot) => batches.abandon(slots[*slot]),
        };
        out.extend(replies.map(|replies| (index, replies)));
    }
    out
}

#[test]
fn the_array_comes_once_and_only_when_everything_is_settled_and_dispatched() {
    for (name, entries, steps, expected) in [
        ("settled at once", 1, vec![Take, Settle(0, "a"), Dispatched], vec![(2, vec!["a"])]),
        ("settled later", 1, vec![Take, Dispatched, Settle(0, "a")], vec![(2, vec!["a"])]),
        ("still waiting", 2, vec![Take, Dispatched, Take, Dispatched, Settle(1, "b")], vec![]),
        ("not all dispatched", 2, vec![Take, Dispatched, Settle(0, "a")], vec![]),
        (
            "in the order of the slots, not of the answers",
            3,
            vec![Take, Dispatched, Dispatched, Take, Dispatched, Settle(1, "b"), Settle(0, "a")],
            vec![(6, vec!["a", "b"])],
        ),
        (
            "a second completion changes nothing",
            2,
            vec![
                Take,
                Settle(0, "a"),
                Settle(0, "again"),
                Dispatched,
                Take,
                Dispatched,
                Settle(0, "x"),
                Settle(1, "b"),
            ],
            vec![(7, vec!["a", "b"])],
        ),
        (
            "nothing comes after the array",
            1,
            vec![Take, Settle(0, "a"), Dispatched, Settle(0, "x"), Dispatched, Take, Settle(1, "y"), Dispatched],
            vec![(2, vec!["a"])],
        ),
        ("notifications only", 3, vec![Dispatched, Dispatched, Dispatched], vec![]),
        (
            "an abandoned slot leaves no gap",
            2,
            vec![Take, Dispatched, Take, Dispatched, Settle(1, "b"), Abandon(1), Abandon(0), Settle(0, "x")],
            vec![(6, vec!["b"])],
        ),
        ("all abandoned", 1, vec![Take, Dispatched, Abandon(0)], vec![]),
    ] {
        assert_eq!(play(entries, &steps), expected, "{name}");
    }
}

#[test]
fn overlapping_batches_do_not_mix() {
    let mut batches = OpenBatches::default();
    let (first, second) = (batches.open(1), batches.open(1));
    let (a, b) = (batches.take_slot(first), batches.take_slot(second));
    assert_eq!(batches.dispatched(first), None);
    assert_eq!(batches.dispatched(second), None);
    assert_eq!(batches.settle(b, "b"), Some(vec!["b"]), "not held up by the other batch");
    assert!(batches.is_awaited(a) && !batches.is_awaited(b));
    assert_eq!(batches.settle(a, "a"), Some(vec!["a"]));
    assert!(batches.is_empty(), "complete batches are forgotten");
    let late = batches.open(1);
    let slot = batches.take_slot(late);
    batches.clear();
    assert_eq!(batches.settle(slot, "late"), None);
    assert_eq!(batches.dispatched(late), None);
}

fn frame(text: &str) -> Frame {
    Frame::parse(Bytes::copy_from_slice(text.as_bytes()))
}

fn text(outbound: Outbound) -> String {
    String::from_utf8(outbound.into_text().to_vec()).expect("utf-8")
}

#[test]
fn entries_are_sorted_by_what_they_want() {
    let batch = frame(
        r#"[{"jsonrpc":"2.0","id":1,"method":"m"}, {"jsonrpc":"2.0","method":"m"}, {"jsonrpc":"2.0","id":1,"result":1},
            {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}, {"jsonrpc":"2.0","id":1}, 7, "{", [], null,
            {"jsonrpc":"2.0","result":1}, {"jsonrpc":"2.0","id":1,"error":1}]"#,
    );
    let roles: Vec<&str> = batch
        .entries()
        .iter()
        .map(|entry| match EntryRole::of(entry) {
            EntryRole::Call => "call",
            EntryRole::OneWay => "one way",
            EntryRole::Refused(reply) => {
                let reply = text(reply);
                assert!(reply.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#), "{reply}");
                "refused"
            }
            EntryRole::Ignored => "ignored",
        })
        .collect();
    let expected = [&["call"][..], &["one way"; 3], &["refused"; 5], &["ignored"; 2]].concat();
    assert_eq!(roles, expected);
}

#[test]
fn a_relay_splits_a_batch_and_regroups_the_replies() {
    let mut batches = OpenBatches::default();
    let batch = frame(
        r#"[{"jsonrpc":"2.0","id":7,"method":"a"},5,{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":7,"method":"b"}]"#,
    );
    let split = batches.split(&batch);
    assert!(split.reply.is_none());
    let forwarded: Vec<_> = split.forward.iter().map(|(entry, slot)| (entry.method(), slot.is_some())).collect();
    assert_eq!(forwarded, [("a", true), ("n", false), ("b", true)]);
    let slots: Vec<Slot> = split.forward.iter().filter_map(|(_, slot)| *slot).collect();

    let id = RawId::Int(7);
    let restored = |text: &str| Outbound::with_id(&frame(text), &id);
    assert!(batches.regroup(slots[1], restored(r#"{"jsonrpc":"2.0","id":"x","result":{"of":"b"}}"#)).is_none());
    assert!(batches.regroup(slots[1], restored(r#"{"jsonrpc":"2.0","id":"x","result":0}"#)).is_none());
    let array = batches.regroup(slots[0], restored(r#"{"jsonrpc":"2.0","id":"y","result":null}"#)).expect("complete");
    let array = frame(&text(array));
    assert_eq!(array.kind(), FrameKind::Batch);
    let replies: Vec<&[u8]> = array.entries().iter().map(|entry| &entry.text()[..]).collect();
    assert_eq!(replies[0], br#"{"jsonrpc":"2.0","id":7,"result":null}"#);
    assert!(replies[1].starts_with(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"#));
    assert_eq!(replies[2], br#"{"jsonrpc":"2.0","id":7,"result":{"of":"b"}}"#);
    assert!(batches.is_empty());
}

#[test]
fn a_batch_that_wants_nothing_from_the_next_hop_is_answered_at_once() {
    let mut batches = OpenBatches::default();
    let batch = frame(r#"[{"jsonrpc":"2.0","method":"n"},5]"#);
    let split = batches.split(&batch);
    let array = frame(&text(split.reply.expect("only the malformed entry is answered")));
    assert_eq!((split.forward.len(), array.entries().len()), (1, 1));
    let batch = frame(r#"[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":1,"result":1}]"#);
    let split = batches.split(&batch);
    assert!(split.reply.is_none(), "notifications and responses are never answered");
    assert_eq!(split.forward.len(), 2);
    assert!(batches.is_empty());
    assert!(batches.split(&frame("[]")).forward.is_empty(), "an empty array is malformed, not a batch");
    assert!(batches.is_empty());
}
