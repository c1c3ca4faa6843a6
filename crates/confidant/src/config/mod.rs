//! Settings: what an operator chose, checked and turned into the types that the rest works with.
//!
//! A section is a struct in a file of its own, with its defaults. [`load`] lays the sources over one another: the
//! defaults, the file, `CONFIDANT_SECTION__KEY` in the environment, the names that older systems used, and flags. A `.env` beside
//! the file counts as environment, below that of the process.
//! This is the only place that reads the environment. Secrets are not settings: they are in [`Secrets`] and come from
//! the environment or from files it names, never from `confidant.toml` and never from a flag.

mod aspects;
mod bus;
mod channels;
mod checkpoint;
mod concepts;
mod environment;
mod history;
mod keyring;
mod keys;
mod layers;
mod log;
mod memory;
mod model;
mod models;
mod processing;
mod room_context;
mod seconds;
mod secrets;
mod server;
mod sources;
mod store;
mod tenant;
mod tools;
mod turn;
mod web;

use std::path::PathBuf;

use confidant_engine::Settings;
use confidant_engine::aspects::{Aspects, Instructions};
use serde::Deserialize;

pub(crate) use channels::{DiscordSection, MatrixSection};
pub(crate) use concepts::GraphKind;
pub(crate) use environment::Environment;
pub(crate) use keyring::KeyringUrl;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use layers::parse_file;
pub(crate) use layers::{in_working_folder, load};
pub(crate) use log::{LogFormat, LogLevel, LogSection};
pub(crate) use memory::CardBy;
#[cfg(feature = "matrix")]
pub(crate) use secrets::MatrixSecrets;
pub(crate) use secrets::{Secret, Secrets};
pub(crate) use store::StoreKind;
pub(crate) use tenant::DEFAULT_TENANT;
pub(crate) use web::{ChatsPlace, WebSection};

/// The settings, section by section.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) server: server::ServerSection,
    pub(crate) store: store::StoreSection,
    pub(crate) keyring: keyring::KeyringSection,
    pub(crate) bus: bus::BusSection,
    pub(crate) keys: keys::KeysSection,
    pub(crate) checkpoint: checkpoint::CheckpointSection,
    pub(crate) room_context: room_context::RoomContextSection,
    pub(crate) history: history::HistorySection,
    pub(crate) model: model::ModelSection,
    pub(crate) models: models::ModelsSection,
    pub(crate) processing: processing::ProcessingSection,
    pub(crate) turn: turn::TurnSection,
    pub(crate) aspects: aspects::AspectsSection,
    pub(crate) tools: tools::ToolsSection,
    pub(crate) concepts: concepts::ConceptsSection,
    pub(crate) memory: memory::MemorySection,
    pub(crate) channels: channels::ChannelsSection,
    pub(crate) web: web::WebSection,
    pub(crate) log: LogSection,
}

impl Config {
    /// The engine's limits and lifetimes.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            history: self.history.limits(),
            room: self.room_context.limits(),
            lifetimes: self.checkpoint.lifetimes(),
            answer_timeout: self.turn.answer_timeout,
            wait_for_turn: self.turn.wait,
            recovery: self.turn.recovery(),
            tools: self.tools.limits(),
            processing: self.processing.settings(),
            web: self.web.ai_cache(),
            ..Settings::default()
        }
    }

    /// What the system prompt says; some of it comes from instruction files.
    pub(crate) fn aspects(&self, instructions: &Instructions) -> Aspects {
        let in_scope = self.concepts.enabled.then(|| self.concepts.token_budget());
        self.aspects.aspects(instructions, self.processing.injection_warning, in_scope)
    }

    /// The folder of instruction files; it need not be there.
    pub(crate) fn instructions_folder(&self) -> PathBuf {
        self.aspects.instructions.clone().unwrap_or_else(|| self.server.data_dir.join("instructions"))
    }

    /// The folder of `confidant.db`; nothing when data is not in one.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        match &self.store.url {
            StoreKind::Memory | StoreKind::Redis(_) | StoreKind::Postgres(_) => None,
            StoreKind::Sqlite(folder) => Some(folder.clone().unwrap_or_else(|| self.server.data_dir.clone())),
        }
    }

    /// The folder of `keyring.db`; nothing when keys are not in one.
    pub(crate) fn keyring_folder(&self) -> Option<PathBuf> {
        match &self.keyring.url {
            _ if self.store.url == StoreKind::Memory => None,
            Some(KeyringUrl::Sqlite(folder)) => Some(folder.clone()),
            Some(KeyringUrl::Redis(_) | KeyringUrl::Postgres(_)) => None,
            None => self.data_folder(),
        }
    }

    /// Where chats are kept; nothing where there are none.
    pub(crate) fn chats_place(&self) -> Option<ChatsPlace> {
        let own = self.data_folder().unwrap_or_else(|| self.server.data_dir.clone());
        self.web.place(&self.store.url, own)
    }

    /// The folders of what this machine keeps for itself, such as memories, and of its keys; nothing when nothing is kept.
    pub(crate) fn local_folders(&self) -> Option<(PathBuf, PathBuf)> {
        let own = || self.server.data_dir.clone();
        let data = self.data_folder().unwrap_or_else(own);
        let keyring = self.keyring_folder().unwrap_or_else(|| data.clone());
        (self.store.url != StoreKind::Memory).then_some((data, keyring))
    }
}

