//! What older generations of the protocol write differently, and how it is read.

use serde_json::Value;

/// Whether the params of a `session/update` of version 1 are a plan in a file. The content `file`
/// is gone from the schema; who wants it reads it untyped (spec §9, decision 12).
pub(super) fn is_plan_file(params: &str) -> bool {
    if !params.contains("plan_update") {
        return false;
    }
    let Ok(params) = serde_json::from_str::<Value>(params) else { return false };
    let update = &params["update"];
    update["sessionUpdate"] == "plan_update" && update["plan"]["type"] == "file"
}

/// Reads params of version 2 in which commands may have no `type`: those are plain commands (spec
/// §9, decision 13).
#[cfg(feature = "unstable_protocol_v2")]
pub(super) fn read_tagged_params<T: serde::de::DeserializeOwned>(params: &str) -> crate::Result<T> {
    crate::codec::read_params(&tagged(params))
}

/// The same for results.
#[cfg(feature = "unstable_protocol_v2")]
pub(super) fn read_tagged_result<T: serde::de::DeserializeOwned>(result: &str) -> crate::Result<T> {
    crate::codec::read_result(&tagged(result))
}

/// The same for results that are values already.
#[cfg(feature = "unstable_protocol_v2")]
pub(super) fn read_tagged_value<T: serde::de::DeserializeOwned>(mut result: Value) -> crate::Result<T> {
    tag(&mut result);
    crate::codec::read_result_value(result)
}

#[cfg(feature = "unstable_protocol_v2")]
fn tagged(text: &str) -> std::borrow::Cow<'_, str> {
    // An escape in a member's name is possible and unheard of; such a list stays as it is.
    if !text.contains("\"availableCommands\"") {
        return text.into();
    }
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return text.into() };
    if tag(&mut value) { value.to_string().into() } else { text.into() }
}

/// Whether it changed anything.
#[cfg(feature = "unstable_protocol_v2")]
fn tag(value: &mut Value) -> bool {
    let mut changed = false;
    for place in ["/availableCommands", "/update/availableCommands"] {
        let Some(Value::Array(commands)) = value.pointer_mut(place) else { continue };
        for command in commands.iter_mut().filter_map(Value::as_object_mut) {
            if !command.contains_key("type") {
                command.insert("type".to_owned(), "command".into());
                changed = true;
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_in_files_are_known_by_their_content() {
        let update = |kind: &str, content: &str| {
            format!(r#"{{"sessionId":"s","update":{{"sessionUpdate":"{kind}","plan":{{"type":"{content}"}}}}}}"#)
        };
        assert!(is_plan_file(&update("plan_update", "file")));
        for other in [update("plan_update", "items"), update("plan", "file"), "{\"plan_update\"".into(), "null".into()]
        {
            assert!(!is_plan_file(&other), "{other}");
        }
    }

    #[cfg(feature = "unstable_protocol_v2")]
    #[test]
    fn commands_without_a_type_get_one() {
        for (text, read) in [
            (r#"{"availableCommands":[{"name":"a"}]}"#, r#"{"availableCommands":[{"name":"a","type":"command"}]}"#),
            (
                r#"{"update":{"availableCommands":[{"type":"x"},{"name":"b"},1]}}"#,
                r#"{"update":{"availableCommands":[{"type":"x"},{"name":"b","type":"command"},1]}}"#,
            ),
            (r#"{ "availableCommands": [ {"type":null} ] }"#, r#"{ "availableCommands": [ {"type":null} ] }"#),
            (r#"{ "availableCommands": 1 }"#, r#"{ "availableCommands": 1 }"#),
            (r#"{ "other": [{}] }"#, r#"{ "other": [{}] }"#),
            (r#"{"availableCommands":"#, r#"{"availableCommands":"#),
        ] {
            assert_eq!(tagged(text), read);
        }
    }
}
