//! A tool with typed input and output.

use std::fmt;
use std::sync::Arc;

use greenroom_protocol::{BoxFuture, Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::context::McpConnectionTo;
use crate::role::Role;

/// A JSON Schema.
pub type McpToolSchema = Map<String, Value>;

/// A tool that an MCP server offers.
pub trait McpTool<R: Role>: Send + Sync {
    /// What the caller says.
    type Input: JsonSchema + DeserializeOwned + Send + 'static;

    /// What it gets.
    type Output: JsonSchema + Serialize + Send + 'static;

    /// The name by which the tool is called.
    fn name(&self) -> String;

    /// What the tool does, for the model.
    fn description(&self) -> String;

    /// A name for people.
    fn title(&self) -> Option<String> {
        None
    }

    /// One call. Calls run at the same time; dropping the future gives the call up.
    ///
    /// # Errors
    /// What whoever serves the tool makes of it.
    fn call_tool(
        &self,
        input: Self::Input,
        connection: McpConnectionTo<R>,
    ) -> impl Future<Output = Result<Self::Output, Error>> + Send;
}

/// What a tool's callers are told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct McpToolMetadata {
    name: String,
    title: Option<String>,
    description: String,
    input_schema: Arc<McpToolSchema>,
    output_schema: Option<Arc<McpToolSchema>>,
}

impl McpToolMetadata {
    pub(super) fn of<R: Role, T: McpTool<R>>(tool: &T) -> Self {
        let output = schema_of::<T::Output>();
        // MCP wants structured results to be objects.
        let structured = output.get("type").is_some_and(|kind| kind == "object");
        Self {
            name: tool.name(),
            title: tool.title(),
            description: tool.description(),
            input_schema: Arc::new(schema_of::<T::Input>()),
            output_schema: structured.then(|| Arc::new(output)),
        }
    }

    /// The name by which the tool is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name for people.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// What the tool does.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The schema of the arguments.
    #[must_use]
    pub fn input_schema(&self) -> &Arc<McpToolSchema> {
        &self.input_schema
    }

    /// The schema of the result, if results are objects.
    #[must_use]
    pub fn output_schema(&self) -> Option<&Arc<McpToolSchema>> {
        self.output_schema.as_ref()
    }
}

fn schema_of<T: JsonSchema>() -> McpToolSchema {
    match schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        // `true`: anything fits.
        _ => McpToolSchema::new(),
    }
}

/// A tool of any type, as registries keep it.
trait Erased<R: Role>: Send + Sync {
    fn call(&self, input: Value, connection: McpConnectionTo<R>) -> BoxFuture<'_, Result<Value>>;
}

impl<R: Role, T: McpTool<R>> Erased<R> for T {
    fn call(&self, input: Value, connection: McpConnectionTo<R>) -> BoxFuture<'_, Result<Value>> {
        Box::pin(async move {
            // Omitted arguments are an object without members.
            let input = if input.is_null() { Value::Object(Map::new()) } else { input };
            let input = serde_json::from_value(input).map_err(|error| {
                Error::invalid_params().data(format!("the arguments do not fit the tool's input schema: {error}"))
            })?;
            let output = self.call_tool(input, connection).await?;
            serde_json::to_value(output).map_err(Error::into_internal_error)
        })
    }
}

/// A tool in a registry.
pub struct RegisteredMcpTool<Counterpart: Role> {
    metadata: McpToolMetadata,
    tool: Box<dyn Erased<Counterpart>>,
}

impl<Counterpart: Role> RegisteredMcpTool<Counterpart> {
    pub(super) fn new(tool: impl McpTool<Counterpart> + 'static) -> Self {
        Self { metadata: McpToolMetadata::of(&tool), tool: Box::new(tool) }
    }

    /// The name by which the tool is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name()
    }

    /// What callers are told.
    #[must_use]
    pub fn metadata(&self) -> &McpToolMetadata {
        &self.metadata
    }

    /// Whether results are objects, and so have a schema.
    #[must_use]
    pub fn has_structured_output(&self) -> bool {
        self.metadata.output_schema.is_some()
    }

    /// Calls the tool with arguments as JSON; null stands for omitted ones. Dropping the future gives
    /// the call up.
    ///
    /// # Errors
    /// `-32602` when the arguments do not fit; the error of the tool; `-32603` when its result cannot
    /// be written.
    pub fn call_tool(
        &self,
        arguments: Value,
        connection: McpConnectionTo<Counterpart>,
    ) -> BoxFuture<'_, Result<Value, Error>> {
        self.tool.call(arguments, connection)
    }
}

impl<Counterpart: Role> fmt::Debug for RegisteredMcpTool<Counterpart> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredMcpTool").field("name", &self.name()).finish_non_exhaustive()
    }
}
