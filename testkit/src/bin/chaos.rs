//! The long soak: 100 runs of 10 000 messages on each kind of runtime, with each version of the
//! protocol, unless the environment says otherwise, and then as many over HTTP. Prints what was done
//! to whom, or the seed of the run that went wrong.

use std::process::ExitCode;
use std::time::Instant;

use greenroom_testkit::chaos::{Campaign, Flavour, Protocol};

fn main() -> ExitCode {
    let campaign = Campaign::from_environment(100, 10_000);
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        let versions = Protocol::ALL.iter().copied().map(Some);
        for protocol in versions.chain([None]) {
            let begin = Instant::now();
            let tell = |seed: u64| eprint!(" {seed}");
            let (name, outcome) = match protocol {
                Some(version) => (format!("version {version:?}"), campaign.speaking(version).run(flavour, tell)),
                None => ("over HTTP".to_owned(), campaign.run_http(flavour, tell)),
            };
            match outcome {
                Ok(report) => eprintln!("\n{flavour}, {name}, {:.1?}\n{report}", begin.elapsed()),
                Err(fault) => {
                    eprintln!("\n{flavour}, {name}: {fault}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
