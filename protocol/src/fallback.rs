//! A client of version 2 that may have to give way to one of version 1: what a protocol connector does
//! between the first initialize and the moment when one client has the connection (spec §5.6). Pure.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::frame::{Frame, FrameKind};
use crate::id::RawId;
use crate::method;
use crate::negotiate::{Version, to_v1};
use crate::outbound::Outbound;
use crate::refusal::refusal;
use crate::schema::{v1, v2};

/// The initialize of version 2 that waits for its answer.
pub struct Attempt {
    id: RawId,
    /// Whether the client asked for more than version 1, and a client of version 1 could take over.
    may_fall_back: bool,
    /// What a client of version 1 would have to send for the agent to have heard it already.
    heard_as: Option<Value>,
}

/// Shows no payload.
impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Attempt");
        shown.field("may_fall_back", &self.may_fall_back).field("reuse", &self.heard_as.is_some());
        shown.finish_non_exhaustive()
    }
}

/// What happens to something that the agent says meanwhile.
#[derive(Debug)]
pub enum Heard {
    /// It is for the client of version 2, which has the connection from here on.
    Deliver,
    /// The agent speaks version 1: that client takes over.
    FallBack {
        /// Whether it may take the connection as it is, if it [says the same](Attempt::same).
        reuse: bool,
    },
    /// The answer to what came too early. That to a malformed frame counts against the
    /// [`ReplyLimit`](crate::ReplyLimit).
    Refuse(Outbound),
    /// It is dropped, as a client of version 2 drops what comes before its handshake is done.
    Ignore,
}

impl Attempt {
    /// The first message of the client of version 2; `v1` says whether another could take over.
    ///
    /// # Errors
    /// `-32600`: it is no initialize.
    pub fn begin(first: &Frame, v1: bool) -> Result<Self> {
        let id = first
            .raw_id()
            .filter(|_| first.kind() == FrameKind::Request && first.method() == method::INITIALIZE)
            .ok_or_else(|| Error::invalid_request().data("a client's first message must be the request initialize"))?;
        let params = params(first);
        let may_fall_back = v1 && Version::find(params).is_some_and(|asked| asked.number > 1);
        let heard_as = may_fall_back.then(|| lossless(params)).flatten();
        Ok(Self { id, may_fall_back, heard_as })
    }

    /// The client sent something else behind its initialize: the agent knows more than an initialize
    /// by now, and nobody else can take the connection as it is.
    pub fn client_went_on(&mut self) {
        self.heard_as = None;
    }

    /// Decides about a frame of the agent.
    #[must_use]
    pub fn hear(&self, frame: &Frame) -> Heard {
        if frame.kind() == FrameKind::Batch {
            return match frame.entries().iter().find(|entry| self.is_answer(entry)) {
                // What stands beside the answer can be for this client only.
                Some(answer) if self.falls_back(answer) => Heard::FallBack { reuse: false },
                Some(_) => Heard::Deliver,
                None => refused(frame),
            };
        }
        match self.is_answer(frame) {
            true if self.falls_back(frame) => Heard::FallBack { reuse: self.heard_as.is_some() },
            true => Heard::Deliver,
            false => refused(frame),
        }
    }

    /// Whether it is the answer to the initialize, well-formed or not.
    fn is_answer(&self, frame: &Frame) -> bool {
        let response = match frame.kind() {
            FrameKind::Result | FrameKind::Error => true,
            FrameKind::Malformed => frame.malformation().is_some_and(|malformed| malformed.response_shaped),
            _ => false,
        };
        response && frame.raw_id().as_ref() == Some(&self.id)
    }

    fn falls_back(&self, answer: &Frame) -> bool {
        let selected = || Version::find(answer.envelope().result.of(answer.text()));
        self.may_fall_back
            && answer.kind() == FrameKind::Result
            && selected().is_some_and(|selected| selected.number == 1)
    }

    /// The agent's answer for the client of version 1, if `first`, the first message of that client,
    /// says what the agent has heard already; else it needs a connection of its own.
    #[must_use]
    pub fn same(&self, first: &Frame, answer: &Frame) -> Option<Outbound> {
        let heard = self.heard_as.as_ref()?;
        let id = first.raw_id()?;
        if first.kind() != FrameKind::Request || first.method() != method::INITIALIZE {
            return None;
        }
        (unchanged::<v1::InitializeRequest>(params(first))? == *heard).then(|| Outbound::with_id(answer, &id))
    }
}

fn refused(frame: &Frame) -> Heard {
    let too_early = |_: &Frame| Error::invalid_request().data("answer initialize first");
    refusal(frame, too_early).map_or(Heard::Ignore, Heard::Refuse)
}

fn params(frame: &Frame) -> &[u8] {
    frame.envelope().params.of(frame.text())
}

/// The params, if reading them as this type and writing them again changes nothing.
fn unchanged<T: serde::Serialize + serde::de::DeserializeOwned>(params: &[u8]) -> Option<Value> {
    let raw: Value = serde_json::from_slice(params).ok()?;
    // From the text, not from the value: that has lost members which occur twice.
    let read: T = serde_json::from_slice(params).ok()?;
    (serde_json::to_value(read).ok()? == raw).then_some(raw)
}

/// What params of version 2 say in version 1, if that is all that they say.
fn lossless(params: &[u8]) -> Option<Value> {
    let raw = unchanged::<v2::InitializeRequest>(params)?;
    let told: Value = serde_json::from_slice(&to_v1(params)).ok()?;
    let (raw, wrote) = (raw.as_object()?, told.as_object()?);
    let same = |name: &str, as_name: &str| raw.get(name) == wrote.get(as_name);
    let only = |members: &Map<String, Value>, names: &[&str]| members.keys().all(|name| names.contains(&name.as_str()));
    if !only(raw, &["protocolVersion", "info", "capabilities", "_meta"])
        || !same("info", "clientInfo")
        || !same("_meta", "_meta")
    {
        return None;
    }
    let empty = Map::new();
    let members = |value: Option<&Value>| match value {
        None => Some(empty.clone()),
        Some(value) => value.as_object().cloned(),
    };
    let (raw, wrote) = (members(raw.get("capabilities"))?, members(wrote.get("clientCapabilities"))?);
    let kept = |name: &str| raw.get(name) == wrote.get(name);
    if !only(&raw, &["auth", "elicitation", "_meta"]) || !kept("elicitation") || !kept("_meta") {
        return None;
    }
    let (raw, wrote) = (members(raw.get("auth"))?, members(wrote.get("auth"))?);
    let terminal_says_only_yes =
        raw.get("terminal").is_none_or(|terminal| terminal.as_object().is_some_and(Map::is_empty));
    (only(&raw, &["terminal", "_meta"]) && terminal_says_only_yes && raw.get("_meta") == wrote.get("_meta"))
        .then_some(told)
}

#[cfg(test)]
mod tests;
