//! What lies beside the sessions: the memory with its artifacts, and the channels' inbox.

use std::io::{self, IsTerminal as _};

use confidant_channel::Inbox;
use confidant_chats::service::Service;
use confidant_engine::clock::{Clock as _, SystemClock};
use confidant_memory::{Checked, Damage, Depth, Memory};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Check, MOST_NAMED};
use crate::output::counted;

/// Opens every memory, with as many of their artifacts as `depth` says. At most `most_named` are named of a kind.
pub(super) async fn memories(memory: &Memory, depth: Depth, most_named: usize) -> Vec<Check> {
    if let Err(error) = memory.check().await {
        return vec![Check::fail("memory", &error.to_string())];
    }
    let bar = bar();
    let checked = memory
        .verify_telling(depth, &|done, total| {
            bar.set_length(total);
            bar.set_position(done);
        })
        .await;
    bar.finish_and_clear();
    match checked {
        Ok(checked) => told(&checked, most_named),
        Err(error) => vec![Check::fail("memory", &error.to_string())],
    }
}

fn told(checked: &Checked, most_named: usize) -> Vec<Check> {
    let Checked { refused, unasked, faults, .. } = checked;
    let mut checks = Vec::new();
    if checked.is_sound() {
        checks.push(Check::ok("memory", sound(checked)));
    }
    if !refused.is_empty() {
        checks.push(Check::fail(
            "memory",
            &format!(
                "memories that cannot be opened ({}): {}; hint: restore memory.db and memory-keys.db from a \
                 backup, or forget them",
                refused.len(),
                named(refused, most_named)
            ),
        ));
    }
    checks.extend(lost(checked, most_named));
    for (what, times) in faults {
        checks.push(Check::fail(
            "memory",
            &format!(
                "the memory's files were changed by somebody else: {what} ({times}); hint: restore memory.db \
                 and memory-keys.db from the same backup, or accept the files as they are: confidant doctor \
                 --accept-restore"
            ),
        ));
    }
    if *unasked > 0 {
        let count = counted(*unasked, "artifact");
        checks.push(Check::warn(
            "memory",
            &format!(
                "{count} could not be checked: the store does not answer; hint: run this again when it does"
            ),
        ));
    }
    checks
}

/// How many were opened, where nothing is wrong.
fn sound(checked: &Checked) -> String {
    let Checked { memories, artifacts, left_out, .. } = checked;
    let opens = if *memories == 1 { "1 memory" } else { &format!("{memories} memories") };
    if *left_out == 0 {
        return format!("all open: {opens} and {}", counted(*artifacts, "artifact"));
    }
    let of = artifacts + left_out + checked.unasked;
    format!("all open: {opens} and a sample of {artifacts} of {of} artifacts (--deep opens all)")
}

/// A check for each kind of damage.
fn lost(checked: &Checked, most_named: usize) -> Vec<Check> {
    let kinds = [
        (
            Damage::Missing,
            "artifacts that are missing from their store",
            "restore that store from a backup, store these sessions again, or forget them",
        ),
        (
            Damage::Mismatched,
            "artifacts that do not match their row in memory.db",
            "restore the store and memory.db from the same backup, store these sessions again, or forget them",
        ),
        (
            Damage::Unopenable,
            "artifacts that cannot be opened",
            "restore the store and memory-keys.db from the same backup, store these sessions again, or forget them",
        ),
    ];
    let more = if checked.left_out == 0 { "" } else { "`confidant doctor --deep` looks at all; " };
    let told = kinds.into_iter().filter_map(|(damage, what, hint)| {
        let these: Vec<String> = checked
            .lost
            .iter()
            .filter(|one| one.damage == damage)
            .map(|one| one.cascade_uri.clone())
            .collect();
        let named = named(&these, most_named);
        let told = format!("{what} ({}): {named}; hint: {more}{hint}", these.len());
        (!these.is_empty()).then(|| Check::fail("memory", &told))
    });
    told.collect()
}

fn named(uris: &[String], most: usize) -> String {
    let named = &uris[..uris.len().min(most)];
    let more = if uris.len() > named.len() { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

/// Takes the memory's keys as they are for the truth.
pub(super) async fn accept_restore(memory: &Memory) -> Check {
    match memory.accept_restore().await {
        Ok(changed) => Check::ok(
            "restore",
            format!("accepted for the memory: {} had changed", counted(changed, "register")),
        ),
        Err(error) => Check::fail("restore", &error.to_string()),
    }
}

/// Holds the channels' inbox against what is sealed in it.
pub(super) async fn inbox(inbox: &Inbox) -> Check {
    match inbox.verify(SystemClock.now()).await {
        Ok(faults) if faults.is_empty() => Check::ok("inbox", "channels.db is intact"),
        Ok(faults) => {
            let told: Vec<String> = faults.iter().map(|(what, times)| format!("{what} ({times})")).collect();
            Check::fail(
                "inbox",
                &format!(
                    "channels.db was changed by somebody else: {}; hint: restore it from a backup, or remove \
                     it to start over; unanswered events are then lost",
                    told.join(", ")
                ),
            )
        }
        Err(error) => Check::fail("inbox", &error.to_string()),
    }
}

/// Opens what the server sealed of every account. What people sealed, their devices check.
pub(super) async fn chats(chats: &Service) -> Check {
    match chats.check().await {
        Ok(checked) if checked.refused.is_empty() => {
            Check::ok("chats", format!("all open: {}", counted(checked.accounts, "account")))
        }
        Ok(checked) => {
            let named: Vec<String> =
                checked.refused.iter().take(MOST_NAMED).map(|(tag, why)| format!("{tag} ({why})")).collect();
            let more = if checked.refused.len() > named.len() { ", …" } else { "" };
            Check::fail(
                "chats",
                &format!(
                    "accounts that cannot be used ({}): {}{more}; hint: restore the chats and the keyring from the same \
                     backup; where the chats are older on purpose: confidant doctor --accept-restore",
                    checked.refused.len(),
                    named.join(", ")
                ),
            )
        }
        Err(refused) => Check::fail("chats", &crate::chats::told(&refused)),
    }
}

/// Takes the records of accounts as they are for the newest.
pub(super) async fn accept_chats(chats: &Service) -> Check {
    match chats.accept_restore().await {
        Ok(behind) => Check::ok(
            "restore",
            format!("accepted for chats: {} had been newer before the restore", counted(behind, "account")),
        ),
        Err(refused) => Check::fail("restore", &crate::chats::told(&refused)),
    }
}

/// A bar, on a terminal only.
fn bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} artifacts  {elapsed}, {eta} left");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
