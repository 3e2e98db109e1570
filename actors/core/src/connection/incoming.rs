//! The incoming protocol: frames in, dispatch steps out.
//!
//! Owns: the limit on answers to malformed input, the count of noise. Supervised by: the connection.
//! When it dies: restarted; a frame is committed only when its step is queued. A frame that breaks
//! it twice is set aside and its request gets an internal error.
//! Ordering promise: steps leave in wire order. The one thing that overtakes is the marker of a
//! cancelled request, which is set on arrival (the notification itself still waits its turn).

use std::sync::Arc;

use bytes::Bytes;
use greenroom_protocol::{
    Batches, Dialect, Error, Frame, FrameKind, Noise, NoiseReport, Outbound, RawId, RemoteStyle, ReplyLimit, RequestId,
    Successor, method,
};
use tokio::time::Instant;

use super::batch::BatchHandle;
use super::call::{CallState, OpenCall};
use super::message::{InboundCall, Step};
use super::shared::Shared;
use crate::port::Inbound;
use crate::runtime::{Flow, Inbox, Permit, Stage};

/// The stage of the incoming protocol.
pub(crate) struct Incoming {
    shared: Arc<Shared>,
    /// Whether the peer is a conductor: then messages come from two logical peers.
    two_peers: bool,
    batches: Batches,
    refusals: ReplyLimit,
    started: Instant,
    noise: Noise,
}

impl Incoming {
    pub(crate) fn new(shared: Arc<Shared>, two_peers: bool, batches: Batches) -> Self {
        Self {
            shared,
            two_peers,
            batches,
            refusals: ReplyLimit::default(),
            started: Instant::now(),
            noise: Noise::default(),
        }
    }

    fn frame(&mut self, frame: Frame, permit: Option<Permit>) {
        match frame.kind() {
            FrameKind::Request | FrameKind::Notification | FrameKind::Result | FrameKind::Error => {
                self.message(frame, permit, None);
            }
            FrameKind::Batch if self.batches == Batches::Accept => self.batch(&frame, permit),
            FrameKind::Batch => self.malformed(&frame.without_batch()),
            FrameKind::Malformed => self.malformed(&frame),
            FrameKind::Noise => self.noise.add(frame.text().len()),
        }
    }

    fn message(&mut self, frame: Frame, permit: Option<Permit>, batch: Option<&BatchHandle>) {
        match frame.kind() {
            FrameKind::Request => self.request(frame, permit, batch),
            FrameKind::Notification => self.notification(frame, permit),
            FrameKind::Result => self.response(&frame, Ok(frame.share(frame.envelope().result)), permit),
            FrameKind::Error => {
                let error = serde_json::from_str(frame.part(frame.envelope().error))
                    .map_err(|_| Error::internal_error().data("the peer's error object is not JSON"))
                    .and_then(Error::from_wire);
                self.response(&frame, Err(error.unwrap_or_else(|unreadable| unreadable)), permit);
            }
            FrameKind::Batch | FrameKind::Malformed | FrameKind::Noise => {}
        }
    }

    fn request(&mut self, frame: Frame, permit: Option<Permit>, batch: Option<&BatchHandle>) {
        // The frame is a valid request, so both are there.
        let (Some(id), Some(raw_id)) = (frame.request_id(), frame.raw_id()) else { return };
        let admitted = self.unwrap(frame, permit).and_then(|call| self.admit(call, &id));
        let call = match admitted {
            Ok(call) => call,
            Err(error) => {
                let answer = Outbound::error(&raw_id, error.to_wire().get().as_bytes().to_vec().into());
                match batch {
                    Some(batch) => batch.refuse(answer),
                    None => drop(self.shared.send_reply(answer)),
                }
                return;
            }
        };
        let slot = batch.map(BatchHandle::reserve);
        let state = CallState::new(id, raw_id, &call, slot, &self.shared);
        self.shared.open_call(&state);
        self.step(Step::Request(call, OpenCall::new(state)));
    }

    /// Asks the guard of the handshake about a request.
    fn admit(&self, call: InboundCall, id: &RequestId) -> Result<InboundCall, Error> {
        let Some(guard) = &self.shared.guard else { return Ok(call) };
        Ok(match guard.receive_request(call.method(), call.peer, id, &call.params_bytes())? {
            None => call,
            Some(params) => call.with_params(&params),
        })
    }

    fn notification(&mut self, frame: Frame, permit: Option<Permit>) {
        match self.unwrap(frame, permit) {
            Ok(call) if self.shared.guard.as_ref().is_some_and(|guard| !guard.receive_notification(call.method())) => {
                tracing::debug!(method = call.method(), "a notification before the handshake was ignored");
            }
            Ok(call) => {
                if call.method() == method::CANCEL_REQUEST {
                    self.mark_cancelled(&call);
                }
                self.step(Step::Notification(call));
            }
            Err(error) => tracing::warn!(
                code = i32::from(error.code),
                reason = error.reason(),
                "a malformed envelope was dropped"
            ),
        }
    }

