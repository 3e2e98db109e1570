//! Protocol routers: the first request of a connection selects who serves it.

use std::fmt;

use greenroom_protocol::selection::{Choice, Implementation, Implementations, Selection};
use greenroom_protocol::{Batches, Channel, ConnectionDriver, Frame, FrameKind, Origin, ReplyLimit, Result, refusal};
use tokio::time::Instant;

use crate::component::{ConnectTo, DynConnectTo};
use crate::link::Link;
use crate::options::ConnectionOptions;
use crate::port::{EndOfInput, Inbound};
use crate::relay::{Side, join_sides};
use crate::role::Role;
use crate::role::acp::{Agent, Client, Conductor, Proxy};
use crate::runtime::{Node, Permit};

/// The implementations that a router has, and how it treats what selects none of them.
struct Router<R: Role> {
    v1: Option<DynConnectTo<R>>,
    #[cfg(feature = "unstable_protocol_v2")]
    v2: Option<DynConnectTo<R>>,
    options: ConnectionOptions,
    close_after_rejection: bool,
}

/// How the time before a selection ends.
enum Selected {
    /// This implementation serves the connection, and gets this frame first.
    By(Implementation, Frame, Option<Permit>),
    /// Nothing was selected, and nothing more may be tried.
    Rejected,
    /// Nothing was selected before the end of the input.
    Ended(EndOfInput),
}

impl<R: Role> Router<R> {
    fn new() -> Self {
        Self {
            v1: None,
            #[cfg(feature = "unstable_protocol_v2")]
            v2: None,
            options: ConnectionOptions::default(),
            close_after_rejection: false,
        }
    }

    fn implementations(&self) -> Implementations {
        Implementations {
            v1: self.v1.is_some(),
            #[cfg(feature = "unstable_protocol_v2")]
            v2: self.v2.is_some(),
        }
    }

    fn take(&mut self, implementation: Implementation) -> Option<DynConnectTo<R>> {
        match implementation {
            Implementation::V1 => self.v1.take(),
            #[cfg(feature = "unstable_protocol_v2")]
            Implementation::V2 => self.v2.take(),
        }
    }

    async fn serve(mut self, selection: Selection, link: Link) -> Result<()> {
        let link = match self.options.batches {
            Batches::Accept => link,
            refused @ Batches::Reject => link.with_batches(refused),
        };
        let node = Node::root("protocol-router", "protocol-router");
        let mut peer = Side::start(link, &node, "peer", &self.options).await?;
        let (component, first, permit) = match select(selection, self.close_after_rejection, &mut peer).await {
            Selected::By(implementation, first, permit) => match self.take(implementation) {
                Some(component) => (component, first, permit),
                // Never: the rules select what is there.
                None => return peer.close().await,
            },
            Selected::Rejected => return peer.close().await,
            Selected::Ended(end) => {
                // As everywhere: a peer that vanished has ended its input.
                return match end.error.filter(|error| error.origin() != Origin::PeerGone) {
                    Some(broken) => peer.close().await.and(Err(broken)),
                    None => peer.finish().await,
                };
            }
        };
        match Side::start(component.into_link(), &node, "implementation", &self.options).await {
            Ok(served) => {
                peer.unread(Inbound::Frame(first, permit));
                join_sides(peer, served, std::future::pending()).await
            }
            Err(error) => {
                if let Some(answer) = refusal(&first, |_| error.clone()) {
                    peer.send(answer, permit);
                }
                // That it did not start is what counts.
                let _ = peer.close().await;
                Err(error)
            }
        }
    }
}

/// Answers what selects nothing, until something does.
async fn select(selection: Selection, close_after_rejection: bool, peer: &mut Side) -> Selected {
    let (mut refusals, began) = (ReplyLimit::default(), Instant::now());
    loop {
        let (frame, permit) = match peer.next().await {
            Inbound::Frame(frame, permit) => (frame, permit),
            Inbound::Eof(end) => return Selected::Ended(end),
        };
        match selection.choose(&frame) {
            Choice::Selected(implementation, first) => return Selected::By(implementation, first, permit),
            Choice::Answer(answer) => {
                if frame.kind() == FrameKind::Malformed && !refusals.allow(began.elapsed()) {
                    continue;
                }
                tracing::debug!(bytes = frame.text().len(), "a message selected no implementation and was refused");
                peer.send(answer, permit);
                if close_after_rejection {
                    return Selected::Rejected;
                }
            }
            Choice::Ignored => {
                tracing::debug!(bytes = frame.text().len(), "a message before the first request was ignored");
            }
        }
    }
}

