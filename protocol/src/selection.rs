//! Which implementation serves a connection: what a protocol router does with what comes in before
//! one is selected (spec §5.2, §5.3). Pure.
//!
//! An agent's router whose version 1 is configured hands it everything that does not select version
//! 2, so that it answers as it would alone. A proxy's router selects by its initialize and by nothing
//! else, because a conductor may try both spellings of that (spec §3.5).

use bytes::Bytes;

use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::frame::{Frame, FrameKind};
use crate::handshake::ProxyVersions;
use crate::id::RequestId;
use crate::malformed::malformed_reply;
use crate::method;
use crate::negotiate::{Version, invalid_version, to_v1, unsupported_version};
use crate::outbound::Outbound;
use crate::refusal::refusal;
use crate::schema::v1;

/// One of the implementations behind a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// That of version 1.
    V1,
    /// That of version 2.
    #[cfg(feature = "unstable_protocol_v2")]
    V2,
}

/// Which implementations a router has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Implementations {
    /// One of version 1.
    pub v1: bool,
    /// One of version 2.
    #[cfg(feature = "unstable_protocol_v2")]
    pub v2: bool,
}

impl Implementations {
    fn v2(self) -> bool {
        #[cfg(feature = "unstable_protocol_v2")]
        return self.v2;
        #[cfg(not(feature = "unstable_protocol_v2"))]
        return false;
    }

    /// Their versions, the lowest first.
    fn versions(self) -> Vec<u16> {
        [(self.v1, 1), (self.v2(), 2)].into_iter().filter_map(|(there, version)| there.then_some(version)).collect()
    }
}

/// What happens to a frame that comes before an implementation is selected.
#[derive(Debug)]
pub enum Choice {
    /// This implementation serves the connection from here on. It gets this frame first: the one that
    /// came, except for params that asked for another version.
    Selected(Implementation, Frame),
    /// Nothing is selected, and this is the answer. That to a malformed frame counts against the
    /// [`ReplyLimit`](crate::ReplyLimit).
    Answer(Outbound),
    /// Nothing is selected, and nothing is answered.
    Ignored,
}

/// The rules of one router.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    implementations: Implementations,
    /// Set for a proxy's router.
    proxy: Option<ProxyVersions>,
}

/// What a request selects, and its params where they have to change.
type Selected = (Implementation, Option<Bytes>);

impl Selection {
    /// The rules of an agent's router.
    #[must_use]
    pub fn agent(implementations: Implementations) -> Self {
        Self { implementations, proxy: None }
    }

    /// The rules of a proxy's router.
    #[must_use]
    pub fn proxy(implementations: Implementations, versions: ProxyVersions) -> Self {
        Self { implementations, proxy: Some(versions) }
    }

    /// Decides about one frame.
    #[must_use]
    pub fn choose(&self, frame: &Frame) -> Choice {
        match frame.kind() {
            FrameKind::Request => match self.request(frame) {
                Ok((implementation, None)) => Choice::Selected(implementation, frame.clone()),
                Ok((implementation, Some(params))) => Choice::Selected(implementation, with_params(frame, &params)),
                Err(error) => refused(frame, |_| error.clone()),
            },
            FrameKind::Batch => self.batch(frame),
            FrameKind::Malformed => match malformed_reply(frame) {
                // It would be answered in the same way, and there is nothing to choose.
                Some(_) if self.implementations.versions() == [1] => self.as_it_is(frame),
                Some(answer) => Choice::Answer(answer),
                None => Choice::Ignored,
            },
            FrameKind::Notification | FrameKind::Result | FrameKind::Error | FrameKind::Noise => Choice::Ignored,
        }
    }

    /// Only the first call of a batch can select (spec §1.B, B7).
    fn batch(&self, frame: &Frame) -> Choice {
        let is_call = |entry: &&Frame| {
            matches!(entry.kind(), FrameKind::Request | FrameKind::Notification) || malformed_reply(entry).is_some()
        };
        let Some(first) = frame.entries().iter().find(is_call) else { return Choice::Ignored };
        let selected = match first.kind() {
            FrameKind::Request => self.request(first),
            // Nobody would answer it, so nobody has to see it.
            _ if refusal(frame, |_| too_early()).is_none() => return Choice::Ignored,
            _ => self.fallback().ok_or_else(too_early),
        };
        match selected {
            Ok((implementation, None)) => Choice::Selected(implementation, frame.clone()),
            Ok((implementation, Some(params))) => {
                let entries: Vec<Outbound> = frame
                    .entries()
                    .iter()
                    .map(|entry| if std::ptr::eq(entry, first) { with_params(entry, &params) } else { entry.clone() })
                    .map(|entry| Outbound::whole(&entry))
                    .collect();
                Choice::Selected(implementation, Outbound::array(&entries).into_frame())
            }
            Err(error) => refused(frame, |entry| if std::ptr::eq(entry, first) { error.clone() } else { too_early() }),
        }
    }

