//! The component `arrow` on the stdin and stdout of this process.

use std::process::ExitCode;

fn main() -> ExitCode {
    greenroom_testkit::run(greenroom_testkit::arrow())
}
