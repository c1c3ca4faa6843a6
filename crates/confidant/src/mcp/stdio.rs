//! MCP on stdin and stdout, for a client that starts us.

use std::sync::Arc;

use anyhow::anyhow;
use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use super::Server;
use super::access::Access;
use super::consent::Consent;

/// Serves one client until its input ends. Stdout is the protocol's alone.
pub(crate) async fn serve(access: Access) -> anyhow::Result<()> {
    let memory = access.memory.clone();
    let served = converse(access).await;
    memory.close().await;
    served
}

async fn converse(access: Access) -> anyhow::Result<()> {
    let server = Server::new(access, Arc::new(Consent::new()?));
    let running = match server.serve(rmcp::transport::io::stdio_pipes()).await {
        Ok(running) => running,
        // A client that only looks whether we are there, or changes its mind, has done nothing wrong.
        Err(
            ServerInitializeError::ConnectionClosed(_)
            | ServerInitializeError::TransportError { .. }
            | ServerInitializeError::Cancelled,
        ) => return Ok(()),
        Err(_) => {
            // Without the SDK's own words, which may quote what the client sent.
            return Err(anyhow!(
                "the client's first message is no MCP handshake; hint: start this from an MCP client, such as \
                 `claude mcp add confidant -- confidant mcp`"
            ));
        }
    };
    running
        .waiting()
        .await
        .map_err(|_| anyhow!("serving ended by a fault; hint: start it again and report this"))?;
    Ok(())
}
