//! MCP servers behind an ACP connection, shown to the agent as HTTP servers.
//!
//! - [`Secret`] makes and checks the bearer token of each server.
//! - [`route`] and [`server_of_route`] are the path of a server and its inverse.
//! - [`rewrite`] turns the declarations of a setup request.

mod rewrite;
mod route;
mod text;
mod token;

pub use rewrite::{Endpoint, Rewritten, is_setup, rewrite};
pub use route::{ROUTE_LIMIT, route, server_of_route};
pub use token::Secret;
