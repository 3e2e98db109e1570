//! Declarations, routes and tokens of servers that live in a connection.

use greenroom_polyfill::mcp_over_acp::{
    Endpoint, ROUTE_LIMIT, Rewritten, Secret, is_setup, rewrite, route, server_of_route,
};

/// Computed with another implementation of HMAC-SHA256, for the bytes 0 to 31.
const FILES: &str = "vMcXE2n5Ws9GH2mNKQdRDJFa3U2R6PcqMe_ZyeVdXQ0";
const UMLAUT: &str = "g8E5g8_G3S2rKHYNUFteedcO9ndEj7Ptg2GpTipQLMo";

fn secret() -> Secret {
    Secret::new(std::array::from_fn(|index| index as u8))
}

fn run(params: &str) -> Result<Option<Rewritten>, String> {
    rewrite(params, Endpoint { port: 8123, secret: &secret() }).map_err(|error| {
        assert_eq!(i32::from(error.code), -32602, "{params}");
        error.data.and_then(|data| data.as_str().map(str::to_owned)).expect("every refusal says why")
    })
}

/// The new form of a server with this route and token.
fn http(route: &str, token: &str) -> String {
    format!(
        r#""url":"http://127.0.0.1:8123/mcp-{route}","headers":[{{"name":"Authorization","value":"Bearer {token}"}}]"#
    )
}

