//! A new account key for every ring, in one commit.
//!
//! The client opens each ring with the old key, seals every entry under the new one, and sends the digest of all entries
//! with the commit. The server compares it with the digest of what it has; if they differ, nothing changes. Easy to get wrong:
//! giving old keys a new birth. `born` stays, so a chat that an old generation made gets a new key before the next write.

use confidant_seal::Kid;

use crate::bytes::{Digest, count, hash, put};
use crate::error::Refused;
use crate::ids::AccountId;
use crate::ring::{AccountKey, Entry, Ring, RingOf};

/// Seals every entry of a ring under the new account key. Refuses as [`Ring::open`] does: a ring that is not whole is not
/// carried over.
pub fn restage(
    old: &AccountKey,
    new: &AccountKey,
    account: &AccountId,
    of: RingOf<'_>,
    entries: &[Entry],
) -> Result<Vec<Entry>, Refused> {
    let ring = Ring::open(old, account, of, entries)?;
    Ok(ring.iter().map(|held| Entry::seal(new, account, of, held.n(), held.key(), held.born())).collect())
}

/// `H("seal/v1/rings" ‖ u32 count ‖ each, sorted: lp(container) ‖ u32 n ‖ kid)`, over every entry of every ring.
pub fn rings_digest<'a>(entries: impl IntoIterator<Item = (RingOf<'a>, &'a Entry)>) -> Digest {
    let names = entries.into_iter().map(|(of, entry)| (of.container(), entry.n, entry.kid));
    let mut names: Vec<(&str, u32, Kid)> = names.collect();
    names.sort_unstable();
    let mut bytes = Vec::new();
    for (container, n, kid) in &names {
        put(&mut bytes, container);
        bytes.extend_from_slice(&n.to_be_bytes());
        bytes.extend_from_slice(kid.as_bytes());
    }
    hash(&[b"seal/v1/rings", &count(names.len()), &bytes])
}

/// What a server checks before it commits: nobody changed the account meanwhile, and what was staged is everything. Else
/// `conflict`, and nothing changes.
pub fn check_commit(expected: (u32, &Digest), own: (u32, &Digest)) -> Result<(), Refused> {
    if expected == own { Ok(()) } else { Err(Refused::Conflict) }
}
