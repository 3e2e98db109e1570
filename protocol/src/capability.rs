//! Capabilities beyond the schema, which both sides of an initialization announce in metadata.

use agent_client_protocol_schema::v1::{InitializeRequest, InitializeResponse, Meta};
use serde_json::{Map, Value};

/// The member of `_meta` that holds them.
const GROUP: &str = "symposium";

/// A capability that the schema does not know: a name, and whatever there is to say about it.
pub trait MetaCapability {
    /// Its name.
    fn key(&self) -> &'static str;

    /// What stands under the name; `true` unless there is more to say.
    fn value(&self) -> Value {
        Value::Bool(true)
    }
}

/// Reads and writes [`MetaCapability`]s in the two messages of an initialization.
///
/// They stand in `_meta.symposium` of the client's or the agent's capabilities. Whatever else the
/// metadata holds stays as it is.
pub trait MetaCapabilityExt {
    /// Whether the capability is announced; null and false mean that it is not.
    fn has_meta_capability(&self, capability: impl MetaCapability) -> bool;

    /// Announces the capability, in place of what stood under its name.
    #[must_use]
    fn add_meta_capability(self, capability: impl MetaCapability) -> Self;

    /// Takes the capability back.
    #[must_use]
    fn remove_meta_capability(self, capability: impl MetaCapability) -> Self;
}

impl MetaCapabilityExt for InitializeRequest {
    fn has_meta_capability(&self, capability: impl MetaCapability) -> bool {
        has(self.client_capabilities.meta.as_ref(), &capability)
    }

    fn add_meta_capability(mut self, capability: impl MetaCapability) -> Self {
        add(&mut self.client_capabilities.meta, &capability);
        self
    }

    fn remove_meta_capability(mut self, capability: impl MetaCapability) -> Self {
        remove(&mut self.client_capabilities.meta, &capability);
        self
    }
}

impl MetaCapabilityExt for InitializeResponse {
    fn has_meta_capability(&self, capability: impl MetaCapability) -> bool {
        has(self.agent_capabilities.meta.as_ref(), &capability)
    }

    fn add_meta_capability(mut self, capability: impl MetaCapability) -> Self {
        add(&mut self.agent_capabilities.meta, &capability);
        self
    }

    fn remove_meta_capability(mut self, capability: impl MetaCapability) -> Self {
        remove(&mut self.agent_capabilities.meta, &capability);
        self
    }
}

fn has(meta: Option<&Meta>, capability: &impl MetaCapability) -> bool {
    let group = meta.and_then(|meta| meta.get(GROUP));
    let value = group.and_then(|group| group.get(capability.key()));
    !matches!(value, None | Some(Value::Null | Value::Bool(false)))
}

fn add(meta: &mut Option<Meta>, capability: &impl MetaCapability) {
    let group = meta.get_or_insert_default().entry(GROUP).or_insert_with(|| Value::Object(Map::new()));
    if !group.is_object() {
        *group = Value::Object(Map::new());
    }
    if let Value::Object(group) = group {
        group.insert(capability.key().to_owned(), capability.value());
    }
}

/// Leaves no empty shells behind, so that what was added and removed is as it was.
fn remove(meta: &mut Option<Meta>, capability: &impl MetaCapability) {
    let Some(members) = meta else { return };
    if let Some(Value::Object(group)) = members.get_mut(GROUP)
        && group.remove(capability.key()).is_some()
        && group.is_empty()
    {
        members.remove(GROUP);
        if members.is_empty() {
            *meta = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::ProtocolVersion;
    use serde_json::json;

    use super::*;

    struct Plain;

    impl MetaCapability for Plain {
        fn key(&self) -> &'static str {
            "plain"
        }
    }

    struct Detailed(Value);

    impl MetaCapability for Detailed {
        fn key(&self) -> &'static str {
            "detailed"
        }

        fn value(&self) -> Value {
            self.0.clone()
        }
    }

    #[test]
    fn what_was_added_is_there_until_it_is_removed() {
        let before = InitializeRequest::new(ProtocolVersion::V1);
        assert!(!before.has_meta_capability(Plain));
        let both = before.clone().add_meta_capability(Plain).add_meta_capability(Detailed(json!({ "v": 2 })));
        assert!(both.has_meta_capability(Plain) && both.has_meta_capability(Detailed(Value::Null)));
        let json = serde_json::to_value(&both).expect("json");
        let announced = json!({ "symposium": { "plain": true, "detailed": { "v": 2 } } });
        assert_eq!(json["clientCapabilities"]["_meta"], announced);
        let one = both.remove_meta_capability(Plain);
        assert!(!one.has_meta_capability(Plain) && one.has_meta_capability(Detailed(Value::Null)));
        assert_eq!(one.remove_meta_capability(Detailed(Value::Null)), before);
        let answer = InitializeResponse::new(ProtocolVersion::V1).add_meta_capability(Plain);
        assert!(answer.has_meta_capability(Plain));
        let json = serde_json::to_value(&answer).expect("json");
        assert_eq!(json["agentCapabilities"]["_meta"], json!({ "symposium": { "plain": true } }));
        assert!(!answer.remove_meta_capability(Plain).has_meta_capability(Plain));
    }

    #[test]
    fn null_and_false_announce_nothing_and_other_metadata_stays() {
        let read = |meta: Value| -> InitializeRequest {
            let request = json!({ "protocolVersion": 1, "clientCapabilities": { "_meta": meta } });
            serde_json::from_value(request).expect("a request")
        };
        for (value, announced) in [(json!(null), false), (json!(false), false), (json!(0), true), (json!({}), true)] {
            let request = read(json!({ "symposium": { "plain": value } }));
            assert_eq!(request.has_meta_capability(Plain), announced, "{value}");
        }
        assert!(!read(json!({ "symposium": "odd" })).has_meta_capability(Plain));
        let request = read(json!({ "symposium": "odd", "mine": 1 })).add_meta_capability(Plain);
        let json = serde_json::to_value(&request).expect("json");
        assert_eq!(json["clientCapabilities"]["_meta"], json!({ "symposium": { "plain": true }, "mine": 1 }));
        let json = serde_json::to_value(request.remove_meta_capability(Plain)).expect("json");
        assert_eq!(json["clientCapabilities"]["_meta"], json!({ "mine": 1 }));
    }
}
