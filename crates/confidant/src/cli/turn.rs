//! A turn on the command line: shown while it is made, called off by Ctrl-C, and what a person is told when it waits.

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use anyhow::{Context as _, anyhow};
use confidant_engine::approval::ApprovalRequest;
use confidant_engine::turn::{Ending, Final, MemoryState, Outbound};
use confidant_engine::{Error, Session, Turn};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::markdown::Live;
use super::shared::JsonArg;
use crate::output::{self, Paint, clean, note};

/// Ctrl-C, from the first one on.
#[derive(Debug)]
pub(super) struct Interrupts(Signal);

impl Interrupts {
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self(signal(SignalKind::interrupt()).context("cannot listen for signals")?))
    }

    pub(super) async fn next(&mut self) {
        let _ = self.0.recv().await;
    }
}

/// Waits for the end of a turn, and prints what it says while it says it; with `--json`, nothing of that. The first
/// Ctrl-C cancels the turn, the second does not wait for that.
pub(super) async fn follow(
    session: &Session,
    mut turn: Turn,
    form: &JsonArg,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Ending> {
    let name = turn.request_id().to_owned();
    let live = Live::on_terminal().filter(|_| !form.json);
    let mut printer = Printer { quiet: form.json, live, ..Printer::default() };
    let mut cancelling = false;
    loop {
        let event = tokio::select! {
            event = turn.next() => event.ok_or(Error::Internal)?,
            () = interrupts.next() => {
                printer.end_line()?;
                if cancelling {
                    return Err(anyhow!(LEFT));
                }
                cancelling = true;
                note("cancelling; press Ctrl-C again to leave at once");
                session.cancel(Some(&name)).await?;
                continue;
            }
        };
        if let Some(ending) = printer.take(event)? {
            mention(&ending);
            return Ok(ending);
        }
    }
}

const LEFT: &str = "left before the turn ended; hint: `confidant session show` shows its result";

/// Prints the end of a turn that was not followed.
pub(super) fn print(ending: &Ending) -> anyhow::Result<()> {
    let content = match ending {
        Ending::Answer(answer) => &answer.content,
        Ending::Approval(request) => &request.question,
    };
    output::line(&clean(content))?;
    mention(ending);
    Ok(())
}

#[derive(Default)]
struct Printer {
    /// Prints nothing of the answer.
    quiet: bool,
    status: Status,
    /// Whether some of the answer was printed.
    spoken: bool,
    /// Where a terminal shows it, what shows it there.
    live: Option<Live>,
}

impl Printer {
    /// Takes an event; the last one gives the turn's end.
    fn take(&mut self, event: Outbound) -> anyhow::Result<Option<Ending>> {
        match event {
            Outbound::Progress { text } => {
                self.status.show(&text);
                Ok(None)
            }
            Outbound::Delta { text, .. } => {
                if !self.quiet {
                    self.status.clear();
                    self.spoken = true;
                    match &mut self.live {
                        Some(live) => live.push(&text)?,
                        None => output::text(&clean(&text))?,
                    }
                }
                Ok(None)
            }
            Outbound::Final(answer) => {
                self.status.clear();
                if !self.quiet {
                    let rest = if self.spoken { "" } else { &answer.content };
                    match &mut self.live {
                        Some(live) => {
                            live.push(rest)?;
                            live.finish()?;
                        }
                        None => output::line(&clean(rest))?,
                    }
                }
                Ok(Some(Ending::Answer(answer)))
            }
            Outbound::Approval(request) => {
                self.end_line()?;
                if !self.quiet {
                    output::line(&clean(&request.question))?;
                }
                Ok(Some(Ending::Approval(request)))
            }
            Outbound::Error(error) => {
                self.end_line()?;
                Err(error.into())
            }
            Outbound::SettingsWanted { .. } | Outbound::Wanted(_) | Outbound::Enriched(_) => Ok(None),
        }
    }

    fn end_line(&mut self) -> anyhow::Result<()> {
        self.status.clear();
        match &mut self.live {
            Some(live) => Ok(live.finish()?),
            None if self.spoken => output::line(""),
            None => Ok(()),
        }
    }
}

/// The end of a turn as a script reads it: the shape of the HTTP reply, with the session it belongs to.
pub(super) fn described(session_id: &str, ending: &Ending) -> Value {
    match ending {
        Ending::Answer(Final { request_id, content, metadata }) => json!({
            "request_id": request_id,
            "session_id": session_id,
            "message_type": if metadata.asks.is_some() { "hitl_request" } else { "final_response" },
            "content": content,
            "metadata": metadata,
        }),
        Ending::Approval(request) => json!({
            "request_id": request.request_id,
            "session_id": session_id,
            "message_type": "hitl_request",
            "content": request.question,
            "metadata": request,
        }),
    }
}

/// What a person should know of an answer besides its text.
fn mention(ending: &Ending) {
    let Ending::Answer(answer) = ending else { return };
    let metadata = &answer.metadata;
    if metadata.memory == MemoryState::Unavailable {
        let why = metadata.memory_error.as_deref().unwrap_or("unknown");
        note(&format!("answered without memory, which could not be opened ({why}); see `confidant doctor`"));
    }
    if metadata.withheld > 0 {
        note(&format!("({} private messages were left out, since a room reads this)", metadata.withheld));
    }
    if metadata.replayed {
        note("(recorded answer of an earlier turn with this request id)");
    }
    if metadata.pending_approvals > 0 {
        let these = output::counted(metadata.pending_approvals as u64, "approval");
        note(&format!("({these} in this session still pending: `confidant session approvals`)"));
    }
}

/// Says how a question can be answered that was not.
pub(super) fn tell_how_to_decide(session_id: &str, request: &ApprovalRequest) {
    note(&format!(
        "waits until {}; decide with `confidant session approve '{session_id}' {} --as USER`, or deny",
        output::moment(request.expires_at),
        request.approval_id
    ));
}

/// Keeps what is typed while an answer comes from being shown in the middle of it. It waits, as it was typed, for whoever reads
/// the next line: Enter stays Enter, so that lines stay lines. Ctrl-C works as ever.
pub(super) struct Held(Option<Termios>);

impl Held {
    pub(super) fn back() -> Self {
        let stdin = io::stdin();
        if !(stdin.is_terminal() && io::stdout().is_terminal()) {
            return Self(None);
        }
        let Ok(before) = tcgetattr(&stdin) else { return Self(None) };
        let mut quiet = before.clone();
        quiet.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON);
        quiet.input_modes &= !InputModes::ICRNL;
        quiet.special_codes[SpecialCodeIndex::VMIN] = 0;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        Self(tcsetattr(&stdin, OptionalActions::Now, &quiet).is_ok().then_some(before))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // What was typed stays: it is the next line's.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// What was typed meanwhile, taken away from whoever asks next; nothing where nothing waits.
pub(super) fn typed_meanwhile() -> Vec<u8> {
    let held = Held::back();
    let mut typed = vec![0; 16 * 1024];
    let count = if held.0.is_some() { io::stdin().lock().read(&mut typed).unwrap_or(0) } else { 0 };
    typed.truncate(count);
    typed
}

/// What is being done, on a line that goes away again; on a terminal only.
#[derive(Default)]
pub(super) struct Status {
    shown: bool,
}

impl Status {
    pub(super) fn show(&mut self, text: &str) {
        if io::stderr().is_terminal() {
            self.shown = true;
            let _ = write!(io::stderr(), "\r\u{1b}[K{}", Paint::of_stderr().dim(&clean(text)));
        }
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.clear();
    }
}
