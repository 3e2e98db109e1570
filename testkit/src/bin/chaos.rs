//! The long soak: 100 runs of 10 000 messages on each kind of runtime, unless the environment says
//! otherwise, and then as many over HTTP. Prints what was done to whom, or the seed of the run that
//! went wrong.

use std::process::ExitCode;
use std::time::Instant;

use greenroom_testkit::chaos::{Campaign, Flavour};

fn main() -> ExitCode {
    let campaign = Campaign::from_environment(100, 10_000);
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        for over_http in [false, true] {
            let begin = Instant::now();
            let name = if over_http { format!("{flavour}, over HTTP") } else { flavour.to_string() };
            let tell = |seed: u64| eprint!(" {seed}");
            let outcome = if over_http { campaign.run_http(flavour, tell) } else { campaign.run(flavour, tell) };
            match outcome {
                Ok(report) => eprintln!("\n{name}, {:.1?}\n{report}", begin.elapsed()),
                Err(fault) => {
                    eprintln!("\n{name}: {fault}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
