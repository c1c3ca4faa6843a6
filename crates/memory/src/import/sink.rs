//! Where importers put what they read: sessions, and counts of what they could not read.

use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::{Map, Value};

use super::draft::Draft;
use super::file::NUMBER;
use super::time::{self, Millis};
use super::{Agent, Key, SessionFile};
use crate::{Result, Session};

/// A session with what makes it the same one again.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The session, unredacted.
    pub session: Session,
    /// Who, which and what: a session with a key that was stored before needs no storing.
    pub key: Key,
    /// The id to give it if another file has its name, where that name is all that it is called by.
    pub apart: Option<String>,
}

impl Imported {
    /// About how many bytes of its file it takes.
    pub(crate) fn size(&self) -> u64 {
        let mut counted = Counted(0);
        // Counting cannot fail, and a size that is not known is none.
        serde_json::to_writer(&mut counted, self.session.members()).map_or(0, |()| counted.0)
    }

    /// The same under another id.
    pub(crate) fn called(self, id: &str) -> Result<Self> {
        Ok(Self { session: self.session.called(id)?, key: self.key.called(id), apart: None })
    }
}

/// Counts what is written, and keeps none of it.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes sessions from an importer.
pub(crate) struct Sink<'a> {
    /// Only this session is wanted.
    wanted: Option<&'a str>,
    file: &'a SessionFile,
    /// Names that mean something in this file only: another may call something else so.
    here: HashSet<String>,
    /// The time of a session that has none of its own.
    file_time: Option<Millis>,
    counts: Counts,
    found: bool,
    emit: &'a mut dyn FnMut(Imported) -> Result<()>,
}

/// What came out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sessions: usize,
    pub(crate) skipped: u64,
    pub(crate) left_out: u64,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        file: &'a SessionFile,
        wanted: Option<&'a str>,
        emit: &'a mut dyn FnMut(Imported) -> Result<()>,
    ) -> Self {
        let file_time = time::of_file(file.modified());
        let wanted = wanted.map(|id| file.without_place(id).unwrap_or(id));
        let (counts, here) = (Counts::default(), HashSet::new());
        Self { wanted, file, here, file_time, counts, found: false, emit }
    }

    /// The id of the file's `nth` session without a name: the first is called as the file is.
    pub(crate) fn nth(&self, nth: usize) -> String {
        let stem = self.file.stem().trim();
        if nth == 1 { stem.to_owned() } else { format!("{stem}{NUMBER}{nth}") }
    }

    /// A name that is this file's alone.
    pub(crate) fn named_here(&mut self, id: &str) {
        self.here.insert(id.trim().to_owned());
    }

    /// Something made no sense.
    pub(crate) fn skip(&mut self) {
        self.counts.skipped += 1;
    }

    /// Whether the session with this id is wanted; readers of many sessions ask before they go to work.
    pub(crate) fn wants(&self, id: &str) -> bool {
        self.wanted.is_none_or(|wanted| wanted == id.trim())
    }

    /// Whether the one wanted session was found, so that there is nothing more to do.
    pub(crate) fn found(&self) -> bool {
        self.found
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// The session is complete. One in which nothing happened is none.
    pub(crate) fn finish(&mut self, draft: Draft) -> Result<()> {
        if draft.is_empty() {
            return Ok(());
        }
        let (agent, left_out) = (draft.agent(), draft.left_out());
        let (id, members, last) = draft.finish();
        self.counts.left_out += left_out;
        self.give(agent, &id, members, last)
    }

    /// A session that was whole from the beginning. Members other than `session_id` and times stay as they are.
    pub(crate) fn whole(&mut self, agent: Agent, id: &str, mut members: Map<String, Value>) -> Result<()> {
        let left_out = drop_oversized(&mut members);
        members.insert("session_id".to_owned(), id.trim().into());
        if !members.contains_key("tool_name") && agent != Agent::Fixture {
            members.insert("tool_name".to_owned(), agent.name().into());
        }
        let last = members.get("timestamp").and_then(time::of);
        if last.is_some() {
            members.remove("timestamp");
        }
        self.counts.left_out += left_out;
        self.give(agent, id, members, last)
    }

    fn give(
        &mut self,
        agent: Agent,
        id: &str,
        mut members: Map<String, Value>,
        last: Option<Millis>,
    ) -> Result<()> {
        if !self.wants(id) {
            return Ok(());
        }
        let stamp = |members: &mut Map<String, Value>, at: Option<Millis>| {
            if let Some(at) = at.map(time::format) {
                members.entry("timestamp").or_insert_with(|| at.into());
            }
        };
        stamp(&mut members, last);
        // The file's time is not content: copying a file must not make its sessions new ones.
        let key = Key::of(agent, id, &members);
        stamp(&mut members, self.file_time);
        // It fails only for an id that cannot be one.
        let Ok(session) = Session::new(id, members) else {
            self.skip();
            return Ok(());
        };
        self.found = self.wanted.is_some();
        self.counts.sessions += 1;
        let apart = self.here.remove(session.id()).then(|| self.file.apart(session.id()));
        (self.emit)(Imported { session, key, apart })
    }
}

/// Empties leaves that are too long, and says how many.
fn drop_oversized(members: &mut Map<String, Value>) -> u64 {
    fn walk(value: &mut Value) -> u64 {
        match value {
            Value::String(text) if text.len() > super::draft::LONGEST_LEAF => {
                *value = Value::Null;
                1
            }
            Value::Array(items) => items.iter_mut().map(walk).sum(),
            Value::Object(members) => members.iter_mut().map(|(_, value)| walk(value)).sum(),
            _ => 0,
        }
    }
    members.iter_mut().map(|(_, value)| walk(value)).sum()
}
