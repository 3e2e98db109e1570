//! Declarations of servers, as the provider wrote them and as the agent can use them.

use std::fmt::{self, Write};

use greenroom_protocol::Error;
use serde_json::value::RawValue;

use super::route::{ROUTE_LIMIT, route};
use super::text::{Members, offset};
use super::token::Secret;

/// Whether a request with this method declares MCP servers.
#[must_use]
pub fn is_setup(method: &str) -> bool {
    matches!(method, "session/new" | "session/load" | "session/resume" | "session/fork")
}

/// The loopback server that stands for all servers of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint<'a> {
    /// Its port on `127.0.0.1`.
    pub port: u16,
    /// Makes the tokens.
    pub secret: &'a Secret,
}

/// A setup request whose servers can be reached over HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The params for the agent. They hold tokens, so they are no matter for logs.
    pub params: String,
    /// The ids of the servers that were rewritten, in order.
    pub server_ids: Vec<String>,
}

impl fmt::Debug for Rewritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rewritten").field("server_ids", &self.server_ids).finish_non_exhaustive()
    }
}

/// Rewrites every `"type": "acp"` server in the params of a setup request; `None` if there is none.
///
/// `type` becomes `http`, `serverId` gives way to `url` and `headers`, everything else in the
/// declaration keeps its text and its place. Outside such declarations no byte changes.
///
/// # Errors
/// `-32602` when the params are no object, `mcpServers` is no list, a declaration lacks `name` or
/// `serverId`, says one of them twice, repeats the id of another one, or has an id too long for a
/// path.
pub fn rewrite(params: &str, endpoint: Endpoint<'_>) -> Result<Option<Rewritten>, Error> {
    let members: Members<'_> = serde_json::from_str(params).map_err(|_| refuse("the params must be an object"))?;
    let Some(list) = members.only("mcpServers").map_err(doubled)? else { return Ok(None) };
    let servers: Option<Vec<&RawValue>> =
        serde_json::from_str(list.get()).map_err(|_| refuse("mcpServers must be a list"))?;
    let mut out = Rewritten { params: String::new(), server_ids: Vec::new() };
    let mut copied = 0;
    for server in servers.unwrap_or_default() {
        // What is no object is for the agent to refuse.
        let Ok(declaration) = serde_json::from_str::<Members<'_>>(server.get()) else { continue };
        let Some((id, text)) = declared(&declaration, endpoint)? else { continue };
        if out.server_ids.contains(&id) {
            return Err(refuse("two servers have the same serverId"));
        }
        out.server_ids.push(id);
        let start = offset(params, server);
        out.params.push_str(&params[copied..start]);
        out.params.push_str(&text);
        copied = start + server.get().len();
    }
    out.params.push_str(&params[copied..]);
    Ok(if out.server_ids.is_empty() { None } else { Some(out) })
}

/// The id and the new text of a server that lives in the connection; `None` for any other.
fn declared(declaration: &Members<'_>, endpoint: Endpoint<'_>) -> Result<Option<(String, String)>, Error> {
    if text_of(declaration, "type")?.as_deref() != Some("acp") {
        return Ok(None);
    }
    if text_of(declaration, "name")?.is_none() {
        return Err(refuse("a server of type acp needs a name"));
    }
    let Some(id) = text_of(declaration, "serverId")? else {
        return Err(refuse("a server of type acp needs a serverId"));
    };
    let route = route(&id);
    if route.len() > ROUTE_LIMIT {
        return Err(refuse("the serverId is too long"));
    }
    let mut text = String::from("{");
    for member in &declaration.0 {
        // Members of the new form that the old one did not define would now be said twice.
        if matches!(member.name.as_str(), "url" | "headers") {
            continue;
        }
        if text.len() > 1 {
            text.push(',');
        }
        let written = match member.name.as_str() {
            "type" => write!(text, r#"{}:"http""#, member.key.get()),
            // Route and token are base64url, so they need no quoting.
            "serverId" => write!(
                text,
                r#""url":"http://127.0.0.1:{}/{route}","headers":[{{"name":"Authorization","value":"Bearer {}"}}]"#,
                endpoint.port,
                endpoint.secret.token(&id),
            ),
            _ => write!(text, "{}:{}", member.key.get(), member.value.get()),
        };
        written.map_err(Error::into_internal_error)?;
    }
    text.push('}');
    Ok(Some((id, text)))
}

/// The text of a member; `None` if it is missing or no text.
fn text_of(declaration: &Members<'_>, name: &'static str) -> Result<Option<String>, Error> {
    let value = declaration.only(name).map_err(doubled)?;
    Ok(value.and_then(|value| serde_json::from_str(value.get()).ok()))
}

fn doubled(name: &'static str) -> Error {
    refuse(match name {
        "mcpServers" => "mcpServers is given twice",
        "type" => "the type of a server is given twice",
        "name" => "the name of a server is given twice",
        _ => "the serverId of a server is given twice",
    })
}

fn refuse(reason: &'static str) -> Error {
    Error::invalid_params().data(reason)
}
