//! A range of bytes inside a frame's text.

/// Where one JSON value stands inside a frame's text, in bytes.
///
/// A JSON value is never empty, so the empty span means "member absent".
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The span of an absent member.
    pub const ABSENT: Self = Self { start: 0, end: 0 };

    /// A span over `start..end`. Frames are limited far below 4 GiB
    /// ([`limits::MAX_FRAME`](crate::limits::MAX_FRAME)), so 32 bits are enough.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// First byte of the value.
    #[must_use]
    pub const fn start(self) -> usize {
        self.start as usize
    }

    /// One past the last byte of the value.
    #[must_use]
    pub const fn end(self) -> usize {
        self.end as usize
    }

    /// Whether the member was there at all.
    #[must_use]
    pub const fn is_present(self) -> bool {
        self.end > self.start
    }

    /// The bytes of the value; empty when absent.
    #[must_use]
    pub fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start()..self.end()).unwrap_or_default()
    }

    /// The same span inside a text that starts `base` bytes earlier.
    #[must_use]
    pub const fn shifted(self, base: usize) -> Self {
        if self.is_present() { Self::new(self.start() + base, self.end() + base) } else { self }
    }

    /// The span without its first and last byte: what stands between the quotes of a string.
    /// Absent for a span that is too short to have both.
    #[must_use]
    pub const fn inner(self) -> Self {
        if self.end < self.start + 2 { Self::ABSENT } else { Self { start: self.start + 1, end: self.end - 1 } }
    }
}