    /// What a request selects, or why it selects nothing.
    fn request(&self, frame: &Frame) -> Result<Selected> {
        let dialect = Dialect::of_initialize(frame.method());
        let begins = if self.proxy.is_some() { dialect.is_some() } else { frame.method() == method::INITIALIZE };
        if !begins {
            return self.fallback().ok_or_else(|| if self.proxy.is_some() { not_of_a_proxy() } else { too_early() });
        }
        let params =
            if frame.envelope().params.is_present() { frame.share(frame.envelope().params) } else { Bytes::new() };
        let Some(asked) = Version::find(&params) else { return self.fallback().ok_or_else(invalid_version) };
        let has_id = frame.request_id() != Some(RequestId::Null);
        match self.proxy {
            Some(versions) if versions.is_exact(dialect) => self.exact(asked, &params, has_id),
            Some(_) | None => self.negotiate(asked, &params, has_id),
        }
    }

    /// What an agent of version 1 gets that selects nothing else.
    fn fallback(&self) -> Option<Selected> {
        (self.implementations.v1 && self.proxy.is_none()).then_some((Implementation::V1, None))
    }

    fn as_it_is(&self, frame: &Frame) -> Choice {
        match self.fallback() {
            Some((implementation, _)) => Choice::Selected(implementation, frame.clone()),
            None => malformed_reply(frame).map_or(Choice::Ignored, Choice::Answer),
        }
    }

    fn negotiate(&self, asked: Version, params: &Bytes, has_id: bool) -> Result<Selected> {
        match asked.number {
            2.. if self.implementations.v2() => select_v2(asked, params, has_id),
            0 if self.implementations.v1 => Ok((Implementation::V1, Some(asked.replaced(params, 1)))),
            1 if self.implementations.v1 => self.select_v1(params),
            2.. if self.implementations.v1 => Ok((Implementation::V1, Some(to_v1(params)))),
            requested => Err(unsupported_version(requested, &self.implementations.versions())),
        }
    }

    /// The conductor has selected the version already (spec §5.3).
    fn exact(&self, asked: Version, params: &Bytes, has_id: bool) -> Result<Selected> {
        match asked.number {
            1 if self.implementations.v1 => self.select_v1(params),
            2 if self.implementations.v2() => select_v2(asked, params, has_id),
            requested => {
                let ours = match self.implementations.versions()[..] {
                    [] => "no protocol version".to_owned(),
                    [one] => format!("protocol version {one}"),
                    _ => "protocol versions 1 and 2".to_owned(),
                };
                Err(Error::invalid_request().data(format!("this proxy speaks {ours}, not {requested}")))
            }
        }
    }

    fn select_v1(&self, params: &Bytes) -> Result<Selected> {
        // An agent says itself what is wrong with them.
        if self.proxy.is_some() && serde_json::from_slice::<v1::InitializeRequest>(params).is_err() {
            return Err(unfit(1));
        }
        Ok((Implementation::V1, None))
    }
}

#[cfg(feature = "unstable_protocol_v2")]
fn select_v2(asked: Version, params: &Bytes, has_id: bool) -> Result<Selected> {
    if !has_id {
        return Err(
            Error::invalid_request().data("the id of a request of protocol version 2 is a string or an integer")
        );
    }
    if asked.number > 2 {
        return Ok((Implementation::V2, Some(crate::negotiate::to_v2(params))));
    }
    match serde_json::from_slice::<crate::schema::v2::InitializeRequest>(params) {
        Ok(_) => Ok((Implementation::V2, None)),
        Err(_) => Err(unfit(2)),
    }
}

/// There is no implementation of version 2.
#[cfg(not(feature = "unstable_protocol_v2"))]
fn select_v2(asked: Version, _params: &Bytes, _has_id: bool) -> Result<Selected> {
    Err(unsupported_version(asked.number, &[]))
}

fn refused(frame: &Frame, error: impl Fn(&Frame) -> Error) -> Choice {
    refusal(frame, error).map_or(Choice::Ignored, Choice::Answer)
}

fn unfit(version: u16) -> Error {
    Error::invalid_params().data(format!("the params of initialize do not fit protocol version {version}"))
}

fn too_early() -> Error {
    Error::invalid_request().data("the first request must be initialize")
}

fn not_of_a_proxy() -> Error {
    Error::invalid_request()
        .data("the first request to a proxy must be proxy/initialize or _proxy/initialize, from its conductor")
}

/// The frame with other params; every other byte stays.
fn with_params(frame: &Frame, params: &[u8]) -> Frame {
    let (text, span) = (frame.text(), frame.envelope().params);
    let mut changed = Vec::with_capacity(text.len() + params.len());
    changed.extend_from_slice(&text[..span.start()]);
    changed.extend_from_slice(params);
    changed.extend_from_slice(&text[span.end()..]);
    Frame::parse(changed.into())
}

#[cfg(test)]
mod tests;
