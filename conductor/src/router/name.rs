//! A method name that waits in a table.

/// A method name, kept inline when it is short, as nearly all are.
///
/// A table entry must not hold the frame it came in, because a frame may be megabytes long.
pub(super) enum Name {
    Short { length: u8, bytes: [u8; Name::INLINE] },
    Long(Box<str>),
}

impl Name {
    /// The longest method of the ACP schema has 26 bytes.
    const INLINE: usize = 30;

    pub(super) fn new(name: &str) -> Self {
        let mut bytes = [0; Self::INLINE];
        match bytes.get_mut(..name.len()) {
            Some(start) => {
                start.copy_from_slice(name.as_bytes());
                Self::Short { length: name.len() as u8, bytes }
            }
            None => Self::Long(name.into()),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Short { length, bytes } => std::str::from_utf8(&bytes[..usize::from(*length)]).unwrap_or_default(),
            Self::Long(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_length_come_back() {
        for name in ["", "x", "session/request_permission", &"ä".repeat(15), &"m".repeat(31), &"m".repeat(300)] {
            assert_eq!(Name::new(name).as_str(), name);
        }
    }
}
