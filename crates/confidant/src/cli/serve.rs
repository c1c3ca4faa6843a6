//! `confidant serve`: its arguments; what it does is in [`crate::daemon`].

use std::net::SocketAddr;

use clap::Args;

use super::shared::Outcome;
use crate::config::Loaded;
use crate::daemon::{self, Role};

#[derive(Debug, Default, Args)]
#[command(after_help = "\
The first start makes a master key and an administrator's token in the data folder.

Examples:
  confidant serve
  confidant serve --listen 0.0.0.0:8080 --data-dir /var/lib/confidant
  REDIS_URL=redis://redis:6379 confidant serve --role worker
  CONFIDANT_MODEL__PROVIDER=openai CONFIDANT_MODEL__MODEL=gpt-5-mini confidant serve")]
pub(super) struct ServeArgs {
    /// The address to listen on [default: server.listen, 127.0.0.1:7367]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<SocketAddr>,
    /// What this process does: everything, take requests (gateway), or run turns (worker)
    #[arg(long, value_enum, default_value_t)]
    pub(super) role: Role,
}

pub(super) async fn run(args: ServeArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    daemon::run(loaded, args.role, args.listen).await.map(|()| Outcome::Done)
}
