//! Putting the findings of several blocks of one conversation together, over those of the local rules.

use super::read::Found;
use super::tidy::{MOST_FOCUS_MODES, MOST_ICONS, MOST_SETTINGS, MOST_SKILLS, MOST_TAGS};
use super::{Harm, Prepared, PreparedBy};

/// One finding out of those of all blocks, oldest first, and of the local rules, which fill what is missing. The rules
/// of merging stand in the module's documentation.
#[must_use]
pub fn merge(found: Vec<Option<Found>>, fallback: Prepared) -> Prepared {
    let found: Vec<Found> = found.into_iter().flatten().collect();
    if found.is_empty() {
        return fallback;
    }
    let mut merged = fallback;
    merged.by = PreparedBy::Model;
    for (at, harm) in Harm::ALL.into_iter().enumerate() {
        let score = merged.harm.get_mut(harm);
        *score = highest(found.iter().filter_map(|found| found.harm[at]), *score);
    }
    let chances = found.iter().filter_map(|found| found.prompt_injection_chance);
    merged.prompt_injection_chance = highest(chances, merged.prompt_injection_chance);
    if let Some(language) = found.iter().rev().find_map(|found| found.language_code.clone()) {
        merged.language_code = language;
    }
    if let Some(category) = found.iter().rev().find_map(|found| found.category.clone()) {
        merged.category = category;
    }
    if let Some((model, reason)) = found.iter().rev().find_map(|found| found.model.clone()) {
        // A reason belongs to its model: that of the rules speaks for another one.
        if let Some(reason) = reason {
            merged.selection_reason = reason;
        } else if model != merged.selected_model {
            merged.selection_reason = NO_REASON.to_owned();
        }
        merged.selected_model = model;
    }
    union(&mut merged.tags, &found, |found| found.tags.as_deref(), MOST_TAGS);
    union(&mut merged.relevant_app_skills, &found, |found| found.skills.as_deref(), MOST_SKILLS);
    union(
        &mut merged.relevant_app_focus_modes,
        &found,
        |found| found.focus_modes.as_deref(),
        MOST_FOCUS_MODES,
    );
    let settings = &mut merged.relevant_app_settings_and_memories;
    union(settings, &found, |found| found.settings.as_deref(), MOST_SETTINGS);
    if let Some(title) = found.iter().find_map(|found| found.title.clone()) {
        merged.title = Some(title);
    }
    union(&mut merged.icon_names, &found, |found| found.icon_names.as_deref(), MOST_ICONS);
    merged
}

/// The highest score of the blocks, and no less than what the rules leave no doubt about.
fn highest(scores: impl Iterator<Item = f32>, rules: f32) -> f32 {
    scores.reduce(f32::max).map_or(rules, |score| score.max(rules - BENEFIT))
}

/// What all blocks name, those of the newest block first, at most `most`; what the rules found if no block says.
fn union(merged: &mut Vec<String>, found: &[Found], list: impl Fn(&Found) -> Option<&[String]>, most: usize) {
    let lists: Vec<&[String]> = found.iter().rev().filter_map(&list).collect();
    if lists.is_empty() {
        return;
    }
    merged.clear();
    for name in lists.into_iter().flatten() {
        if merged.len() < most && !merged.iter().any(|known| known.to_lowercase() == name.to_lowercase()) {
            merged.push(name.clone());
        }
    }
}

/// How far a model may go below the rules: it knows better what a figure of speech is, but a text that talks it into
/// zeros does not make a clear sign go away.
const BENEFIT: f32 = 4.0;

const NO_REASON: &str = "Chosen by the preparing model, which gave no reason.";

#[cfg(test)]
mod tests;
