//! `confidant chat`: a conversation with the agent in a terminal.
//!
//! Lines are edited and recalled in memory only: what a person types is content, and no file gets it.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use confidant_engine::approval::{ApprovalRequest, Decider, Decision};
use confidant_engine::room::{Audience, RoomContext, RoomLine};
use confidant_engine::turn::{CarryOut, Ending};
use confidant_engine::{Actor, ChannelName, PlaceId, Scope, Session, ThreadId, Turn, TurnRequest, UserId};

use super::lines::{Line, Remember, editor, read_line};
use super::remote;
use super::shared::{JsonArg, Outcome, TenantArg, with_engine};
use super::turn::{self, Interrupts, described, tell_how_to_decide};
use crate::config::Loaded;
use crate::open::{Opened, Purpose};
use crate::output::{self, note};

#[derive(Debug, Args)]
#[command(after_help = "\
With --room, memory is per person, room and thread. Without it, there is one memory per person.

Examples:
  confidant chat --user alice
  confidant chat --user alice --room db --once \"Hello, I'm Alice and I prefer Rust\"
  confidant chat --user dave --room db --room-line 'bob: PostgreSQL it is' --once \"What database did we choose?\"
  confidant chat --once \"What is my name?\" --json
  confidant chat --server https://chat.example.org --login ana    chats that only you can open
  confidant chat --open 'https://chat.example.org/#/snapshot/…'   what somebody shared with you")]
pub(super) struct ChatArgs {
    /// Who is speaking [default: your login name, or me]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The room to talk in
    #[arg(long, value_name = "ROOM")]
    room: Option<String>,
    /// The room's thread [default: main]
    #[arg(long, value_name = "THREAD", requires = "room")]
    thread: Option<String>,
    #[command(flatten)]
    tenant: TenantArg,
    /// The channel to talk on
    #[arg(long, value_name = "CHANNEL", default_value = "cli")]
    channel: String,
    /// Who reads the answer [default: room with --room, else private]
    #[arg(long, value_enum)]
    audience: Option<AudienceArg>,
    /// Short for --audience private
    #[arg(long, conflicts_with = "audience")]
    private: bool,
    /// Send this message, print the answer and exit
    #[arg(long, value_name = "TEXT")]
    once: Option<String>,
    /// A recent message of the room; may be repeated; never stored
    #[arg(long, value_name = "NAME: TEXT")]
    room_line: Vec<String>,
    /// Recent messages as a JSON array of {sender, content, timestamp?, is_bot?}; - reads stdin
    #[arg(long, value_name = "FILE")]
    room_context: Option<PathBuf>,
    /// The turn's request id; the same id again returns the recorded answer
    #[arg(long, value_name = "ID", requires = "once")]
    request_id: Option<String>,
    #[command(flatten)]
    remote: remote::ServerArgs,
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
    if let Some(link) = &args.remote.open {
        return remote::open(link.as_deref(), &args.output).await;
    }
    if let Some(server) = &args.remote.server {
        return remote::run(server, &args.remote, &args.output, loaded).await;
    }
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
    let request_id = args.request_id.clone();
    let turn = session.turn(TurnRequest { request_id, ..request(args, room, text)? });
    let ending = turn::follow(session, turn, &args.output, &mut Interrupts::listen()?).await?;
    if args.output.json {
        output::json(&described(&session.id(), &ending))?;
    }
    if let Ending::Approval(request) = &ending {
        tell_how_to_decide(&session.id(), request);
    }
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
    // While the person writes.
    opened.engine.warm_up();
    let mut interrupts = Interrupts::listen()?;
    let mut editor = Some(editor(Remember::Yes)?);
    let mut ahead = Ahead::default();
    loop {
        let prompt = if io::stdin().is_terminal() { "> " } else { "" };
        let line = if let Some(line) = ahead.lines.pop_front() {
            note(&format!("{prompt}{}", output::clean(&line)));
            Line::Text(line)
        } else {
            let begun = std::mem::take(&mut ahead.rest);
            tokio::select! {
                line = read_line(&mut editor, prompt, begun) => line?,
                // From outside: on a terminal the editor gets the key itself.
                () = interrupts.next() => return Ok(Outcome::Done),
            }
        };
        let text = match &line {
            Line::Text(text) => text.trim(),
            Line::TakenBack => continue,
            Line::End => return Ok(Outcome::Done),
        };
        match text {
            "" => {}
            "/help" => note(HELP),
            "/quit" | "/exit" => return Ok(Outcome::Done),
            text if text.starts_with('/') => note("no such command; /help lists them"),
            text => {
                let turn = session.turn(request(args, room, text)?);
                let asking =
                    if io::stdin().is_terminal() && !args.output.json { Asking::Now } else { Asking::Later };
                let ask = async |_: &ApprovalRequest| {
                    // What was typed before the question was asked is no answer to it.
                    ahead.take(&turn::typed_meanwhile());
                    asking.ask().await
                };
                take_turn(session, turn, &args.output, &mut interrupts, ask).await?;
            }
        }
    }
}

