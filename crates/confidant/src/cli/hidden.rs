//! What a person types and nobody sees.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use anyhow::anyhow;
use secrecy::SecretString;

/// Asks for a secret, without showing it; or takes the line that was piped in. `setting` has it otherwise.
pub(super) fn ask(question: &str, setting: &str) -> anyhow::Result<SecretString> {
    let stdin = io::stdin();
    let _hidden = if stdin.is_terminal() {
        say(question)?;
        Some(Hidden::begin()?)
    } else {
        None
    };
    let mut line = zeroize::Zeroizing::new(String::new());
    stdin.lock().read_line(&mut line)?;
    let secret = line.trim_end_matches(['\n', '\r']);
    if secret.is_empty() {
        return Err(anyhow!("nothing was given; hint: type it, pipe it in, or set {setting}"));
    }
    Ok(SecretString::from(secret))
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
