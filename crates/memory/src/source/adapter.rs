//! A command that the user configured: session id in, session JSON out.
//!
//! The id is the last argument and the variable `CONFIDANT_SESSION_ID`; there is no shell. Standard output is a session
//! in the `raw_session` form, or nothing if the command does not know the id. Easy to get wrong: a command can hang,
//! print for ever or leave children behind, so time and output are bounded and the whole process group ends with it.
//! Standard error may hold content, so it goes nowhere.

use std::process::Stdio;
use std::time::Duration;

use confidant_display::debug_without_content;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdout, Command};

use crate::process::Group;
use crate::{Error, Result, Session};

/// The variable in which the command finds the id.
pub const ID_VARIABLE: &str = "CONFIDANT_SESSION_ID";

/// A command that prints sessions.
#[derive(Clone, PartialEq, Eq)]
pub struct Adapter {
    argv: Vec<String>,
    hidden: Vec<String>,
    timeout: Duration,
    most_output: u64,
}

impl Adapter {
    /// The program and its arguments; the id is put after them.
    pub fn new(argv: Vec<String>) -> Result<Self> {
        if argv.first().is_none_or(|program| program.trim().is_empty())
            || argv.iter().any(|arg| arg.contains('\0'))
        {
            return Err(Error::invalid(
                "the adapter command has no program",
                "give it as a list: the program, then its arguments",
            ));
        }
        Ok(Self { argv, hidden: Vec::new(), timeout: TIMEOUT, most_output: MOST_OUTPUT })
    }

    /// Environment variables that the command must not see, such as those in which keys arrive.
    #[must_use]
    pub fn hiding(mut self, variables: Vec<String>) -> Self {
        self.hidden = variables;
        self
    }

    /// With another time limit.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With another limit on what it prints.
    #[must_use]
    pub fn printing_at_most(mut self, bytes: u64) -> Self {
        self.most_output = bytes;
        self
    }

    /// The session with this id, if the command knows it.
    pub(super) async fn fetch(&self, id: &str) -> Result<Option<Session>> {
        // It would be taken for an option, and there is no session with such an id anywhere.
        if id.starts_with('-') {
            return Ok(None);
        }
        let mut group = Group::start(&mut self.command(id), &self.hidden).map_err(|_| cannot_start())?;
        let Some(stdout) = group.child.stdout.take() else { return Err(cannot_start()) };
        let run = async {
            let output = read_all(stdout, self.most_output).await?;
            // Only now is the process waited for: until then its number, and so its group's, cannot be another's.
            let status = group.child.wait().await.map_err(|_| failed())?;
            group.is_done = true;
            if status.success() { Ok(output) } else { Err(failed()) }
        };
        let output = tokio::time::timeout(self.timeout, run).await.map_err(|_| self.too_slow())??;
        parse(id, &output)
    }

    fn command(&self, id: &str) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).arg(id).env(ID_VARIABLE, id);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn too_slow(&self) -> Error {
        Error::unavailable(
            format!(
                "the adapter command was not done after {} s and was stopped",
                self.timeout.as_secs_f32()
            ),
            "run it by hand with the session's id, and see what it waits for",
        )
    }
}

// Arguments may hold anything.
debug_without_content!(Adapter(***));

async fn read_all(stdout: ChildStdout, most: u64) -> Result<Vec<u8>> {
    let mut output = Vec::new();
    stdout.take(most + 1).read_to_end(&mut output).await.map_err(|_| failed())?;
    if output.len() as u64 > most {
        return Err(Error::invalid(
            format!("the adapter command printed more than {most} bytes and was stopped"),
            "make it leave out large tool outputs",
        ));
    }
    Ok(output)
}

fn parse(id: &str, output: &[u8]) -> Result<Option<Session>> {
    if output.trim_ascii().is_empty() {
        return Ok(None);
    }
    match confidant_redact::read_json(output) {
        Ok(Value::Null) => Ok(None),
        Ok(Value::Object(members)) => Session::new(id, members).map(Some).map_err(|_| {
            Error::invalid(
                "the adapter command printed a session with another session_id",
                "make it print the session it is asked for, or nothing if it does not know it",
            )
        }),
        _ => Err(Error::invalid(
            "the adapter command did not print one JSON object",
            "make it print the session as JSON on standard output, and everything else on standard error",
        )),
    }
}

fn cannot_start() -> Error {
    Error::unavailable(
        "the adapter command cannot be started",
        "check that its program exists and is executable; it is started directly, not by a shell",
    )
}

fn failed() -> Error {
    Error::unavailable(
        "the adapter command failed",
        "run it by hand with the session's id; for an id that it does not know, it should print nothing and exit with 0",
    )
}

const TIMEOUT: Duration = Duration::from_secs(30);
const MOST_OUTPUT: u64 = 16 << 20;
