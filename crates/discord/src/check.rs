//! Whether a bot has what it needs, in words that say what to do.

use confidant_channel::{Finding, Trouble};
use confidant_display::Hinted as _;
use twilight_http::Client;
use twilight_model::guild::Permissions;
use twilight_model::id::Id;
use twilight_model::id::marker::ApplicationMarker;
use twilight_model::oauth::ApplicationFlags;

use crate::channel::Discord;
use crate::trouble;

/// What Discord says of the bot's application.
pub(crate) struct Application {
    pub(crate) id: Id<ApplicationMarker>,
    /// Whether the Message Content intent is on, if Discord says so.
    pub(crate) reads_messages: Option<bool>,
}

pub(crate) async fn application(client: &Client) -> Result<Application, Trouble> {
    let found = client.current_user_application().await.map_err(|error| trouble::of_request(&error))?;
    let bytes = found.bytes().await.map_err(|_| trouble::unread())?;
    let found: Described = serde_json::from_slice(&bytes).map_err(|_| trouble::unread())?;
    let either =
        ApplicationFlags::GATEWAY_MESSAGE_CONTENT | ApplicationFlags::GATEWAY_MESSAGE_CONTENT_LIMITED;
    let reads_messages = found.flags.map(|flags| flags & either.bits() != 0);
    Ok(Application { id: found.id, reads_messages })
}

/// No more of it than is needed, so that nothing else can make it unreadable.
#[derive(serde::Deserialize)]
struct Described {
    id: Id<ApplicationMarker>,
    #[serde(default)]
    flags: Option<u64>,
}

/// Everything that can be found out without connecting.
pub(crate) async fn check(bot: &Discord) -> Vec<Finding> {
    let mut findings = vec![match bot.client.current_user().await {
        Ok(_) => Finding::good("Discord knows the bot token"),
        Err(error) => return vec![bad(&trouble::of_request(&error))],
    }];
    match application(&bot.client).await {
        Ok(application) => findings.push(intent(&application)),
        Err(trouble) => findings.push(bad(&trouble)),
    }
    findings.extend(rights(bot).await);
    findings
}

/// The same for the log, at the start: what is there, and what to do about what is not.
pub(crate) async fn report(bot: &Discord, application: &Application) {
    let label = &bot.settings.label;
    for finding in std::iter::once(intent(application)).chain(rights(bot).await) {
        match &finding.hint {
            None => tracing::info!(label, "{}", finding.what),
            Some(hint) => tracing::warn!(label, "{}; hint: {hint}", finding.what),
        }
    }
}

fn intent(application: &Application) -> Finding {
    match application.reads_messages {
        Some(true) => Finding::good("the Message Content intent is on"),
        None => Finding::good("the gateway will show whether the Message Content intent is on"),
        Some(false) => bad(&trouble::missing_intent()),
    }
}

/// Who may talk to the bot, and what it may do where.
async fn rights(bot: &Discord) -> Vec<Finding> {
    let mut findings = vec![if bot.settings.allowed.is_nobody() {
        Finding::bad(
            "nobody may talk to the bot: allowed_users is empty",
            "list user ids, or \"*\" for everyone",
        )
    } else {
        Finding::good("allowed_users is set")
    }];
    findings.extend(guilds(bot).await);
    findings
}

async fn guilds(bot: &Discord) -> Vec<Finding> {
    let guilds = match bot.client.current_user_guilds().await {
        Ok(response) => match response.models().await {
            Ok(guilds) => guilds,
            Err(_) => return vec![bad(&trouble::unread())],
        },
        Err(error) => return vec![bad(&trouble::of_request(&error))],
    };
    let meant: Vec<_> = guilds.iter().filter(|guild| bot.guild.is_none_or(|only| guild.id == only)).collect();
    if meant.is_empty() {
        let what = match bot.guild {
            Some(_) => "the bot is not in the server that guild_id names",
            None => "the bot is not in any server; people can talk to it only in direct messages",
        };
        let hint = "invite it: developer portal, OAuth2, URL Generator, scopes bot and applications.commands";
        return vec![if bot.guild.is_some() { Finding::bad(what, hint) } else { Finding::good(what) }];
    }
    let lacking = |wanted: Permissions| {
        let lacks = |has: Permissions| !has.contains(wanted) && !has.contains(Permissions::ADMINISTRATOR);
        meant.iter().filter(|guild| !guild.owner && lacks(guild.permissions)).count()
    };
    let mut findings = Vec::new();
    for (wanted, name) in WANTED {
        let without = lacking(wanted);
        if without > 0 {
            let what = format!("in {without} of {} servers the bot lacks the permission {name}", meant.len());
            findings.push(Finding::bad(what, "grant it to the bot's role in the server's settings"));
        }
    }
    if findings.is_empty() {
        findings
            .push(Finding::good(format!("the bot has the permissions it needs (servers: {})", meant.len())));
    }
    findings
}

fn bad(trouble: &Trouble) -> Finding {
    let (what, hint) = trouble.what_and_hint("try again");
    Finding::bad(what, hint)
}

const WANTED: [(Permissions, &str); 5] = [
    (Permissions::VIEW_CHANNEL, "View Channels"),
    (Permissions::SEND_MESSAGES, "Send Messages"),
    (Permissions::SEND_MESSAGES_IN_THREADS, "Send Messages in Threads"),
    (Permissions::READ_MESSAGE_HISTORY, "Read Message History"),
    (Permissions::ATTACH_FILES, "Attach Files"),
];
