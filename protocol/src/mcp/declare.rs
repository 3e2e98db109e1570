//! Adding the declaration of a server to a request that sets up a session, and changing nothing
//! else in its text.

use std::fmt;

use agent_client_protocol_schema::v1::{McpServer, McpServerAcp};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};

/// The requests that declare servers. `session/load` is one of protocol version 1 only.
pub const SETUP_METHODS: [&str; 4] = ["session/new", "session/load", "session/resume", "session/fork"];

/// Whether two servers of one session may have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// They may: protocol version 1.
    Free,
    /// They may not: protocol version 2.
    Unique,
}

/// Adds a server behind those that the params of a setup request declare. A missing `mcpServers`,
/// or one that is no list, becomes a list of this one. Every other byte stays.
///
/// # Errors
/// `-32602` when the params are no object, say `mcpServers` twice, or, with [`Names::Unique`],
/// declare a server of the same name.
pub fn declare(params: &str, server: &McpServerAcp, names: Names) -> Result<String> {
    let members: Members<'_> =
        serde_json::from_str(params).map_err(|_| refuse("the params of a session setup must be an object"))?;
    let declaration = serde_json::to_string(&McpServer::Acp(server.clone())).map_err(Error::into_internal_error)?;
    let mut lists = members.0.iter().filter(|(name, _)| name == "mcpServers").map(|(_, value)| *value);
    let (list, again) = (lists.next(), lists.next());
    if again.is_some() {
        return Err(refuse("mcpServers is given twice"));
    }
    let Some(list) = list else {
        let end = params.rfind('}').ok_or_else(|| refuse("the params of a session setup must be an object"))?;
        let comma = if members.0.is_empty() { "" } else { "," };
        return Ok(format!("{}{comma}\"mcpServers\":[{declaration}]{}", &params[..end], &params[end..]));
    };
    let start = list.get().as_ptr() as usize - params.as_ptr() as usize;
    let end = start + list.get().len();
    let Ok(servers) = serde_json::from_str::<Vec<&RawValue>>(list.get()) else {
        return Ok(format!("{}[{declaration}]{}", &params[..start], &params[end..]));
    };
    if names == Names::Unique && servers.iter().any(|known| is_named(known, &server.name)) {
        return Err(refuse("two MCP servers of one session have the same name"));
    }
    let comma = if servers.is_empty() { "" } else { "," };
    Ok(format!("{}{comma}{declaration}{}", &params[..end - 1], &params[end - 1..]))
}

fn is_named(declaration: &RawValue, name: &str) -> bool {
    let members: std::result::Result<Members<'_>, _> = serde_json::from_str(declaration.get());
    members.is_ok_and(|members| {
        let mut names = members.0.iter().filter(|(member, _)| member == "name");
        names.any(|(_, value)| serde_json::from_str::<String>(value.get()).is_ok_and(|value| value == name))
    })
}

fn refuse(reason: &'static str) -> Error {
    Error::invalid_params().data(reason)
}

/// One level of an object, doubled members included; everything below is text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = r#"{"type":"acp","name":"tools","serverId":"id"}"#;

    fn added(params: &str, names: Names) -> Result<String> {
        declare(params, &McpServerAcp::new("tools", "id"), names)
    }

    #[test]
    fn the_declaration_is_all_that_changes() {
        for (before, after) in [
            ("{}", r#"{"mcpServers":[OURS]}"#),
            (" { } ", r#" { "mcpServers":[OURS]} "#),
            (r#"{"cwd":"/" }"#, r#"{"cwd":"/" ,"mcpServers":[OURS]}"#),
            (r#"{"mcpServers":[],"x":1.0}"#, r#"{"mcpServers":[OURS],"x":1.0}"#),
            (r#"{"mcpServers" : [ ] }"#, r#"{"mcpServers" : [ OURS] }"#),
            (r#"{"a":1e2,"mcpServers":[{"name":"b"} ],"a":2}"#, r#"{"a":1e2,"mcpServers":[{"name":"b"} ,OURS],"a":2}"#),
            (r#"{"mcpServers":null}"#, r#"{"mcpServers":[OURS]}"#),
            (r#"{"mcpServers":{"a":[]},"y":"}"}"#, r#"{"mcpServers":[OURS],"y":"}"}"#),
            (r#"{"mcp\u0053ervers":[1]}"#, r#"{"mcp\u0053ervers":[1,OURS]}"#),
        ] {
            let after = after.replace("OURS", OURS);
            assert_eq!(added(before, Names::Free).expect(before), after);
            assert_eq!(added(before, Names::Unique).expect(before), after);
        }
    }

    #[test]
    fn params_that_are_no_setup_are_refused() {
        for params in ["null", "[]", "7", r#"{"mcpServers":[],"mcpServers":[]}"#, "", "{"] {
            assert_eq!(i32::from(added(params, Names::Free).expect_err(params).code), -32602);
        }
    }

    #[test]
    fn a_name_is_taken_once_where_names_are_unique() {
        for taken in [
            r#"{"mcpServers":[{"name":"tools"}]}"#,
            r#"{"mcpServers":[1,{"type":"http","name":"t\u006fols","url":"u"}]}"#,
            r#"{"mcpServers":[{"name":"x","name":"tools"}]}"#,
        ] {
            assert_eq!(i32::from(added(taken, Names::Unique).expect_err(taken).code), -32602);
            added(taken, Names::Free).expect("version 1 takes it");
        }
        added(r#"{"mcpServers":[{"name":"Tools"},{"nome":"tools"},{"name":7}]}"#, Names::Unique).expect("other names");
    }
}
