//! Refusals that get no record of their own: a flood of them must not fill the audit log.

use std::collections::HashMap;

use confidant_chat_format::AccountId;
use parking_lot::Mutex;

use super::rate::{Bucket, Rate};
use crate::store::Millis;

/// Refusals that are not written down one by one.
#[derive(Debug, Default)]
pub(crate) struct LeftOut(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    /// Full at first.
    bucket: Option<Bucket>,
    accounts: HashMap<AccountId, u64>,
    /// Of accounts that there was no room for.
    others: u64,
}

impl LeftOut {
    /// Whether a refusal gets a record of its own; else it is counted.
    pub(crate) fn admit(&self, account: &AccountId, now: Millis) -> bool {
        let mut counts = self.0.lock();
        if counts.bucket.get_or_insert_with(|| Bucket::full(RECORDS, now)).take(RECORDS, now).is_ok() {
            return true;
        }
        if counts.accounts.len() < ACCOUNTS || counts.accounts.contains_key(account) {
            *counts.accounts.entry(account.clone()).or_default() += 1;
        } else {
            counts.others += 1;
        }
        false
    }

    pub(crate) fn take(&self) -> (HashMap<AccountId, u64>, u64) {
        let mut counts = self.0.lock();
        (std::mem::take(&mut counts.accounts), std::mem::take(&mut counts.others))
    }
}

/// Records of refusals, one by one.
const RECORDS: Rate = Rate { burst: 60, per_second: 1 };
/// Accounts whose other refusals are counted.
const ACCOUNTS: usize = 60;