/// One turn of a conversation, with whatever has to be decided on its way. What fails is said, and the conversation
/// goes on.
async fn take_turn(
    session: &Session,
    mut turn: Turn,
    form: &JsonArg,
    interrupts: &mut Interrupts,
    mut ask: impl AsyncFnMut(&ApprovalRequest) -> anyhow::Result<Option<Decision>>,
) -> anyhow::Result<()> {
    loop {
        let held = turn::Held::back();
        let followed = turn::follow(session, turn, form, interrupts).await;
        drop(held);
        let ending = match followed {
            Ok(ending) => ending,
            Err(error) if error.downcast_ref::<confidant_engine::Error>().is_some() => {
                output::error(&error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if form.json {
            output::line(&described(&session.id(), &ending).to_string())?;
        }
        let Ending::Approval(request) = ending else { return Ok(()) };
        let Some(decision) = ask(&request).await? else {
            tell_how_to_decide(&session.id(), &request);
            return Ok(());
        };
        let person = Decider::Person(session.scope().user().as_str().to_owned());
        turn = session.decide(&request.approval_id, decision, person, CarryOut::Here);
    }
}

/// When somebody is asked to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    /// At once: they sit in front of it.
    Now,
    /// When they come to it.
    Later,
}

impl Asking {
    async fn ask(self) -> anyhow::Result<Option<Decision>> {
        if self == Self::Later {
            return Ok(None);
        }
        let mut editor = Some(editor(Remember::No)?);
        Ok(decision(&read_line(&mut editor, "Approve? [y/N] ", String::new()).await?))
    }
}

/// What a person means; nothing if they would not say.
fn decision(line: &Line) -> Option<Decision> {
    match line {
        Line::Text(text) if matches!(text.trim().to_lowercase().as_str(), "y" | "yes") => {
            Some(Decision::Approve)
        }
        Line::Text(_) => Some(Decision::Deny),
        Line::TakenBack | Line::End => None,
    }
}

/// What was typed before it was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ahead {
    /// Lines that were ended with Enter.
    lines: VecDeque<String>,
    /// The beginning of one that was not.
    rest: String,
}

impl Ahead {
    /// Takes keys as a terminal sends them. Those that would move or call something back are left out.
    fn take(&mut self, typed: &[u8]) {
        let typed = String::from_utf8_lossy(typed);
        let mut keys = typed.chars().peekable();
        while let Some(key) = keys.next() {
            match key {
                '\r' => self.lines.push_back(std::mem::take(&mut self.rest)),
                '\n' => self.rest.push('\n'),
                '\u{8}' | '\u{7f}' => {
                    self.rest.pop();
                }
                // Ctrl-U.
                '\u{15}' => self.rest.clear(),
                // Alt-Enter is a new line; others are sequences, up to their letter.
                '\u{1b}' => match keys.next() {
                    Some('\r') => self.rest.push('\n'),
                    Some('[' | 'O') => {
                        keys.by_ref().find(|key| key.is_ascii_alphabetic() || *key == '~');
                    }
                    _ => {}
                },
                key if key.is_control() => {}
                key => self.rest.push(key),
            }
        }
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

/// What was given of the room, as text: room lines are for one turn and cannot be copied.
struct Room {
    json: Option<String>,
    lines: Vec<(String, String)>,
}

impl Room {
    fn read(args: &ChatArgs) -> anyhow::Result<Self> {
        let json = args.room_context.as_deref().map(output::read).transpose()?;
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

const HELP: &str = "\
/help      this
/quit      end, as does Ctrl-D; Ctrl-C clears the line, or cancels the turn that is being answered
Enter sends; Alt-Enter or Ctrl-J begins a new line
approve CODE, deny CODE decides on a tool call that waits for approval
forget our conversation (or !forget) erases this session and confirms it";

#[cfg(test)]
mod tests {
    use confidant_engine::{Storage, TenantId};

    use super::*;
    use crate::testing::{Caller, Counting, DELETE, engine};

    #[test]
    fn only_yes_is_yes() {
        for (line, expected) in [
            (Line::Text("y".into()), Some(Decision::Approve)),
            (Line::Text(" YES ".into()), Some(Decision::Approve)),
            (Line::Text(String::new()), Some(Decision::Deny)),
            (Line::Text("yeah, no".into()), Some(Decision::Deny)),
            (Line::TakenBack, None),
            (Line::End, None),
        ] {
            assert_eq!(decision(&line), expected, "{line:?}");
        }
    }

    #[test]
    fn lines_that_were_typed_ahead_stay_apart() {
        let mut ahead = Ahead::default();
        ahead.take(b"first\rsecox\x7fnd\x1b[A\x1bOB\r with\x1b\rtwo\nlines\rnever\x15beg");
        ahead.take("ün".as_bytes());
        assert_eq!(ahead.lines, ["first", "second", " with\ntwo\nlines"]);
        assert_eq!(ahead.rest, "begün");
    }

    #[tokio::test]
    async fn whoever_sits_in_front_of_it_decides() {
        let tools = Counting::new();
        let engine = engine(Storage::memory(), Caller::new(), tools.clone(), Vec::new()).await;
        let scope = Scope::parse(TenantId::new("default").unwrap(), "cli_conv:alice").unwrap();
        let session = engine.session(scope, Actor::cli());
        // Two calls in one turn: each is asked for.
        let query = format!("{DELETE}\n{}", DELETE.replace("/a", "/b"));
        let mut interrupts = Interrupts::listen().unwrap();
        for (word, runs) in [(Some(Decision::Deny), 0), (None, 0), (Some(Decision::Approve), 2)] {
            let mut asked = Vec::new();
            let turn = session.turn(TurnRequest { query: query.clone(), ..TurnRequest::default() });
            let answer = async |request: &ApprovalRequest| {
                asked.push(request.arguments["path"].clone());
                Ok(word)
            };
            take_turn(&session, turn, &JsonArg { json: true }, &mut interrupts, answer).await.unwrap();
            let expected = if word.is_some() { &["/a", "/b"][..] } else { &["/a"] };
            assert_eq!((asked, tools.runs()), (expected.iter().map(|path| (*path).into()).collect(), runs));
        }
        assert_eq!(session.approvals().await.unwrap().len(), 1, "what was not answered still waits");
    }
}
