//! Whether the account has what it needs, in words that say what to do. Signs in to see whether it can, and out again; where a
//! session is kept, asks with it, too.

use confidant_channel::{Finding, Trouble, Vault};
use confidant_display::Hinted as _;

use crate::settings::Settings;
use crate::sign_in::Asked;
use crate::{identity, sign_in, trouble};

pub(crate) async fn check(settings: &Settings, vault: Option<&Vault>) -> Vec<Finding> {
    let client = match sign_in::asking(settings).await {
        Ok(client) => client,
        Err(trouble) => return vec![bad(&trouble)],
    };
    let mut findings = Vec::new();
    match client.server_versions().await {
        Ok(_) => findings.push(Finding::good("the Matrix server answers")),
        Err(error) => return vec![bad(&trouble::of_http(&error))],
    }
    match sign_in::try_out(settings, &client).await {
        Ok(Asked::Nothing) => {}
        Ok(Asked::Known) => findings.push(Finding::good("the Matrix server knows the account")),
        Err(trouble) => findings.push(bad(&trouble)),
    }
    findings.extend(stored(settings, vault).await);
    findings.push(if settings.allowed.is_nobody() {
        Finding::bad(
            "nobody may talk to the account: channels.matrix.allowed_users is empty",
            "list Matrix ids, \"*:example.org\" for a server, or \"*\" for everyone",
        )
    } else {
        Finding::good("channels.matrix.allowed_users is set")
    });
    findings
}

/// The session that is kept from an earlier start, if there is one, and what people see of its device.
async fn stored(settings: &Settings, vault: Option<&Vault>) -> Vec<Finding> {
    let kept = match vault {
        Some(vault) => sign_in::stored(settings, vault).await,
        None => Ok(None),
    };
    match kept {
        Ok(Some((asking, user, device))) => {
            let vouched = identity::vouched(&asking, &user, &device).await;
            let vouched = vouched.map(|()| Finding::good("this machine's device is verified by the account"));
            let known = Finding::good("the Matrix server accepts the stored session");
            vec![known, vouched.unwrap_or_else(|trouble| bad(&trouble))]
        }
        Ok(None) if settings.credential.is_none() => vec![bad(&sign_in::no_way_in())],
        Ok(None) => Vec::new(),
        Err(trouble) => vec![bad(&trouble)],
    }
}

fn bad(trouble: &Trouble) -> Finding {
    let (what, hint) = trouble.what_and_hint("try again");
    Finding::bad(what, hint)
}
