//! The long soak: 100 runs of 10 000 messages on each kind of runtime, with each version of the
//! protocol, unless the environment says otherwise. Prints what was done to whom, or the seed of the
//! run that went wrong.

use std::process::ExitCode;
use std::time::Instant;

use greenroom_testkit::chaos::{Campaign, Flavour, Protocol};

fn main() -> ExitCode {
    let campaign = Campaign::from_environment(100, 10_000);
    for flavour in [Flavour::CurrentThread, Flavour::TwoThreads] {
        for protocol in Protocol::ALL {
            let begin = Instant::now();
            match campaign.speaking(*protocol).run(flavour, |seed| eprint!(" {seed}")) {
                Ok(report) => eprintln!("\n{flavour}, version {protocol:?}, {:.1?}\n{report}", begin.elapsed()),
                Err(fault) => {
                    eprintln!("\n{flavour}, version {protocol:?}: {fault}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
