//! Text as tokens, and what is known of each before any training.
//!
//! Owns, with `features`, everything the trainer and the finder must agree on to the bit; the trainer includes both
//! files by path. A change here without remaking `names.bin` silently ruins the model.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// One word, number, mark or line break, with its parts hashed once.
#[derive(Clone, Copy)]
pub(crate) struct Token {
    /// First byte in the text.
    pub(crate) start: usize,
    /// One past the last byte.
    pub(crate) end: usize,
    /// How it is written.
    pub(crate) case: Case,
    /// Lexicon bits: 0-1 first name, 2-3 surname, 4-5 place, 6-7 common word.
    pub(crate) flags: u8,
    /// Which of 255 groups of alike words it is in; 0 for none. Three bits less give a coarser group.
    pub(crate) cluster: u8,
    /// The Brown cluster of the word as it is written here, with a capital or without; 0 for none. Fewer low bits
    /// give a coarser one.
    pub(crate) brown: u16,
    /// The Brown cluster of the word written the other way.
    pub(crate) other: u16,
    /// Bits 0-3: how often people write the word; 4-6: how often with a capital.
    pub(crate) usage: u8,
    /// What touches it on either side.
    pub(crate) glue: u8,
    /// How its line uses capitals.
    pub(crate) regime: u8,
    /// Whether it opens a sentence.
    pub(crate) opens: bool,
    /// Whether its line is a page, talk between people, or a post.
    pub(crate) tone: Tone,
    /// The folded word's hash.
    pub(crate) low: u32,
    /// The shape's hash.
    pub(crate) shape: u32,
    /// Hashes of the last one to four letters and the first two to four.
    pub(crate) affixes: [u32; 7],
}

/// How a token is written, which is most of what tells a name from a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// Letters without a capital.
    Lower,
    /// One capital, then lower case.
    Initial,
    /// Capitals only, two or more.
    Upper,
    /// Capitals inside: `McCoy`, `HashMap`.
    Mixed,
    /// A single capital letter.
    Letter,
    /// Letters of a script without case.
    Caseless,
    /// Digits, or a word with digits or underscores in it.
    Code,
    /// A mark.
    Mark,
    /// A line break.
    Break,
}

/// What kind of writing a line is. Where people talk, the names are those of private persons, and more are meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Prose, documents, code.
    Page,
    /// Someone addresses someone.
    Talk,
    /// A short public message.
    Post,
}

/// What is known of one word before training.
#[derive(Clone, Copy, Default)]
pub(crate) struct Note {
    /// Bits as in [`Token::flags`].
    pub(crate) flags: u8,
    cluster: u8,
    /// Brown clusters with a capital and without.
    capital: u16,
    small: u16,
    /// Bits as in [`Token::usage`].
    pub(crate) usage: u8,
}

/// Bytes of a note.
pub(crate) const NOTE: usize = 7;

impl Note {
    fn read(bytes: [u8; NOTE]) -> Self {
        let [flags, cluster, capital, capital_high, small, small_high, usage] = bytes;
        let [capital, small] = [[capital, capital_high], [small, small_high]].map(u16::from_le_bytes);
        Self { flags, cluster, capital, small, usage }
    }
}

/// What is known of single words before training: sorted hashes and a note for each.
#[derive(Clone, Copy)]
pub(crate) struct Lexicon<'a> {
    hashes: &'a [u8],
    notes: &'a [u8],
}

impl<'a> Lexicon<'a> {
    /// `hashes` are little-endian and ascending; `notes` has [`NOTE`] bytes for each.
    pub(crate) fn new(hashes: &'a [u8], notes: &'a [u8]) -> Self {
        Self { hashes, notes }
    }

    /// What is known of a word; zeros for one unknown.
    pub(crate) fn get(self, hash: u32) -> Note {
        let (mut low, mut high) = (0, self.hashes.len() / 4);
        while low < high {
            let middle = usize::midpoint(low, high);
            let Some(bytes) = self.hashes.get(middle * 4..).and_then(|rest| rest.first_chunk::<4>()) else {
                break;
            };
            match u32::from_le_bytes(*bytes).cmp(&hash) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let note = self.notes.get(middle * NOTE..).and_then(|rest| rest.first_chunk());
                    return note.copied().map(Note::read).unwrap_or_default();
                }
            }
        }
        Note::default()
    }
}