macro_rules! protocol_router {
    ($(#[$doc:meta])* $router:ident, $host:ident, $peer:ident, $rules:expr) => {
        $(#[$doc])*
        #[must_use = "a router does nothing until it is connected"]
        pub struct $router {
            router: Router<$peer>,
        }

        impl $router {
            /// A router without implementations: it serves no version.
            pub fn new() -> Self {
                Self { router: Router::new() }
            }

            /// Adds the implementation of version 1, in place of an earlier one. It is started when it
            /// is selected.
            pub fn with_v1(mut self, component: impl ConnectTo<$peer>) -> Self {
                self.router.v1 = Some(DynConnectTo::new(component));
                self
            }

            /// Adds the implementation of version 2, in place of an earlier one. It is started when it
            /// is selected.
            #[cfg(feature = "unstable_protocol_v2")]
            pub fn with_v2(mut self, component: impl ConnectTo<$peer>) -> Self {
                self.router.v2 = Some(DynConnectTo::new(component));
                self
            }

            /// Closes the connection behind the first message that is refused, as the documented SDK
            /// does. The refusal reaches the peer first. By default the peer may try again (spec §9,
            /// decision 4).
            pub fn close_after_rejection(mut self) -> Self {
                self.router.close_after_rejection = true;
                self
            }

            /// Sets limits and policies: `incoming_credit` and `restart` of the actors around the
            /// implementation, `batches`, and for proxies `proxy_versions`. The rest is for the
            /// implementations to set.
            pub fn options(mut self, options: ConnectionOptions) -> Self {
                self.router.options = options;
                self
            }

            async fn serve(self, link: Link) -> Result<()> {
                let rules: fn(Implementations, &ConnectionOptions) -> Selection = $rules;
                let selection = rules(self.router.implementations(), &self.router.options);
                self.router.serve(selection, link).await
            }
        }

        impl ConnectTo<$peer> for $router {
            /// Serves until the selected implementation and the peer are both done, or the peer ends
            /// before it selected one.
            ///
            /// Cancel-safety: dropping the future ends the connection and the implementation at once.
            ///
            /// # Errors
            /// That the transport or the selected implementation does not open (the peer's request is
            /// answered first), or what ended either of them. A message that selects nothing is no error
            /// of the router: it is answered.
            async fn connect_to(self, transport: impl ConnectTo<$host>) -> Result<()> {
                self.serve(transport.into_link()).await
            }

            fn into_channel_and_future(self) -> (Channel, Option<ConnectionDriver>) {
                let (ours, theirs) = Channel::duplex();
                (ours, Some(ConnectionDriver::new(self.serve(Link::channel(theirs)))))
            }

            fn into_link(self) -> Link {
                Link::component(|link| self.serve(link))
            }
        }

        impl Default for $router {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Debug for $router {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Implementations { v1, .. } = self.router.implementations();
                let mut shown = f.debug_struct(stringify!($router));
                shown.field("v1", &v1);
                #[cfg(feature = "unstable_protocol_v2")]
                shown.field("v2", &self.router.implementations().v2);
                shown.finish_non_exhaustive()
            }
        }
    };
}

protocol_router!(
    /// An agent with an implementation for each protocol version. The client's first request selects
    /// one, which then has the connection to itself.
    ///
    /// An `initialize` selects the highest version at or below the one that it asks for. What asks for
    /// exactly that version is handed over byte for byte; the params of a later one are translated.
    /// Every other request, and an `initialize` that selects nothing, goes unchanged to the
    /// implementation of version 1 if there is one, which answers it as it would alone; without it the
    /// answer is `-32022` (no version fits), `-32602` (no version, or params that do not fit it) or
    /// `-32600` (no initialize). A batch counts as its first call. Notifications and responses before the
    /// selection are ignored.
    ///
    /// After the selection every message passes both ways unchanged and in order, also a later
    /// `initialize`. Nothing is ever translated between the versions.
    ///
    /// ```
    /// use greenroom_actors::schema::v1::{InitializeRequest, InitializeResponse};
    /// use greenroom_actors::{Agent, Client, ConnectTo, on_receive_request};
    ///
    /// fn agent() -> impl ConnectTo<Client> {
    ///     Agent.protocol_router().with_v1(Agent.builder().on_receive_request(
    ///         async |initialize: InitializeRequest, responder, _client| {
    ///             responder.respond(InitializeResponse::new(initialize.protocol_version))
    ///         },
    ///         on_receive_request!(),
    ///     ))
    /// }
    /// ```
    AgentProtocolRouter, Agent, Client, |implementations, _options| Selection::agent(implementations)
);

protocol_router!(
    /// A proxy with an implementation for each protocol version. The conductor's `_proxy/initialize` or
    /// `proxy/initialize` selects one, which then has the connection to itself.
    ///
    /// `_proxy/initialize` needs exactly the version of an implementation, because the conductor has
    /// selected it already: others are refused with `-32600`. With `proxy/initialize` the router selects as
    /// an [`AgentProtocolRouter`] does; [`ProxyVersions`](crate::ProxyVersions) in the
    /// [options](Self::options) forces one of the two. Any other first request is refused with `-32600` and
    /// selects nothing.
    ///
    /// After the selection every message passes both ways unchanged and in order.
    ProxyProtocolRouter, Proxy, Conductor,
    |implementations, options| Selection::proxy(implementations, options.proxy_versions)
);

impl Agent {
    /// An agent that serves more than one protocol version.
    pub fn protocol_router(self) -> AgentProtocolRouter {
        AgentProtocolRouter::new()
    }
}

impl Proxy {
    /// A proxy that serves more than one protocol version.
    pub fn protocol_router(self) -> ProxyProtocolRouter {
        ProxyProtocolRouter::new()
    }
}
