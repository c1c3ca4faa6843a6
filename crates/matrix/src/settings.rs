//! What an operator says of the account.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use crate::people::People;

/// The account.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A word for logs and `/readyz`.
    pub label: String,
    /// Where its server is, such as `https://matrix.example.org`.
    pub homeserver: String,
    /// Its name there: `bot` or `@bot:example.org`. With an access token it may be missing.
    pub user: Option<String>,
    /// What it signs in with.
    pub credential: Option<Credential>,
    /// What opens its key backup.
    pub recovery_key: Option<SecretString>,
    /// Who may talk to it, and invite it.
    pub allowed: People,
    /// The only rooms that it listens in, by id or alias; all that it was invited to if empty.
    pub allowed_rooms: Vec<String>,
    /// Whether notices, by which bots speak, are answered.
    pub listen_to_bots: bool,
    /// What a message may begin with to be for the agent.
    pub prefix: Option<String>,
    /// Whether questions in a room's main timeline are answered in a thread of their own.
    pub reply_in_thread: bool,
    /// Whether a reaction to a question for an approval is an answer to it.
    pub allow_reactions: bool,
    /// Where the SDK keeps keys and room states; in memory if missing.
    pub folder: Option<PathBuf>,
    /// How many lines of a room are read.
    pub room_lines: usize,
    /// How old these may be.
    pub room_max_age: Option<Duration>,
    /// How many events are worked on side by side.
    pub concurrency: usize,
}

/// What an account signs in with.
#[derive(Clone, Debug)]
pub enum Credential {
    /// Its password.
    Password(SecretString),
    /// A token that somebody made for it.
    AccessToken(SecretString),
}

/// Why the account cannot be used. Quotes no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No address.
    #[error(
        "channels.matrix.homeserver is empty; hint: give the server's address, such as https://matrix.example.org"
    )]
    NoHomeserver,
    /// Not an address that can be used.
    #[error(
        "channels.matrix.homeserver cannot be used; hint: give https:// and a host, without a path; http:// \
         only on this machine, since the password is sent there"
    )]
    BadHomeserver,
    /// No name.
    #[error("channels.matrix.user is empty; hint: give the account's name, such as bot or @bot:example.org")]
    NoUser,
    /// A name that nobody can have.
    #[error("channels.matrix.user is not a Matrix name; hint: write bot or @bot:example.org")]
    BadUser,
    /// Something that is neither a room's id nor an alias.
    #[error(
        "channels.matrix.allowed_rooms has an entry that is not a room; hint: write ids (!abc:example.org) \
         or aliases (#name:example.org)"
    )]
    BadRoom,
    /// An empty password or token.
    #[error("the Matrix {0} is empty; hint: set it, or remove it")]
    Empty(&'static str),
}

impl Settings {
    /// Checks everything that can be checked without asking the server.
    pub(crate) fn checked(&self) -> Result<(), SettingsError> {
        address(self.homeserver.trim())?;
        match self.user.as_deref().map(str::trim) {
            None | Some("") if matches!(self.credential, Some(Credential::AccessToken(_))) => {}
            None | Some("") => return Err(SettingsError::NoUser),
            Some(user) if !is_name(user) => return Err(SettingsError::BadUser),
            Some(_) => {}
        }
        let sigil = |room: &String| room.trim().starts_with(['!', '#']);
        if !self.allowed_rooms.iter().all(sigil) {
            return Err(SettingsError::BadRoom);
        }
        match &self.credential {
            Some(Credential::Password(secret)) if secret.expose_secret().is_empty() => {
                Err(SettingsError::Empty("password"))
            }
            Some(Credential::AccessToken(secret)) if secret.expose_secret().trim().is_empty() => {
                Err(SettingsError::Empty("access_token"))
            }
            _ => Ok(()),
        }
    }