/// Splits `text` into tokens and looks each one up.
pub(crate) fn tokens(text: &str, lexicon: Lexicon<'_>) -> Vec<Token> {
    let mut out = Vec::with_capacity(text.len() / 4);
    let mut chars = text.char_indices().peekable();
    while let Some((start, first)) = chars.next() {
        if first == '\n' {
            if out.last().is_none_or(|token: &Token| token.case != Case::Break) {
                out.push(mark(text, start, start + 1, Case::Break));
            }
        } else if is_word(first) {
            let mut end = start + first.len_utf8();
            while let Some(&(at, next)) = chars.peek() {
                let inside = is_word(next) || (is_apostrophe(next) && joins(text, start, at, next));
                if !inside {
                    break;
                }
                end = at + next.len_utf8();
                chars.next();
            }
            out.push(word(text, start, end, lexicon));
        } else if !first.is_whitespace() {
            out.push(mark(text, start, start + first.len_utf8(), Case::Mark));
        }
    }
    set_regimes(&mut out);
    out
}

/// The lexicon's hash of a word already folded.
pub(crate) const fn hash(word: &str) -> u32 {
    let mut rest = word.as_bytes();
    let mut hash = 0x811C_9DC5_u32;
    while let [byte, tail @ ..] = rest {
        hash = (hash ^ *byte as u32).wrapping_mul(0x0100_0193);
        rest = tail;
    }
    hash ^ (hash >> 13)
}

/// Lower case without accents, so that `Gödel` and `GODEL` are one word.
pub(crate) fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    word.nfd()
        .filter(|letter| canonical_combining_class(*letter) == 0)
        .flat_map(char::to_lowercase)
        .map(|letter| match letter {
            'ø' => 'o',
            'ł' => 'l',
            '’' => '\'',
            other => other,
        })
        .collect()
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric()
        || letter == '_'
        || (letter as u32 >= 0x300 && canonical_combining_class(letter) != 0)
}

fn is_apostrophe(letter: char) -> bool {
    letter == '\'' || letter == '’'
}

/// Whether an apostrophe is inside a name (`O'Brien`) rather than before a clitic (`Anna's`) or a closing quote.
fn joins(text: &str, start: usize, at: usize, apostrophe: char) -> bool {
    let rest = text.get(at + apostrophe.len_utf8()..).unwrap_or_default();
    // The tail is bounded: no word of a name has more, and a longer look would make the scan quadratic.
    let tail: String = rest.chars().take(4).take_while(|letter| letter.is_alphabetic()).collect();
    let clitic = matches!(tail.to_lowercase().as_str(), "s" | "m" | "re" | "ll" | "ve" | "d" | "t");
    at - start <= 4 && tail.chars().count() >= 2 && !clitic
}

fn word(text: &str, start: usize, end: usize, lexicon: Lexicon<'_>) -> Token {
    let body = text.get(start..end).unwrap_or_default();
    let folded = fold(body);
    let case = case_of(body);
    let low = if case == Case::Code && body.bytes().all(|byte| byte.is_ascii_digit()) {
        hash("0") ^ u32::try_from(body.len().min(5)).unwrap_or_default()
    } else {
        hash(&folded)
    };
    let Note { flags, cluster, capital, small, usage } = lexicon.get(hash(&folded));
    let (brown, other) = if case == Case::Lower { (small, capital) } else { (capital, small) };
    let mut affixes = [0; 7];
    for (size, slot) in (1..=4).zip(&mut affixes) {
        let from = folded.char_indices().rev().nth(size - 1).map_or(0, |(at, _)| at);
        *slot = hash(folded.get(from..).unwrap_or_default());
    }
    for (size, slot) in (2..=4).zip(affixes.iter_mut().skip(4)) {
        let until = folded.char_indices().nth(size).map_or(folded.len(), |(at, _)| at);
        *slot = hash(folded.get(..until).unwrap_or_default());
    }
    let glue = glue_of(text, start, end);
    Token {
        start,
        end,
        case,
        flags,
        cluster,
        brown,
        other,
        usage,
        glue,
        regime: 0,
        opens: false,
        tone: Tone::Page,
        low,
        shape: shape_of(body),
        affixes,
    }
}

fn mark(text: &str, start: usize, end: usize, case: Case) -> Token {
    let low = hash(text.get(start..end).unwrap_or_default());
    Token { start, end, case, glue: glue_of(text, start, end), low, shape: low, ..EDGE }
}

fn case_of(body: &str) -> Case {
    let (mut upper, mut lower, mut other, mut code, mut first_upper) = (0, 0, 0, false, false);
    for (index, letter) in body.chars().enumerate() {
        if letter.is_uppercase() {
            upper += 1;
            first_upper |= index == 0;
        } else if letter.is_lowercase() {
            lower += 1;
        } else if letter.is_numeric() || letter == '_' {
            code = true;
        } else if letter.is_alphabetic() {
            other += 1;
        }
    }
    match (upper, lower, other) {
        _ if code => Case::Code,
        (0, 0, _) => Case::Caseless,
        (0, ..) => Case::Lower,
        (1, 0, 0) => Case::Letter,
        (_, 0, _) => Case::Upper,
        (1, ..) if first_upper => Case::Initial,
        _ => Case::Mixed,
    }
}

