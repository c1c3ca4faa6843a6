//! `confidant audit`: who did what to whose data, and that nobody changed the record of it.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use confidant_engine::Actor;
use confidant_engine::audit::{AuditLine, Lane};
use confidant_engine::rights::{Receipt, ReceiptProof};

use super::shared::{JsonArg, Outcome, with_engine};
use crate::config::Loaded;
use crate::open::{Opened, Purpose};
use crate::output::{self, counted, moment, note};

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  confidant audit show --last 20
  confidant audit verify
  confidant audit verify --receipt receipt.json")]
pub(super) enum AuditCommand {
    /// Show the newest records: who did what, and to whose data (as a tag)
    Show(ShowArgs),
    /// Check the whole chain, and a receipt if one is given
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// How many records to show
    #[arg(long, value_name = "N", default_value_t = 50)]
    last: u64,
    /// Show the first records after this sequence number instead
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// The lane (chain of the log) for --after; a store with one writer has only lane 0
    #[arg(long, value_name = "N", default_value_t = 0, requires = "after")]
    lane: u32,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// The receipt of an erasure to check; - reads stdin
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    #[command(flatten)]
    output: JsonArg,
}

pub(super) async fn run(command: AuditCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    with_engine(loaded, Purpose::LookAtData, async |opened| match command {
        AuditCommand::Show(args) => show(&args, opened).await,
        AuditCommand::Verify(args) => verify(&args, opened).await,
    })
    .await
}

async fn show(args: &ShowArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    let last = usize::try_from(args.last).unwrap_or(usize::MAX);
    let lines = match args.after {
        Some(after) => administrator.audit_lane(Lane::new(args.lane), after, last).await?,
        None => {
            administrator.verify_audit().await?;
            administrator.audit(last).await?
        }
    };
    if args.output.json {
        output::json(&lines)?;
    } else {
        for line in &lines {
            output::line(&written(line)?)?;
        }
    }
    Ok(if lines.is_empty() { Outcome::NothingFound } else { Outcome::Done })
}

fn written(line: &AuditLine) -> anyhow::Result<String> {
    // Actor and action are words in JSON, and nowhere else.
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let actor = word(serde_json::to_value(&line.record.actor)?);
    let action = word(serde_json::to_value(line.record.action)?);
    let subject = line.record.subject.as_deref().unwrap_or("-");
    let count = line.record.count.map_or_else(String::new, |count| format!("\t{count}"));
    let place = match line.lane {
        Lane::ZERO => line.seq.to_string(),
        lane => format!("{}:{}", lane.number(), line.seq),
    };
    let reason = line.record.reason.as_ref().map_or_else(String::new, |reason| format!("\t{reason}"));
    Ok(format!("{place}\t{}\t{actor}\t{action}\t{subject}{count}{reason}", moment(line.record.at)))
}

async fn verify(args: &VerifyArgs, opened: &Opened) -> anyhow::Result<Outcome> {
    let administrator = opened.engine.dangerously_administer(Actor::cli());
    let records = administrator.verify_audit().await?;
    let proof = match &args.receipt {
        Some(path) => Some(administrator.verify_receipt(&parse_receipt(&output::read(path)?)?).await?),
        None => None,
    };
    let outlived = proof == Some(ReceiptProof::Outlived);
    if args.output.json {
        let heads = administrator.audit_heads().await?;
        let mut found = serde_json::json!({ "records": records, "heads": heads, "receipt": proof.is_some() });
        if outlived {
            found["receipt_record"] = "past its time".into();
        }
        output::json(&found)?;
    } else {
        output::line(&format!("the chain is intact: {}", counted(records, "record")))?;
        if proof.is_some() {
            output::line("the receipt is genuine, and what it names is gone")?;
        }
        if outlived {
            note("its signature is valid; its record in the audit log has expired (store.audit_days)");
        }
    }
    if records == 0 {
        note("the audit log is empty");
    }
    Ok(Outcome::Done)
}

/// Reads a receipt; where it fails, says the line and quotes nothing.
pub(crate) fn parse_receipt(text: &str) -> anyhow::Result<Receipt> {
    serde_json::from_str(text).map_err(|error| {
        anyhow!(
            "this is not a receipt (line {}); hint: give the JSON that the erasure printed, unchanged",
            error.line()
        )
    })
}
