//! Questions to the user: both modes, both scopes, every answer.

use greenroom::Error;
use greenroom::schema::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, ElicitationAction, ElicitationFormMode, ElicitationMode,
    ElicitationRequestScope, ElicitationSchema, ElicitationScope, ElicitationSessionScope, ElicitationUrlMode,
    EnumOption, MultiSelectPropertySchema, StringPropertySchema,
};
use serde_json::json;

use crate::testy::v1::turn::{End, Turn};

pub(super) async fn run(turn: &mut Turn) -> Result<(), End> {
    let capabilities = turn.capabilities.elicitation.clone().unwrap_or_default();
    if !capabilities.supports_form() {
        return Err(missing("form").into());
    }
    form(turn, Scope::Session, "accept").await?;
    form(turn, Scope::Request, "decline").await?;
    form(turn, Scope::Session, "cancel").await?;
    if !capabilities.supports_url() {
        return Err(missing("url").into());
    }
    url(turn, Scope::Session, "accept").await?;
    url(turn, Scope::Request, "decline").await?;
    url(turn, Scope::Session, "cancel").await
}

#[derive(Clone, Copy)]
enum Scope {
    Session,
    Request,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Request => "request",
        }
    }

    fn of(self, turn: &Turn) -> ElicitationScope {
        match self {
            Self::Session => ElicitationSessionScope::new(turn.session.clone()).into(),
            Self::Request => ElicitationRequestScope::new(turn.request.clone()).into(),
        }
    }
}

/// Asks with a form. The message says which answer the scenario is for; every one is fine.
async fn form(turn: &mut Turn, scope: Scope, wish: &str) -> Result<(), End> {
    let mode = ElicitationMode::Form(ElicitationFormMode::new(scope.of(turn), fields()));
    let message = format!("Please {wish} this form.");
    let answer = turn.ask(CreateElicitationRequest::new(mode, message)).await?.action;
    turn.say(format!("elicitation/create form {}: {}", scope.name(), verdict(&answer)))?;
    Ok(())
}

/// Sends the user to an address. One who accepts is done there at once.
async fn url(turn: &mut Turn, scope: Scope, wish: &str) -> Result<(), End> {
    let id = turn.id(&format!("elicitation-{wish}"));
    let address = format!("https://example.com/testy/{id}");
    let mode = ElicitationMode::Url(ElicitationUrlMode::new(scope.of(turn), id.clone(), address));
    let message = format!("Please {wish} this address.");
    let answer = turn.ask(CreateElicitationRequest::new(mode, message)).await?.action;
    turn.say(format!("elicitation/create url {}: {}", scope.name(), verdict(&answer)))?;
    if matches!(answer, ElicitationAction::Accept(_)) {
        turn.client.send_notification(CompleteElicitationNotification::new(id))?;
    }
    Ok(())
}

/// One field of each kind.
fn fields() -> ElicitationSchema {
    let colours = vec![EnumOption::new("red", "Red"), EnumOption::new("blue", "Blue")];
    ElicitationSchema::new()
        .title("A form")
        .description("One field of each kind")
        .string("name", true)
        .integer("count", 0, 10, false)
        .number("share", 0.0, 1.0, false)
        .boolean("agree", false)
        .property("colour", StringPropertySchema::new().title("Colour").one_of(colours.clone()), false)
        .property("colours", MultiSelectPropertySchema::titled(colours).title("Colours"), false)
}

fn verdict(action: &ElicitationAction) -> String {
    match action {
        ElicitationAction::Accept(accepted) => {
            let fields: Vec<_> = accepted.content.iter().flat_map(|content| content.keys().cloned()).collect();
            format!("accept [{}]", fields.join(", "))
        }
        ElicitationAction::Decline => "decline".to_owned(),
        ElicitationAction::Cancel => "cancel".to_owned(),
        _ => "an action of another version".to_owned(),
    }
}

fn missing(mode: &str) -> Error {
    let reason = format!("the client did not advertise elicitation.{mode}");
    Error::invalid_params().data(json!({ "reason": reason }))
}
