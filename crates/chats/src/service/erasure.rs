//! Erasing an account, in an order that can be taken up again.
//!
//! ```text
//! mark ─▶ sockets closed ─▶ keys destroyed ─▶ rows removed ─▶ pages scrubbed ─▶ receipt
//! ```
//!
//! Once the keys are gone, nobody can sign for the account any more, so an erasure that is cut off there has to be finished
//! without being asked again: the mark says which accounts, and [`super::Service::upkeep`] finishes them. A key that is missing
//! without a mark is a lost key, and nothing is removed for it. What is not
//! scrubbed, because somebody reads or the process was killed, is noted in the store and scrubbed by the next upkeep.

use confidant_chat_format::AccountId;
use confidant_chat_protocol::{Erase, Erased, LogoutReason, RefusedSent, Text};

use super::hub::SessionFilter;
use super::identity::Proven;
use super::refusals::{Answer, not_found};
use super::{Answered, Caller, Cookie, Inner, Service};
use crate::store::{self, StoreError};

impl Service {
    /// Removes an account for somebody who destroys its keys himself, as an operator who erases a person does, or a vault that
    /// erases all there is of one. Waits for nobody: who writes meanwhile finds no account, or is finished first.
    pub async fn remove(&self, account: &AccountId) -> Result<store::Erased, RefusedSent> {
        let this = &*self.inner;
        match this.store.mark_erasing(account).await {
            Err(StoreError::NotFound) => return Ok(store::Erased::default()),
            marked => marked?,
        }
        this.hub.end(account, &SessionFilter::All, LogoutReason::Erased);
        let erased = this.erase_rows(account).await?;
        this.scrub().await;
        Ok(erased)
    }
}

impl Inner {
    pub(crate) async fn erase(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let Proven { known, request, .. } = self.proven::<Erase>(caller, body).await?;
        if request.account != known.account {
            return Err(not_found());
        }
        self.store.mark_erasing(&known.account).await?;
        let (receipt, erased) = self.finish_erasure(&known.account).await?;
        self.scrub().await;
        let receipt = receipt.unwrap_or_else(|| plain_receipt(&erased));
        Ok(Answered::json(&Erased { receipt: Text::new(receipt)? })?.with(Cookie::Clear))
    }

    /// Ends keys and rows: the receipt, and what was removed here.
    pub(crate) async fn finish_erasure(
        &self,
        account: &AccountId,
    ) -> Answer<(Option<String>, store::Erased)> {
        // Nobody of this process writes meanwhile, and whoever waited for it finds no account.
        let room = self.hub.room(account);
        let _turn = room.turn().await;
        self.hub.end(account, &SessionFilter::All, LogoutReason::Erased);
        let receipt = self.vault.destroy_account(account).await?;
        Ok((receipt, self.erase_rows(account).await?))
    }

    async fn erase_rows(&self, account: &AccountId) -> Answer<store::Erased> {
        self.forget_ahead(account, None).await;
        self.answers.drop_turns(account, None);
        match self.store.erase(account).await {
            Err(StoreError::NotFound) => Ok(store::Erased::default()),
            erased => Ok(erased?),
        }
    }

    /// Finishes what was cut off, and scrubs if that is due.
    pub(crate) async fn finish_erasures(&self) -> Answer<()> {
        for account in self.store.erasing().await? {
            self.finish_erasure(&account).await?;
        }
        self.scrub().await;
        Ok(())
    }

    async fn scrub(&self) {
        let scrubbed = match self.store.must_scrub().await {
            Ok(true) => self.store.scrub().await,
            asked => asked.map(drop),
        };
        if let Err(error) = scrubbed {
            tracing::warn!(%error, "chats: traces of an erased account are not scrubbed yet; it is tried again");
        }
    }
}

fn plain_receipt(erased: &store::Erased) -> String {
    let store::Erased { chats, items, devices, sessions, letters, snapshots } = erased;
    format!(
        r#"{{"v":1,"chats":{chats},"items":{items},"devices":{devices},"sessions":{sessions},"letters":{letters},"snapshots":{snapshots}}}"#
    )
}
