//! How little a token looks like anything a person or a programmer writes.
//!
//! A table of costs, in bits, of each character after the one before it (letters of either case, digits, six
//! signs), counted over the identifiers and words of public source code and documentation. Words cost about four
//! bits a character, names in code about five, random letters and digits seven and more. It does the work that
//! entropy cannot: `springSecurityOauth2AutoconfigureVersion` has the entropy of a key and the cost of a name.
//! Easy to get wrong: hexadecimal and digits cost little for what they are, so they are judged by [`is_hex`] and
//! their length, never by cost alone.

/// Bits per character; 0 for nothing.
pub(crate) fn cost(token: &[u8]) -> f32 {
    if token.is_empty() {
        return 0.0;
    }
    let mut before = BOUNDARY;
    let mut bits = 0u32;
    for &byte in token {
        let class = CLASS[usize::from(byte)];
        bits += u32::from(TABLE[usize::from(before) * SYMBOLS + usize::from(class)]);
        bits += u32::from(class == DIGIT) * TEN_DIGITS;
        before = class;
    }
    bits as f32 / 8.0 / token.len() as f32
}

/// Only hexadecimal digits, of one case.
pub(crate) fn is_hex(token: &[u8]) -> bool {
    token.iter().all(u8::is_ascii_hexdigit)
        && !(token.iter().any(u8::is_ascii_lowercase) && token.iter().any(u8::is_ascii_uppercase))
}

/// Eight, four, four, four and twelve hexadecimal digits.
pub(crate) fn is_uuid(token: &[u8]) -> bool {
    token.len() == 36
        && token.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// What kinds of characters a token has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Make {
    pub(crate) lower: usize,
    pub(crate) upper: usize,
    pub(crate) digits: usize,
    pub(crate) signs: usize,
    /// How many different bytes there are.
    pub(crate) distinct: usize,
    /// The longest run of one byte.
    pub(crate) longest_run: usize,
    /// The longest run in which each byte follows the one before it in the alphabet.
    pub(crate) longest_ladder: usize,
}

impl Make {
    pub(crate) fn of(token: &[u8]) -> Self {
        let mut make = Self::default();
        let mut seen = [false; 256];
        let (mut run, mut ladder, mut before) = (0, 0, 0u8);
        for &byte in token {
            match byte {
                b'a'..=b'z' => make.lower += 1,
                b'A'..=b'Z' => make.upper += 1,
                b'0'..=b'9' => make.digits += 1,
                _ => make.signs += 1,
            }
            make.distinct += usize::from(!std::mem::replace(&mut seen[usize::from(byte)], true));
            run = if byte == before { run + 1 } else { 1 };
            ladder = if byte == before.wrapping_add(1) { ladder + 1 } else { 1 };
            make.longest_run = make.longest_run.max(run);
            make.longest_ladder = make.longest_ladder.max(ladder);
            before = byte;
        }
        make
    }

    pub(crate) fn letters(self) -> usize {
        self.lower + self.upper
    }
}

const SYMBOLS: usize = 61;
const DIGIT: u8 = 52;
const OTHER: u8 = 59;
const BOUNDARY: u8 = 60;
/// Which of ten digits it is: log2(10) bits, in eighths.
const TEN_DIGITS: u32 = 27;
/// Costs in eighths of a bit: row by the symbol before, column by the symbol.
static TABLE: &[u8; SYMBOLS * SYMBOLS] = include_bytes!("../data/bigrams.bin");
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [OTHER; 256];
    let mut at = 0;
    while at < 26 {
        classes[b'a' as usize + at] = at as u8;
        classes[b'A' as usize + at] = 26 + at as u8;
        at += 1;
    }
    at = 0;
    while at < 10 {
        classes[b'0' as usize + at] = DIGIT;
        at += 1;
    }
    let signs = b"_-./+=";
    at = 0;
    while at < signs.len() {
        classes[signs[at] as usize] = 53 + at as u8;
        at += 1;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_names_cost_less_than_keys() {
        for name in ["favorite_character", "GetFederationToken", "springSecurityOauth2AutoconfigureVersion"] {
            assert!(cost(name.as_bytes()) < 5.0, "{name}");
        }
        for key in ["pdpqpz3kg4blkba8", "MBJ37TP02QVZ9T3GTX2Y0DNS6ZA2LBIR", "rljsrljcseqjttv"] {
            assert!(cost(key.as_bytes()) > 7.0, "{key}");
        }
        assert_eq!(cost(b""), 0.0);
    }

    #[test]
    fn the_make_of_a_token_is_counted() {
        let make = Make::of(b"abcXX1--");
        let expected =
            Make { lower: 3, upper: 2, digits: 1, signs: 2, distinct: 6, longest_run: 2, longest_ladder: 3 };
        assert_eq!(make, expected);
    }
}
