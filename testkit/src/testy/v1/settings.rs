//! Modes and configuration options of a session.

use greenroom::schema::v1::{
    ClientCapabilities, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption, SessionMode, SessionModeId, SessionModeState, SetSessionConfigOptionRequest,
};
use greenroom::{Error, Result};
use serde_json::json;

const MODES: [(&str, &str); 2] = [("ask", "Ask first"), ("code", "Write code")];
const MODELS: [(&str, &str); 2] = [("fast", "Fast"), ("careful", "Careful")];

/// The values of one session. Their places in the tables above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    mode: usize,
    model: usize,
    verbose: bool,
}

impl Settings {
    pub(super) fn mode(&self) -> SessionModeId {
        SessionModeId::new(MODES[self.mode].0)
    }

    pub(super) fn modes(&self) -> SessionModeState {
        let available = MODES.iter().map(|(id, name)| SessionMode::new(*id, *name)).collect();
        SessionModeState::new(self.mode(), available)
    }

    pub(super) fn set_mode(&mut self, mode: &SessionModeId) -> Result<()> {
        self.mode = place(&MODES, &mode.0, "modes")?;
        Ok(())
    }

    /// All options; the boolean one is for clients only that know boolean options.
    pub(super) fn options(&self, client: &ClientCapabilities) -> Vec<SessionConfigOption> {
        let models: Vec<_> = MODELS.iter().map(|(id, name)| SessionConfigSelectOption::new(*id, *name)).collect();
        let model = SessionConfigOption::select("model", "Model", MODELS[self.model].0, models);
        let mut all = vec![model.category(SessionConfigOptionCategory::Model)];
        let options = client.session.as_ref().and_then(|session| session.config_options.as_ref());
        if options.is_some_and(|options| options.boolean.is_some()) {
            all.push(SessionConfigOption::boolean("verbose", "Verbose", self.verbose));
        }
        all
    }

    pub(super) fn set_option(&mut self, request: &SetSessionConfigOptionRequest) -> Result<()> {
        let refused = |reason: &str| Err(Error::invalid_params().data(json!({ "reason": reason })));
        match (&*request.config_id.0, &request.value) {
            ("model", SessionConfigOptionValue::ValueId { value }) => {
                self.model = place(&MODELS, &value.0, "values")?;
                Ok(())
            }
            ("verbose", SessionConfigOptionValue::Boolean { value }) => {
                self.verbose = *value;
                Ok(())
            }
            ("model" | "verbose", _) => refused("the option has values of another type"),
            _ => refused("unknown option: there are model and verbose"),
        }
    }
}

fn place(table: &[(&str, &str)], id: &str, what: &str) -> Result<usize> {
    table.iter().position(|(known, _)| *known == id).ok_or_else(|| {
        let known: Vec<_> = table.iter().map(|(id, _)| *id).collect();
        Error::invalid_params().data(json!({ "reason": "unknown value", what: known }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_take_values_of_their_own_type() {
        let mut settings = Settings::default();
        let mut set = |option: &'static str, value: SessionConfigOptionValue| {
            settings.set_option(&SetSessionConfigOptionRequest::new("s", option, value)).map_err(|e| i32::from(e.code))
        };
        let id = SessionConfigOptionValue::value_id;
        assert_eq!(set("model", id("careful")), Ok(()));
        assert_eq!(set("verbose", SessionConfigOptionValue::boolean(true)), Ok(()));
        assert_eq!(set("model", id("none")), Err(-32602));
        assert_eq!(set("model", SessionConfigOptionValue::boolean(true)), Err(-32602));
        assert_eq!(set("verbose", id("true")), Err(-32602));
        assert_eq!(set("colour", id("red")), Err(-32602));
        assert_eq!(settings, Settings { mode: 0, model: 1, verbose: true });
    }
}
