//! What a person or a pipe gets to see.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::anyhow;
use confidant_display::parted as hinted;
use confidant_engine::clock::Millis;
use confidant_engine::model::fresh_fence;
use confidant_memory::regular;
use serde::Serialize;

use crate::files::{self, Made};

/// Prints data as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Prints a line of data.
pub(crate) fn line(line: &str) -> anyhow::Result<()> {
    text(&format!("{line}\n"))
}

/// Prints lines that others wrote, for whom or what reads them: a pipe may lead to a model, so there they stand in a fence.
pub(crate) fn quoted(label: &str, intro: &str, lines: &[String]) -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        return text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }
    line(&format!("{intro}\n{}", fresh_fence().around(label, &lines.join("\n"))))
}

/// Prints data as JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Writes data as JSON into a private file, or prints it.
pub(crate) fn json_to(file: Option<&Path>, value: &impl Serialize) -> anyhow::Result<()> {
    let Some(path) = file else { return json(value) };
    let content = serde_json::to_string_pretty(value)? + "\n";
    create(path, content.as_bytes())?;
    note(&format!("written to {}", path.display()));
    Ok(())
}

/// Makes a private file; never writes over one.
pub(crate) fn create(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    match files::create(path, content) {
        Ok(Made::New) => Ok(()),
        Ok(Made::Existing) => Err(anyhow!("{} already exists; hint: choose another name", path.display())),
        Err(error) => Err(anyhow!(
            "{} cannot be written ({}); hint: check its folder and permissions",
            path.display(),
            error.kind()
        )),
    }
}

/// Reads a file that was named, or stdin for `-`.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        return Ok(io::read_to_string(io::stdin())?);
    }
    regular::read_linked(path).map_err(|error| {
        let hint =
            if regular::is_not_regular(&error) { "give - to read standard input" } else { "check the path" };
        anyhow!("{} cannot be read ({}); hint: {hint}", path.display(), regular::why(&error))
    })
}

/// Says something on stderr. That nobody listens is no reason to stop.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Says on stderr what went wrong and, on a line of its own, what to do.
pub(crate) fn error(message: &str) {
    let message = crate::words::plain(message);
    let (what, hint) = parted(&message);
    let painted = Paint::of_stderr().red("error:");
    note(&format!("{painted} {what}"));
    if let Some(hint) = hint {
        note(&format!("hint: {hint}"));
    }
}

/// An error with its causes, each said once: many a message quotes its cause already.
pub(crate) fn whole(error: &anyhow::Error) -> String {
    let mut whole = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !whole.contains(&cause) {
            let gap = if whole.is_empty() { "" } else { ": " };
            whole = format!("{whole}{gap}{cause}");
        }
    }
    whole
}

/// Asks whether to go on, where somebody sits at a terminal; elsewhere nobody is asked, and the answer is yes.
pub(crate) fn is_confirmed(question: &str) -> anyhow::Result<bool> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(true);
    }
    let _ = write!(io::stderr().lock(), "{question} [y/N] ");
    let mut line = String::new();
    // The end of input is no answer, and takes no line.
    if io::stdin().read_line(&mut line)? == 0 {
        note("");
    }
    let yes = matches!(line.trim().to_lowercase().as_str(), "y" | "yes");
    if !yes {
        note("nothing was done");
    }
    Ok(yes)
}

/// Whether what is printed goes to a person's screen, where a table may have a header and columns.
pub(crate) fn is_for_a_person() -> bool {
    io::stdout().is_terminal()
}

/// Takes a message apart into what happened and what to do next.
pub(crate) fn parted(message: &str) -> (&str, Option<&str>) {
    let parts = hinted(message).or_else(|| message.rsplit_once("; "));
    parts.map_or((message, None), |(what, hint)| (what, Some(hint)))
}

/// Text that a terminal shows and does not obey.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(obeyed) { Cow::Owned(text.replace(obeyed, "")) } else { Cow::Borrowed(text) }
}

/// A moment as people write it, in UTC.
pub(crate) fn moment(at: Millis) -> String {
    let since = Duration::from_millis(u64::try_from(at.0).unwrap_or_default());
    let time = SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// `1 session`, `2 sessions`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}

/// Colours, where they are welcome. They add to words and never stand for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    pub(crate) fn of_stdout() -> Self {
        Self(io::stdout().is_terminal() && crate::config::Environment::of_this_process().welcomes_colour())
    }

    pub(crate) fn of_stderr() -> Self {
        Self(io::stderr().is_terminal() && crate::config::Environment::of_this_process().welcomes_colour())
    }

    /// No colours, wherever it goes.
    pub(crate) fn none() -> Self {
        Self(false)
    }

    /// Colours, wherever it goes.
    #[cfg(test)]
    pub(crate) fn always() -> Self {
        Self(true)
    }

    /// Whether there are any.
    pub(crate) fn is_on(self) -> bool {
        self.0
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// The text in the colours of an SGR code.
    pub(crate) fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_part_into_what_and_hint() {
        assert_eq!(parted("a; b; hint: c; d"), ("a; b", Some("c; d")));
        assert_eq!(parted("a; do b"), ("a", Some("do b")));
        assert_eq!(parted("a"), ("a", None));
    }

    #[test]
    fn causes_are_said_once() {
        let error = anyhow!("c; hint: d").context("b: c; hint: d").context("a");
        assert_eq!(whole(&error), "a: b: c; hint: d");
    }

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(clean("a\u{1b}[2Jb\n\tc\r"), "a[2Jb\n\tc");
    }

    #[test]
    fn moments_are_readable() {
        assert_eq!(moment(Millis(1_700_000_000_000)), "2023-11-14T22:13:20Z");
    }
}
