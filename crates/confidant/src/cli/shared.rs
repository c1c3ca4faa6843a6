//! What commands share: how they end, the arguments that several have, and an engine for as long as one works.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use confidant_engine::{Engine, TenantId, UserId};
use confidant_memory::Owner;

use crate::config::{DEFAULT_TENANT, Loaded};
use crate::open::{self, Opened, Purpose};

/// How a command ended, if not by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It did what it was asked to.
    Done,
    /// There was nothing to do it to.
    NothingFound,
    /// It found faults, and has named them.
    Faulty,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        Self::from(match outcome {
            Outcome::Done => 0,
            Outcome::NothingFound => 1,
            Outcome::Faulty => 2,
        })
    }
}

/// Opens an engine, does something with it, and stops it whatever happened.
pub(super) async fn with_engine<T>(
    loaded: &Loaded,
    purpose: Purpose,
    work: impl AsyncFnOnce(&Opened) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let opened = open::open(loaded, purpose).await?;
    opened.prepared.tell();
    if purpose == Purpose::Answer {
        opened.tell_of_damage();
    }
    if let Some(toolbox) = &opened.toolbox {
        // A server has time to reach its tools; a single turn would be over before.
        toolbox.settle(TOOLS_PATIENCE).await;
    }
    let done = work(&opened).await;
    stop(&opened.engine).await;
    opened.stop_tools().await;
    done
}

const TOOLS_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

pub(super) async fn stop(engine: &Engine) {
    engine.stop(GRACE).await;
}

#[derive(Debug, Args)]
pub(super) struct TenantArg {
    /// The tenant whose data it is
    #[arg(long, value_name = "TENANT", default_value = DEFAULT_TENANT)]
    pub(super) tenant: String,
}

impl TenantArg {
    pub(super) fn id(&self) -> anyhow::Result<TenantId> {
        Ok(TenantId::new(&self.tenant)?)
    }
}

/// Whose memory it is.
#[derive(Debug, Args)]
pub(super) struct OwnerArgs {
    /// Whose memory it is [default: your login name, or me]
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,
    #[command(flatten)]
    pub(super) tenant: TenantArg,
}

impl OwnerArgs {
    pub(super) fn owner(&self, loaded: &Loaded) -> anyhow::Result<Owner> {
        let user = self.user.as_deref().or(loaded.login.as_deref()).unwrap_or("me");
        Ok(Owner { tenant: self.tenant.id()?, user: UserId::new(user)? })
    }
}

#[derive(Debug, Args)]
pub(super) struct JsonArg {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A command has waited for its own turns already.
const GRACE: Duration = Duration::from_secs(5);
