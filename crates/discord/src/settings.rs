//! What an operator says of one bot.

use confidant_channel::{Allowed, Keeping};
use secrecy::SecretString;

/// One bot.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A word for logs and `/readyz`, such as `bot-1`.
    pub label: String,
    /// The bot's token.
    pub token: SecretString,
    /// The only server that the bot listens in, if it is one; direct messages are heard anyway.
    pub guild_id: Option<String>,
    /// Who may talk to it.
    pub allowed: Allowed,
    /// Whether other bots are answered.
    pub listen_to_bots: bool,
    /// Whether it answers in servers only when it is mentioned or replied to.
    pub mention_only: bool,
    /// How many of a person's messages from before the start are recalled.
    pub load_past_conversations: usize,
    /// Whether conversations are kept.
    pub keeping: Keeping,
    /// What a memory is keyed by.
    pub isolation: Isolation,
    /// Another server's REST address, such as `http://127.0.0.1:8000`.
    pub api_url: Option<String>,
    /// Another server's gateway address, such as `ws://127.0.0.1:8001`.
    pub gateway_url: Option<String>,
    /// How many connections it has; as many as Discord recommends if it is nothing.
    pub shards: Option<std::num::NonZeroU32>,
    /// How many lines of a room are read.
    pub room_lines: usize,
    /// How many events are worked on side by side.
    pub concurrency: usize,
}

/// What a memory is keyed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The person: it follows them from room to room.
    #[default]
    Person,
    /// The person in one channel or thread.
    Place,
}

/// Why a bot cannot be set up. Quotes no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No token.
    #[error("the Discord bot_token is empty; hint: copy it from the bot's page of the developer portal")]
    NoToken,
    /// A token that no header can hold.
    #[error(
        "the Discord bot_token has a character that cannot be in a token; hint: copy it again, without \
         spaces or quotes"
    )]
    BadToken,
    /// Not an id.
    #[error(
        "guild_id is not a Discord id; hint: it is a number, `Copy Server ID` in Discord's developer mode gives it"
    )]
    BadGuild,
    /// Not an address that can be used.
    #[error(
        "{0} cannot be used; hint: give a scheme and a host, https:// or wss://, without a path; http:// and \
         ws:// only on this machine, since the token is sent there"
    )]
    BadAddress(&'static str),
}

/// Where Discord is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) plain: bool,
}

impl Settings {
    /// Checks everything that can be checked without asking Discord.
    pub(crate) fn checked(&self) -> Result<(Option<u64>, Option<Address>), SettingsError> {
        use secrecy::ExposeSecret as _;
        let token = self.token.expose_secret().trim();
        if token.is_empty() {
            return Err(SettingsError::NoToken);
        }
        if !token.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
            return Err(SettingsError::BadToken);
        }
        let guild = match self.guild_id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
            Some(id) => Some(id.parse().ok().filter(|id| *id > 0).ok_or(SettingsError::BadGuild)?),
            None => None,
        };
        let api = self
            .api_url
            .as_deref()
            .map(|url| address(url, "api_url", ["https://", "http://"]))
            .transpose()?;
        if let Some(url) = &self.gateway_url {
            address(url, "gateway_url", ["wss://", "ws://"])?;
        }
        Ok((guild, api))
    }
}

fn address(url: &str, what: &'static str, schemes: [&str; 2]) -> Result<Address, SettingsError> {
    let bad = || SettingsError::BadAddress(what);
    let (host, plain) = match (url.strip_prefix(schemes[0]), url.strip_prefix(schemes[1])) {
        (Some(host), _) => (host, false),
        (None, Some(host)) => (host, true),
        (None, None) => return Err(bad()),
    };
    let host = host.trim_end_matches('/');
    let odd = |c: char| !(c.is_ascii_alphanumeric() || ".:-[]".contains(c));
    if host.is_empty() || host.contains(odd) {
        return Err(bad());
    }
    let name = if host.starts_with('[') { host.split(']').next() } else { host.split(':').next() };
    let here = matches!(name, Some("localhost" | "127.0.0.1" | "[::1"));
    if plain && !here {
        return Err(bad());
    }
    Ok(Address { host: host.to_owned(), plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(token: &str, guild: Option<&str>, api: Option<&str>) -> Settings {
        Settings {
            label: "bot-1".to_owned(),
            token: SecretString::from(token),
            guild_id: guild.map(str::to_owned),
            allowed: Allowed::default(),
            listen_to_bots: false,
            mention_only: false,
            load_past_conversations: 0,
            keeping: Keeping::Conversations,
            isolation: Isolation::Person,
            api_url: api.map(str::to_owned),
            gateway_url: None,
            shards: None,
            room_lines: 20,
            concurrency: 8,
        }
    }

    #[test]
    fn what_is_wrong_is_said_before_discord_is_asked() {
        assert_eq!(settings("t", Some("42"), None).checked().unwrap().0, Some(42));
        for (token, guild, api) in [
            ("", None, None),
            ("a\nb", None, None),
            ("t", Some("my server"), None),
            ("t", Some("0"), None),
            ("t", None, Some("discord.com")),
            ("t", None, Some("http://discord.com")),
            ("t", None, Some("http://127.0.0.1.evil.org:80")),
            ("t", None, Some("http://localhost:1/api")),
            ("t", None, Some("http://user@localhost")),
        ] {
            let error = settings(token, guild, api).checked().unwrap_err().to_string();
            assert!(error.contains("; hint: "), "{error}");
        }
        for api in ["http://127.0.0.1:8000", "http://[::1]:8000/", "https://proxy.example"] {
            settings("t", None, Some(api)).checked().unwrap();
        }
    }
}
