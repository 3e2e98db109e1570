//! What older generations write differently (spec §9, decisions 12 and 13).

use greenroom::schema::v1;
use greenroom::util::{MatchDispatch, TypeNotification};
use greenroom::{
    Agent, Client, ConnectTo, ConnectionTo, Dispatch, Error, HandleDispatchFrom, Handled, Result, UntypedMessage,
    on_receive_dispatch, on_receive_notification,
};
use greenroom_testkit::scripted::{Local, pair};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

fn plan_in_a_file() -> Value {
    let update =
        json!({ "sessionUpdate": "plan_update", "plan": { "type": "file", "planId": "p", "uri": "file:///p" } });
    json!({ "sessionId": "s", "update": update })
}

fn serve(client: impl ConnectTo<Agent>) -> Local {
    let (peer, link) = pair(1 << 16);
    tokio::spawn(client.connect_to(link));
    peer
}

/// Sends a plan that can be read, one in a file, and one that is broken; says what was seen of them.
async fn seen(mut peer: Local, mut told: UnboundedReceiver<String>) -> Vec<String> {
    let mut items = plan_in_a_file();
    items["update"]["plan"] = json!({ "type": "items", "planId": "p", "entries": [] });
    let mut broken = plan_in_a_file();
    broken["update"]["plan"] = json!({ "type": "items" });
    for params in [items, broken, plan_in_a_file()] {
        peer.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
    }
    peer.close().await;
    let mut all = Vec::new();
    while let Some(one) = told.recv().await {
        all.push(one);
    }
    all
}

fn tell(told: &UnboundedSender<String>, what: impl ToString) -> Result<()> {
    told.send(what.to_string()).map_err(|_| Error::internal_error())
}

fn expected() -> Vec<String> {
    vec!["typed".to_owned(), plan_in_a_file().to_string()]
}

#[tokio::test]
async fn a_plan_in_a_file_reaches_untyped_handlers() {
    let (told, all) = unbounded_channel();
    let untyped = told.clone();
    let client = Client
        .builder()
        .on_receive_notification(
            async move |_: v1::SessionNotification, _cx: ConnectionTo<Agent>| tell(&told, "typed"),
            on_receive_notification!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx: ConnectionTo<Agent>| tell(&untyped, note.params),
            on_receive_notification!(),
        );
    assert_eq!(seen(serve(client), all).await, expected());
}

#[tokio::test]
async fn and_behind_a_handler_of_requests_and_notifications() {
    let (told, all) = unbounded_channel();
    let untyped = told.clone();
    let client = Client
        .builder()
        .on_receive_dispatch(
            async move |dispatch: Dispatch<UntypedMessage, v1::SessionNotification>, _cx: ConnectionTo<Agent>| {
                if let Dispatch::Notification(_) = dispatch { tell(&told, "typed") } else { Ok(()) }
            },
            on_receive_dispatch!(),
        )
        .on_receive_notification(
            async move |note: UntypedMessage, _cx: ConnectionTo<Agent>| tell(&untyped, note.params),
            on_receive_notification!(),
        );
    assert_eq!(seen(serve(client), all).await, expected());
}

struct Matching(UnboundedSender<String>);

impl HandleDispatchFrom<Agent> for Matching {
    async fn handle_dispatch_from(&mut self, message: Dispatch, _: ConnectionTo<Agent>) -> Result<Handled<Dispatch>> {
        MatchDispatch::new(message)
            .if_notification(async |_: v1::SessionNotification| tell(&self.0, "typed"))
            .await
            .if_notification(async |note: UntypedMessage| {
                TypeNotification::new(note)
                    .handle_if(async |_: v1::SessionNotification| tell(&self.0, "typed later"))
                    .await
                    .otherwise(async |note: UntypedMessage| tell(&self.0, note.params))
                    .await
            })
            .await
            .done()
    }
}

#[tokio::test]
async fn and_when_it_is_matched_by_hand() {
    let (told, all) = unbounded_channel();
    assert_eq!(seen(serve(Client.builder().with_handler(Matching(told))), all).await, expected());
    let message = UntypedMessage::new("session/update", plan_in_a_file()).expect("JSON");
    let back = Dispatch::Notification(message).into_notification::<v1::SessionNotification>();
    assert!(matches!(back, Ok(Err(Dispatch::Notification(_)))), "it is given back: {back:?}");
}

#[cfg(feature = "unstable_protocol_v2")]
mod commands {
    use greenroom::schema::v2::{
        AvailableCommand, NewSessionRequest, NewSessionResponse, SessionUpdate, UpdateSessionNotification,
    };
    use greenroom::{JsonRpcMessage as _, JsonRpcRequest, JsonRpcResponse as _};

    use super::*;

    fn untagged() -> Value {
        json!([{ "name": "old", "description": "O" }, { "type": "_new", "name": "new", "description": "N" }])
    }

    fn names(commands: &[AvailableCommand]) -> Vec<(&str, bool)> {
        commands.iter().map(|one| (one.name(), matches!(one, AvailableCommand::Command(_)))).collect()
    }

    #[test]
    fn commands_without_a_type_are_plain_commands() {
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": untagged() });
        let params = json!({ "sessionId": "s", "update": update });
        let read = UpdateSessionNotification::parse_message("session/update", &params).expect("an update");
        let SessionUpdate::AvailableCommandsUpdate(update) = &read.update else { panic!("commands: {read:?}") };
        assert_eq!(names(&update.available_commands), [("old", true), ("new", false)]);
        let written: Value = serde_json::from_slice(&read.params_text().expect("JSON")).expect("JSON");
        assert_eq!(written["update"]["availableCommands"][0]["type"], "command", "always written with a type");

        let result = json!({ "sessionId": "s", "availableCommands": untagged() });
        let text = result.to_string();
        type Response = <NewSessionRequest as JsonRpcRequest>::Response;
        for read in [Response::from_value("session/new", result), Response::from_text("session/new", &text)] {
            let response: NewSessionResponse = read.expect("a response");
            assert_eq!(names(&response.available_commands), [("old", true), ("new", false)]);
        }
    }

    /// A relay changes nothing: that is for whoever reads them.
    #[tokio::test]
    async fn and_reach_a_client_that_speaks_version_2() {
        let (told, mut all) = unbounded_channel();
        let client = Client.builder().without_acp_version_guard().on_receive_notification(
            async move |update: UpdateSessionNotification, _cx: ConnectionTo<Agent>| match update.update {
                SessionUpdate::AvailableCommandsUpdate(update) => tell(&told, names(&update.available_commands).len()),
                _ => Ok(()),
            },
            on_receive_notification!(),
        );
        let mut peer = serve(client);
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": untagged() });
        let params = json!({ "sessionId": "s", "update": update });
        peer.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
        assert_eq!(all.recv().await.as_deref(), Some("2"));
    }
}
