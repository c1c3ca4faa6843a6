//! `[web]`: chats that only their owner can open: where they are kept, at which addresses, and who may register.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use confidant_chat_format::Origin;
use confidant_chats::service::{Registration, Settings};
use confidant_chats_http::Proxy;
use confidant_engine::storage::PostgresAddress;
use confidant_engine::{Keep, TenantId, WebCache};
use serde::{Deserialize, Deserializer};

use super::seconds;
use super::store::StoreKind;
use super::tenant::DEFAULT_TENANT;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WebSection {
    /// Without one: where it can be.
    enabled: Option<bool>,
    /// Without one, where the store is, if that is SQL; else chats.db.
    url: Option<WebUrl>,
    tenant: String,
    /// Without one, those of this machine.
    origins: Vec<String>,
    registration: Who,
    session_days: u32,
    /// Whose `X-Forwarded-For` is believed.
    #[serde(deserialize_with = "proxies")]
    pub(crate) proxies: Vec<Proxy>,
    /// Chats that are read ahead for a device; 0 is none.
    pub(crate) sync_cache_chats: usize,
    #[serde(rename = "sync_cache_seconds", deserialize_with = "seconds::some")]
    pub(crate) sync_cache: Duration,
    /// Where words of chats are kept for the next answer.
    ai_cache: AiCache,
    /// Chats of an account that a model has at hand, and for how long after their last use.
    ai_cache_chats: usize,
    #[serde(rename = "ai_cache_seconds", deserialize_with = "seconds::some")]
    ai_cache_lives: Duration,
    /// A folder with the page's files, instead of those in the program.
    pub(crate) page_folder: Option<PathBuf>,
    /// How long an answer waits for what it asked a device for.
    #[serde(rename = "ask_device_seconds", deserialize_with = "seconds::some")]
    asks: Duration,
    /// How long an answer waits for a device to store it, before it goes to the mailbox.
    #[serde(rename = "unstored_seconds", deserialize_with = "seconds::some")]
    unstored: Duration,
}

impl Default for WebSection {
    fn default() -> Self {
        Self {
            enabled: None,
            url: None,
            tenant: DEFAULT_TENANT.to_owned(),
            origins: Vec::new(),
            registration: Who::Invited,
            session_days: 30,
            proxies: Vec::new(),
            sync_cache_chats: 100,
            sync_cache: Duration::from_secs(3600),
            ai_cache: AiCache::Sealed,
            ai_cache_chats: WebCache::default().chats,
            ai_cache_lives: WebCache::default().lives,
            page_folder: None,
            asks: WebCache::default().asks,
            unstored: Duration::from_secs(60),
        }
    }
}

/// Where words of chats are kept for the next answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AiCache {
    Sealed,
    Memory,
}

/// Who may register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Who {
    Closed,
    Invited,
    Open,
}

/// What `web.url` names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum WebUrl {
    /// `chats.db` in a folder; without one, in the data folder.
    Sqlite(Option<PathBuf>),
    /// A PostgreSQL database, with the schema and certificates of the store's section.
    Postgres(Box<PostgresAddress>),
}

impl TryFrom<String> for WebUrl {
    type Error = String;

    // What is not understood is not quoted: an address may hold a password.
    fn try_from(url: String) -> Result<Self, String> {
        match url.split_once(':') {
            Some(("sqlite", "")) => Ok(Self::Sqlite(None)),
            Some(("sqlite", folder)) if !folder.starts_with("//") => {
                Ok(Self::Sqlite(Some(PathBuf::from(folder))))
            }
            Some(("postgres" | "postgresql", _)) => {
                PostgresAddress::parse(&url).map(|address| Self::Postgres(Box::new(address)))
            }
            _ => Err("chats are not kept at such an address; hint: use sqlite:, sqlite:/path/folder or \
                      postgres://host/database, or leave it out to keep them where conversations are"
                .to_owned()),
        }
    }
}

/// Where chats are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChatsPlace {
    /// `chats.db` in this folder.
    Sqlite(PathBuf),
    /// A database.
    Postgres(Box<PostgresAddress>),
}

impl WebSection {
    /// Where chats are kept, beside conversations that are kept in `store`; nothing where nothing is kept, or where there are
    /// none. `own` is this machine's folder.
    pub(super) fn place(&self, store: &StoreKind, own: PathBuf) -> Option<ChatsPlace> {
        match (&self.url, store) {
            _ if self.enabled == Some(false) => None,
            (_, StoreKind::Memory) => None,
            (Some(WebUrl::Postgres(address)), _) => Some(ChatsPlace::Postgres(address.clone())),
            (None, StoreKind::Postgres(address)) => Some(ChatsPlace::Postgres(Box::new(address.clone()))),
            (Some(WebUrl::Sqlite(Some(folder))), _) => Some(ChatsPlace::Sqlite(folder.clone())),
            (Some(WebUrl::Sqlite(None)) | None, _) => Some(ChatsPlace::Sqlite(own)),
        }
    }

