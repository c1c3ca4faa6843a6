//! `[memory]`: what is kept of sessions as cards, and where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use confidant_memory::blobs::Blobs;
use confidant_memory::blobs::cascade::{self, CascadeSettings};
use confidant_memory::blobs::local::Local;
use confidant_memory::blobs::object::{self, ObjectSettings, Transport};
use confidant_memory::cost::Prices;
use confidant_memory::import::Root;
use confidant_memory::regular;
use confidant_memory::source::{Adapter, Sources};
use confidant_memory::{Gate, IndexOf};
use confidant_redact::Options;
use serde::Deserialize;

use super::Secrets;
use super::secrets::SECRETS;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MemorySection {
    /// The modes that requests may name.
    modes: Vec<String>,
    /// The one that is meant if a request names none.
    default_mode: String,
    /// Where `live` is.
    live_url: Option<String>,
    /// The server of an S3-compatible store, if it is not the cloud's own.
    live_endpoint: Option<String>,
    /// S3's region.
    live_region: Option<String>,
    /// Whether `live` may be spoken to without TLS.
    live_plain_http: bool,
    /// Cascade's supernode, when `live_url` is the chain's.
    cascade_supernode_url: Option<String>,
    /// The program that signs and pays for Cascade.
    cascade_command: Vec<String>,
    /// The most that an artifact may cost on Cascade.
    cascade_max_fee_ulume: u64,
    /// Who writes cards.
    pub(crate) card: CardBy,
    /// What a search knows of a session that is stored from now on.
    pub(crate) index: IndexOf,
    /// Whether people's names are redacted.
    redact_names: bool,
    /// Words that are always redacted.
    always_redact: Vec<String>,
    /// Values that never are, unless they are critical.
    never_redact: Vec<String>,
    /// Whether agents' usual places in the home folder are looked at, for somebody on this machine.
    search_home: bool,
    /// Files and folders in which sessions are looked for by id.
    session_files: Vec<PathBuf>,
    /// A command that prints the session whose id it is given.
    adapter: Vec<String>,
    /// A file of sessions by id.
    fixtures: Option<PathBuf>,
    /// A file of prices, in the place of the built-in tables.
    prices_file: Option<PathBuf>,
    /// How many tokens a new session is told of earlier ones, by hooks.
    pub(crate) recall_tokens: u32,
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
            modes: vec!["local".to_owned()],
            default_mode: "local".to_owned(),
            live_url: None,
            live_endpoint: None,
            live_region: None,
            live_plain_http: false,
            cascade_supernode_url: None,
            cascade_command: Vec::new(),
            cascade_max_fee_ulume: 1_000_000,
            card: CardBy::Rules,
            index: IndexOf::Session,
            redact_names: true,
            always_redact: Vec::new(),
            never_redact: Vec::new(),
            search_home: true,
            session_files: Vec::new(),
            adapter: Vec::new(),
            fixtures: None,
            prices_file: None,
            recall_tokens: 800,
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

    /// The mode that is meant if a request names none.
    pub(crate) fn default_mode(&self) -> &str {
        seed_name(&self.default_mode)
    }

    /// Where artifacts may go.
    pub(crate) fn stores(
        &self,
        folder: &Path,
        secrets: &Secrets,
    ) -> anyhow::Result<BTreeMap<String, Arc<dyn Blobs>>> {
        let mut stores: BTreeMap<String, Arc<dyn Blobs>> = BTreeMap::new();
        for mode in self.modes.iter().map(|mode| seed_name(mode)) {
            let store: Arc<dyn Blobs> = match mode {
                "mock" => Arc::new(Local::open(folder.join("blobs"))?),
                "live" => self.live(secrets)?,
                _ => {
                    return Err(anyhow!(
                        "memory.modes names an unknown mode; hint: use \"local\", \"live\" or both"
                    ));
                }
            };
            stores.insert(mode.to_owned(), store);
        }
        if !stores.contains_key(self.default_mode()) {
            return Err(anyhow!(
                "memory.default_mode is not among memory.modes; hint: add it there, or choose another"
            ));
        }
        Ok(stores)
    }

    /// The store that `live` means.
    fn live(&self, secrets: &Secrets) -> anyhow::Result<Arc<dyn Blobs>> {
        let Some(url) = &self.live_url else {
            return Err(anyhow!(
                "memory.modes allows live, but memory.live_url is not set; hint: set it, or allow local only"
            ));
        };
        let transport = if self.live_plain_http { Transport::PlainHttpAllowed } else { Transport::TlsOnly };
        if let Some(chain) = url.strip_prefix("cascade+") {
            let Some(supernode) = &self.cascade_supernode_url else {
                return Err(anyhow!(
                    "memory.cascade_supernode_url is not set; hint: live_url is the chain's address only"
                ));
            };
            let registrar = cascade::command(self.cascade_command.clone(), hidden(), REGISTRATION)?;
            let mut settings = CascadeSettings::new(chain, supernode);
            settings.transport = transport;
            settings.max_fee_ulume = self.cascade_max_fee_ulume;
            return Ok(cascade::open(&settings, registrar)?);
        }
        let mut settings = ObjectSettings::new(url, secrets.blobs.for_url(url));
        settings.endpoint.clone_from(&self.live_endpoint);
        settings.region.clone_from(&self.live_region);
        settings.transport = transport;
        Ok(object::open(&settings)?)
    }

    /// What storage costs.
    pub(crate) fn prices(&self) -> anyhow::Result<Prices> {
        let Some(path) = &self.prices_file else { return Ok(Prices::default()) };
        let text = regular::read_linked(path).map_err(|error| {
            anyhow!("memory.prices_file cannot be read ({}); hint: check the path", regular::why(&error))
        })?;
        priced(&text).map_err(|error| {
            let what = error.message().lines().next().unwrap_or_default();
            anyhow!("memory.prices_file is not a table of prices: {what}; hint: docs/MEMORY.md shows one")
        })
    }

    /// Where sessions are looked for.
    pub(crate) fn sources(&self, home: Option<&Path>) -> anyhow::Result<Sources> {
        let mut roots: Vec<Root> = self.session_files.iter().map(Root::path).collect();
        roots.extend(home.filter(|_| self.search_home).map(|home| Root::Home(home.to_owned())));
        let adapter = match self.adapter.as_slice() {
            [] => None,
            argv => Some(Adapter::new(argv.to_vec())?.hiding(hidden())),
        };
        Ok(Sources { roots, adapter, fixtures: self.fixtures.clone() })
    }
}

