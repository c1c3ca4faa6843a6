//! Where a session comes from when all that is known is its id.
//!
//! Asked in this order: what the request brought, the agents' own files, the configured command, the configured file of
//! fixtures. Easy to get wrong: the id is somebody's input. It is compared with names and handed to the command as one
//! argument; it never becomes part of a path, a query or a shell line.

mod adapter;

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::import::{Root, discover, find_in, find_in_fixtures};
use crate::session::check_id;
use crate::{Error, Result, Session};

pub use adapter::{Adapter, ID_VARIABLE};

/// Where sessions are looked for.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Agents' session files.
    pub roots: Vec<Root>,
    /// A command that prints a session.
    pub adapter: Option<Adapter>,
    /// A JSON file from id to session.
    pub fixtures: Option<PathBuf>,
}

impl Sources {
    /// The session with this id: the one that is given, or else the one that is found.
    pub fn resolve<'a>(
        &'a self,
        id: &'a str,
        inline: Option<Map<String, Value>>,
    ) -> BoxFuture<'a, Result<Session>> {
        Box::pin(async move {
            match inline {
                Some(members) => Session::new(id, members),
                None => self.find(id).await,
            }
        })
    }

    /// Finds the session with this id. It needs a runtime with timers and I/O.
    ///
    /// Fixtures are asked even if the command failed; if they do not have it either, the command's failure is what is
    /// reported, since it may be the reason.
    pub fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Session>> {
        Box::pin(async move {
            let id = check_id(id)?;
            let (session, unread) = self.in_files(&id).await?;
            if let Some(session) = session {
                return Ok(session);
            }
            let mut failure = None;
            if let Some(adapter) = &self.adapter {
                match adapter.fetch(&id).await {
                    Ok(Some(session)) => return Ok(session),
                    Ok(None) => {}
                    Err(error) => failure = Some(error),
                }
            }
            if let Some(session) = self.in_fixtures(&id).await? {
                return Ok(session);
            }
            Err(failure.unwrap_or_else(|| self.not_found(unread)))
        })
    }

    /// The session, and how many files could not be read.
    async fn in_files(&self, id: &str) -> Result<(Option<Session>, usize)> {
        if self.roots.is_empty() {
            return Ok((None, 0));
        }
        let (roots, id) = (self.roots.clone(), id.to_owned());
        blocking(move || Ok(search(&roots, &id))).await
    }

    async fn in_fixtures(&self, id: &str) -> Result<Option<Session>> {
        let Some(path) = self.fixtures.clone() else { return Ok(None) };
        let id = id.to_owned();
        blocking(move || find_in_fixtures(&path, &id)).await
    }

    /// Says which kinds of places were looked at, not where they are.
    fn not_found(&self, unread: usize) -> Error {
        let kinds = [
            (!self.roots.is_empty(), "agents' session files"),
            (self.adapter.is_some(), "the adapter command"),
            (self.fixtures.is_some(), "the fixtures"),
        ];
        let looked: Vec<&str> =
            kinds.iter().filter(|(is_there, _)| *is_there).map(|(_, kind)| *kind).collect();
        let hint = if looked.is_empty() {
            "no source of sessions is configured: give the session inline, or configure session files, an \
             adapter command or fixtures"
                .to_owned()
        } else {
            let but = if unread > 0 { format!(" ({unread} could not be read)") } else { String::new() };
            format!("searched {}{but}: check the id, or give the session inline", looked.join(", "))
        };
        Error::not_found("there is no session with this id", hint)
    }
}

/// Files with the id in their names first, then those whose names say nothing, the newest first.
fn search(roots: &[Root], id: &str) -> (Option<Session>, usize) {
    let found = discover(roots);
    let (mut files, mut unread) = (found.files, found.unreadable);
    files.retain(|file| file.can_have(id));
    files.sort_by_key(|file| (!file.is_named(id), std::cmp::Reverse(file.modified())));
    for file in &files {
        match find_in(file, id) {
            Ok(Some(session)) => return (Some(session), unread),
            Ok(None) => {}
            Err(_) => unread += 1,
        }
    }
    (None, unread)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        Error::unavailable(
            "the search for a session ended early",
            "try again; if it happens again, report it as a bug",
        )
    })?
}
