//! Parts of the data that cannot be opened, though the rest can.
//!
//! Sessions need `confidant.db` and `keyring.db` and nothing else: a damaged graph of concepts, memory or inbox stops neither a
//! turn nor an erasure. What stands in its place here refuses by name whatever does need it, so that an erasure never claims to
//! have ended what it could not reach.

use async_trait::async_trait;
use confidant_concepts::{Cleared, Graph, GraphError, Look, Node};
use confidant_display::parted;
use confidant_engine::rights::Derived;
use confidant_engine::{Error, Scope, TenantId, UserId};
pub(crate) use confidant_http::{Damage, Part};
use serde_json::Value;

/// What is wrong with a part, said once in the log.
pub(crate) fn of(part: Part, error: &anyhow::Error) -> Damage {
    let trouble = crate::output::whole(error);
    tracing::error!(part = part.name(), error = trouble, "a part of the data cannot be used");
    Damage { part, trouble }
}

/// The same as a reason not to do something.
pub(crate) fn error(damage: &Damage) -> anyhow::Error {
    anyhow::anyhow!("{}", damage.trouble)
}

fn refused(damage: &Damage) -> Error {
    let (what, hint) = parted(&damage.trouble).unwrap_or((&damage.trouble, "run `confidant doctor`"));
    let what = format!("{} cannot be reached: {what}", damage.part.derived());
    Error::Derived { what, hint: hint.to_owned() }
}

/// What a damaged part keeps of people: nobody can say how much it is, and nobody may say that it is gone.
#[derive(Debug)]
pub(crate) struct Unreachable(pub(crate) Damage);

#[async_trait]
impl Derived for Unreachable {
    fn name(&self) -> &'static str {
        self.0.part.derived()
    }

    async fn count(&self, _: &TenantId, _: &UserId) -> Result<u64, Error> {
        Err(refused(&self.0))
    }

    async fn export(&self, _: &TenantId, _: &UserId) -> Result<Vec<Value>, Error> {
        Err(refused(&self.0))
    }

    async fn erase(&self, _: &TenantId, _: &UserId) -> Result<u64, Error> {
        Err(refused(&self.0))
    }

    async fn count_session(&self, _: &Scope) -> Result<u64, Error> {
        self.of_session()
    }

    async fn erase_session(&self, _: &Scope) -> Result<u64, Error> {
        self.of_session()
    }
}

impl Unreachable {
    /// Memories are a person's and outlive their session; events are the session's.
    fn of_session(&self) -> Result<u64, Error> {
        match self.0.part {
            Part::Channels => Err(refused(&self.0)),
            Part::Concepts | Part::Memory | Part::Chats => Ok(0),
        }
    }
}

/// A graph that cannot be opened: turns go on without concepts and say so.
#[derive(Debug)]
pub(crate) struct NoGraph;

#[async_trait]
impl Graph for NoGraph {
    async fn nodes(&self, _: &[String], _: &str) -> Result<Vec<Option<Node>>, GraphError> {
        Err(closed())
    }

    async fn find(&self, _: Look<'_>, _: &str, _: usize) -> Result<Vec<Node>, GraphError> {
        Err(closed())
    }

    async fn approve(&self, _: Cleared) -> Result<String, GraphError> {
        Err(closed())
    }

    async fn count(&self) -> Result<u64, GraphError> {
        Err(closed())
    }
}

fn closed() -> GraphError {
    GraphError::Unavailable("concepts.db cannot be opened".to_owned())
}
