//! `confidant mcp`: the memory for an agent that starts us and talks to us over stdin and stdout.

use std::io::{self, IsTerminal as _};

use clap::Args;

use super::output::note;
use super::{Outcome, OwnerArgs};
use crate::config::Loaded;
use crate::mcp::{Access, Files, Forgetting, LazyMemory, stdio};

#[derive(Debug, Args)]
#[command(after_help = "\
Set-up, one line each:
  claude mcp add confidant -- confidant mcp
  codex mcp add confidant -- confidant mcp
  gemini mcp add confidant confidant mcp
  {\"mcpServers\": {\"confidant\": {\"command\": \"confidant\", \"args\": [\"mcp\"]}}}     Cursor, Windsurf and others

Memories are in ~/.local/share/confidant, the same for all projects, unless settings or --data-dir say otherwise or there
is a ./confidant-data. To keep those of a project apart:
  claude mcp add confidant -- confidant mcp --data-dir ./confidant-data

Over HTTP, `confidant serve` has the same at /mcp, with a token:
  claude mcp add --transport http confidant http://127.0.0.1:7367/mcp --header \"Authorization: Bearer $TOKEN\"")]
pub(super) struct McpArgs {
    #[command(flatten)]
    owner: OwnerArgs,
}

pub(super) async fn run(args: McpArgs, loaded: Loaded) -> anyhow::Result<Outcome> {
    if io::stdin().is_terminal() {
        note(
            "waiting for an MCP client on stdin, which a terminal is not; Ctrl-D ends this\n\
             hint: let the client start it, for example: claude mcp add confidant -- confidant mcp",
        );
    }
    let owner = args.owner.owner(&loaded)?;
    let home = loaded.home.clone();
    let access = Access {
        memory: LazyMemory::later(loaded),
        owner,
        actor: "mcp".to_owned(),
        forgetting: Forgetting::Allowed,
        files: Files::Readable { home },
    };
    stdio::serve(access).await.map(|()| Outcome::Done)
}
