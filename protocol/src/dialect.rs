//! The two spellings of the proxy-chain methods.
//!
//! Released peers of the 3.x line write `_proxy/…`, those of the 5.x line `proxy/…`. Readers
//! accept both on every hop; a hop is written in the one spelling that its peer understands
//! (spec §3.5).

/// How a hop spells the proxy-chain methods (spec §1.C, C1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `_proxy/initialize`, `_proxy/successor`.
    Legacy,
    /// `proxy/initialize`, `proxy/successor`.
    Modern,
}

impl Dialect {
    /// The method that initialises a proxy.
    #[must_use]
    pub const fn initialize(self) -> &'static str {
        match self {
            Self::Legacy => "_proxy/initialize",
            Self::Modern => "proxy/initialize",
        }
    }

    /// The method of the successor envelope.
    #[must_use]
    pub const fn successor(self) -> &'static str {
        match self {
            Self::Legacy => "_proxy/successor",
            Self::Modern => "proxy/successor",
        }
    }

    /// [`successor`](Self::successor) as JSON text, with quotes.
    #[must_use]
    pub(crate) const fn successor_json(self) -> &'static [u8] {
        match self {
            Self::Legacy => br#""_proxy/successor""#,
            Self::Modern => br#""proxy/successor""#,
        }
    }

    /// The other spelling.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }

    /// The dialect whose proxy-initialize method this is.
    #[must_use]
    pub fn of_initialize(method: &str) -> Option<Self> {
        [Self::Legacy, Self::Modern].into_iter().find(|dialect| dialect.initialize() == method)
    }

    /// The dialect whose successor method this is.
    #[must_use]
    pub fn of_successor(method: &str) -> Option<Self> {
        [Self::Legacy, Self::Modern].into_iter().find(|dialect| dialect.successor() == method)
    }
}
