//! `[[channels.discord]]`: one bot.

use std::num::NonZeroUsize;
use std::path::PathBuf;

#[cfg(feature = "discord")]
use secrecy::SecretString;
use serde::Deserialize;

use super::token::Token;

/// One bot, with the keys of the requirement and where else its token may come from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DiscordSection {
    /// The bot's token; better in a file.
    pub(crate) bot_token: Token,
    /// A file that only its owner can read, with the token in it.
    pub(crate) bot_token_file: Option<PathBuf>,
    /// The only server that it listens in.
    pub(crate) guild_id: Option<String>,
    /// Who may talk to it, by user id; `*` for everyone.
    pub(crate) allowed_users: Vec<String>,
    /// Whether other bots are answered.
    pub(crate) listen_to_bots: bool,
    /// Whether it answers in servers only when it is mentioned or replied to.
    pub(crate) mention_only: bool,
    /// How many of a person's messages from before the start are recalled.
    pub(crate) load_past_conversations: usize,
    /// Whether conversations are stored at all.
    pub(crate) store_conversations: bool,
    /// What a memory is keyed by.
    pub(crate) isolation: Isolation,
    /// Another server's REST address.
    pub(crate) api_url: Option<String>,
    /// Another server's gateway address.
    pub(crate) gateway_url: Option<String>,
    /// How many connections it has to the gateway; 0 for as many as Discord recommends.
    pub(crate) shards: u32,
    /// How many messages are worked on side by side.
    pub(crate) max_concurrent: NonZeroUsize,
}

/// What a memory is keyed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Isolation {
    #[default]
    Person,
    Place,
}

impl Default for DiscordSection {
    fn default() -> Self {
        Self {
            bot_token: Token::default(),
            bot_token_file: None,
            guild_id: None,
            allowed_users: Vec::new(),
            listen_to_bots: false,
            mention_only: false,
            load_past_conversations: 0,
            store_conversations: true,
            isolation: Isolation::Person,
            api_url: None,
            gateway_url: None,
            shards: 0,
            max_concurrent: MOST,
        }
    }
}

impl DiscordSection {
    /// The token, from where it is.
    #[cfg(feature = "discord")]
    pub(crate) fn token(&self) -> anyhow::Result<SecretString> {
        let token = self.bot_token.or_file(self.bot_token_file.as_deref(), "bot_token")?;
        Ok(token.unwrap_or_default())
    }

    /// The bot, as the channel wants it described. `place` is which one of the bots it is, counted from 1.
    #[cfg(feature = "discord")]
    pub(crate) fn settings(
        &self,
        place: usize,
        room_lines: usize,
    ) -> anyhow::Result<confidant_discord::Settings> {
        Ok(confidant_discord::Settings {
            label: format!("bot-{place}"),
            token: self.token()?,
            guild_id: self.guild_id.clone(),
            allowed: confidant_channel::Allowed::new(&self.allowed_users),
            listen_to_bots: self.listen_to_bots,
            mention_only: self.mention_only,
            load_past_conversations: self.load_past_conversations,
            keeping: if self.store_conversations {
                confidant_channel::Keeping::Conversations
            } else {
                confidant_channel::Keeping::Nothing
            },
            isolation: match self.isolation {
                Isolation::Person => confidant_discord::Isolation::Person,
                Isolation::Place => confidant_discord::Isolation::Place,
            },
            api_url: self.api_url.clone(),
            gateway_url: self.gateway_url.clone(),
            shards: std::num::NonZeroU32::new(self.shards),
            room_lines,
            concurrency: self.max_concurrent.get(),
        })
    }
}

const MOST: NonZeroUsize = NonZeroUsize::new(16).expect("it is not zero");

#[cfg(test)]
#[cfg(feature = "discord")]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn section(toml: &str) -> DiscordSection {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn the_keys_of_the_requirement_are_known_and_the_token_never_prints() {
        let section = section(
            "bot_token = 'hush.hush'\nguild_id = '7'\nallowed_users = ['*']\nlisten_to_bots = true\n\
             mention_only = true\nload_past_conversations = 20",
        );
        assert!(!format!("{section:?}").contains("hush"));
        let settings = section.settings(2, 20).unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
        assert_eq!((settings.label.as_str(), settings.load_past_conversations), ("bot-2", 20));
        assert!(settings.allowed.has("1") && settings.listen_to_bots && settings.mention_only);
    }

    #[test]
    fn a_token_comes_from_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        crate::files::create(&path, b"from.file\n").unwrap();
        let file = format!("bot_token_file = '{}'", path.display());
        assert_eq!(section(&file).token().unwrap().expose_secret(), "from.file");
        let both = section(&format!("bot_token = 'x'\n{file}")).token().unwrap_err();
        assert!(both.to_string().contains("; hint: "));
        let gone = section("bot_token_file = '/nowhere/at/all'").token().unwrap_err();
        assert!(gone.to_string().contains("hint: "), "{gone}");
    }

    #[test]
    fn the_guide_names_every_setting_with_its_default() {
        let guide = include_str!("../../../../../docs/DISCORD.md");
        let rows: Vec<(&str, &str)> = guide
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
            .filter(|(key, _)| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
            .map(|(key, rest)| (key, rest.split(" | ").next().unwrap()))
            .collect();
        let mut named: Vec<&str> = rows.iter().map(|(key, _)| *key).collect();
        let mut known =
            crate::config::layers::known("[[channels.discord]]\n\"\\u0000\" = true".parse().unwrap());
        named.sort_unstable();
        known.sort_unstable();
        assert_eq!(named, known);
        let defaults = rows.iter().filter_map(|(key, default)| {
            Some(format!("{key} = {}\n", default.strip_prefix('`')?.strip_suffix('`')?))
        });
        assert_eq!(section(&defaults.collect::<String>()), DiscordSection::default());
        for text in [guide, include_str!("../../../../../README.md")] {
            for block in text.split("```toml\n").skip(1) {
                let block = block.split("```").next().unwrap();
                toml::from_str::<crate::config::Config>(block).unwrap_or_else(|e| panic!("{e}\n{block}"));
            }
        }
    }
}
