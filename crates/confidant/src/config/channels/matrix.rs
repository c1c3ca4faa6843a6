//! `[channels.matrix]`: the account that people talk to on Matrix.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;

use super::token::Token;

/// The account, with where else its secrets may come from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MatrixSection {
    /// Where its server is.
    pub(crate) homeserver: String,
    /// Its name: `bot` or `@bot:example.org`.
    pub(crate) user: Option<String>,
    /// Its password; better in a file.
    pub(crate) password: Token,
    /// A file that only its owner can read, with the password in it.
    pub(crate) password_file: Option<PathBuf>,
    /// A token instead of a password.
    pub(crate) access_token: Token,
    /// A file with the token in it.
    pub(crate) access_token_file: Option<PathBuf>,
    /// What opens the account's key backup.
    pub(crate) recovery_key: Token,
    /// A file with the recovery key in it.
    pub(crate) recovery_key_file: Option<PathBuf>,
    /// Who may talk to it and invite it; `*:server` for a server, `*` for everyone.
    pub(crate) allowed_users: Vec<String>,
    /// The only rooms that it listens in; all that it was invited to if empty.
    pub(crate) allowed_rooms: Vec<String>,
    /// Whether notices, by which bots speak, are answered.
    pub(crate) listen_to_bots: bool,
    /// What a message may begin with to be for the agent.
    pub(crate) prefix: Option<String>,
    /// Whether questions in a room's main timeline are answered in a thread of their own.
    pub(crate) reply_in_thread: bool,
    /// Whether approvals may be given by reactions, which are not encrypted.
    pub(crate) allow_reactions: bool,
    /// How many messages are worked on side by side.
    pub(crate) concurrency: NonZeroUsize,
}

impl Default for MatrixSection {
    fn default() -> Self {
        Self {
            homeserver: String::new(),
            user: None,
            password: Token::default(),
            password_file: None,
            access_token: Token::default(),
            access_token_file: None,
            recovery_key: Token::default(),
            recovery_key_file: None,
            allowed_users: Vec::new(),
            allowed_rooms: Vec::new(),
            listen_to_bots: false,
            prefix: None,
            reply_in_thread: false,
            allow_reactions: false,
            concurrency: MOST,
        }
    }
}

#[cfg(feature = "matrix")]
impl MatrixSection {
    /// What it signs in with; the environment comes first.
    fn credential(
        &self,
        secrets: &crate::config::MatrixSecrets,
    ) -> anyhow::Result<Option<confidant_matrix::Credential>> {
        use confidant_matrix::Credential::{AccessToken, Password};
        match (&secrets.password, &secrets.access_token) {
            (Some(_), Some(_)) => {
                return Err(anyhow::anyhow!(
                    "MATRIX_PASSWORD and MATRIX_ACCESS_TOKEN are both set; hint: keep one of them"
                ));
            }
            (Some(password), None) => return Ok(Some(Password(password.clone()))),
            (None, Some(token)) => return Ok(Some(AccessToken(token.clone()))),
            (None, None) => {}
        }
        let password = self.password.or_file(self.password_file.as_deref(), "password")?;
        let token = self.access_token.or_file(self.access_token_file.as_deref(), "access_token")?;
        match (password, token) {
            (Some(_), Some(_)) => {
                Err(anyhow::anyhow!("password and access_token are both set; hint: keep one of them"))
            }
            (password, token) => Ok(password.map(Password).or(token.map(AccessToken))),
        }
    }

    /// The account, as the channel wants it described.
    pub(crate) fn settings(
        &self,
        loaded: &crate::config::Loaded,
    ) -> anyhow::Result<confidant_matrix::Settings> {
        let (config, secrets) = (&loaded.config, &loaded.secrets.matrix);
        let limits = config.room_context.limits();
        let recovery_key = match &secrets.recovery_key {
            Some(key) => Some(key.clone()),
            None => self.recovery_key.or_file(self.recovery_key_file.as_deref(), "recovery_key")?,
        };
        Ok(confidant_matrix::Settings {
            label: LABEL.to_owned(),
            homeserver: self.homeserver.clone(),
            user: self.user.clone(),
            credential: self.credential(secrets)?,
            recovery_key,
            allowed: confidant_matrix::People::new(&self.allowed_users),
            allowed_rooms: self.allowed_rooms.clone(),
            listen_to_bots: self.listen_to_bots,
            prefix: self.prefix.clone(),
            reply_in_thread: self.reply_in_thread,
            allow_reactions: self.allow_reactions,
            folder: config.local_folders().map(|(data, _)| data.join("matrix")),
            room_lines: limits.lines,
            room_max_age: limits.max_age_seconds.map(std::time::Duration::from_secs),
            concurrency: self.concurrency.get(),
        })
    }
}

/// What logs and `/readyz` call it; what is kept of it goes by this name, too.
#[cfg(feature = "matrix")]
const LABEL: &str = "bot";
const MOST: NonZeroUsize = NonZeroUsize::new(16).expect("it is not zero");

#[cfg(test)]
#[cfg(feature = "matrix")]
mod tests {
    use confidant_matrix::Credential;
    use secrecy::ExposeSecret as _;

    use crate::config::{Environment, Flags, load};

    fn settings<const N: usize>(
        file: &str,
        vars: [(&str, &str); N],
    ) -> anyhow::Result<confidant_matrix::Settings> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, file).unwrap();
        let flags = Flags { config: Some(path), ..Flags::default() };
        let loaded = load(&flags, &Environment::from(vars))?;
        loaded.config.channels.matrix.as_ref().unwrap().settings(&loaded)
    }

    #[test]
    fn the_account_comes_from_the_file_the_environment_or_both() {
        let file = "[channels.matrix]\nhomeserver = 'https://x'\nuser = 'bot'\npassword = 'hush'\n\
                    allowed_users = ['*:x']\n[room_context]\nlimit = 7\nmax_age_seconds = 60";
        let found = settings(file, []).unwrap();
        assert!(!format!("{found:?}").contains("hush"));
        assert!(matches!(&found.credential, Some(Credential::Password(p)) if p.expose_secret() == "hush"));
        assert_eq!((found.room_lines, found.room_max_age.unwrap().as_secs()), (7, 60));
        assert!(found.allowed.has("@a:x") && found.folder.unwrap().ends_with("matrix"));
        let vars = [
            ("MATRIX_USER", "other"),
            ("MATRIX_HOMESERVER", "https://y"),
            ("MATRIX_ACCESS_TOKEN", "token"),
            ("MATRIX_RECOVERY_KEY", "key"),
        ];
        let found = settings(file, vars).unwrap();
        assert_eq!((found.user.as_deref(), found.homeserver.as_str()), (Some("other"), "https://y"));
        assert!(
            matches!(&found.credential, Some(Credential::AccessToken(t)) if t.expose_secret() == "token")
        );
        assert_eq!(found.recovery_key.unwrap().expose_secret(), "key");
        let alone = settings("", vars).unwrap();
        assert_eq!(alone.user.as_deref(), Some("other"), "without a file, too");
        let both = format!("{file}\n[channels.matrix.x]");
        assert!(settings(&both, []).unwrap_err().to_string().contains("hint: "));
        let both = "[channels.matrix]\npassword = 'a'\naccess_token = 'b'";
        assert!(settings(both, []).unwrap_err().to_string().contains("hint: "));
    }

    #[test]
    fn a_name_in_the_environment_alone_is_no_account() {
        let loaded = load(&Flags::default(), &Environment::from([("MATRIX_USER", "me")])).unwrap();
        assert!(loaded.config.channels.is_empty());
    }
}
