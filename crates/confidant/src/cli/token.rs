//! `confidant token`: who may ask over HTTP, for which tenant, as what.

use clap::{Args, Subcommand};
use confidant_engine::Actor;
use confidant_engine::access::{Bearer, Role};
use secrecy::ExposeSecret as _;

use super::shared::{JsonArg, Outcome, TenantArg, with_engine};
use crate::config::Loaded;
use crate::open::{Opened, Purpose};
use crate::output::{self, moment, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant token new --role agent
  confidant token new --role user:alice --tenant acme
  confidant token list
  confidant token revoke 0123456789ab")]
pub(super) enum TokenCommand {
    /// Make a token and print it, once
    New(NewArgs),
    /// List tokens, without their secrets
    List(JsonArg),
    /// Revoke a token
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// admin (everything), agent (turns for anyone) or user:ID (their own sessions only)
    #[arg(long, value_name = "ROLE")]
    role: String,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// The token's id, as `token list` prints it
    id: String,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) async fn run(command: TokenCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    // The first token may be made before the first start.
    let purpose = if matches!(command, TokenCommand::New(_)) { Purpose::SetUp } else { Purpose::LookAtData };
    with_engine(loaded, purpose, async |opened| match command {
        TokenCommand::New(args) => new(&args, opened).await,
        TokenCommand::List(args) => list(&args, opened).await,
        TokenCommand::Revoke(args) => revoke(&args, opened).await,
    })
    .await
}

async fn new(args: &NewArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let (tenant, role) = (args.tenant.id()?, Role::parse(&args.role)?);
    let (bearer, token) =
        opened.engine.dangerously_administer(Actor::cli()).new_token(&tenant, &role).await?;
    if args.output.json {
        let mut described = described(&bearer);
        described["token"] = token.expose_secret().into();
        output::json(&described)?;
    } else {
        output::line(token.expose_secret())?;
    }
    note(&format!("token {}: shown only now, keep it like a password", bearer.token_id));
    Ok(Outcome::Done)
}

async fn list(args: &JsonArg, opened: &Opened) -> anyhow::Result<Outcome> {
    let bearers = opened.engine.dangerously_administer(Actor::cli()).tokens().await?;
    if args.json {
        output::json(&bearers.iter().map(described).collect::<Vec<_>>())?;
    } else {
        for bearer in &bearers {
            let made = moment(bearer.created_at);
            output::line(&format!(
                "{}\t{}\t{}\t{made}",
                bearer.token_id,
                bearer.tenant.as_str(),
                bearer.role.to_text()
            ))?;
        }
    }
    if bearers.is_empty() {
        note("no tokens");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

async fn revoke(args: &RevokeArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let revoked = opened.engine.dangerously_administer(Actor::cli()).revoke_token(&args.id).await?;
    if args.output.json {
        output::json(&serde_json::json!({ "id": args.id, "revoked": revoked }))?;
    }
    if !revoked {
        note("no such token; `confidant token list` lists them");
        return Ok(Outcome::NothingFound);
    }
    note("revoked");
    Ok(Outcome::Done)
}

fn described(bearer: &Bearer) -> serde_json::Value {
    serde_json::json!({
        "id": bearer.token_id,
        "tenant": bearer.tenant.as_str(),
        "role": bearer.role.to_text(),
        "created_at": bearer.created_at,
    })
}
