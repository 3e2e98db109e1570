//! What a prompt tells the agent to do.

use greenroom::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One prompt for [`testy`](super::testy), as plain text or as JSON.
///
/// The JSON form is an object with a member `command`: the name of a plain command, or
/// `run_scenario` with the name in `scenario`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TestyCommand {
    /// List the commands and scenarios.
    Help,
    /// Say this message.
    Echo {
        /// What is said.
        message: String,
    },
    /// Work until the turn is cancelled.
    WaitForCancel,
    /// Run a scenario.
    RunScenario {
        /// Which one.
        scenario: TestyScenario,
    },
}

macro_rules! scenarios {
    ($($variant:ident = $name:literal: $help:literal;)*) => {
        /// Something that the agent does in the same way each time it is asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum TestyScenario {
            $(#[doc = $help] $variant,)*
        }

        impl TestyScenario {
            /// Every scenario.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name in prompts.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            fn help(self) -> &'static str {
                match self { $(Self::$variant => $help),* }
            }
        }
    };
}

scenarios! {
    SessionUpdates = "session_updates": "emit every stable session/update variant";
    Content = "content": "emit every stable content block in messages";
    ToolCalls = "tool_calls": "emit tool calls and their updates";
    Callbacks = "callbacks": "send every stable request to the client";
    Elicitations = "elicitations": "send elicitation requests only";
    CancelStatus = "cancel_status": "report whether session/cancel has been received";
    Full = "full": "run every scenario, one after the other";
}

/// The object of the JSON form.
#[derive(Serialize, Deserialize)]
struct Form {
    command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scenario: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl TestyCommand {
    /// Reads a prompt. Text that is no command is echoed as it is.
    ///
    /// # Errors
    /// `-32602` for a JSON object with a member `command` that is no known command.
    pub fn parse(text: &str) -> Result<Self> {
        let trimmed = text.trim();
        if trimmed.starts_with('{')
            && let Ok(value) = serde_json::from_str::<Value>(trimmed)
            && value.get("command").is_some()
        {
            return Self::from_form(value);
        }
        let message = text.strip_prefix("echo ").unwrap_or(text);
        Ok(Self::named(trimmed).unwrap_or_else(|| Self::Echo { message: message.to_owned() }))
    }

    fn from_form(value: Value) -> Result<Self> {
        let unknown = |reason: &str| {
            let names = ["run_scenario", "echo", "help", "wait_for_cancel"];
            let scenarios: Vec<_> = TestyScenario::ALL.iter().map(|scenario| scenario.name()).collect();
            Err(Error::invalid_params().data(json!({ "reason": reason, "commands": names, "scenarios": scenarios })))
        };
        let form: Form = match serde_json::from_value(value) {
            Ok(form) => form,
            Err(_) => return unknown("command, scenario and message are strings"),
        };
        match (form.command.as_str(), form.scenario, form.message) {
            ("echo", _, Some(message)) => Ok(Self::Echo { message }),
            ("echo", _, None) => unknown("echo needs a message"),
            ("run_scenario", None, _) => unknown("run_scenario needs a scenario"),
            ("run_scenario", Some(name), _) => Self::named(&name).map_or_else(|| unknown("no such scenario"), Ok),
            (name, _, _) => Self::named(name).map_or_else(|| unknown("no such command"), Ok),
        }
    }

    /// The commands without arguments.
    fn named(name: &str) -> Option<Self> {
        match name {
            "help" => Some(Self::Help),
            "wait_for_cancel" => Some(Self::WaitForCancel),
            _ => {
                let scenario = TestyScenario::ALL.iter().find(|scenario| scenario.name() == name)?;
                Some(Self::RunScenario { scenario: *scenario })
            }
        }
    }

    /// The prompt in its JSON form, which [`parse`](Self::parse) reads.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut form = Form { command: String::new(), scenario: None, message: None };
        form.command = match self {
            Self::Help => "help",
            Self::WaitForCancel => "wait_for_cancel",
            Self::Echo { message } => {
                form.message = Some(message.clone());
                "echo"
            }
            Self::RunScenario { scenario } => {
                form.scenario = Some(scenario.name().to_owned());
                "run_scenario"
            }
        }
        .to_owned();
        json!(form).to_string()
    }
}

