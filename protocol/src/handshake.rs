//! The guard of a connection's initialization: which messages may pass before it, who may begin it,
//! and which version it may select (spec §5.1, §5.3, §5.5, §5.7). A pure state machine.
//!
//! The owner asks about every message until [`is_settled`](Handshake::is_settled) says that only
//! messages of the handshake matter any more.

use bytes::Bytes;

use crate::dialect::Dialect;
use crate::error::{Error, Result};
use crate::id::RequestId;
use crate::method;
use crate::negotiate::{Version, invalid_version, to_v1, unsupported_version};
use crate::role::RemoteStyle;

/// The kind of endpoint that a guard stands in front of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A client of version 1.
    V1Client,
    /// An agent of version 1. `guarded`: it handles `initialize` by its type, so other requests are
    /// refused before.
    V1Agent {
        /// See above.
        guarded: bool,
    },
    /// A proxy of version 1.
    V1Proxy(ProxyVersions),
    /// A client of version 2.
    #[cfg(feature = "unstable_protocol_v2")]
    V2Client,
    /// An agent of version 2.
    #[cfg(feature = "unstable_protocol_v2")]
    V2Agent,
    /// A proxy of version 2.
    #[cfg(feature = "unstable_protocol_v2")]
    V2Proxy(ProxyVersions),
}

impl Endpoint {
    /// Whether it is a client of version 2.
    #[must_use]
    pub fn is_v2_client(self) -> bool {
        #[cfg(feature = "unstable_protocol_v2")]
        return self == Self::V2Client;
        #[cfg(not(feature = "unstable_protocol_v2"))]
        return false;
    }
}

/// What a proxy does about a version that is not its own (spec §9, decision 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyVersions {
    /// Spoken to in the legacy dialect it refuses, spoken to in the modern one it negotiates.
    #[default]
    ByDialect,
    /// It refuses.
    Exact,
    /// It negotiates, as an agent does.
    Negotiate,
}

impl ProxyVersions {
    /// Whether only the proxy's own version will do, for one that is spoken to in this dialect.
    pub(crate) fn is_exact(self, dialect: Option<Dialect>) -> bool {
        match self {
            Self::ByDialect => dialect == Some(Dialect::Legacy),
            Self::Exact => true,
            Self::Negotiate => false,
        }
    }
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Uninitialized,
    Initializing,
    Ready,
}

/// See the module documentation.
#[derive(Debug)]
pub struct Handshake {
    endpoint: Endpoint,
    phase: Phase,
    /// Whether an earlier handshake succeeded: a failed repetition falls back to it.
    succeeded: bool,
    /// Whether a repetition is still allowed.
    repeatable: bool,
    /// The peer's initialize that is being answered.
    answering: Option<RequestId>,
    /// Our own initialize that waits for its answer.
    asking: Option<Asking>,
}

#[derive(Clone, Copy, Debug)]
struct Asking {
    id: i64,
    /// Whether a lower version is an answer and no error.
    lower_allowed: bool,
}

