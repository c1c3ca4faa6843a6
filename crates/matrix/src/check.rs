//! Whether the account has what it needs, in words that say what to do. Signs in to see whether it can, and out again.

use confidant_channel::{Finding, Trouble};

use crate::settings::Settings;
use crate::{sign_in, trouble};

pub(crate) async fn check(settings: &Settings) -> Vec<Finding> {
    let client = match sign_in::asking(settings).await {
        Ok(client) => client,
        Err(trouble) => return vec![bad(&trouble)],
    };
    let mut findings = Vec::new();
    match client.server_versions().await {
        Ok(_) => findings.push(Finding::good("the Matrix server answers")),
        Err(error) => return vec![bad(&trouble::of_http(&error))],
    }
    findings.push(match sign_in::try_out(settings, &client).await {
        Ok(()) if settings.credential.is_none() => {
            Finding::good("neither password nor token is set: the stored session is used")
        }
        Ok(()) => Finding::good("the Matrix server knows the account"),
        Err(trouble) => bad(&trouble),
    });
    findings.push(if settings.allowed.is_nobody() {
        Finding::bad(
            "nobody may talk to the account: channels.matrix.allowed_users is empty",
            "list Matrix ids, \"*:example.org\" for a server, or \"*\" for everyone",
        )
    } else {
        Finding::good("somebody may talk to the account")
    });
    findings
}

fn bad(trouble: &Trouble) -> Finding {
    let message = trouble.to_string();
    let (what, hint) = message.split_once("; hint: ").unwrap_or((&message, "try again"));
    Finding::bad(what, hint)
}
