//! The released conductor of generation 3.

use agent_client_protocol_conductor::ConductorArgs;
use clap::Parser as _;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = ConductorArgs::parse().main().await {
        eprintln!("{error:?}");
        std::process::exit(1);
    }
}
