//! Lines that a person types, or that come through a pipe. They are recalled in memory only: no file gets them.

use anyhow::{Context as _, anyhow};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Cmd, KeyCode, KeyEvent, Modifiers};

/// What came of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    /// Ctrl-C.
    TakenBack,
    /// Ctrl-D, or the end of a pipe.
    End,
}

pub(super) type Editor = rustyline::Editor<(), MemHistory>;

/// Whether a line can be had again with the arrow keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remember {
    Yes,
    No,
}

pub(super) fn editor(remember: Remember) -> anyhow::Result<Editor> {
    let config = rustyline::Config::builder().auto_add_history(remember == Remember::Yes).build();
    let mut editor = Editor::with_history(config, MemHistory::new())?;
    // Enter sends; these do not, whichever of them a terminal can tell from Enter.
    for key in [KeyEvent(KeyCode::Enter, Modifiers::ALT), KeyEvent(KeyCode::Char('J'), Modifiers::CTRL)] {
        editor.bind_sequence(key, Cmd::Newline);
    }
    Ok(editor)
}

/// Reads a line. The editor blocks its thread, and the engine works on the others meanwhile; whoever stops waiting for
/// the line has no editor any more.
pub(super) async fn read_line(
    editor: &mut Option<Editor>,
    prompt: &'static str,
    begun: String,
) -> anyhow::Result<Line> {
    let mut lent =
        editor.take().context("a line is already being read; hint: this is a bug, please report it")?;
    let reading = move || (lent.readline_with_initial(prompt, (&begun, "")), lent);
    let (line, back) = tokio::task::spawn_blocking(reading).await?;
    *editor = Some(back);
    match line {
        Ok(text) => Ok(Line::Text(text)),
        Err(ReadlineError::Interrupted) => Ok(Line::TakenBack),
        Err(ReadlineError::Eof) => Ok(Line::End),
        Err(ReadlineError::Io(error)) => Err(error.into()),
        Err(_) => Err(anyhow!("the line could not be read; hint: try --once, or pipe lines in")),
    }
}