#[test]
fn a_declaration_is_rewritten_in_place() {
    let files = http("ZmlsZXM", FILES);
    let umlaut = http("YS9iIMO8Pw", UMLAUT);
    let cases = [
        (
            r#"{"cwd":"/w","mcpServers":[{"type":"acp","name":"Files","serverId":"files"}]}"#,
            format!(r#"{{"cwd":"/w","mcpServers":[{{"type":"http","name":"Files",{files}}}]}}"#),
        ),
        // Order, unknown members, `_meta`, number spelling and everything around stay as written.
        (
            r#"{ "_meta": {"n":1.0e2} ,"mcpServers":[ {"command":"x", "args":[]} , {"_meta":{"b":1.50,"a":null},"serverId":"files","x":[ 12345678901234567890123 ],"type":"acp","name":"F"} ],"z":"\u00e9" }"#,
            format!(
                r#"{{ "_meta": {{"n":1.0e2}} ,"mcpServers":[ {{"command":"x", "args":[]}} , {{"_meta":{{"b":1.50,"a":null}},{files},"x":[ 12345678901234567890123 ],"type":"http","name":"F"}} ],"z":"\u00e9" }}"#
            ),
        ),
        // Escapes in what is acted upon.
        (
            r#"{"mcpServers":[{"t\u0079pe":"\u0061cp","name":"\"","server\u0049d":"a/b \u00fc?"}]}"#,
            format!(r#"{{"mcpServers":[{{"t\u0079pe":"http","name":"\"",{umlaut}}}]}}"#),
        ),
        // Members that would now be said twice.
        (
            r#"{"mcpServers":[{"url":"http://evil","type":"acp","name":"F","serverId":"files","headers":[]}]}"#,
            format!(r#"{{"mcpServers":[{{"type":"http","name":"F",{files}}}]}}"#),
        ),
    ];
    for (before, after) in cases {
        let rewritten = run(before).expect(before).expect(before);
        assert_eq!(rewritten.params, after);
    }
}

#[test]
fn several_declarations_keep_their_order() {
    let params = r#"{"mcpServers":[{"type":"acp","name":"A","serverId":"files"},{"type":"sse","name":"S","url":"u","headers":[]},{"type":"acp","name":"B","serverId":"a/b ü?"}]}"#;
    let rewritten = run(params).expect("valid").expect("two declarations");
    assert_eq!(rewritten.server_ids, ["files", "a/b ü?"]);
    let expected = format!(
        r#"{{"mcpServers":[{{"type":"http","name":"A",{}}},{{"type":"sse","name":"S","url":"u","headers":[]}},{{"type":"http","name":"B",{}}}]}}"#,
        http("ZmlsZXM", FILES),
        http("YS9iIMO8Pw", UMLAUT)
    );
    assert_eq!(rewritten.params, expected);
}

#[test]
fn nothing_to_rewrite_is_left_to_the_caller() {
    for params in [
        "{}",
        r#"{"mcpServers":[]}"#,
        r#"{"mcpServers":null}"#,
        r#"{"mcpServers":[{"name":"x","command":"acp"}]}"#,
        r#"{"mcpServers":[7,"acp",null,{"type":7,"serverId":"s"}]}"#,
        r#"{"other":[{"type":"acp","name":"A","serverId":"s"}]}"#,
    ] {
        assert_eq!(run(params), Ok(None), "{params}");
    }
}

#[test]
fn what_cannot_work_is_refused_with_its_reason() {
    let long = format!(r#"{{"mcpServers":[{{"type":"acp","name":"A","serverId":"{}"}}]}}"#, "x".repeat(ROUTE_LIMIT));
    let cases = [
        ("[]", "the params must be an object"),
        ("null", "the params must be an object"),
        (r#"{"mcpServers":{}}"#, "mcpServers must be a list"),
        (r#"{"mcpServers":[],"mcpServers":[]}"#, "mcpServers is given twice"),
        (r#"{"mcpServers":[{"type":"acp","serverId":"s"}]}"#, "a server of type acp needs a name"),
        (r#"{"mcpServers":[{"type":"acp","name":"A"}]}"#, "a server of type acp needs a serverId"),
        (r#"{"mcpServers":[{"type":"acp","name":"A","serverId":7}]}"#, "a server of type acp needs a serverId"),
        (
            r#"{"mcpServers":[{"type":"acp","name":"A","serverId":"s","serverId":"t"}]}"#,
            "the serverId of a server is given twice",
        ),
        (
            r#"{"mcpServers":[{"type":"acp","name":"A","serverId":"s"},{"type":"acp","name":"B","serverId":"\u0073"}]}"#,
            "two servers have the same serverId",
        ),
        (&long, "the serverId is too long"),
    ];
    for (params, reason) in cases {
        assert_eq!(run(params), Err(reason.to_owned()), "{params:.80}");
    }
}

#[test]
fn a_rewritten_request_is_rewritten_no_further() {
    let params = r#"{"mcpServers":[{"type":"acp","name":"A","serverId":"files"}]}"#;
    let once = run(params).expect("valid").expect("one declaration");
    assert_eq!(run(&once.params), Ok(None));
}

#[test]
fn a_route_has_one_spelling() {
    for id in ["", "files", "a/b ü?", "\0", "..", "中😀"] {
        assert_eq!(server_of_route(&route(id)).as_deref(), Some(id));
    }
    let too_long = route(&"x".repeat(ROUTE_LIMIT));
    for segment in ["", "mcp", "ZmlsZXM", "MCP-ZmlsZXM", "mcp-ZmlsZXM=", "mcp-ZmlsZXN", "mcp-_w", "mcp-a+b", &too_long]
    {
        assert_eq!(server_of_route(segment), None, "{segment:.40}");
    }
}

#[test]
fn a_token_opens_one_server_of_one_connection() {
    let secret = secret();
    assert_eq!(secret.token("files"), FILES);
    assert!(secret.accepts("files", FILES));
    let prefix = &FILES[..FILES.len() - 4];
    for wrong in ["", prefix, UMLAUT, "*", &format!("{FILES}=")] {
        assert!(!secret.accepts("files", wrong), "{wrong}");
    }
    assert!(!Secret::new([0; 32]).accepts("files", FILES));
}

#[test]
fn secrets_and_tokens_do_not_show() {
    let params = r#"{"mcpServers":[{"type":"acp","name":"A","serverId":"files"}]}"#;
    let rewritten = run(params).expect("valid").expect("one declaration");
    let shown = format!("{:?} {rewritten:?}", secret());
    assert_eq!(shown, r#"Secret(..) Rewritten { server_ids: ["files"], .. }"#);
}

#[test]
fn setup_requests_of_both_versions() {
    for method in ["session/new", "session/load", "session/resume", "session/fork"] {
        assert!(is_setup(method));
    }
    for method in ["session/prompt", "session/close", "initialize", "session/new/"] {
        assert!(!is_setup(method));
    }
}
