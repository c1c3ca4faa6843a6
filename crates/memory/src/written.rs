//! Cards that a language model wrote a moment ago.
//!
//! A model does not write the same card twice, and what is stored must be what was shown: whoever stores a session after
//! a dry run or a question to its person gets the card that was made then. In memory only, and not for long.

use std::collections::HashMap;
use std::sync::Arc;

use confidant_display::debug_without_content;
use parking_lot::{Mutex, MutexGuard};

use crate::memory::CardWriter;
use crate::{Card, Owner, Redacted};

/// A writer, and what it wrote.
pub(crate) struct Writer {
    writer: Arc<dyn CardWriter>,
    written: Mutex<Written>,
}

/// By owner and redacted session, as a hash: the card, and the moment until which it holds.
type Written = HashMap<[u8; 32], (i64, Option<Card>)>;

impl Writer {
    pub(crate) fn new(writer: Arc<dyn CardWriter>) -> Self {
        Self { writer, written: Mutex::default() }
    }

    /// The card of this session, the same for some minutes; nothing if the writer made none.
    pub(crate) async fn card(&self, owner: &Owner, session: &Redacted, now: i64) -> Option<Card> {
        let name = name(owner, session);
        if let Some((until, card)) = self.written().get(&name)
            && now < *until
        {
            return card.clone();
        }
        let card = self.writer.write(session).await;
        let mut written = self.written();
        written.retain(|_, (until, _)| now < *until);
        if written.len() >= MOST {
            written.clear();
        }
        // Of two that asked at once both get the same.
        written.entry(name).or_insert((now.saturating_add(LIFETIME), card)).1.clone()
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock()
    }
}

// What it wrote is content.
debug_without_content!(Writer { writer });

fn name(owner: &Owner, session: &Redacted) -> [u8; 32] {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    let owner = owner.canonical();
    context.update(&(owner.len() as u64).to_be_bytes());
    context.update(&owner);
    context.update(session.value().to_string().as_bytes());
    let mut name = [0; 32];
    name.copy_from_slice(context.finish().as_ref());
    name
}

/// A quarter of an hour, in milliseconds: longer than a person is waited for.
const LIFETIME: i64 = 15 * 60 * 1000;
/// More sessions than this are not looked at at once.
const MOST: usize = 256;
