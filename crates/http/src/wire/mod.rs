//! The engine's types as this surface reads and sends them.
//!
//! The engine knows nothing of HTTP, so whatever of it a client gets to see has a type here. Handlers send these types,
//! and `/openapi.json` is made from them, so the description cannot say anything else than what is sent. Every `From` takes
//! the engine's type apart by its fields: a new field does not compile until somebody decides here whether clients see it.
//! What is easy to get wrong: the order of the fields is the order of the JSON.

/// Converts the engine's enum of the same name, variant by variant.
macro_rules! mirrors {
    ($module:ident::$name:ident { $($variant:ident),+ $(,)? }) => {
        impl From<confidant_engine::$module::$name> for $name {
            fn from(theirs: confidant_engine::$module::$name) -> Self {
                match theirs {
                    $(confidant_engine::$module::$name::$variant => Self::$variant,)+
                }
            }
        }
    };
}

mod about;
mod approval;
mod audience;
mod concepts;
mod export;
mod metadata;
mod preparation;
mod receipt;
mod turn;

pub(crate) use about::{About, Enrichment};
pub(crate) use approval::{Approval, Decision};
pub(crate) use audience::Audience;
pub(crate) use concepts::{
    ApprovedConcept, Candidate, ConceptsOfTurn, ContextStatus, ScopeReason, ScopeView, Uncertainty,
};
pub(crate) use export::{Export, PersonExport};
pub(crate) use metadata::{Metadata, Question};
pub(crate) use preparation::{Preparation, SafetyAction};
pub(crate) use receipt::Receipt;
pub(crate) use turn::{PastChat, Profile, RoomLine};

/// Converts all items of a list.
fn all<T, U: From<T>>(items: Vec<T>) -> Vec<U> {
    items.into_iter().map(U::from).collect()
}

/// Whether a number is the one that is not sent.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
