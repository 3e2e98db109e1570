//! The `greenroom` program once more, so that tests of this package can start it.

fn main() -> std::process::ExitCode {
    greenroom_conductor::cli::main()
}
