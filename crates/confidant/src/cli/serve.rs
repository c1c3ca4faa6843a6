//! `confidant serve`: its arguments; what it does is in [`crate::daemon`].

use std::net::SocketAddr;

use clap::Args;

#[derive(Debug, Default, Args)]
#[command(after_help = "\
The first start makes a master key and an administrator's token in the data folder.

Examples:
  confidant serve
  confidant serve --listen 0.0.0.0:8080 --data-dir /var/lib/confidant
  CONFIDANT_MODEL__PROVIDER=openai CONFIDANT_MODEL__MODEL=gpt-5-mini confidant serve")]
pub(super) struct ServeArgs {
    /// Where to listen [default: server.listen, 127.0.0.1:7367]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<SocketAddr>,
}
