//! Requests to verify the device by comparing emoji. A process has no eyes: a yes without a look would be no verification, so
//! a request is declined, and the log says how the device is verified instead.

use matrix_sdk::Client;
use matrix_sdk::ruma::UserId;
use serde_json::Value;

use crate::people::People;

/// Declines what was asked by messages to this device.
pub(crate) async fn decline_all(client: &Client, allowed: &People, events: impl Iterator<Item = &str>) {
    for event in events {
        let Ok(event) = serde_json::from_str::<Value>(event) else { continue };
        let text = |at: &str| event.pointer(at).and_then(Value::as_str);
        if text("/type") == Some("m.key.verification.request")
            && let (Some(sender), Some(flow)) = (text("/sender"), text("/content/transaction_id"))
        {
            decline(client, allowed, sender, flow).await;
        }
    }
}

/// Declines one request. People who may not talk to the agent are not even answered.
pub(crate) async fn decline(client: &Client, allowed: &People, sender: &str, flow: &str) {
    let is_own = client.user_id().is_some_and(|me| me.as_str() == sender);
    if !is_own && !allowed.has(sender) {
        return;
    }
    let Ok(sender) = UserId::parse(sender) else { return };
    if let Some(request) = client.encryption().get_verification_request(&sender, flow).await
        && !request.is_done()
        && !request.is_cancelled()
        && !request.we_started()
    {
        let _ = request.cancel().await;
        tracing::warn!(
            "somebody asked to verify the Matrix device by comparing emoji, which nobody here can do; hint: \
             docs/MATRIX.md says how to verify the account with its recovery key"
        );
    }
}
