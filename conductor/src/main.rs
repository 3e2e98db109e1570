//! The `greenroom` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    greenroom_conductor::cli::main()
}
