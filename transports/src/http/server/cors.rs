//! The headers by which browsers let pages of other origins in.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::{Method, StatusCode};

use super::answer::{Answer, status};
use super::options::CorsOptions;
use super::security::allows;

const METHODS: HeaderValue = HeaderValue::from_static("GET,POST,DELETE,OPTIONS");

/// Not `authorization`: hosts that want it bring their own CORS layer.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "content-type,accept,acp-connection-id,acp-session-id,sec-websocket-version,sec-websocket-key,connection,upgrade",
);

const EXPOSED: HeaderValue = HeaderValue::from_static("acp-connection-id,acp-session-id");

/// The answer to a preflight; `None` for every other request, and where CORS is off.
pub(super) fn preflight(cors: &CorsOptions, method: &Method) -> Option<Answer> {
    if *cors == CorsOptions::Disabled || method != Method::OPTIONS {
        return None;
    }
    let mut answer = status(StatusCode::OK);
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    Some(answer)
}

/// Adds what every answer needs.
pub(super) fn decorate(cors: &CorsOptions, request: &HeaderMap, answer: &mut Answer, is_preflight: bool) {
    let headers = answer.headers_mut();
    match cors {
        CorsOptions::Disabled => return,
        CorsOptions::AllowAnyOrigin => {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
        CorsOptions::AllowOrigins(_) => {
            headers.append(VARY, HeaderValue::from_static("origin"));
            if let Some(origin) = request.get(ORIGIN).filter(|origin| allows(cors, origin)) {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            }
        }
    }
    if !is_preflight {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
