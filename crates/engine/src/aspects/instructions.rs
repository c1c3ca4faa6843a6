//! Aspects from a folder of Markdown files, which an operator may change while turns run.
//!
//! A file's front matter says in which slot its text stands and when. Files are read apart from turns: a turn takes
//! the last [`Snapshot`], whatever the disk does meanwhile.

mod file;
mod folder;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::watch;

use self::file::{GENERAL, Instruction};
use self::folder::{Folder, Snapshot};
use super::{Aspect, AspectFailed, Situation, Slot};

/// The instructions of a folder, as they are now. Clones are the same folder; the default is none.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    folder: Mutex<Option<Folder>>,
    now: watch::Sender<Arc<Snapshot>>,
}

/// What the files that may stand in a turn have to offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    /// What a turn may be about; `general` is always the first.
    pub categories: Vec<String>,
    /// Focus modes that can be switched on.
    pub focus_modes: Vec<FocusMode>,
    /// Mates that may answer.
    pub mates: Vec<Mate>,
}

/// A focus mode that can be switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FocusMode {
    /// Its id, such as `web.research`.
    pub id: String,
    /// Its readable name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
}

/// A mate that may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mate {
    /// Their name.
    pub name: String,
    /// What they are good at.
    pub description: Option<String>,
    /// The categories they answer; empty for all that nobody else does.
    pub categories: Vec<String>,
}

/// Something wrong with a file. Its last good version stays in use, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct Fault {
    /// The file's name.
    pub file: String,
    /// What is wrong and what to do, without anything of the file but the name of a key.
    pub what: String,
}

impl Instructions {
    /// Reads a folder; one that is not there has no files yet. Files with faults are left out, see
    /// [`faults`](Self::faults).
    #[must_use]
    pub fn open(folder: PathBuf) -> Self {
        let shared = Shared { folder: Mutex::new(Some(Folder::new(folder))), ..Shared::default() };
        shared.refresh();
        Self { shared: Arc::new(shared) }
    }

    /// Looks at the folder once a second from now on, for as long as somebody has these instructions. Must be called
    /// within a Tokio runtime.
    pub fn watch(&self) {
        tokio::spawn(keep_watching(Arc::downgrade(&self.shared)));
    }

    /// Looks at the folder now. Blocks for as long as the disk takes.
    pub fn refresh(&self) {
        self.shared.refresh();
    }

    /// What is wrong with the files now.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.now().faults.clone()
    }

    /// How many files are in force.
    #[must_use]
    pub fn count(&self) -> usize {
        self.now().files.len()
    }

    /// What may be offered in a turn, now.
    #[must_use]
    pub fn catalogue(&self, situation: Situation<'_>) -> Catalogue {
        let now = self.now();
        let mut catalogue =
            Catalogue { categories: vec![GENERAL.to_owned()], focus_modes: Vec::new(), mates: Vec::new() };
        for file in now.files.iter().filter(|file| file.when.may_hold(&situation)) {
            for category in &file.when.categories {
                if !catalogue.categories.contains(category) {
                    catalogue.categories.push(category.clone());
                }
            }
            let (name, description) = (file.name.clone(), file.description.clone());
            if file.slot == Slot::Mate {
                catalogue.mates.push(Mate { name, description, categories: file.when.categories.clone() });
            } else if file.slot == Slot::Focus {
                let known = |id: &String| catalogue.focus_modes.iter().any(|mode| mode.id == *id);
                let new: Vec<FocusMode> = file
                    .when
                    .focus
                    .iter()
                    .filter(|id| !known(id))
                    .cloned()
                    .map(|id| FocusMode { id, name: name.clone(), description: description.clone() })
                    .collect();
                catalogue.focus_modes.extend(new);
            }
        }
        catalogue
    }

    /// The mate that answers in this turn: one who knows its category, else one for everything.
    #[must_use]
    pub fn mate(&self, situation: Situation<'_>) -> Option<Mate> {
        self.now().mate(&situation).map(|file| Mate {
            name: file.name.clone(),
            description: file.description.clone(),
            categories: file.when.categories.clone(),
        })
    }

    /// The aspect of a slot: what its files say, and `otherwise` unless a file takes its place. One that was chosen
    /// for the turn's category or focus does, and one without conditions; others stand beside it.
    #[must_use]
    pub fn aspect(&self, slot: Slot, otherwise: Option<Arc<dyn Aspect>>) -> Arc<dyn Aspect> {
        Arc::new(InSlot { instructions: self.clone(), slot, otherwise })
    }

    fn now(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.now.borrow())
    }
}

impl Shared {
    fn refresh(&self) {
        let mut folder = self.folder.lock();
        let Some(folder) = folder.as_mut() else { return };
        let (found, before) = (folder.look(), Arc::clone(&self.now.borrow()));
        if found == *before {
            return;
        }
        for fault in found.faults.iter().filter(|fault| !before.faults.contains(fault)) {
            tracing::warn!(
                file = fault.file,
                reason = fault.what,
                "an instruction file has an error; its last good version, if any, stays in use"
            );
        }
        self.now.send_replace(Arc::new(found));
    }
}

async fn keep_watching(shared: Weak<Shared>) {
    let mut ticks = tokio::time::interval(BETWEEN_LOOKS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        if let Err(ended) = tokio::task::spawn_blocking(move || shared.refresh()).await {
            if ended.is_panic() {
                tracing::error!("instruction files are no longer watched; restart to pick up changes");
            }
            return;
        }
    }
}

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

impl Snapshot {
    /// The files that stand in a slot.
    fn standing(&self, slot: Slot, situation: &Situation<'_>) -> Vec<&Instruction> {
        match slot {
            Slot::Mate => self.mate(situation).into_iter().collect(),
            Slot::Apps if situation.tools == 0 => Vec::new(),
            _ => {
                let files = self.files.iter().map(Arc::as_ref);
                files.filter(|file| file.slot == slot && file.when.hold(situation)).collect()
            }
        }
    }

    fn mate(&self, situation: &Situation<'_>) -> Option<&Instruction> {
        let category = file::category(situation);
        let mates = || {
            let files = self.files.iter().map(Arc::as_ref).filter(|file| file.slot == Slot::Mate);
            files.filter(|file| file.when.hold_for_any_category(situation))
        };
        let knows = |file: &&Instruction| file.when.categories.iter().any(|one| one == category);
        mates().find(knows).or_else(|| mates().find(|file| file.when.categories.is_empty()))
    }
}

/// What stands in one slot.
#[derive(Debug)]
struct InSlot {
    instructions: Instructions,
    slot: Slot,
    otherwise: Option<Arc<dyn Aspect>>,
}

#[async_trait]
impl Aspect for InSlot {
    fn slot(&self) -> Slot {
        self.slot
    }

    async fn text(&self, situation: Situation<'_>) -> Result<Option<String>, AspectFailed> {
        let now = self.instructions.now();
        let files = now.standing(self.slot, &situation);
        let mut texts = Vec::new();
        if let Some(otherwise) = &self.otherwise
            && !files.iter().any(|file| file.takes_the_place())
        {
            texts.extend(otherwise.text(situation).await?);
        }
        texts.extend(files.into_iter().map(|file| file.text.clone()));
        Ok((!texts.is_empty()).then(|| texts.join("\n\n")))
    }
}
