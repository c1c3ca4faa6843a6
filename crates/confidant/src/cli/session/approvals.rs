//! Approvals from the command line: what waits, deciding it, and calling turns off.
//!
//! A decision is carried out by the server that runs on the same data, since that is where the turn's person is
//! answered; where none runs, or it does not take it up, this process does it.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use confidant_engine::approval::{ApprovalRequest, Decider, Decision};
use confidant_engine::turn::{CarryOut, Ending, Standing};
use confidant_engine::{Actor, Error, Scope, Session, TenantId, UserId};
use serde::Serialize;

use super::super::shared::{JsonArg, Outcome, TenantArg, with_engine};
use super::super::turn::{self, Interrupts, Status, described, tell_how_to_decide};
use super::session;
use crate::config::DEFAULT_TENANT;
use crate::config::Loaded;
use crate::open::{Opened, Purpose};
use crate::output::{self, counted, moment, note};

#[derive(Debug, Args)]
pub(in crate::cli) struct ApprovalsArgs {
    /// Only approvals of this session
    session_id: Option<String>,
    /// Only approvals of this tenant [default: with a session, default; else all]
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DecideArgs {
    /// The session, as `session approvals` prints it
    session_id: String,
    /// The approval, as `session approvals` prints it
    approval_id: String,
    /// Decide as this person [default: as an administrator]
    #[arg(long = "as", value_name = "USER")]
    person: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CancelArgs {
    /// The session, as `session list` prints it
    session_id: String,
    /// Only this turn
    request_id: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    output: JsonArg,
}

/// An approval, and where it waits.
#[derive(Serialize)]
struct Waiting {
    session_id: String,
    tenant: String,
    #[serde(flatten)]
    request: ApprovalRequest,
}

pub(super) async fn list(args: &ApprovalsArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let mut waiting = Vec::new();
    for scope in scopes(args, opened).await? {
        let (session_id, tenant) = (scope.session_id(), scope.tenant().as_str().to_owned());
        let found = match opened.engine.session(scope, Actor::cli()).approvals().await {
            Err(Error::Tampered(tampering)) if args.session_id.is_none() => {
                note(&format!(
                    "{session_id} could not be opened ({}); see `confidant doctor`",
                    tampering.name()
                ));
                continue;
            }
            found => found?,
        };
        waiting.extend(found.into_iter().map(|request| Waiting {
            session_id: session_id.clone(),
            tenant: tenant.clone(),
            request,
        }));
    }
    if args.output.json {
        output::json(&waiting)?;
    } else {
        for one in &waiting {
            output::line(&line(one))?;
        }
    }
    if waiting.is_empty() {
        note("no approvals are pending");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

/// The sessions in which something may wait.
async fn scopes(args: &ApprovalsArgs, opened: &Opened) -> anyhow::Result<Vec<Scope>> {
    if let Some(id) = &args.session_id {
        let tenant = TenantId::new(args.tenant.as_deref().unwrap_or(DEFAULT_TENANT))?;
        return Ok(vec![Scope::parse(tenant, id).map_err(Error::from)?]);
    }
    let tenant = args.tenant.as_deref().map(TenantId::new).transpose()?;
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    let sessions = administrator.sessions(tenant.as_ref(), usize::MAX).await?;
    let mut scopes = Vec::new();
    for one in sessions.into_iter().filter(|one| one.open_turn) {
        if let (Some(id), Some(tenant)) = (one.session_id, one.tenant) {
            let scope = Scope::parse_any(TenantId::new(&tenant)?, &id).map_err(Error::from)?;
            // What waits in chats that only their owner can open is decided there.
            let is_account = UserId::new(scope.user().as_str()).is_err();
            scopes.extend(Some(scope).filter(|_| !is_account));
        }
    }
    Ok(scopes)
}

/// What `session approve` wants comes first, so that `cut -f1,2` is enough for a script.
fn line(one: &Waiting) -> String {
    let request = &one.request;
    let (id, approval) = (&one.session_id, &request.approval_id);
    let (until, arguments) = (moment(request.expires_at), plain(&request.arguments.to_string()));
    format!("{id}\t{approval}\t{}\t{}\tuntil {until}\t{arguments}", one.tenant, plain(&request.tool))
}

/// Text in which every character is one that can be seen: what is approved is what is shown.
fn plain(text: &str) -> String {
    let shown = |c: char| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
    text.chars().fold(String::new(), |mut plain, c| {
        if shown(c) {
            plain.push(c);
        } else {
            plain.extend(c.escape_unicode());
        }
        plain
    })
}

/// What is left to do once a decision is made, or could be.
enum Left {
    /// Nothing: another process did it.
    Nothing(Ending),
    /// To decide and to carry it out.
    Everything,
    /// To carry it out: nobody has taken it up.
    Carrying(String),
}

pub(super) async fn decide(
    args: &DecideArgs,
    decision: Decision,
    loaded: &Loaded,
) -> anyhow::Result<Outcome> {
    let by = match &args.person {
        Some(person) => Decider::Person(UserId::new(person)?.as_str().to_owned()),
        None => Decider::Admin,
    };
    let left = with_engine(loaded, Purpose::LookAtData, async |opened| {
        let session = session(opened, args.tenant.id()?, &args.session_id)?;
        leave_to_others(args, opened, &session, decision, &by).await
    })
    .await
    .map_err(|error| advised(error, args))?;
    let ending = match left {
        Left::Nothing(ending) if args.output.json => ending,
        Left::Nothing(ending) => turn::print(&ending).map(|()| ending)?,
        left => {
            with_engine(loaded, Purpose::Answer, async |opened| {
                let session = session(opened, args.tenant.id()?, &args.session_id)?;
                let turn = match &left {
                    Left::Carrying(request_id) => session.carry_out(request_id),
                    _ => session.decide(&args.approval_id, decision, by, CarryOut::Here),
                };
                turn::follow(&session, turn, &args.output, &mut Interrupts::listen()?).await
            })
            .await?
        }
    };
    if args.output.json {
        output::json(&described(&args.session_id, &ending))?;
    }
    if let Ending::Approval(request) = &ending {
        tell_how_to_decide(&args.session_id, request);
    }
    Ok(Outcome::Done)
}

/// Decides and waits for another process to carry it out, if there is one.
async fn leave_to_others(
    args: &DecideArgs,
    opened: &Opened,
    session: &Session,
    decision: Decision,
    by: &Decider,
) -> anyhow::Result<Left> {
    match session.approval(&args.approval_id, by).await {
        Ok(_) if !opened.engine.others_alive().await? => return Ok(Left::Everything),
        // Deciding closes it, and says so. Who repeats themself has it carried out, or hears that it was.
        Ok(_) | Err(Error::ApprovalExpired | Error::DecidedByYou(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let decided =
        session.decide(&args.approval_id, decision, by.clone(), CarryOut::Elsewhere).finish().await?;
    let mut status = Status::default();
    status.show("waiting for the running server to carry it out...");
    wait(opened, session, decided.request_id).await
}

async fn wait(opened: &Opened, session: &Session, request_id: String) -> anyhow::Result<Left> {
    let since = Instant::now();
    loop {
        // First this: whoever is found at work afterwards was alive when we looked.
        let alone = !opened.engine.others_alive().await?;
        match session.standing(&request_id).await? {
            Standing::Ended(ending) => return Ok(Left::Nothing(ending)),
            Standing::Failed(reason) => {
                return Err(anyhow!(
                    "the turn ended without an answer ({reason}); hint: ask the agent again"
                ));
            }
            Standing::Decided if alone || since.elapsed() > PATIENCE => {
                return Ok(Left::Carrying(request_id));
            }
            Standing::Running if alone => {
                return Err(anyhow!(
                    "the process that carried it out has ended; hint: the next `confidant serve` resumes the \
                     turn"
                ));
            }
            Standing::Decided | Standing::Running => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// How long a decision is left to whoever else is at work: a server looks every two seconds, a chat never does.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

fn advised(error: anyhow::Error, args: &DecideArgs) -> anyhow::Error {
    match error.downcast_ref::<Error>() {
        Some(Error::NotYourApproval) if args.person.is_none() => anyhow!(
            "an administrator may not decide this approval; hint: use --as USER to decide as one of its \
             approvers"
        ),
        _ => error,
    }
}

pub(super) async fn cancel(args: &CancelArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let session = session(opened, args.tenant.id()?, &args.session_id)?;
    let cancelled = session.cancel(args.request_id.as_deref()).await?;
    if args.output.json {
        output::json(&serde_json::json!({ "cancelled": cancelled }))?;
    } else if cancelled > 0 {
        output::line(&format!("cancelled {}", counted(cancelled as u64, "turn")))?;
    }
    if cancelled == 0 {
        note("nothing was running or waiting");
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_hides_in_what_is_shown() {
        assert_eq!(plain("{\"a\":\"ü \u{202e}\t\u{200b}x\"}"), r#"{"a":"ü \u{202e}\u{9}\u{200b}x"}"#);
    }
}
