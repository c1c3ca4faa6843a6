//! What is known about a conversation as a whole: its title, what it is about, its summaries. Part of the sealed log.

use confidant_display::debug_without_content;
use serde::{Deserialize, Serialize};

use crate::audience::Audience;
use crate::clock::Millis;
use crate::turn::Enrichment;

/// What is known about a conversation.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Its title; given once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Icons for it, by their Lucide names; given once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icon_names: Vec<String>,
    /// What it is about; given once, like its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What was made of the last turn that anything was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrichment: Option<Enrichment>,
    /// Whether somebody should look at it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flagged_for_review: bool,
    /// The focus mode that is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Whether it was ended for safety; only forgetting it opens it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub terminated: bool,
}

/// What a turn found out about its conversation; what is not set stays as it was.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) icon_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) flagged_for_review: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) terminated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<FocusChange>,
    /// Where devices keep the conversation: that suggestions, tags and a summary of the turn are to follow, and who can make them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) due: Option<Due>,
    /// That the turn's own harm is in the score that goes with this, before it has an answer: however it goes on, it is not added again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) scored: bool,
}

/// Who can make something of a turn that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Due {
    /// Whoever has the log.
    FromLog,
    /// Only who answered: the turn was given what is not kept, and nothing of that may be in what is made.
    Here,
}

/// What became of the focus mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FocusChange {
    /// This one is on.
    On(String),
    /// None is.
    Off,
}

impl Note {
    /// Whether it says anything.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl About {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn take(&mut self, note: Note) {
        if self.title.is_none() {
            self.title = note.title;
            self.icon_names = note.icon_names;
        }
        self.category = self.category.take().or(note.category);
        self.flagged_for_review |= note.flagged_for_review;
        self.terminated |= note.terminated;
        match note.focus {
            Some(FocusChange::On(focus)) => self.focus = Some(focus),
            Some(FocusChange::Off) => self.focus = None,
            None => {}
        }
    }
}

/// What was made of the last turn of an audience. One for each, since what was made of private words is private.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Made {
    /// Who read the turn that it was made of.
    pub(crate) audience: Audience,
    pub(crate) enrichment: Enrichment,
}

/// The beginning of a conversation in few words, for when all of its words no longer fit a prompt. One for each audience,
/// since what was said in private is summed up in private.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Who may hear it.
    pub(crate) audience: Audience,
    /// It covers the exchanges up to this one, in the order of the log.
    pub(crate) through: u64,
    pub(crate) at: Millis,
    pub(crate) text: String,
    /// The turn with whose answer the client of a chat was told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told_with: Option<String>,
}

debug_without_content!(About, Note, Made, Summary);
