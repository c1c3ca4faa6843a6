//! The memory that MCP serves.

use async_trait::async_trait;
use confidant_engine::Engine;
use confidant_mcp::{Failure, LazyMemory, OpensMemory};
use confidant_memory::Memory;
use confidant_memory::cost::Prices;

use crate::config::Loaded;
use crate::damage::Part;
use crate::open::{self, Opened, Purpose};

/// That of a server, which has opened it.
pub(crate) fn ready(opened: &Opened) -> LazyMemory {
    match (&opened.memory, opened.require(Part::Memory)) {
        (Some(memory), _) => LazyMemory::ready(memory.clone()),
        (None, Ok(())) => LazyMemory::missing(),
        (None, Err(error)) => LazyMemory::damaged(Failure::unopened(&error)),
    }
}

/// The one that these settings describe; nothing is opened yet.
pub(crate) fn later(loaded: Loaded) -> LazyMemory {
    LazyMemory::later(Box::new(Described(loaded)))
}

#[derive(Debug)]
struct Described(Loaded);

#[async_trait]
impl OpensMemory for Described {
    async fn open(&self) -> Result<(Engine, Memory), Failure> {
        let opened = open::open(&self.0, Purpose::SetUp).await.map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "the memory cannot be opened");
            Failure::unopened(&error)
        })?;
        opened.prepared.tell();
        opened.require(Part::Memory).map_err(|error| Failure::unopened(&error))?;
        let memory = opened.memory.ok_or_else(Failure::no_memory)?;
        tokio::spawn(crate::memory::keep(memory.clone()));
        Ok((opened.engine, memory))
    }

    fn prices(&self) -> Result<Prices, Failure> {
        self.0.config.memory.prices().map_err(|error| Failure::unopened(&error))
    }
}
