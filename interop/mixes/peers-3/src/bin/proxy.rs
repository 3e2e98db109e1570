//! A proxy of generation 3 that changes nothing: `proxy v1`, `proxy v2` or `proxy both`.

use agent_client_protocol::{Proxy, Result, Stdio};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("v2") => Proxy.v2().connect_to(Stdio::new()).await,
        Some("both") => {
            let versions = Proxy.protocol_router().with_v1(Proxy.builder()).with_v2(Proxy.v2());
            agent_client_protocol::ConnectTo::connect_to(versions, Stdio::new()).await
        }
        _ => Proxy.builder().connect_to(Stdio::new()).await,
    }
}
