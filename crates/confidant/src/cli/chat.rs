//! `confidant chat`: a conversation with the agent in a terminal.
//!
//! Lines are edited and recalled in memory only: what a person types is content, and no file gets it.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use confidant_engine::{
    Actor, Audience, ChannelName, Final, MemoryState, Outbound, PlaceId, RoomContext, RoomLine, Scope,
    Session, ThreadId, Turn, TurnRequest, UserId,
};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;

use super::output::{self, Paint, clean, note};
use super::{JsonArg, Outcome, TenantArg, with_engine};
use crate::config::Loaded;
use crate::open::{Opened, Purpose};

#[derive(Debug, Args)]
#[command(after_help = "\
With --room, the memory is of this person in this room and thread; without it, of this person alone.

Examples:
  confidant chat --user alice
  confidant chat --user alice --room db --once \"Hello, I'm Alice and I prefer Rust\"
  confidant chat --user dave --room db --room-line 'bob: PostgreSQL it is' --once \"What database did we choose?\"
  confidant chat --once \"What is my name?\" --json")]
pub(super) struct ChatArgs {
    /// Who is speaking [default: your login name, or me]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The room it is said in
    #[arg(long, value_name = "ROOM")]
    room: Option<String>,
    /// The room's thread [default: main]
    #[arg(long, value_name = "THREAD", requires = "room")]
    thread: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    /// The channel it is said on
    #[arg(long, value_name = "CHANNEL", default_value = "cli")]
    channel: String,
    /// Who reads the answer [default: room with --room, else private]
    #[arg(long, value_enum)]
    audience: Option<AudienceArg>,
    /// Short for --audience private
    #[arg(long, conflicts_with = "audience")]
    private: bool,
    /// Say this, print the answer and end
    #[arg(long, value_name = "TEXT")]
    once: Option<String>,
    /// Something that was said in the room just now; never stored
    #[arg(long, value_name = "NAME: TEXT")]
    room_line: Vec<String>,
    /// The same as a JSON array of {sender, content, timestamp?, is_bot?}; - reads stdin
    #[arg(long, value_name = "FILE")]
    room_context: Option<PathBuf>,
    /// Name the turn; a second one of the same name gets the recorded answer
    #[arg(long, value_name = "ID", requires = "once")]
    request_id: Option<String>,
    #[command(flatten)]
    output: JsonArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AudienceArg {
    // Without help of their own, which would make all of the help long.
    Private,
    Room,
}

pub(super) async fn run(args: ChatArgs, loaded: &Loaded) -> anyhow::Result<Outcome> {
    let scope = scope(&args, loaded)?;
    let room = Room::read(&args)?;
    with_engine(loaded, Purpose::Answer, async |opened| {
        let session = opened.engine.session(scope, Actor::cli());
        match &args.once {
            Some(text) => once(&args, &session, &room, text).await,
            None => converse(&args, opened, &session, &room).await,
        }
    })
    .await
}

fn scope(args: &ChatArgs, loaded: &Loaded) -> anyhow::Result<Scope> {
    let tenant = args.tenant.id()?;
    let channel = ChannelName::new(&args.channel)?;
    let user = UserId::new(args.user.as_deref().or(loaded.login.as_deref()).unwrap_or("me"))?;
    Ok(match &args.room {
        Some(room) => {
            let thread = ThreadId::new(args.thread.as_deref().unwrap_or("main"))?;
            Scope::place(tenant, channel, PlaceId::new(room)?, thread, user)
        }
        None => Scope::person(tenant, channel, user),
    })
}

async fn once(args: &ChatArgs, session: &Session, room: &Room, text: &str) -> anyhow::Result<Outcome> {
    let turn =
        session.turn(TurnRequest { request_id: args.request_id.clone(), ..request(args, room, text)? });
    if args.output.json {
        let answer = turn.finish().await?;
        output::json(&described(session, &answer))?;
        return Ok(Outcome::Done);
    }
    let answer = stream(turn).await?;
    mention(&answer);
    Ok(Outcome::Done)
}

async fn converse(
    args: &ChatArgs,
    opened: &Opened,
    session: &Session,
    room: &Room,
) -> anyhow::Result<Outcome> {
    if io::stdin().is_terminal() {
        note(&format!(
            "{}, answered by {}. /help for help, Ctrl-D to end.",
            session.id(),
            opened.engine.model_name()
        ));
    }
    let config = rustyline::Config::builder().auto_add_history(true).build();
    let mut editor: rustyline::Editor<(), MemHistory> =
        rustyline::Editor::with_history(config, MemHistory::new())?;
    loop {
        let prompt = if io::stdin().is_terminal() { "> " } else { "" };
        // The editor blocks its thread, and the engine works on the others meanwhile.
        let (line, back) = tokio::task::spawn_blocking(move || (editor.readline(prompt), editor)).await?;
        editor = back;
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(Outcome::Done),
            Err(ReadlineError::Io(error)) => return Err(error.into()),
            Err(_) => return Err(anyhow!("the line could not be read; hint: try --once, or pipe lines in")),
        };
        match line.trim() {
            "" => {}
            "/help" => note(HELP),
            "/quit" | "/exit" => return Ok(Outcome::Done),
            line if line.starts_with('/') => note("no such command; /help prints those there are"),
            text => take_turn(args, session, room, text).await?,
        }
    }
}

