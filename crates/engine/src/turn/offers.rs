//! What the turns of a session may use, for whoever wants to switch some of it off.

use super::prepare::{Whose, allowed};
use crate::aspects::{FocusMode, Profile, Situation};
use crate::audience::Audience;
use crate::concepts::InScope;
use crate::ledger::session::Session;
use crate::tools::Tool;

/// What turns may use, before anything is selected for one of them.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// Tools, without those of the engine.
    pub tools: Vec<Tool>,
    /// Focus modes, whatever the turn is about, except those for people of one jurisdiction.
    pub focus_modes: Vec<FocusMode>,
    /// Whether these are all: where others run the turns, their tools are not known here.
    pub whole: bool,
}

/// What the turns of this session may use now, in private.
pub(crate) async fn offers(session: &Session) -> Offers {
    let inner = &session.inner;
    let tools = allowed(inner, &Whose::of(session), Some(session)).await;
    let situation = Situation {
        scope: Some(session.scope()),
        audience: Audience::Private,
        now: inner.ledger.now(),
        prepared: None,
        profile: &Profile::default(),
        focus: None,
        tools: tools.len(),
        concepts: &InScope::default(),
    };
    let focus_modes = inner.staff.instructions.catalogue(situation).focus_modes;
    Offers { tools, focus_modes, whole: inner.gateway.get().is_none() }
}
