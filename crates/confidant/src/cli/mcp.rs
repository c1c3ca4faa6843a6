//! `confidant mcp`: the memory for an agent that starts us and talks to us over stdin and stdout.

use std::io::{self, IsTerminal as _};

use clap::Args;
use confidant_mcp::{Access, Files, Forgetting, stdio};

use super::shared::{Outcome, OwnerArgs};
use crate::config::{self, Loaded};
use crate::output::note;
use crate::served;

#[derive(Debug, Args)]
#[command(after_help = "\
Set-up, one line each:
  claude mcp add confidant -- confidant mcp
  codex mcp add confidant -- confidant mcp
  gemini mcp add confidant confidant mcp
  {\"mcpServers\": {\"confidant\": {\"command\": \"confidant\", \"args\": [\"mcp\"]}}}     Cursor, Windsurf and others

Memories are in ~/.local/share/confidant, shared by all projects, unless the settings or --data-dir name another folder or
./confidant-data exists. Settings have to be named, since a project may have a confidant.toml of somebody else:
  claude mcp add confidant -- confidant mcp --config ~/confidant.toml

To keep a project's memories separate:
  claude mcp add confidant -- confidant mcp --data-dir ./confidant-data

Over HTTP, `confidant serve` offers the same at /mcp, with a token:
  claude mcp add --transport http confidant http://127.0.0.1:7367/mcp --header \"Authorization: Bearer $TOKEN\"")]
pub(super) struct McpArgs {
    #[command(flatten)]
    owner: OwnerArgs,
}

pub(super) async fn run(args: McpArgs, loaded: Loaded) -> anyhow::Result<Outcome> {
    if io::stdin().is_terminal() {
        note(
            "waiting for an MCP client on stdin, but stdin is a terminal; Ctrl-D ends this\nhint: let the \
             client start it, for example: claude mcp add confidant -- confidant mcp",
        );
    }
    if loaded.file.is_none() && config::in_working_folder().is_some() {
        note(
            "./confidant.toml is not read: an agent may start this in somebody else's project; hint: if it is yours, name it \
             with `--config FILE`",
        );
    }
    let owner = args.owner.owner(&loaded)?;
    let home = loaded.home.clone();
    let access = Access {
        memory: served::later(loaded),
        owner,
        actor: "mcp".to_owned(),
        forgetting: Forgetting::Allowed,
        files: Files::Readable { home },
    };
    stdio::serve(access).await.map(|()| Outcome::Done)
}