/// What `help` answers, with these scenarios.
pub(super) fn help(scenarios: &[TestyScenario]) -> String {
    let mut text = String::from(
        "help: list the commands\n\
         echo <message>: say the message; any other text is said as it is\n\
         wait_for_cancel: work until the turn is cancelled\n",
    );
    for scenario in scenarios {
        text += &format!("{}: {}\n", scenario.name(), scenario.help());
    }
    text + r#"As JSON: {"command":"run_scenario","scenario":"<name>"}"#
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(message: &str) -> TestyCommand {
        TestyCommand::Echo { message: message.to_owned() }
    }

    #[test]
    fn prompts_are_read() {
        let run = |scenario| TestyCommand::RunScenario { scenario };
        for (text, command) in [
            ("help", TestyCommand::Help),
            (" help\n", TestyCommand::Help),
            ("wait_for_cancel", TestyCommand::WaitForCancel),
            ("echo hello", echo("hello")),
            ("echo  two blanks ", echo(" two blanks ")),
            ("echo", echo("echo")),
            ("echo help", echo("help")),
            ("anything else", echo("anything else")),
            ("", echo("")),
            (r#"{"a":1}"#, echo(r#"{"a":1}"#)),
            ("{not json", echo("{not json")),
            (r#"["command"]"#, echo(r#"["command"]"#)),
            ("full", run(TestyScenario::Full)),
            (r#"{"command":"run_scenario","scenario":"elicitations"}"#, run(TestyScenario::Elicitations)),
            (r#" {"scenario": "full", "command": "run_scenario", "more": 1} "#, run(TestyScenario::Full)),
            (r#"{"command":"content"}"#, run(TestyScenario::Content)),
            (r#"{"command":"help"}"#, TestyCommand::Help),
            (r#"{"command":"run_scenario","scenario":"wait_for_cancel"}"#, TestyCommand::WaitForCancel),
            (r#"{"command":"echo","message":"\u4e2d"}"#, echo("中")),
        ] {
            assert_eq!(TestyCommand::parse(text).expect("a command"), command, "{text}");
        }
    }

    #[test]
    fn the_json_form_comes_back() {
        let mut all = vec![TestyCommand::Help, TestyCommand::WaitForCancel, echo("a \"b\"\n")];
        all.extend(TestyScenario::ALL.iter().map(|scenario| TestyCommand::RunScenario { scenario: *scenario }));
        for command in all {
            assert_eq!(TestyCommand::parse(&command.to_json()).expect("a command"), command);
        }
        let json = TestyCommand::RunScenario { scenario: TestyScenario::Elicitations }.to_json();
        assert_eq!(json, r#"{"command":"run_scenario","scenario":"elicitations"}"#);
    }

    #[test]
    fn what_looks_like_a_command_and_is_none_is_refused() {
        for text in [
            r#"{"command":"dance"}"#,
            r#"{"command":1}"#,
            r#"{"command":"echo"}"#,
            r#"{"command":"echo","message":1}"#,
            r#"{"command":"run_scenario"}"#,
            r#"{"command":"run_scenario","scenario":"dance"}"#,
            r#"{"command":"run_scenario","scenario":["full"]}"#,
        ] {
            let error = TestyCommand::parse(text).expect_err(text);
            assert_eq!(i32::from(error.code), -32602, "{text}");
            let data = error.data.expect("data");
            assert!(data["scenarios"].as_array().is_some_and(|names| names.contains(&json!("full"))), "{data}");
        }
    }

    #[test]
    fn help_names_everything() {
        let text = help(TestyScenario::ALL);
        for name in ["help", "echo <message>", "wait_for_cancel", "run_scenario"] {
            assert!(text.contains(name), "{text}");
        }
        assert!(TestyScenario::ALL.iter().all(|scenario| text.contains(scenario.name())), "{text}");
    }
}