    /// Whether chats are at a place of their own, wherever conversations are.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.url, Some(WebUrl::Postgres(_) | WebUrl::Sqlite(Some(_))))
    }

    /// Whether chats are in chats.db of the data folder, wherever conversations are.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_a_file(&self) -> bool {
        self.url == Some(WebUrl::Sqlite(None))
    }

    /// Whether somebody asked for chats, so that a server that cannot have them says so and does not start.
    pub(crate) fn is_wanted(&self) -> bool {
        self.enabled == Some(true) || self.url.is_some()
    }

    /// No chats, whatever was said.
    pub(crate) fn turn_off(&mut self) {
        self.enabled = Some(false);
    }

    /// Whose accounts are made here.
    pub(crate) fn tenant(&self) -> anyhow::Result<TenantId> {
        TenantId::new(&self.tenant).context("web.tenant")
    }

    /// Where words of chats are kept for the next answer.
    pub(crate) fn kept_where(&self) -> Keep {
        match self.ai_cache {
            AiCache::Sealed => Keep::Stored,
            AiCache::Memory => Keep::Memory,
        }
    }

    /// How many chats of an account a model has at hand, and for how long.
    pub(crate) fn ai_cache(&self) -> WebCache {
        WebCache { lives: self.ai_cache_lives, chats: self.ai_cache_chats, asks: self.asks }
    }

    /// What the service of chats needs to know, on a server that listens here.
    pub(crate) fn settings(&self, listen: SocketAddr) -> anyhow::Result<Settings> {
        let origins = self.origins(listen)?;
        let first = origins.first().cloned().ok_or_else(|| anyhow!("there is no origin"))?;
        Ok(Settings {
            origins,
            registration: match self.registration {
                Who::Closed => Registration::Closed,
                Who::Invited => Registration::Invited,
                Who::Open => Registration::Open,
            },
            session: Duration::from_secs(u64::from(self.session_days.max(1)) * 86_400),
            read_ahead: self.sync_cache_chats,
            unstored: self.unstored,
            ..Settings::new(first)
        })
    }

    fn origins(&self, listen: SocketAddr) -> anyhow::Result<Vec<Origin>> {
        if !self.origins.is_empty() {
            return self.origins.iter().map(|origin| parsed(origin)).collect();
        }
        let port = listen.port();
        let mut names = vec![format!("http://localhost:{port}"), format!("http://127.0.0.1:{port}")];
        // By a name that anybody may have chosen, only this machine is asked; its own address is no such name.
        if !listen.ip().is_unspecified() && !listen.ip().is_loopback() || listen.is_ipv6() {
            names.push(format!("http://{listen}"));
        }
        names.iter().map(|origin| parsed(origin)).collect()
    }
}

fn proxies<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Proxy>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}

fn parsed(origin: &str) -> anyhow::Result<Origin> {
    Origin::parse(origin).map_err(|_| {
        anyhow!(
            "web.origins has what is not the address of a site; hint: write it as browsers do, such as \
             https://chat.example.org, without a path"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn chats_are_where_conversations_are_unless_that_is_no_database() {
        let place = |text: &str| config(text).chats_place();
        let folder = |folder: &str| Some(ChatsPlace::Sqlite(folder.into()));
        assert_eq!(place(""), folder("./confidant-data"));
        assert_eq!(place("[store]\nurl = 'sqlite:/data'"), folder("/data"));
        assert_eq!(place("[store]\nurl = 'redis://h'\n[server]\ndata_dir = '/own'"), folder("/own"));
        assert!(matches!(place("[store]\nurl = 'postgres://h/d'"), Some(ChatsPlace::Postgres(_))));
        assert_eq!(place("[store]\nurl = 'postgres://h/d'\n[web]\nurl = 'sqlite:/chats'"), folder("/chats"));
        assert!(matches!(place("[web]\nurl = 'postgres://h/d'"), Some(ChatsPlace::Postgres(_))));
        assert_eq!(place("[store]\nurl = 'memory:'"), None);
        assert_eq!(place("[web]\nenabled = false"), None);
    }

    #[test]
    fn addresses_are_read_or_refused_without_being_quoted() {
        for url in ["redis://hush", "hush", "memory:", "sqlite://hush", "postgres://a@h:hush/d"] {
            let error = WebUrl::try_from(url.to_owned()).unwrap_err();
            assert!(error.contains("; hint: ") && !error.contains("hush"), "{url}: {error}");
        }
    }

    #[test]
    fn proxies_are_addresses_and_networks() {
        let proxies = config("[web]\nproxies = ['10.0.0.1', '172.16.0.0/12', 'fd00::/8']").web.proxies;
        assert_eq!(proxies, ["10.0.0.1", "172.16.0.0/12", "fd00::/8"].map(|text| text.parse().unwrap()));
        let error = toml::from_str::<Config>("[web]\nproxies = ['10.0.0.0/99']").unwrap_err().to_string();
        assert!(error.contains("neither an address nor a network; hint: "), "{error}");
    }

    #[test]
    fn a_server_without_a_name_is_asked_by_its_own_machine() {
        let origins = |text: &str, listen: &str| {
            let origins = config(text).web.settings(listen.parse().unwrap()).unwrap().origins;
            origins.iter().map(|origin| origin.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(origins("", "127.0.0.1:7"), ["http://localhost:7", "http://127.0.0.1:7"]);
        assert_eq!(origins("", "0.0.0.0:7"), ["http://localhost:7", "http://127.0.0.1:7"]);
        assert!(origins("", "[::1]:7").contains(&"http://[::1]:7".to_owned()));
        assert!(origins("", "192.0.2.1:7").contains(&"http://192.0.2.1:7".to_owned()));
        let named = "[web]\norigins = ['https://chat.example.org']";
        assert_eq!(origins(named, "0.0.0.0:7"), ["https://chat.example.org"]);
        let wrong = config("[web]\norigins = ['chat.example.org/x']");
        assert!(wrong.web.settings("127.0.0.1:7".parse().unwrap()).is_err());
    }
}