/// `McCoy` becomes `XxXx`, `d3` becomes `x0`; bounded.
fn shape_of(body: &str) -> u32 {
    let mut shape = String::new();
    for letter in body.chars() {
        let class = match letter {
            _ if letter.is_uppercase() => 'X',
            _ if letter.is_lowercase() => 'x',
            _ if letter.is_numeric() => '0',
            _ if letter.is_alphabetic() => 'c',
            other => other,
        };
        if !shape.ends_with(class) {
            shape.push(class);
        }
        if shape.len() > 6 {
            break;
        }
    }
    let length = body.chars().take(4).count();
    hash(&shape) ^ u32::try_from(length).unwrap_or_default()
}

/// What touches the token on either side: nothing, a letter's mark, or a mark of code.
fn glue_of(text: &str, start: usize, end: usize) -> u8 {
    let class = |letter: Option<char>| match letter {
        None => 0,
        Some(letter) if letter.is_whitespace() => 0,
        Some('.' | ':' | '/' | '\\' | '=' | '<' | '>' | '#' | '$' | '%' | '&' | '~' | '`' | '*' | '|') => 1,
        Some('@') => 2,
        Some('-') => 3,
        Some('\'' | '’' | '"' | '“' | '”') => 4,
        Some('(' | ')' | '[' | ']' | '{' | '}') => 5,
        Some(',' | ';' | '!' | '?') => 6,
        Some(_) => 7,
    };
    let left = class(text.get(..start).and_then(|left| left.chars().next_back()));
    let mut after = text.get(end..).unwrap_or_default().chars();
    let next = after.next();
    let mut right = class(next);
    // A full stop or colon at the end of a sentence is no code.
    if matches!(next, Some('.' | ':')) && after.next().is_none_or(char::is_whitespace) {
        right = 6;
    }
    left * 8 + right
}

/// Notes for each token how its line is written, and whether it opens a sentence.
fn set_regimes(tokens: &mut [Token]) {
    let mut opens = true;
    for token in &mut *tokens {
        token.opens = opens;
        // Quotes, brackets and bullets keep what follows at the start.
        opens = match token.case {
            Case::Break => true,
            Case::Mark => token.low == hash(".") || token.low == hash("!") || token.low == hash("?") || opens,
            _ => false,
        };
    }
    for line in tokens.split_mut(|token| token.case == Case::Break) {
        for piece in line.chunks_mut(64) {
            let count = |case: Case| piece.iter().filter(|token| token.case == case).count();
            let (lower, initial, upper) = (count(Case::Lower), count(Case::Initial), count(Case::Upper));
            let (words, capitals) = (lower + initial + upper, initial + upper);
            let regime = match () {
                () if words == 0 => 0,
                () if capitals == 0 => 1,
                () if upper * 10 >= words * 7 => 2,
                () if lower == 0 && words > 1 => 3,
                () if capitals * 10 >= words * 6 => 4,
                () => 5,
            };
            let tone = tone_of(piece);
            for token in piece {
                token.regime = regime;
                // A small word among capitals is no name, whoever talks.
                token.tone = if token.case == Case::Lower && capitals > 0 { Tone::Page } else { tone };
            }
        }
    }
}

/// Hears in a line's words and marks who is talking to whom.
fn tone_of(line: &[Token]) -> Tone {
    const POST: [u32; 8] = [
        hash("@"),
        hash("rt"),
        hash("lol"),
        hash("omg"),
        hash("u"),
        hash("haha"),
        hash("\u{2026}"),
        hash("tbh"),
    ];
    const TALK: [u32; 14] = [
        hash("i"),
        hash("im"),
        hash("me"),
        hash("my"),
        hash("you"),
        hash("your"),
        hash("we"),
        hash("hi"),
        hash("hey"),
        hash("dear"),
        hash("thanks"),
        hash("?"),
        hash("!"),
        hash("#"),
    ];
    const CODE: [u32; 5] = [hash("{"), hash("}"), hash("="), hash("`"), hash(";")];
    let has = |words: &[u32]| line.iter().any(|token| words.contains(&token.low));
    match () {
        () if has(&CODE) => Tone::Page,
        () if has(&POST) => Tone::Post,
        () if has(&TALK) => Tone::Talk,
        () => Tone::Page,
    }
}

/// Stands for what lies before the first token and after the last.
pub(crate) const EDGE: Token = Token {
    start: 0,
    end: 0,
    case: Case::Break,
    flags: 0,
    cluster: 0,
    brown: 0,
    other: 0,
    usage: 0,
    glue: 0,
    regime: 0,
    opens: false,
    tone: Tone::Page,
    low: 1,
    shape: 1,
    affixes: [0; 7],
};
