//! Running one component as a program.

use std::process::ExitCode;

use greenroom::{ConnectTo, Result, Role, Stdio};

/// Connects a component to the stdin and stdout of this process and serves until the input ends.
///
/// One thread does everything: a component of a test has no work for a second one, and a round
/// trip is faster without.
#[must_use]
pub fn run<R: Role>(component: impl ConnectTo<R>) -> ExitCode
where
    Stdio: ConnectTo<R::Counterpart>,
{
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format_args!("no runtime: {error}")),
    };
    let result: Result<()> = runtime.block_on(component.connect_to(Stdio::new()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Stdout belongs to the connection: what went wrong is said on stderr.
fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}
