//! How many tokens a text has, near enough for a budget.
//!
//! Counts with the `cl100k_base` vocabulary whatever the model is: every provider has its own, and what matters is
//! that a prompt fits. What is easy to get wrong: the tokenizer's regular expression overflows its stack, and then
//! panics, on long runs of white space, and its merging slows down on long words, so it only ever sees short pieces.

use tiktoken_rs::{CoreBPE, cl100k_base_singleton};

/// The tokens of `text`. Marks such as `<|endoftext|>` count as the ordinary text that they are.
#[must_use]
pub fn count(text: &str) -> u32 {
    pieces(text).map(count_piece).fold(0, u32::saturating_add)
}

/// The longest beginning of `text` that has at most `max_tokens` tokens and ends between two characters.
#[must_use]
pub fn truncate_to(text: &str, max_tokens: u32) -> &str {
    let mut left = max_tokens;
    let mut end = 0;
    for piece in pieces(text) {
        let tokens = count_piece(piece);
        if tokens > left {
            return &text[..end + fitting(piece, left)];
        }
        left -= tokens;
        end += piece.len();
    }
    text
}

/// The length of the first `tokens` tokens of `piece`, rounded down to whole characters.
fn fitting(piece: &str, tokens: u32) -> usize {
    let mut ranks = vocabulary().encode_ordinary(piece);
    ranks.truncate(usize::try_from(tokens).unwrap_or(usize::MAX));
    let bytes = vocabulary().decode_bytes(&ranks).map_or(0, |bytes| bytes.len());
    let mut end = piece.floor_char_boundary(bytes);
    // A cut text may have more tokens than the ranks it was cut at, because its end merges differently.
    while end > 0 && count_piece(&piece[..end]) > tokens {
        end = piece.floor_char_boundary(end - 1);
    }
    end
}

fn count_piece(piece: &str) -> u32 {
    u32::try_from(vocabulary().count_ordinary(piece)).unwrap_or(u32::MAX)
}

/// Pieces of at most [`LONGEST_PIECE`] bytes, cut before the last space in reach so that few tokens are split.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let reach = rest.floor_char_boundary(LONGEST_PIECE);
        let space = || rest[..reach].rfind(' ').filter(|at| *at > LONGEST_PIECE / 2);
        let end = if reach == rest.len() { reach } else { space().unwrap_or(reach) };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Loaded at the first call and kept: about 24 MB and a twentieth of a second.
fn vocabulary() -> &'static CoreBPE {
    cl100k_base_singleton()
}

/// In bytes; long enough that the cuts between pieces hardly change a count.
const LONGEST_PIECE: usize = 4096;

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_what_the_vocabulary_counts() {
        let prose = "The quick brown fox jumps over the lazy dog. ".repeat(2_000);
        let whole = u32::try_from(vocabulary().count_ordinary(&prose)).unwrap();
        let given = count(&prose);
        assert!(given.abs_diff(whole) * 1_000 <= whole, "{given} {whole}");
        for (text, expected) in [("", 0), ("hello world", 2), (" ", 1), ("日本語", 4), ("👩‍👩‍👧", 10)]
        {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn special_marks_are_ordinary_text() {
        assert!(count("<|endoftext|>") > 3);
        assert_eq!(truncate_to("<|endoftext|>", 1), "<");
    }

    #[test]
    fn long_runs_take_linear_time() {
        let begun = Instant::now();
        for unit in ["a", " ", "!", "\n", "ab", "字", "\u{301}", "🎉", "a ", "\t "] {
            let run = unit.repeat((1 << 20) / unit.len());
            let tokens = count(&run);
            assert!(tokens > 0 && truncate_to(&run, 100).len() < 20_000, "{unit:?}");
        }
        // Some seconds in a debug build; quadratic work would take hours.
        assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_cut_text_fits_and_begins_the_same(text in "(\\PC|[ a-z👩\u{200d}字\n]){0,300}", most in 0_u32..120) {
            let cut = truncate_to(&text, most);
            prop_assert!(text.starts_with(cut));
            prop_assert!(count(cut) <= most, "{} > {most}", count(cut));
            if count(&text) <= most {
                prop_assert_eq!(cut, text.as_str());
            }
        }
    }
}
