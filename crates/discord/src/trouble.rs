//! Discord's errors in our words. Nothing of a body is passed on: it may quote what was sent.

use confidant_channel::Trouble;
use twilight_http::api_error::ApiError;
use twilight_http::error::ErrorType;

/// What a failed request means.
pub(crate) fn of_request(error: &twilight_http::Error) -> Trouble {
    match error.kind() {
        ErrorType::Unauthorized => bad_token(),
        ErrorType::Response { status, error, .. } => of_response(status.get(), code(error)),
        ErrorType::RequestTimedOut => Trouble::passing("Discord did not answer in time", LATER),
        ErrorType::RequestError => {
            Trouble::passing("Discord cannot be reached", "check the network; it is tried again by itself")
        }
        ErrorType::RequestCanceled => Trouble::passing("a request to Discord was cut off", LATER),
        ErrorType::Parsing { .. } => Trouble::passing("Discord answered something unexpected", LATER),
        _ => Trouble::refused("a request to Discord could not be made", "report this with the log"),
    }
}

/// What it means that an answer of Discord could not be read.
pub(crate) fn unread() -> Trouble {
    Trouble::passing("Discord answered something unexpected", LATER)
}

fn code(error: &ApiError) -> u64 {
    match error {
        ApiError::General(general) => general.code,
        _ => 0,
    }
}

fn of_response(status: u16, code: u64) -> Trouble {
    match (status, code) {
        (401, _) => bad_token(),
        // Unknown channel, guild, message, webhook, interaction; no access.
        (_, 10_003 | 10_004 | 10_008 | 10_015 | 10_062 | 50_001 | 50_027) | (404, _) => Trouble::Gone,
        (_, 50_007) => Trouble::refused(
            "the person takes no direct messages from the bot",
            "they can allow them in the server's privacy settings",
        ),
        (403, _) => Trouble::refused(
            format!("Discord refuses this to the bot (code {code})"),
            "give it View Channels, Send Messages, Send Messages in Threads, Read Message History and Attach Files there",
        ),
        (429, _) => Trouble::passing("Discord asks for fewer requests", LATER),
        (500.., _) => Trouble::passing(format!("Discord has trouble of its own ({status})"), LATER),
        _ => Trouble::refused(
            format!("Discord refused a request ({status}, code {code})"),
            "report this with the log",
        ),
    }
}

/// What the gateway's closing code means.
pub(crate) fn of_close(code: Option<u16>) -> Trouble {
    match code {
        Some(4004) => bad_token(),
        Some(4013 | 4014) => missing_intent(),
        Some(4010..=4012) => Trouble::refused(
            format!("the gateway closed the connection for good (code {})", code.unwrap_or_default()),
            "this version of Confidant is too old for Discord's gateway: upgrade it",
        ),
        Some(code) => Trouble::passing(format!("the gateway closed the connection (code {code})"), LATER),
        None => Trouble::passing("the connection to the gateway was lost", LATER),
    }
}

pub(crate) fn missing_intent() -> Trouble {
    Trouble::refused(
        "the bot may not read messages: the Message Content intent is off",
        "switch it on: developer portal, your application, Bot, Privileged Gateway Intents",
    )
}

pub(crate) fn bad_token() -> Trouble {
    Trouble::refused(
        "Discord does not know this bot token",
        "copy it anew from the developer portal (Bot, Reset Token) into bot_token or its file, and start again",
    )
}

const LATER: &str = "it is tried again by itself";