/// A mode as rows and requests name it: `local` is what the seeds call `mock`.
fn seed_name(mode: &str) -> &str {
    if mode == "local" { "mock" } else { mode }
}

/// The built-in prices, with what this text says in the place of some of them.
fn priced(text: &str) -> Result<Prices, toml::de::Error> {
    let given: toml::Table = toml::from_str(text)?;
    let mut prices = toml::Table::try_from(Prices::default()).map_err(serde::de::Error::custom)?;
    for (name, value) in given {
        match (prices.get_mut(&name), value) {
            (Some(toml::Value::Table(ours)), toml::Value::Table(given)) => {
                // Prices that are not ours are not of the day that ours are of.
                if given.keys().any(|key| key.starts_with("usd_per_1000_") || key == "usd_per_gb_month") {
                    ours.insert("name".to_owned(), "memory.prices_file".into());
                    ours.insert("as_of".to_owned(), "not said".into());
                }
                ours.extend(given);
            }
            (_, value) => drop(prices.insert(name, value)),
        }
    }
    prices.try_into()
}

/// The variables in which keys arrive: programs that we start are not to see them.
fn hidden() -> Vec<String> {
    SECRETS.iter().map(|&secret| secret.to_owned()).collect()
}

/// How long a program may take to register an artifact. Generous: it may have paid by then.
const REGISTRATION: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    fn section(toml: &str) -> MemorySection {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn prices_come_from_a_file_if_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prices.toml");
        let prices = || section(&format!("prices_file = '{}'", path.display())).prices();
        assert!(format!("{:#}", prices().unwrap_err()).contains("cannot be read"));
        std::fs::write(&path, "[cascade]\nusd_per_lume = 0.05\n").unwrap();
        assert_eq!(prices().unwrap().cascade.usd_per_lume, Some(0.05));
        // What is not said is as it was, but is not said to be of the same day.
        std::fs::write(&path, "reads_per_month = 7\n[s3]\nusd_per_gb_month = 0.01\n").unwrap();
        let (ours, theirs) = (Prices::default(), prices().unwrap());
        assert_eq!((theirs.reads_per_month, theirs.s3.usd_per_gb_month), (7, 0.01));
        assert_eq!(theirs.s3.usd_per_1000_reads, ours.s3.usd_per_1000_reads);
        assert_eq!((theirs.s3.as_of.as_str(), theirs.azure), ("not said", ours.azure));
        std::fs::write(&path, "[cascade]\nusd = 1\n").unwrap();
        assert!(format!("{:#}", prices().unwrap_err()).contains("hint: "));
    }

    #[test]
    fn stores_are_those_that_are_allowed_and_described() {
        let folder = tempfile::tempdir().unwrap();
        let open = |toml: &str| section(toml).stores(folder.path(), &Secrets::default());
        assert_eq!(open("").unwrap().keys().collect::<Vec<_>>(), ["mock"]);
        // Both names mean the same, wherever they stand.
        for toml in ["modes = ['mock']", "default_mode = 'mock'", "modes = ['local']\ndefault_mode = 'mock'"]
        {
            assert_eq!(open(toml).unwrap().keys().collect::<Vec<_>>(), ["mock"], "{toml}");
        }
        let live =
            "modes = ['live', 'mock']\nlive_url = 's3://bucket/prefix'\nlive_endpoint = 'http://127.0.0.1:9'";
        assert_eq!(open(live).unwrap().keys().collect::<Vec<_>>(), ["live", "mock"]);
        let cascade = "modes = ['live']\ndefault_mode = 'live'\nlive_url = 'cascade+https://chain.example'\n\
                       cascade_supernode_url = 'https://node.example'\ncascade_command = ['sign']";
        assert_eq!(open(cascade).unwrap().len(), 1);
        for (toml, what) in [
            ("modes = ['live']", "memory.live_url is not set"),
            ("modes = ['elsewhere']", "unknown mode"),
            ("default_mode = 'live'", "not among memory.modes"),
            ("modes = ['live']\nlive_url = 'ftp://x'", "hint"),
            ("modes = ['live']\nlive_url = 'cascade+https://chain.example'", "cascade_supernode_url"),
        ] {
            let error = open(toml).err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(what) && error.contains("hint: "), "{toml}: {error}");
        }
    }
}
