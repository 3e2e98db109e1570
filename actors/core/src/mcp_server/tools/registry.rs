//! The tools of one server, and which of them are offered.

use std::collections::HashSet;
use std::fmt;

use greenroom_protocol::{Error, Result};

use super::tool::{McpTool, RegisteredMcpTool};
use crate::role::Role;

/// Which tools are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnabledTools {
    /// All but these.
    DenyList(HashSet<String>),
    /// These only.
    AllowList(HashSet<String>),
}

impl EnabledTools {
    /// Whether a tool of this name is offered, if there is one.
    #[must_use]
    pub fn is_enabled(&self, name: &str) -> bool {
        match self {
            Self::DenyList(denied) => !denied.contains(name),
            Self::AllowList(allowed) => allowed.contains(name),
        }
    }
}

/// Everything is offered.
impl Default for EnabledTools {
    fn default() -> Self {
        Self::DenyList(HashSet::new())
    }
}

/// The tools of one server, in the order of their registration.
pub struct McpToolRegistry<Counterpart: Role> {
    instructions: Option<String>,
    tools: Vec<RegisteredMcpTool<Counterpart>>,
    enabled: EnabledTools,
}

impl<Counterpart: Role> McpToolRegistry<Counterpart> {
    /// Says how the tools are meant to be used, for the model.
    pub fn set_instructions(&mut self, instructions: impl ToString) {
        self.instructions = Some(instructions.to_string());
    }

    /// How the tools are meant to be used.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// Adds a tool. One of the same name gives its place to it.
    pub fn register_tool(&mut self, tool: impl McpTool<Counterpart> + 'static) {
        let tool = RegisteredMcpTool::new(tool);
        match self.tools.iter_mut().find(|known| known.name() == tool.name()) {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// Whether there is a tool of this name, offered or not.
    #[must_use]
    pub fn contains_tool(&self, name: &str) -> bool {
        self.tool(name).is_some()
    }

    /// The tool of this name, offered or not.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&RegisteredMcpTool<Counterpart>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// All tools, offered or not.
    pub fn tools(&self) -> impl Iterator<Item = &RegisteredMcpTool<Counterpart>> {
        self.tools.iter()
    }

    /// The tool of this name, if it is offered.
    #[must_use]
    pub fn enabled_tool(&self, name: &str) -> Option<&RegisteredMcpTool<Counterpart>> {
        self.tool(name).filter(|tool| self.enabled.is_enabled(tool.name()))
    }

    /// The tools that are offered.
    pub fn enabled_tools(&self) -> impl Iterator<Item = &RegisteredMcpTool<Counterpart>> {
        self.tools.iter().filter(|tool| self.enabled.is_enabled(tool.name()))
    }

    /// Offers every tool, also those that are registered later.
    pub fn enable_all_tools(&mut self) {
        self.enabled = EnabledTools::default();
    }

    /// Offers no tool; those that are registered later have to be enabled.
    pub fn disable_all_tools(&mut self) {
        self.enabled = EnabledTools::AllowList(HashSet::new());
    }

    /// Offers a tool.
    ///
    /// # Errors
    /// `-32602` when there is no tool of this name: register it first.
    pub fn enable_tool(&mut self, name: &str) -> Result<(), Error> {
        self.known(name)?;
        match &mut self.enabled {
            EnabledTools::DenyList(denied) => drop(denied.remove(name)),
            EnabledTools::AllowList(allowed) => drop(allowed.insert(name.to_owned())),
        }
        Ok(())
    }

    /// Offers a tool no longer.
    ///
    /// # Errors
    /// `-32602` when there is no tool of this name: register it first.
    pub fn disable_tool(&mut self, name: &str) -> Result<(), Error> {
        self.known(name)?;
        match &mut self.enabled {
            EnabledTools::DenyList(denied) => drop(denied.insert(name.to_owned())),
            EnabledTools::AllowList(allowed) => drop(allowed.remove(name)),
        }
        Ok(())
    }

    fn known(&self, name: &str) -> Result<()> {
        if self.contains_tool(name) {
            return Ok(());
        }
        Err(Error::invalid_params().data(format!("no tool is registered under the name {name:?}")))
    }
}

impl<Counterpart: Role> Default for McpToolRegistry<Counterpart> {
    fn default() -> Self {
        Self { instructions: None, tools: Vec::new(), enabled: EnabledTools::default() }
    }
}

impl<Counterpart: Role> fmt::Debug for McpToolRegistry<Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(RegisteredMcpTool::name).collect();
        f.debug_struct("McpToolRegistry").field("tools", &names).field("enabled", &self.enabled).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::context::McpConnectionTo;
    use super::*;
    use crate::role::mcp::Client;

    struct Named(&'static str);

    impl McpTool<Client> for Named {
        type Input = Vec<u8>;
        type Output = String;

        fn name(&self) -> String {
            self.0.to_owned()
        }

        fn description(&self) -> String {
            "a tool".to_owned()
        }

        async fn call_tool(&self, _input: Vec<u8>, _connection: McpConnectionTo<Client>) -> Result<String> {
            Ok(String::new())
        }
    }

    fn offered(registry: &McpToolRegistry<Client>) -> Vec<&str> {
        registry.enabled_tools().map(RegisteredMcpTool::name).collect()
    }

    #[test]
    fn a_tool_is_offered_as_the_lists_say() {
        let mut registry = McpToolRegistry::default();
        registry.register_tool(Named("a"));
        registry.register_tool(Named("b"));
        assert_eq!(offered(&registry), ["a", "b"]);
        registry.disable_tool("a").expect("known");
        assert_eq!(offered(&registry), ["b"]);
        assert!(registry.enabled_tool("a").is_none() && registry.contains_tool("a"));
        registry.disable_all_tools();
        registry.register_tool(Named("c"));
        assert!(offered(&registry).is_empty());
        registry.enable_tool("c").expect("known");
        assert_eq!(offered(&registry), ["c"]);
        registry.disable_tool("c").expect("known");
        assert!(offered(&registry).is_empty());
        registry.enable_all_tools();
        assert_eq!(offered(&registry), ["a", "b", "c"]);
        for unknown in [registry.enable_tool("x"), registry.disable_tool("x")] {
            assert_eq!(i32::from(unknown.expect_err("unknown").code), -32602);
        }
    }

    #[test]
    fn a_name_has_one_tool() {
        let mut registry = McpToolRegistry::default();
        registry.register_tool(Named("a"));
        registry.register_tool(Named("a"));
        assert_eq!(registry.tools().count(), 1);
        let tool = registry.tool("a").expect("registered");
        assert!(!tool.has_structured_output(), "a text is no object");
        assert_eq!(tool.metadata().input_schema()["type"], "array");
    }
}
