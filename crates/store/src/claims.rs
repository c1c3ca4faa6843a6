//! Who answers open turns, and who takes over those of a process that ended.

use std::time::Duration;

use async_trait::async_trait;
use confidant_seal::Tag;

use super::Result;

/// How long an instance counts as alive after its last sign, on a store that several processes share.
pub const LEASE: Duration = Duration::from_secs(15);

/// Open turns and the processes that answer them.
#[async_trait]
pub trait Claims: Send + Sync + std::fmt::Debug {
    /// Sessions that have an owner who is not alive.
    async fn orphans(&self) -> Result<Vec<(Tag, Owner)>>;
    /// Makes `to` the owner of a session that `from` had; false if it no longer has it.
    async fn claim(&self, scope: Tag, from: Owner, to: Instance) -> Result<bool>;
    /// Marks an instance as alive for as long as the returned guard lives.
    async fn enlist(&self, instance: Instance) -> Result<Box<dyn std::any::Any + Send + Sync>>;
    /// Marks an instance as stopped, so that nobody has to wait until its lease expires.
    async fn resign(&self, instance: Instance) -> Result<()>;
    /// Whether an instance is alive.
    async fn is_alive(&self, instance: Instance) -> Result<bool>;
    /// Whether any other than this one is.
    async fn others_alive(&self, than: Instance) -> Result<bool>;
}

/// A running engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instance(pub [u8; 16]);

/// Who has a session in which something is still to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// An engine that answers the open turn.
    Running(Instance),
    /// Nobody: a turn waits for a decision.
    Parked,
    /// Nobody: a decision waits to be carried out.
    Decided,
    /// Nobody: turns named concepts that are yet to come into scope.
    Captured,
}

impl Owner {
    /// Those that stand for no process. Never alive, so always looked at.
    pub const NOBODY: [Self; 3] = [Self::Parked, Self::Decided, Self::Captured];

    /// Whether it stands for no process.
    #[must_use]
    pub fn is_nobody(self) -> bool {
        self.instance().is_none()
    }

    /// The engine that it is, if it is one.
    #[must_use]
    pub fn instance(self) -> Option<Instance> {
        match self {
            Self::Running(instance) => Some(instance),
            Self::Parked | Self::Decided | Self::Captured => None,
        }
    }

    /// What is stored for it.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        match self {
            Self::Running(instance) => instance.0,
            Self::Parked => *PARKED,
            Self::Decided => *DECIDED,
            Self::Captured => *CAPTURED,
        }
    }

    /// Reads what was stored.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        match &bytes {
            PARKED => Self::Parked,
            DECIDED => Self::Decided,
            CAPTURED => Self::Captured,
            _ => Self::Running(Instance(bytes)),
        }
    }
}

impl From<Instance> for Owner {
    fn from(instance: Instance) -> Self {
        Self::from_bytes(instance.0)
    }
}

/// What is stored in place of an instance. No process ever has such an id: theirs are random.
const PARKED: &[u8; 16] = b"awaits.decision.";
const DECIDED: &[u8; 16] = b"awaits.execution";
const CAPTURED: &[u8; 16] = b"awaits.its.scope";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_stored_as_they_always_were() {
        let stored = [
            (Owner::Parked, *b"awaits.decision."),
            (Owner::Decided, *b"awaits.execution"),
            (Owner::Captured, *b"awaits.its.scope"),
            (Owner::Running(Instance([7; 16])), [7; 16]),
            (Owner::Running(Instance(*b"awaits.something")), *b"awaits.something"),
        ];
        for (owner, bytes) in stored {
            assert_eq!((owner.to_bytes(), Owner::from_bytes(bytes)), (bytes, owner));
            assert_eq!(Owner::from(Instance(bytes)), owner);
            assert_eq!(owner.is_nobody(), Owner::NOBODY.contains(&owner));
        }
        assert_eq!(Owner::NOBODY.map(Owner::to_bytes), [*PARKED, *DECIDED, *CAPTURED]);
    }
}