/// Everything that was chosen, wherever it came from.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) secrets: Secrets,
    /// The file that was read, if there was one.
    pub(crate) file: Option<PathBuf>,
    /// Who is at the keyboard, as the system calls them.
    pub(crate) login: Option<String>,
    /// Where they are at home.
    pub(crate) home: Option<PathBuf>,
    /// Where programs of theirs keep data.
    pub(crate) data_home: Option<PathBuf>,
    /// Where each setting came from.
    pub(crate) sources: sources::Sources,
}

impl Loaded {
    /// The same for a program that others start wherever they happen to be, such as an agent in a project: unless
    /// somebody said where data is, or it is here already, it is in one place for the person.
    pub(crate) fn for_a_person(mut self) -> Self {
        let place = &mut self.config.server.data_dir;
        if *place == Config::default().server.data_dir
            // One that may not be looked at is there: opening it says what is wrong.
            && !place.try_exists().unwrap_or(true)
            && let Some(folder) = &self.data_home
        {
            *place = folder.join("confidant");
        }
        self
    }
}

/// What flags may override.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Whether settings in the folder that we were started in do not count, since it may be anybody's.
    pub(crate) only_named: bool,
}

/// Why the settings cannot be used: which one, where it stands, and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{source_name}: {what}; hint: {hint}")]
pub(crate) struct ConfigError {
    /// The file or variable.
    pub(crate) source_name: String,
    pub(crate) what: String,
    pub(crate) hint: String,
}

/// Every key with its default, in the order of the sections.
pub(crate) const EXAMPLE: &str = include_str!("../../../../confidant.example.toml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_the_default() {
        assert_eq!(toml::from_str::<Config>(EXAMPLE).unwrap(), Config::default());
    }

    #[test]
    fn the_example_names_every_key_and_no_other() {
        // Keys without a default stand in the example as comments, and so do tables that somebody has to name.
        let all = EXAMPLE.lines().map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.split(' ').nth(1) == Some("=") || rest.starts_with('[') => rest,
            _ => line,
        });
        let text = all.collect::<Vec<_>>().join("\n");
        let named: toml::Table = text.parse().unwrap();
        toml::from_str::<Config>(&text).unwrap();
        // Names of models are the operator's own.
        for (section, keys) in named.iter().filter(|(section, _)| *section != "models") {
            let mut expected = layers::known_keys(section);
            let mut found: Vec<String> = keys.as_table().unwrap().keys().cloned().collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "[{section}]");
        }
        // A server has one of two sets of keys, so two of them have all.
        let tools = named["tools"].as_table().unwrap();
        let servers = tools["servers"].as_table().unwrap().values();
        let keys_of = |table: &toml::Value| table.as_table().unwrap().keys().cloned().collect::<Vec<_>>();
        for (mut found, place) in [
            (servers.flat_map(keys_of).collect::<Vec<_>>(), "[tools.servers.x]"),
            (keys_of(&tools["rules"][0]), "[[tools.rules]]"),
            (keys_of(&named["channels"]["discord"][0]), "[[channels.discord]]"),
            (keys_of(&named["channels"]["matrix"]), "[channels.matrix]"),
        ] {
            let mut expected = layers::known(format!("{place}\n\"\\u0000\" = true").parse().unwrap());
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{place}");
        }
        let mut sections: Vec<&String> = named.keys().collect();
        let mut expected = layers::known_sections();
        sections.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sections, expected.iter().collect::<Vec<_>>());
    }
}
