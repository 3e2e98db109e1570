//! The component `testy` on the stdin and stdout of this process.

use std::process::ExitCode;

fn main() -> ExitCode {
    greenroom_testkit::run(greenroom_testkit::testy())
}
