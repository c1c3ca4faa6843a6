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
            Trouble::passing("Discord cannot be reached", "check the network; Confidant keeps trying")
        }
        ErrorType::RequestCanceled => Trouble::passing("a request to Discord was cut off", LATER),
        ErrorType::Parsing { .. } => Trouble::passing("Discord answered something unexpected", LATER),
        _ => Trouble::refused("a request to Discord could not be made", "report this with the log"),
    }
}

/// What a failed request means for the one message that it is about. That the token is not known says nothing of the message:
/// that waits until the bot can sign in again.
pub(crate) fn of_message(error: &twilight_http::Error) -> Trouble {
    waiting(of_request(error))
}

fn waiting(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Refused { what, hint } if bad_token() == Trouble::refused(&*what, &*hint) => {
            Trouble::passing(what, hint)
        }
        other => other,
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
        // Unknown channel, guild, message, webhook, interaction; no access; an interaction's own token that has run out.
        (_, 10_003 | 10_004 | 10_008 | 10_015 | 10_062 | 50_001 | 50_027) | (404, _) => Trouble::Gone,
        (401, _) => bad_token(),
        (_, 50_007) => Trouble::refused(
            "the person does not accept direct messages from the bot",
            "they can allow them in the server's privacy settings",
        ),
        (403, _) => Trouble::refused(
            format!("Discord does not let the bot do this (code {code})"),
            "give it View Channels, Send Messages, Send Messages in Threads, Read Message History and Attach Files there",
        ),
        (429, _) => Trouble::passing("Discord limits the bot's requests (rate limit)", LATER),
        (500.., _) => Trouble::passing(format!("Discord has a problem of its own ({status})"), LATER),
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
        // Asked again, Discord says how many.
        Some(4010 | 4011) => Trouble::passing(
            format!(
                "the bot is in too many servers for its number of connections (code {})",
                code.unwrap_or_default()
            ),
            "leave `shards` out to use as many as Discord recommends; Confidant keeps trying",
        ),
        Some(4012) => Trouble::refused(
            format!("the gateway closed the connection permanently (code {})", code.unwrap_or_default()),
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
        "copy a new one from the developer portal (Bot, Reset Token) into bot_token or its file, and start \
         again",
    )
}

const LATER: &str = "nothing to do: Confidant keeps trying";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_not_known_is_no_word_on_a_message() {
        let usual = of_response(401, 0);
        assert!(matches!(usual, Trouble::Refused { .. }));
        let later = waiting(usual.clone());
        assert!(matches!(later, Trouble::Passing { .. }) && later.to_string() == usual.to_string());
        for (status, code) in [(403, 50_013), (403, 50_007), (400, 50_035)] {
            let trouble = waiting(of_response(status, code));
            assert!(matches!(trouble, Trouble::Refused { .. }), "{status} {code}: {trouble:?}");
        }
        for (status, code) in [(404, 10_003), (404, 0), (403, 50_001), (401, 50_027)] {
            assert_eq!(waiting(of_response(status, code)), Trouble::Gone, "{status} {code}");
        }
    }
}
