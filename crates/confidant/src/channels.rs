//! From settings to channels that run: their inbox, the channels that are configured, and their life beside the server.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use confidant_channel::{Channel, Health, Hosted, Inbox, Runtime};
use confidant_engine::TenantId;
use confidant_engine::clock::{Clock as _, SystemClock};

use crate::config::DEFAULT_TENANT;
use crate::config::Loaded;
use crate::damage::Part;
use crate::open::Opened;

/// The inbox, if there is or will be something in it. `make` says whether it may be made.
pub(crate) fn inbox(loaded: &Loaded, make: bool) -> anyhow::Result<Option<Inbox>> {
    let wanted = make && !loaded.config.channels.is_empty();
    // On this machine, whatever the store: it belongs to the bots that run here.
    let inbox = match loaded.config.local_folders().map(|(data, _)| data) {
        Some(folder) if wanted || Inbox::is_there(&folder) => Inbox::open(&folder),
        None if wanted => Inbox::in_memory(),
        _ => return Ok(None),
    };
    inbox.map(Some).context("the channels' inbox cannot be opened")
}

/// The channels that are configured, each with its name and, where it cannot be used, the reason.
pub(crate) fn configured(loaded: &Loaded) -> Vec<(String, anyhow::Result<Arc<dyn Channel>>)> {
    let mut all = Vec::new();
    for (at, section) in loaded.config.channels.discord.iter().enumerate() {
        let place = at + 1;
        all.push((format!("discord bot-{place}"), discord(loaded, section, place)));
    }
    if let Some(section) = &loaded.config.channels.matrix {
        all.push(("matrix".to_owned(), matrix(loaded, section)));
    }
    all
}

#[cfg(feature = "matrix")]
fn matrix(loaded: &Loaded, section: &crate::config::MatrixSection) -> anyhow::Result<Arc<dyn Channel>> {
    Ok(Arc::new(confidant_matrix::Matrix::new(section.settings(loaded)?)?))
}

#[cfg(not(feature = "matrix"))]
fn matrix(_: &Loaded, _: &crate::config::MatrixSection) -> anyhow::Result<Arc<dyn Channel>> {
    Err(without_matrix())
}

/// Why there is no Matrix here.
#[cfg(not(feature = "matrix"))]
pub(crate) fn without_matrix() -> anyhow::Error {
    anyhow::anyhow!(
        "this program was built without the Matrix channel; hint: `scripts/run --all` or `cargo build --release -p confidant` builds it, \
         or remove [channels.matrix]"
    )
}

#[cfg(feature = "discord")]
fn discord(
    loaded: &Loaded,
    section: &crate::config::DiscordSection,
    place: usize,
) -> anyhow::Result<Arc<dyn Channel>> {
    let settings = section.settings(place, loaded.config.room_context.limit)?;
    Ok(Arc::new(confidant_discord::Discord::new(settings)?))
}

#[cfg(not(feature = "discord"))]
fn discord(_: &Loaded, _: &crate::config::DiscordSection, _: usize) -> anyhow::Result<Arc<dyn Channel>> {
    Err(anyhow::anyhow!(
        "this program was built without the Discord channel; hint: `scripts/run --all` or `cargo build --release -p confidant` builds it, \
         or remove [[channels.discord]]"
    ))
}

/// The platform and the label of a channel's name.
fn parts_of(name: &str) -> (&'static str, &str) {
    let (platform, label) = name.split_once(' ').unwrap_or((name, ""));
    (if platform == "discord" { "discord" } else { "matrix" }, label)
}

/// Channels that run.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    hosted: Option<Hosted>,
    health: Health,
}

impl Channels {
    /// Starts every channel that can be used, and says which cannot: the others and the server run all the same.
    pub(crate) fn start(loaded: &Loaded, opened: &Opened) -> anyhow::Result<Self> {
        let engine = &opened.engine;
        let Some(inbox) = &opened.inbox else {
            let channels = Self::default();
            // Without an inbox an event could be lost or answered twice, so none is taken.
            if let Err(damage) = opened.require(Part::Channels) {
                for (name, _) in configured(loaded) {
                    let (platform, label) = parts_of(&name);
                    channels.health.unusable(platform, label, damage.to_string(), SystemClock.now());
                }
            }
            return Ok(channels);
        };
        let tenant = TenantId::new(DEFAULT_TENANT)?;
        let runtime = Runtime::new(engine.clone(), inbox.clone(), Arc::new(SystemClock), tenant);
        let health = runtime.health();
        let mut usable = Vec::new();
        for (name, channel) in configured(loaded) {
            match channel {
                Ok(channel) => usable.push(channel),
                Err(error) => {
                    crate::output::note(&format!("{name}: {error:#}"));
                    let (platform, label) = parts_of(&name);
                    health.unusable(platform, label, format!("{error:#}"), SystemClock.now());
                }
            }
        }
        if usable.is_empty() {
            return Ok(Self { hosted: None, health });
        }
        Ok(Self { hosted: Some(runtime.host(usable)), health })
    }

    /// How they are.
    pub(crate) fn health(&self) -> Health {
        self.health.clone()
    }

    /// Whether any runs.
    pub(crate) fn any(&self) -> bool {
        self.hosted.is_some()
    }

    /// Stops them in good order.
    pub(crate) async fn stop(self, grace: Duration) {
        if let Some(hosted) = self.hosted {
            hosted.stop(grace).await;
        }
    }
}