impl Handshake {
    /// A connection that was not initialized yet.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            phase: Phase::Uninitialized,
            succeeded: false,
            repeatable: true,
            answering: None,
            asking: None,
        }
    }

    /// Whether ordinary messages may pass without asking, for the rest of the connection.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let waits_for_others = self.is_strict() || matches!(self.endpoint, Endpoint::V1Agent { guarded: true });
        !waits_for_others || (self.phase == Phase::Ready && (!self.repeatable || !self.is_strict()))
    }

    /// Whether nothing has to be asked except about messages that begin a handshake.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.is_settled() && self.answering.is_none() && self.asking.is_none()
    }

    /// Whether a request with this method begins a handshake.
    #[must_use]
    pub fn is_begun_by(method: &str) -> bool {
        method == method::INITIALIZE || Dialect::of_initialize(method).is_some()
    }

    /// The version that this endpoint speaks.
    fn version(&self) -> u16 {
        match self.endpoint {
            Endpoint::V1Client | Endpoint::V1Agent { .. } | Endpoint::V1Proxy(_) => 1,
            #[cfg(feature = "unstable_protocol_v2")]
            Endpoint::V2Client | Endpoint::V2Agent | Endpoint::V2Proxy(_) => 2,
        }
    }

    /// Whether nothing but the handshake may pass before it.
    fn is_strict(&self) -> bool {
        #[cfg(feature = "unstable_protocol_v2")]
        return matches!(self.endpoint, Endpoint::V2Client | Endpoint::V2Agent);
        #[cfg(not(feature = "unstable_protocol_v2"))]
        return false;
    }

    fn is_client(&self) -> bool {
        #[cfg(feature = "unstable_protocol_v2")]
        if self.endpoint == Endpoint::V2Client {
            return true;
        }
        self.endpoint == Endpoint::V1Client
    }

    fn proxy(&self) -> Option<ProxyVersions> {
        match self.endpoint {
            Endpoint::V1Proxy(versions) => Some(versions),
            #[cfg(feature = "unstable_protocol_v2")]
            Endpoint::V2Proxy(versions) => Some(versions),
            _ => None,
        }
    }

    // --- what comes in --------------------------------------------------------------------------

    /// A request of the peer. Gives the params to hand on where they have to change.
    ///
    /// # Errors
    /// What to answer instead of handing it on.
    pub fn receive_request(
        &mut self,
        method: &str,
        from: RemoteStyle,
        id: &RequestId,
        params: &Bytes,
    ) -> Result<Option<Bytes>> {
        let proxy_initialize = Dialect::of_initialize(method);
        let begins = match self.proxy() {
            None => method == method::INITIALIZE,
            Some(_) if method == method::INITIALIZE => return Err(misplaced(NOT_FOR_PROXIES)),
            Some(_) if proxy_initialize.is_some() && from == RemoteStyle::Successor => {
                return Err(misplaced("an initialize must not come from the successor"));
            }
            Some(_) => proxy_initialize.is_some(),
        };
        if !begins {
            return self.other_request_received().map(|()| None);
        }
        if self.is_client() {
            return if self.is_strict() {
                Err(misplaced("an initialize must not come from the agent"))
            } else {
                Ok(None)
            };
        }
        if self.is_strict() {
            self.may_begin()?;
        }
        let params = self.select(proxy_initialize, params)?;
        self.phase = Phase::Initializing;
        self.answering = Some(id.clone());
        Ok(params)
    }

    fn other_request_received(&mut self) -> Result<()> {
        match (self.phase, self.is_strict() || matches!(self.endpoint, Endpoint::V1Agent { guarded: true })) {
            (Phase::Uninitialized | Phase::Initializing, true) if !self.succeeded || self.is_strict() => {
                Err(misplaced("this connection is not initialized: send initialize first"))
            }
            _ => {
                if !self.is_client() {
                    self.repeatable = false;
                }
                Ok(())
            }
        }
    }

    /// A notification of the peer. False: it is ignored.
    #[must_use]
    pub fn receive_notification(&self, method: &str) -> bool {
        match self.phase {
            _ if !self.is_strict() => true,
            Phase::Ready => true,
            Phase::Initializing => method == method::CANCEL_REQUEST,
            Phase::Uninitialized => false,
        }
    }

    /// Which version the peer's initialize selects, as params for the handler.
    fn select(&self, dialect: Option<Dialect>, params: &Bytes) -> Result<Option<Bytes>> {
        let asked = Version::find(params).ok_or_else(invalid_version)?;
        let (ours, requested) = (self.version(), asked.number);
        let exact = self.proxy().is_some_and(|versions| versions.is_exact(dialect));
        if exact && requested != ours {
            return Err(misplaced(&format!("this proxy speaks protocol version {ours}, not {requested}")));
        }
        match (ours, requested) {
            (1, 0) => Ok(Some(asked.replaced(params, 1))),
            (1, 1) => Ok(None),
            (1, _) => Ok(Some(to_v1(params))),
            #[cfg(feature = "unstable_protocol_v2")]
            (2, 2) => match serde_json::from_slice::<crate::schema::v2::InitializeRequest>(params) {
                Ok(_) => Ok(None),
                Err(_) => Err(Error::invalid_params().data("the params of initialize do not fit protocol version 2")),
            },
            #[cfg(feature = "unstable_protocol_v2")]
            (2, 3..) => Ok(Some(crate::negotiate::to_v2(params))),
            _ => Err(unsupported_version(requested, &[ours])),
        }
    }

    /// Our answer to a request of the peer; only that to its initialize is looked at. Gives what to
    /// send.
    pub fn answer(&mut self, id: &RequestId, outcome: Result<Bytes>) -> Result<Bytes> {
        if self.answering.as_ref() != Some(id) {
            return outcome;
        }
        self.answering = None;
        let checked = outcome.and_then(|result| self.selected(&result));
        self.finished(checked.is_ok());
        checked
    }

    /// The result of an initialize, with the version that this side really speaks.
    fn selected(&self, result: &Bytes) -> Result<Bytes> {
        // A proxy passes on what its successor selected.
        if self.proxy().is_some() {
            return Ok(result.clone());
        }
        let found = Version::find(result)
            .ok_or_else(|| Error::internal_error().data("the result of initialize has no valid protocolVersion"))?;
        #[cfg(feature = "unstable_protocol_v2")]
        if self.version() == 2 && serde_json::from_slice::<crate::schema::v2::InitializeResponse>(result).is_err() {
            return Err(Error::internal_error().data("the result of initialize does not fit protocol version 2"));
        }
        Ok(found.replaced(result, self.version()))
    }

    fn finished(&mut self, success: bool) {
        self.succeeded |= success;
        self.phase = if self.succeeded { Phase::Ready } else { Phase::Uninitialized };
    }

    /// Whether a handshake may begin now.
    fn may_begin(&self) -> Result<()> {
        match self.phase {
            Phase::Initializing => Err(misplaced("an initialize is in progress")),
            Phase::Ready if !self.repeatable => Err(misplaced("this connection is initialized and in use")),
            Phase::Ready | Phase::Uninitialized => Ok(()),
        }
    }

    // --- what goes out --------------------------------------------------------------------------

    /// A request of ours, before it is sent. Gives the params to send where they have to change.
    ///
    /// # Errors
    /// Why it must not be sent.
    pub fn send_request(&mut self, method: &str, to: RemoteStyle, id: i64, params: &Bytes) -> Result<Option<Bytes>> {
        if self.proxy().is_some() {
            return self.proxy_sends(method, to, id);
        }
        if method != method::INITIALIZE {
            if self.is_strict() && self.phase != Phase::Ready {
                return Err(misplaced("this connection is not initialized: wait for the answer to initialize"));
            }
            if self.is_client() {
                self.repeatable = false;
            }
            return Ok(None);
        }
        if !self.is_client() {
            return if self.is_strict() { Err(misplaced("an agent does not send initialize")) } else { Ok(None) };
        }
        if self.is_strict() {
            self.may_begin()?;
        }
        self.phase = Phase::Initializing;
        self.asking = Some(Asking { id, lower_allowed: false });
        // Whatever the application wrote: this side speaks one version.
        let ours = self.version();
        Ok(Version::find(params).filter(|asked| asked.number != ours).map(|asked| asked.replaced(params, ours)))
    }

    fn proxy_sends(&mut self, method: &str, to: RemoteStyle, id: i64) -> Result<Option<Bytes>> {
        if Dialect::of_initialize(method).is_some() || Dialect::of_successor(method).is_some() {
            return Err(misplaced("a proxy sends plain messages to its successor; the envelope is put around them"));
        }
        if method == method::INITIALIZE {
            if to != RemoteStyle::Successor {
                return Err(misplaced("a proxy sends initialize only to its successor"));
            }
            self.asking = Some(Asking { id, lower_allowed: self.version() == 1 });
        }
        Ok(None)
    }

    /// Lets the answer to our initialize with this id select a lower version.
    pub fn allow_lower(&mut self, id: i64) {
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.id == id) {
            asking.lower_allowed = true;
        }
    }

    /// A notification of ours, before it is sent.
    ///
    /// # Errors
    /// Why it must not be sent.
    pub fn send_notification(&self, method: &str) -> Result<()> {
        let allowed = match self.phase {
            _ if !self.is_strict() => true,
            Phase::Ready => true,
            Phase::Initializing => method == method::CANCEL_REQUEST,
            Phase::Uninitialized => false,
        };
        if allowed {
            Ok(())
        } else {
            Err(misplaced("this connection is not initialized: wait for the answer to initialize"))
        }
    }

    /// The answer to a request of ours; only that to our initialize is looked at. Gives what the
    /// caller gets.
    pub fn receive_answer(&mut self, id: i64, outcome: Result<Bytes>) -> Result<Bytes> {
        let Some(asking) = self.asking.filter(|asking| asking.id == id) else { return outcome };
        self.asking = None;
        let (mut ready, ours) = (false, self.version());
        let checked = outcome.and_then(|result| match Version::find(&result) {
            Some(selected) if selected.number == ours && !self.is_answer(&result) => {
                Err(misplaced(&format!("the agent's initialize result does not fit protocol version {ours}")))
            }
            Some(selected) if selected.number == ours => {
                ready = true;
                Ok(result)
            }
            // The caller decides what to do with it; nothing is initialized.
            Some(selected) if asking.lower_allowed && selected.number < ours => Ok(result),
            Some(selected) => Err(misplaced(&format!(
                "this side requires protocol version {ours}, and the agent selected {}",
                selected.number
            ))),
            None => Err(misplaced("the agent's initialize result has no valid protocolVersion")),
        });
        // The phase of a proxy is that of the handshake with its conductor.
        if self.proxy().is_none() {
            self.finished(ready);
        }
        checked
    }

    /// Whether a result that selects the version of a strict client is one: what the caller could not
    /// read must not open the connection. A proxy passes it on and leaves that to its client.
    fn is_answer(&self, result: &Bytes) -> bool {
        #[cfg(feature = "unstable_protocol_v2")]
        if self.is_strict() && self.proxy().is_none() {
            return serde_json::from_slice::<crate::schema::v2::InitializeResponse>(result).is_ok();
        }
        let _ = result;
        true
    }

    /// Our request with this id was not sent after all, or will never be answered.
    pub fn unsent(&mut self, id: i64) {
        if self.asking.is_some_and(|asking| asking.id == id) {
            self.asking = None;
            if self.proxy().is_none() {
                self.finished(false);
            }
        }
    }
}

const NOT_FOR_PROXIES: &str = "a proxy is initialized by its conductor, not by a plain initialize";

fn misplaced(reason: &str) -> Error {
    Error::invalid_request().data(reason)
}

#[cfg(test)]
mod tests;