    /// Peels off the successor envelope, where one may be, and learns the hop's dialect.
    fn unwrap(&mut self, frame: Frame, permit: Option<Permit>) -> Result<InboundCall, Error> {
        if !self.two_peers {
            return Ok(InboundCall::plain(frame, RemoteStyle::Counterpart, permit));
        }
        if let Some(opened) = Successor::open(&frame) {
            let inner = opened?;
            if Dialect::of_successor(&inner.method_in(&frame)).is_some() {
                return Err(Error::invalid_request().data("an envelope inside an envelope"));
            }
            return Ok(InboundCall::wrapped(frame, &inner, permit));
        }
        if let Some(dialect) = Dialect::of_initialize(frame.method()) {
            self.shared.set_dialect(dialect);
        }
        Ok(InboundCall::plain(frame, RemoteStyle::Predecessor, permit))
    }

    fn mark_cancelled(&self, call: &InboundCall) {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            #[serde(deserialize_with = "serde::Deserialize::deserialize")]
            request_id: RequestId,
        }
        // Serde would read an array as the struct, by position.
        let object = Some(call.params_text()).filter(|params| params.starts_with('{'));
        match object.map(serde_json::from_str::<Params>) {
            Some(Ok(params)) => self.shared.cancel_call(&params.request_id),
            Some(Err(_)) | None => tracing::warn!("a cancellation without a usable request id was ignored"),
        }
    }

    fn response(&mut self, frame: &Frame, outcome: Result<Bytes, Error>, permit: Option<Permit>) {
        // Our ids are integers; anything else answers no request of ours.
        match frame.raw_id() {
            Some(RawId::Int(id)) => {
                let outcome = match &self.shared.guard {
                    Some(guard) => guard.receive_answer(id, outcome),
                    None => outcome,
                };
                self.step(Step::Response(id, outcome, permit));
            }
            _ => tracing::debug!("a response to an unknown request was ignored"),
        }
    }

    /// Takes a batch apart. Its credit is held until the last entry is dispatched: the entries share
    /// the memory of the whole.
    fn batch(&mut self, frame: &Frame, permit: Option<Permit>) {
        let batch = BatchHandle::new(&self.shared);
        for entry in frame.entries() {
            if entry.kind() == FrameKind::Malformed {
                if let Some(malformed) = entry.malformation()
                    && !malformed.response_shaped
                {
                    batch.refuse(null_answer(&malformed.error));
                }
                continue;
            }
            self.message(entry.clone(), None, Some(&batch));
        }
        batch.taken_apart(&self.shared);
        self.step(Step::BatchDispatched(batch, permit));
    }

    fn malformed(&mut self, frame: &Frame) {
        let Some(malformed) = frame.malformation() else { return };
        if !malformed.response_shaped {
            let error = malformed.error.clone();
            return self.refuse(&error);
        }
        // A response is never answered, but whoever waits for it must hear that it is unusable.
        if let Some(RequestId::Number(id)) = frame.request_id() {
            let error = Error::internal_error().data("the peer's response is malformed");
            self.step(Step::Response(id, Err(error), None));
        }
    }

    /// Answers with `id: null`, within the limit that keeps two peers from answering each other's
    /// errors for ever.
    fn refuse(&mut self, error: &Error) {
        if !self.refusals.allow(self.started.elapsed()) {
            tracing::debug!("too many malformed messages: not answered");
            return;
        }
        tracing::warn!(code = i32::from(error.code), reason = error.reason(), "a malformed message was refused");
        let _ = self.shared.send_reply(null_answer(error));
    }

    fn report_noise(&self, report: Option<NoiseReport>) {
        if let Some(NoiseReport { lines, bytes, total }) = report {
            tracing::warn!(connection = %self.shared.name, lines, bytes, total, "input that is not JSON was ignored");
        }
    }

    fn step(&self, step: Step) {
        if let Err(refused) = self.shared.steps.send(step) {
            self.shared.undone(refused);
        }
    }
}

fn null_answer(error: &Error) -> Outbound {
    Outbound::error(&RawId::from(&RequestId::Null), error.to_wire().get().as_bytes().to_vec().into())
}

impl Stage for Incoming {
    type Item = Inbound;

    async fn run(&mut self, inbox: &mut Inbox<Inbound>) -> Flow {
        while let Some(item) = inbox.begin() {
            match item {
                Inbound::Frame(..) if self.shared.is_draining() => drop(inbox.commit()),
                Inbound::Frame(frame, permit) => {
                    let (frame, permit) = (frame.clone(), permit.take());
                    self.frame(frame, permit);
                    inbox.commit();
                }
                Inbound::Eof(end) => {
                    let end = end.clone();
                    self.step(Step::Eof(end));
                    inbox.commit();
                    let noise = self.noise.last_report();
                    self.report_noise(noise);
                    return Flow::Finished;
                }
            }
        }
        let noise = self.noise.report(|| self.started.elapsed());
        self.report_noise(noise);
        Flow::Idle
    }

    fn quarantine(&mut self, item: Inbound) {
        if let Inbound::Frame(frame, _) = item
            && frame.kind() == FrameKind::Request
            && let Some(id) = frame.raw_id()
        {
            let error = Error::internal_error().data("this request could not be read");
            let _ = self.shared.send_reply(Outbound::error(&id, error.to_wire().get().as_bytes().to_vec().into()));
        }
    }
}
