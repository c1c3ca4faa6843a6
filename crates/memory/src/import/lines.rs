//! Lines of a file, one at a time and never more than [`LONGEST_LINE`] of one in memory.
//!
//! Easy to get wrong: a file that an agent is still writing ends in half a line, and a damaged compressed file ends in
//! an error. Both are the end of what can be read, counted as one skipped line; only a failing disk is an error.

use std::io::{BufRead, ErrorKind, Read};
use std::path::Path;

use confidant_redact::read_json;
use serde_json::{Map, Value};

use super::sink::Sink;
use super::zstd;
use crate::{Error, Result, regular};

/// The longest line that is read. Longer ones are skipped and counted.
pub(crate) const LONGEST_LINE: usize = 8 << 20;

/// The longest file that is read as one JSON value.
const LONGEST_WHOLE: u64 = 64 << 20;

/// A line of a file.
pub(crate) enum Line<'a> {
    /// Its bytes, without the end of line.
    Text(&'a [u8]),
    /// It was longer than is read.
    TooLong,
}

/// Reads lines.
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    limit: usize,
    is_first: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self::of_at_most(reader, LONGEST_LINE)
    }

    /// With another limit.
    pub(crate) fn of_at_most(reader: R, limit: usize) -> Self {
        Self { reader, line: Vec::new(), limit, is_first: true }
    }

    /// The next line, or none at the end.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        self.line.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            too_long |= self.line.len() + taken > self.limit;
            if too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(&chunk[..taken]);
            }
            self.reader.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        if too_long {
            self.is_first = false;
            return Ok(Some(Line::TooLong));
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        let is_first = std::mem::take(&mut self.is_first);
        Ok(Some(Line::Text(if is_first { without_mark(line) } else { line })))
    }
}

/// Calls `each` with every line of a file, compressed or not, that is a JSON object; counts the others.
pub(crate) fn each_object(path: &Path, sink: &mut Sink<'_>, mut each: impl FnMut(&Value)) -> Result<()> {
    let reader = zstd::open(path).map_err(|_| unreadable())?;
    each_json(reader, sink, |line, sink| {
        if line.is_object() {
            each(&line);
        } else {
            sink.skip();
        }
        Ok(())
    })
}

/// Calls `each` with every line that is JSON; counts the others.
pub(crate) fn each_json(
    reader: impl BufRead,
    sink: &mut Sink<'_>,
    mut each: impl FnMut(Value, &mut Sink<'_>) -> Result<()>,
) -> Result<()> {
    let mut lines = Lines::new(reader);
    while let Some(line) = or_end(lines.next(), sink)? {
        match line {
            Line::Text(bytes) if is_blank(bytes) => {}
            Line::Text(bytes) => match read_json(bytes) {
                Ok(value) => each(value, sink)?,
                Err(_) => sink.skip(),
            },
            Line::TooLong => sink.skip(),
        }
        if sink.found() {
            break;
        }
    }
    Ok(())
}

/// A whole file as one JSON value, if it is one and not too long.
pub(crate) fn whole_json(path: &Path) -> Result<Option<Value>> {
    let mut bytes = Vec::new();
    let file = regular::open(path).map_err(|_| unreadable())?;
    file.take(LONGEST_WHOLE + 1).read_to_end(&mut bytes).map_err(|_| unreadable())?;
    if bytes.len() as u64 > LONGEST_WHOLE {
        return Ok(None);
    }
    Ok(read_json(&bytes).ok())
}

/// Some programs begin every file with a mark that says it is UTF-8.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Whether the first line that is not blank is a JSON object of its own.
pub(crate) fn is_json_lines(path: &Path) -> Result<bool> {
    let mut lines = Lines::new(super::zstd::open(path).map_err(|_| unreadable())?);
    while let Ok(Some(line)) = lines.next() {
        match line {
            Line::Text(bytes) if is_blank(bytes) => {}
            Line::Text(bytes) => return Ok(read_json::<Map<String, Value>>(bytes).is_ok()),
            Line::TooLong => return Ok(false),
        }
    }
    Ok(false)
}

/// A damaged file ends where the damage begins.
pub(crate) fn or_end<T>(read: std::io::Result<Option<T>>, sink: &mut Sink<'_>) -> Result<Option<T>> {
    match read {
        Ok(line) => Ok(line),
        Err(error) if is_damage(&error) => {
            sink.skip();
            Ok(None)
        }
        Err(_) => Err(unreadable()),
    }
}

/// What is said of a file that cannot be read.
pub(crate) fn unreadable() -> Error {
    Error::unavailable("a session file cannot be read", "check that it still exists and that you may read it")
}

fn is_damage(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::Other)
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], limit: usize, buffer: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::of_at_most(std::io::BufReader::with_capacity(buffer, input), limit);
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            out.push(match line {
                Line::Text(bytes) => Some(bytes.to_vec()),
                Line::TooLong => None,
            });
        }
        out
    }

    #[test]
    fn lines_are_the_same_whatever_the_buffer() {
        for buffer in [1, 2, 3, 64] {
            let lines = all(b"ab\r\n\nlong line\ncd", 4, buffer);
            assert_eq!(lines, [Some(b"ab".to_vec()), Some(vec![]), None, Some(b"cd".to_vec())]);
        }
        assert!(all(b"", 4, 8).is_empty());
        let marked = all(b"\xef\xbb\xbfa\n\xef\xbb\xbf", 4, 2);
        assert_eq!(marked, [Some(b"a".to_vec()), Some(b"\xef\xbb\xbf".to_vec())], "a mark stands first");
    }
}
