//! A server that is a program of ours to start: messages over its stdin and stdout, line by line.
//!
//! It runs in a process group of its own, with the variables it was given and no others, and no shell in between. What it
//! says on stderr may be anything, so nobody hears it. The group ends when the connection does: politely first, then for
//! good. Between us and the program stands a keeper ([`super::keep()`]), which ends the group when we are gone, even if we
//! had no time to do it ourselves.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::trim::{Framing, Trim, Wire};

/// A program with its process group, and the messages to and from it.
pub(super) struct Process {
    messages: AsyncRwTransport<RoleClient, Trimmed, ChildStdin>,
    group: Group,
    /// Whether the program has nothing more to say, so that there is no use in waiting for it.
    is_silent: bool,
}

/// Who stands between us and the programs we start.
#[derive(Clone, Debug)]
pub enum Keeper {
    /// This program, by this name, as [`super::keep()`].
    Program(PathBuf),
    /// Nobody: only where there is no such program, as in tests of parts of it.
    #[cfg(test)]
    Nobody,
}

impl Keeper {
    /// The program that is running now, even if its file has been replaced since.
    pub fn this_program() -> io::Result<Self> {
        let running = PathBuf::from("/proc/self/exe");
        Ok(Self::Program(if running.exists() { running } else { std::env::current_exe()? }))
    }

    fn command(&self, program: &str) -> Command {
        match self {
            Self::Program(keeper) => {
                let mut command = Command::new(keeper);
                command.arg0("confidant").args(["tools", "keep", "--", program]);
                command
            }
            #[cfg(test)]
            Self::Nobody => Command::new(program),
        }
    }
}

impl Process {
    /// Starts the program. `longest` is how much of a text is kept.
    pub(super) fn start(
        command: &[String],
        variables: &BTreeMap<String, SecretString>,
        keeper: &Keeper,
        longest: usize,
        wire: Arc<Wire>,
    ) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::NotFound)?;
        // The keeper would find out, but could not say so.
        if !can_be_run(program, variables.get("PATH").map(SecretString::expose_secret)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut command = keeper.command(program);
        command.args(arguments).env_clear();
        command.envs(variables.iter().map(|(name, value)| (name, value.expose_secret())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let group = Group { child, is_over: false };
        let trim = Trim::new(Framing::Lines, longest, wire);
        let read = vec![0; 16 * 1024].into_boxed_slice();
        let stdout = Trimmed { stdout, trim, read, kept: Vec::new(), given: 0 };
        Ok(Self { messages: AsyncRwTransport::new(stdout, stdin), group, is_silent: false })
    }
}

impl Transport<RoleClient> for Process {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.messages.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.messages.receive().await;
        self.is_silent = message.is_none();
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        if !self.is_silent {
            // Closing may wait, too: for a program that does not read.
            let politely = async {
                self.messages.close().await?;
                self.group.child.wait().await
            };
            if let Ok(Ok(_)) = tokio::time::timeout(PATIENCE, politely).await {
                self.group.is_over = true;
                return Ok(());
            }
        }
        self.group.end();
        self.group.child.wait().await?;
        self.group.is_over = true;
        Ok(())
    }
}

/// A process and those that it started. Unless it is over, all end when this is dropped.
struct Group {
    child: Child,
    is_over: bool,
}

impl Group {
    /// Ends all of them. The first has not been waited for, so its number, and the group's, cannot be another's.
    fn end(&mut self) {
        if let Some(leader) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // They may have ended by themselves.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over {
            self.end();
        }
    }
}

/// What a program says, trimmed.
struct Trimmed {
    stdout: ChildStdout,
    trim: Trim,
    read: Box<[u8]>,
    /// What was kept of the last read, and how much of that has been given on.
    kept: Vec<u8>,
    given: usize,
}

impl AsyncRead for Trimmed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.given == this.kept.len() {
            this.kept.clear();
            this.given = 0;
            let mut read = ReadBuf::new(&mut this.read);
            ready!(Pin::new(&mut this.stdout).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.trim.take(read.filled(), &mut this.kept).map_err(io::Error::other)?;
        }
        let next = &this.kept[this.given..];
        let next = &next[..next.len().min(buffer.remaining())];
        buffer.put_slice(next);
        this.given += next.len();
        Poll::Ready(Ok(()))
    }
}

/// Whether there is such a program, looked for as the system does.
fn can_be_run(program: &str, path: Option<&str>) -> bool {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    let folders = path.map(OsStr::new).map(std::env::split_paths).into_iter().flatten();
    folders.into_iter().any(|folder| is_program(&folder.join(program)))
}

/// How long a program may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_where_they_would_be_started() {
        assert!(can_be_run("sh", Some("/nowhere:/bin")));
        assert!(can_be_run("/bin/sh", None));
        for (program, path) in [("sh", None), ("sh", Some("/nowhere")), ("/etc/passwd", None), ("/bin", None)]
        {
            assert!(!can_be_run(program, path), "{program}");
        }
    }
}
