//! Finds the names of people in text, as well as a small linear model can.
//!
//! Owns the way from text to byte ranges: tokens in `text`, what they show in `features`, weights and the best
//! path in `model`, and in `mend` the few rules that see further than the model does. Names are best effort, and callers must say so.

mod features;
mod handles;
mod mend;
mod model;
mod text;

use std::ops::Range;

use model::{BEGIN, INSIDE, Model};
use text::{Case, Token};

/// Byte ranges of the names of people in `text`: in order, apart, at character boundaries.
///
/// Takes time linear in `text`, and gives the same answer for the same text.
pub(crate) fn find(text: &str) -> Vec<Range<usize>> {
    let model = Model::embedded();
    let tokens = model.tokens(text);
    let mut tags = model.tag(&tokens);
    mend::mend(text, &model, &tokens, &mut tags);
    let mut names: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let mut end = at + 1;
        if tags.get(at) == Some(&BEGIN) {
            while tags.get(end) == Some(&INSIDE) {
                end += 1;
            }
            names.extend(tokens.get(at..end).and_then(trimmed));
        }
        at = end;
    }
    names
}

/// The range of a name without the marks around it; none when no letter is left.
fn trimmed(tokens: &[Token]) -> Option<Range<usize>> {
    let is_name = |token: &&Token| !matches!(token.case, Case::Mark | Case::Break);
    let first = tokens.iter().find(is_name)?;
    let last = tokens.iter().rev().find(is_name)?;
    Some(first.start..last.end)
}

#[cfg(test)]
mod tests;