    /// Whether this id is the account's, as far as the settings tell.
    pub(crate) fn is_user(&self, id: &str) -> bool {
        match self.user.as_deref().map(str::trim) {
            None | Some("") => true,
            Some(user) if user.starts_with('@') && user.contains(':') => user == id,
            Some(user) => {
                let localpart = id.trim_start_matches('@').split(':').next().unwrap_or_default();
                user.trim_start_matches('@') == localpart
            }
        }
    }
}

fn is_name(user: &str) -> bool {
    let (localpart, server) = match user.strip_prefix('@') {
        Some(full) => match full.split_once(':') {
            Some((localpart, server)) => (localpart, Some(server)),
            None => (full, None),
        },
        None => (user, None),
    };
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == ':';
    !localpart.is_empty() && !localpart.contains(odd) && server.is_none_or(|server| !server.is_empty())
}

fn address(url: &str) -> Result<(), SettingsError> {
    if url.is_empty() {
        return Err(SettingsError::NoHomeserver);
    }
    let (host, plain) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(host), _) => (host, false),
        (None, Some(host)) => (host, true),
        (None, None) => return Err(SettingsError::BadHomeserver),
    };
    let host = host.trim_end_matches('/');
    let odd = |c: char| !(c.is_ascii_alphanumeric() || ".:-[]".contains(c));
    if host.is_empty() || host.contains(odd) {
        return Err(SettingsError::BadHomeserver);
    }
    let name = if host.starts_with('[') { host.split(']').next() } else { host.split(':').next() };
    let here = matches!(name, Some("localhost" | "127.0.0.1" | "[::1"));
    if plain && !here { Err(SettingsError::BadHomeserver) } else { Ok(()) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn settings(homeserver: &str, user: Option<&str>) -> Settings {
        Settings {
            label: "bot".to_owned(),
            homeserver: homeserver.to_owned(),
            user: user.map(str::to_owned),
            credential: Some(Credential::Password(SecretString::from("hush"))),
            recovery_key: None,
            allowed: People::default(),
            allowed_rooms: Vec::new(),
            listen_to_bots: false,
            prefix: None,
            reply_in_thread: false,
            allow_reactions: false,
            folder: None,
            room_lines: 20,
            room_max_age: None,
            concurrency: 8,
        }
    }

    #[test]
    fn what_is_wrong_is_said_before_the_server_is_asked() {
        for url in
            ["https://matrix.org", "https://m.example:8448/", "http://127.0.0.1:8008", "http://[::1]:1"]
        {
            settings(url, Some("bot")).checked().unwrap();
        }
        for url in
            ["", "matrix.org", "http://matrix.org", "http://127.0.0.1.evil.org", "https://a@b", "https://a/b"]
        {
            let error = settings(url, Some("bot")).checked().unwrap_err().to_string();
            assert!(error.contains("; hint: "), "{error}");
        }
        for (user, good) in [
            (Some("@bot:x"), true),
            (Some("@bot"), true),
            (Some("a b"), false),
            (Some("bot:x"), false),
            (Some("@:x"), false),
            (Some(" "), false),
            (None, false),
        ] {
            assert_eq!(settings("https://x", user).checked().is_ok(), good, "{user:?}");
        }
        let mut token = settings("https://x", None);
        token.credential = Some(Credential::AccessToken(SecretString::from("t")));
        token.checked().unwrap();
        token.allowed_rooms = vec!["general".to_owned()];
        assert_eq!(token.checked(), Err(SettingsError::BadRoom));
        assert!(!format!("{:?}", settings("https://x", None)).contains("hush"));
    }

    #[test]
    fn a_name_may_be_short_or_whole() {
        let is = |user: Option<&str>, id| settings("https://x", user).is_user(id);
        assert!(is(Some("bot"), "@bot:x") && is(Some("@bot"), "@bot:x") && is(None, "@any:x"));
        assert!(
            is(Some("@bot:x"), "@bot:x") && !is(Some("@bot:x"), "@bot:y") && !is(Some("bot"), "@robot:x")
        );
    }
}
