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

/// Loaded at the first call and kept: 24 MB, and up to a tenth of a second on a busy machine.
fn vocabulary() -> &'static CoreBPE {
    cl100k_base_singleton()
}

/// In bytes; long enough that the cuts between pieces hardly change a count.
const LONGEST_PIECE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_the_vocabulary_counts() {
        let prose = "The quick brown fox jumps over the lazy dog. ".repeat(2_000);
        let whole = u32::try_from(vocabulary().count_ordinary(&prose)).unwrap();
        let given = count(&prose);
        assert!(given.abs_diff(whole) * 1_000 <= whole, "{given} {whole}");
        for (text, expected) in [("", 0), ("hello world", 2), (" ", 1), ("日本語", 4), ("👩‍👩‍👧", 13)]
        {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn special_marks_are_ordinary_text() {
        assert!(count("<|endoftext|>") > 3);
    }

    /// Quadratic work would take hours here, and a run of a megabyte would overflow the tokenizer's stack.
    #[test]
    fn long_runs_are_counted() {
        let megabyte = ["a", " "].map(|unit| (unit, 1 << 20));
        let some = ["!", "\n", "ab", "字", "\u{301}", "🎉", "a ", "\t "].map(|unit| (unit, 1 << 16));
        for (unit, length) in megabyte.into_iter().chain(some) {
            assert!(count(&unit.repeat(length / unit.len())) > 0, "{unit:?}");
        }
    }
}
