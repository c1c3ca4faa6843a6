//! What a person types and nobody sees.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::anyhow;
use secrecy::SecretString;

/// Asks for a secret, without showing it; or takes the line that was piped in. `setting` has it otherwise.
pub(super) fn ask(question: &str, setting: &str) -> anyhow::Result<SecretString> {
    ask_if_any(question)?
        .ok_or_else(|| anyhow!("nothing was given; hint: type it, pipe it in, or set {setting}"))
}

/// The same for a secret that a person need not have.
pub(super) fn ask_if_any(question: &str) -> anyhow::Result<Option<SecretString>> {
    let stdin = io::stdin();
    // Before the question: what is typed before terminals hide it is thrown away, and who reads the question may type at once.
    let _hidden = stdin.is_terminal().then(Hidden::begin).transpose()?;
    if stdin.is_terminal() {
        say(question)?;
    }
    let mut line = zeroize::Zeroizing::new(String::new());
    stdin.lock().read_line(&mut line)?;
    let secret = line.trim_end_matches(['\n', '\r']);
    Ok((!secret.is_empty()).then(|| SecretString::from(secret)))
}

/// Prints a question.
pub(super) fn say(question: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()
}

/// A terminal that does not show what is typed, until the end.
struct Hidden(rustix::termios::Termios);

impl Hidden {
    fn begin() -> io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        let _ = say("\n");
    }
}
