//! What answers may use, told to a device of an account.

use confidant_chat_protocol::limits::MAX_CATALOGUE;
use confidant_chat_protocol::{Body as _, Catalogue, CatalogueEntry, List, RequestCatalogue, Text};

use super::refusals::Answer;
use super::{Answered, Caller, Inner};
use crate::answerer::Offer;

impl Inner {
    pub(crate) async fn catalogue(&self, caller: &Caller, body: &[u8]) -> Answer<Answered> {
        let _: RequestCatalogue = RequestCatalogue::read(body)?;
        let session = self.session(caller).await?;
        let offers = self.answers.answerer()?.offers(&session.account).await?;
        let fits = offers.tools.len().max(offers.focus_modes.len()) <= MAX_CATALOGUE;
        Answered::json(&Catalogue {
            tools: entries(offers.tools)?,
            focus_modes: entries(offers.focus_modes)?,
            whole: offers.whole && fits,
        })
    }
}

fn entries(offers: Vec<Offer>) -> Answer<List<CatalogueEntry, MAX_CATALOGUE>> {
    let entry = |offer: Offer| CatalogueEntry {
        name: Text::cut(&offer.name),
        title: offer.title.as_deref().map(Text::cut),
        about: Text::cut(&offer.about),
    };
    Ok(List::new(offers.into_iter().take(MAX_CATALOGUE).map(entry).collect())?)
}
