//! The derive macros, used as a dependent crate uses them.

use std::marker::PhantomData;

use greenroom_protocol::{
    JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, Result, UntypedMessage,
};
use serde::{Deserialize, Serialize};

const LIST: &str = "_acme/list";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_acme/search", response = Page<Vec<T>>)]
struct Search<T> {
    filter: T,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = LIST, response = Page<Vec<String>>)]
struct List {
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonRpcResponse)]
struct Page<T> {
    items: T,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_acme/progress")]
enum Progress {
    Step { percent: u8 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_acme/ping")]
struct Ping;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_acme/bare", crate = greenroom_protocol)]
struct Bare(u32);

/// A type that is only marked by its parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonRpcNotification)]
#[notification(method = "_acme/marked")]
struct Marked<T: 'static + Clone + std::fmt::Debug + Send> {
    #[serde(skip, default)]
    mark: PhantomData<T>,
}

/// A type that cannot be serialised, fit as a mark only.
#[derive(Debug, Clone, PartialEq)]
struct Mark;

/// Compiles only when a generic request is a request for every message-like parameter.
fn call<T>(filter: T) -> (String, Vec<u8>)
where
    T: Clone + std::fmt::Debug + Send + Serialize + serde::de::DeserializeOwned + 'static,
{
    let search = Search { filter };
    (search.method().to_owned(), search.params_text().expect("serialisable"))
}

fn answer<R: JsonRpcRequest>(_: &R, text: &str) -> Result<R::Response> {
    R::Response::from_text("", text)
}

#[test]
fn a_request_is_written_and_read() {
    assert_eq!(call("x".to_owned()), ("_acme/search".to_owned(), br#"{"filter":"x"}"#.to_vec()));
    assert!(Search::<u8>::matches_method("_acme/search"));
    assert!(!Search::<u8>::matches_method("_acme/searches"));
    assert_eq!(Search::<u8>::parse_params("_acme/search", r#"{"filter":3}"#).expect("fits"), Search { filter: 3 });
    let untyped = Search { filter: 3u8 }.to_untyped_message().expect("serialisable");
    assert_eq!(untyped, UntypedMessage::new("_acme/search", serde_json::json!({"filter": 3})).expect("json"));
    assert_eq!(Search::parse_message(untyped.method(), untyped.params()).expect("fits"), Search { filter: 3u8 });
    let page = answer(&Search { filter: 3u8 }, r#"{"items":[1,2]}"#).expect("fits");
    assert_eq!(page, Page { items: vec![1, 2] });
}

#[test]
fn wrong_methods_and_params_are_told_apart() {
    let other = Search::<u8>::parse_params("_acme/other", r#"{"filter":3}"#).expect_err("another method");
    assert_eq!((i32::from(other.code), other.data), (-32601, Some("_acme/other".into())));
    let other = Search::<u8>::parse_message("_acme/other", &()).expect_err("another method");
    assert_eq!(i32::from(other.code), -32601);
    let unfit = Search::<u8>::parse_params("_acme/search", r#"{"filter":"x"}"#).expect_err("a string is no u8");
    assert_eq!(i32::from(unfit.code), -32602);
    let unfit = answer(&Search { filter: 3u8 }, r#"{"items":7}"#).expect_err("no list");
    assert_eq!(i32::from(unfit.code), -32700);
}

#[test]
fn omitted_params_suit_optional_members_only() {
    assert_eq!(List::parse_params(LIST, "null").expect("all optional"), List { limit: None });
    assert_eq!(List { limit: None }.method(), LIST);
    assert!(Search::<u8>::parse_params("_acme/search", "null").is_err());
    assert_eq!(Ping.params_text().expect("unit"), b"", "a unit struct has no params");
    assert_eq!(Ping::parse_params("_acme/ping", "null").expect("unit"), Ping);
    assert!(Bare(1).params_text().is_err(), "a number is no params");
}

#[test]
fn notifications_and_responses_keep_their_serde_form() {
    let step = Progress::Step { percent: 7 };
    assert_eq!(step.params_text().expect("json"), br#"{"Step":{"percent":7}}"#);
    assert_eq!(Progress::parse_params("_acme/progress", r#"{"Step":{"percent":7}}"#).expect("fits"), step);
    let marked = Marked::<Mark> { mark: PhantomData };
    assert_eq!(marked.params_text().expect("json"), b"{}");
    let page = Page { items: vec![1u8] };
    let value = page.clone().into_json("").expect("json");
    assert_eq!(value, serde_json::json!({"items": [1]}));
    assert_eq!(Page::from_value("", value).expect("fits"), page);
    assert_eq!(page.into_text("").expect("json"), br#"{"items":[1]}"#);
}
