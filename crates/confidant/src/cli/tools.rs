//! `confidant tools`: what the servers of tools have, and a call by hand.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, Subcommand};
use confidant_engine::tools::{Effect, Invocation, Tool, ToolError, Toolbox as _};
use confidant_mcp::tools::{McpToolbox, Standing};
use serde::Serialize;
use serde_json::Value;

use super::shared::{JsonArg, Outcome};
use crate::config::Loaded;
use crate::output::{self, clean, note};
use crate::tools;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Servers are named in the settings, under [tools.servers.NAME].

Examples:
  confidant tools list
  confidant tools call files.read_file '{\"path\": \"/srv/docs/a.txt\"}'")]
pub(super) enum ToolsCommand {
    /// List the tools of all servers: server, name, effect
    List(ListArgs),
    /// Call one tool by hand, whatever the rules say
    Call(CallArgs),
    /// Supervise a server's program (Confidant calls this itself)
    #[command(hide = true)]
    Keep(KeepArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool, as `tools list` prints it
    name: String,
    /// Its arguments, a JSON object; - reads them from stdin
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// The idempotency key; repeat it when you retry the same call [default: a new one]
    #[arg(long)]
    key: Option<String>,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Debug, Args)]
pub(super) struct KeepArgs {
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Looks after a server's program. Needs no settings.
pub(super) fn keep(args: &KeepArgs) -> anyhow::Result<Outcome> {
    confidant_mcp::tools::keep(&args.command).map(|()| Outcome::Done)
}

pub(super) async fn run(command: ToolsCommand, loaded: &Loaded) -> anyhow::Result<Outcome> {
    match command {
        ToolsCommand::List(args) => list(&args, loaded).await,
        ToolsCommand::Call(args) => call(&args, loaded).await,
        ToolsCommand::Keep(args) => keep(&args),
    }
}

#[derive(Serialize)]
struct Listed {
    servers: Vec<Server>,
    tools: Vec<Line>,
}

#[derive(Serialize)]
struct Server {
    name: String,
    answers: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trouble: Option<String>,
}

#[derive(Serialize)]
struct Line {
    server: String,
    name: String,
    effect: &'static str,
    description: String,
    schema: Value,
}

async fn list(args: &ListArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let (toolbox, refused) = tools::start(loaded, |_| true)?;
    let statuses = toolbox.settle(PATIENCE).await;
    let tools = toolbox.tools().await;
    toolbox.stop().await;
    let mut servers: Vec<Server> = statuses
        .iter()
        .map(|status| Server {
            name: status.name.to_string(),
            answers: matches!(status.standing, Standing::Ready(_)),
            trouble: trouble(status.standing),
        })
        .collect();
    servers.extend(refused.iter().map(|error| Server {
        name: error.source_name.trim_start_matches("tools.servers.").to_owned(),
        answers: false,
        trouble: Some(format!("{}; hint: {}", error.what, error.hint)),
    }));
    let away = servers.iter().filter(|server| !server.answers).count();
    let none = servers.is_empty();
    if args.output.json {
        output::json(&Listed { servers, tools: tools.into_iter().map(line).collect() })?;
    } else {
        for tool in tools.into_iter().map(line) {
            output::line(&format!("{}\t{}\t{}", tool.server, tool.name, tool.effect))?;
        }
        for server in servers {
            if let Some(trouble) = server.trouble {
                output::error(&format!("{}: {trouble}", server.name));
            }
        }
    }
    if none {
        note("no tool servers; add one to the settings, under [tools.servers.NAME]");
        return Ok(Outcome::NothingFound);
    }
    Ok(if away > 0 { Outcome::Faulty } else { Outcome::Done })
}

fn line(tool: Tool) -> Line {
    let server = tool.spec.name.split('.').next().unwrap_or_default().to_owned();
    let effect = match tool.effect {
        Effect::Reads => "reads",
        Effect::WritesOnce => "writes once",
        Effect::Writes => "writes",
        Effect::Destroys => "destroys",
    };
    Line {
        server,
        name: tool.spec.name,
        effect,
        description: tool.spec.description,
        schema: tool.spec.schema,
    }
}

/// Why a server does not answer, and what to do about it.
pub(super) fn trouble(standing: Standing) -> Option<String> {
    match standing {
        Standing::Ready(_) => None,
        Standing::Connecting => {
            let seconds = PATIENCE.as_secs();
            Some(format!(
                "it was not ready after {seconds} seconds; hint: run its command by hand to see why"
            ))
        }
        Standing::Away(trouble) => Some(trouble.to_string()),
    }
}

async fn call(args: &CallArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let text = if args.arguments == "-" {
        std::io::read_to_string(std::io::stdin())?
    } else {
        args.arguments.clone()
    };
    let arguments: Value = serde_json::from_str(&text).ok().filter(Value::is_object).ok_or_else(|| {
        anyhow!("the arguments are not a JSON object; hint: write them like '{{\"path\": \"a.txt\"}}'")
    })?;
    let server = args.name.split('.').next().unwrap_or_default();
    let (toolbox, refused) = tools::start(loaded, |name| name.as_str() == server)?;
    if let Some(error) =
        refused.into_iter().find(|error| error.source_name == format!("tools.servers.{server}"))
    {
        return Err(error.into());
    }
    let done = call_with(args, &arguments, loaded, &toolbox).await;
    toolbox.stop().await;
    done
}

async fn call_with(
    args: &CallArgs,
    arguments: &Value,
    loaded: &Loaded,
    toolbox: &McpToolbox,
) -> anyhow::Result<Outcome> {
    let section = &loaded.config.tools;
    if let Some(status) = toolbox.settle(PATIENCE).await.first()
        && let Some(trouble) = trouble(status.standing)
    {
        return Err(anyhow!("{}: {trouble}", status.name));
    }
    let key = match &args.key {
        Some(key) => key.clone(),
        None => new_key()?,
    };
    let max_bytes = section.max_result_bytes.get();
    let call = toolbox.call(Invocation { tool: &args.name, arguments, key: &key, max_bytes });
    let called = tokio::time::timeout(section.call_timeout, call).await.unwrap_or(Err(ToolError::TimedOut));
    let answer = called.map_err(|error| match error {
        ToolError::Unknown => anyhow!("{error}; hint: `confidant tools list` lists the tools"),
        ToolError::TimedOut => anyhow!("{error}; hint: raise tools.call_timeout_seconds if it needs longer"),
        _ => anyhow!("{error}; hint: look at the server's own log"),
    })?;
    if args.output.json {
        let value = serde_json::json!({ "text": answer.text, "failed": answer.failed, "cut": answer.cut });
        output::json(&value)?;
    } else {
        output::line(&clean(&answer.text))?;
    }
    if answer.cut {
        note(&format!(
            "the result was longer than {max_bytes} bytes; raise tools.max_result_bytes to see more"
        ));
    }
    if answer.failed {
        note("the tool reports that it failed");
        return Ok(Outcome::Faulty);
    }
    Ok(Outcome::Done)
}

fn new_key() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("the system provides no random numbers")?;
    Ok(hex::encode(bytes))
}

/// How long servers may take to be ready, while somebody waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
