//! Reads one level of an object and leaves everything below it as the text it is.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One member: its key as written, its key as meant, its value as written.
pub(super) struct Member<'a> {
    pub(super) key: &'a RawValue,
    pub(super) name: String,
    pub(super) value: &'a RawValue,
}

/// The members of an object, in order, doubled ones included.
pub(super) struct Members<'a>(pub(super) Vec<Member<'a>>);

impl<'a> Members<'a> {
    /// The only member with this name; an error if there are more, because no two readers agree
    /// on which one counts.
    pub(super) fn only(&self, name: &'static str) -> Result<Option<&'a RawValue>, &'static str> {
        let mut found = self.0.iter().filter(|member| member.name == name).map(|member| member.value);
        match (found.next(), found.next()) {
            (first, None) => Ok(first),
            _ => Err(name),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<Member<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(map.size_hint().unwrap_or(8));
        while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            let name = serde_json::from_str(key.get()).map_err(serde::de::Error::custom)?;
            members.push(Member { key, name, value });
        }
        Ok(members)
    }
}

/// Where a part begins in the text that it was read from.
pub(super) fn offset(whole: &str, part: &RawValue) -> usize {
    part.get().as_ptr() as usize - whole.as_ptr() as usize
}