/// One turn of a conversation. What fails is said, and the conversation goes on.
async fn take_turn(args: &ChatArgs, session: &Session, room: &Room, text: &str) -> anyhow::Result<()> {
    let turn = session.turn(request(args, room, text)?);
    let answering = async {
        if args.output.json {
            let answer = turn.finish().await?;
            return output::line(&described(session, &answer).to_string());
        }
        stream(turn).await.map(|answer| mention(&answer))
    };
    let answered = tokio::select! {
        answered = answering => answered,
        _ = tokio::signal::ctrl_c() => {
            note("\n(not waiting for the answer; it is kept when it is there)");
            return Ok(());
        }
    };
    match answered {
        Err(error) if error.downcast_ref::<confidant_engine::Error>().is_some() => {
            output::error(&error.to_string())
        }
        other => other?,
    }
    Ok(())
}

/// Prints the answer while it is being made.
async fn stream(mut turn: Turn) -> anyhow::Result<Final> {
    let mut status = Status::default();
    let mut streamed = false;
    while let Some(event) = turn.next().await {
        match event {
            Outbound::Progress { text } => status.show(text),
            Outbound::Delta { text, .. } => {
                status.clear();
                streamed = true;
                output::text(&clean(&text))?;
            }
            Outbound::Final(answer) => {
                status.clear();
                let rest = if streamed { "" } else { &answer.content };
                output::line(&clean(rest))?;
                return Ok(answer);
            }
            Outbound::Error(error) => {
                status.clear();
                if streamed {
                    output::line("")?;
                }
                return Err(error.into());
            }
        }
    }
    Err(confidant_engine::Error::Internal.into())
}

/// What a person should know of an answer besides its text.
fn mention(answer: &Final) {
    let metadata = &answer.metadata;
    if metadata.memory == MemoryState::Unavailable {
        let why = metadata.memory_error.unwrap_or("unknown");
        note(&format!("answered without memory, which could not be opened ({why}); see `confidant doctor`"));
    }
    if metadata.withheld > 0 {
        note(&format!("({} private messages were left out, since a room reads this)", metadata.withheld));
    }
    if metadata.replayed {
        note("(recorded answer of an earlier turn with this request id)");
    }
}

fn request(args: &ChatArgs, room: &Room, text: &str) -> anyhow::Result<TurnRequest> {
    let audience = match (args.private, args.audience) {
        (true, _) | (_, Some(AudienceArg::Private)) => Some(Audience::Private),
        (_, Some(AudienceArg::Room)) => Some(Audience::Room),
        (false, None) => None,
    };
    Ok(TurnRequest { query: text.to_owned(), audience, room: room.context()?, ..TurnRequest::default() })
}

fn described(session: &Session, answer: &Final) -> serde_json::Value {
    serde_json::json!({
        "request_id": answer.request_id,
        "session_id": session.id(),
        "content": answer.content,
        "metadata": answer.metadata,
    })
}

/// What was given of the room, as text: room lines are for one turn and cannot be copied.
struct Room {
    json: Option<String>,
    lines: Vec<(String, String)>,
}

impl Room {
    fn read(args: &ChatArgs) -> anyhow::Result<Self> {
        let json = args.room_context.as_ref().map(output::read).transpose()?;
        let parted = args.room_line.iter().map(|line| match line.split_once(": ") {
            Some((name, text)) => Ok((name.trim().to_owned(), text.trim().to_owned())),
            None => Err(anyhow!("a --room-line has no name; hint: write it as 'NAME: TEXT'")),
        });
        let room = Self { json, lines: parted.collect::<anyhow::Result<_>>()? };
        room.context().map(|_| room)
    }

    fn context(&self) -> anyhow::Result<RoomContext> {
        let mut lines: Vec<RoomLine> = match &self.json {
            // Only the place: the message would quote what is there.
            Some(json) => serde_json::from_str(json).map_err(|error| {
                anyhow!(
                    "the room context cannot be read (line {}, column {}); hint: it is a JSON array of {{\"sender\", \
                     \"content\", \"timestamp\"?, \"is_bot\"?}}",
                    error.line(),
                    error.column()
                )
            })?,
            None => Vec::new(),
        };
        lines.extend(self.lines.iter().map(|(sender, content)| RoomLine {
            sender: sender.clone(),
            content: content.clone(),
            timestamp: 0,
            is_bot: false,
            event_id: None,
            replaces: None,
            redacted: false,
        }));
        Ok(RoomContext::new(lines))
    }
}

/// What is being done, on a line that goes away again; on a terminal only.
#[derive(Default)]
struct Status {
    shown: bool,
}

impl Status {
    fn show(&mut self, text: &str) {
        if io::stderr().is_terminal() {
            self.shown = true;
            let _ = write!(io::stderr(), "\r\u{1b}[K{}", Paint::of_stderr().dim(text));
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

const HELP: &str = "\
/help      this
/quit      end, as does Ctrl-D; Ctrl-C takes the line back, or stops waiting for an answer
forget our conversation (or !forget) erases this session and confirms it";
