//! Letters of other scripts that pass for Latin ones.
//!
//! `B\u{435}\u{430}rer` reads as "Bearer" and is another word. A letter is taken for the Latin one that it looks like only
//! where Latin letters stand in the same word, or where the word is all such capitals beside a row of dashes, as in the
//! first line of a key: Russian and Greek stay what they are.

/// The word of another script that is being read, and whether it passes for Latin.
#[derive(Debug, Default)]
pub(super) struct Word {
    end: usize,
    disguised: bool,
}

impl Word {
    /// The Latin letter that a character at a place passes for.
    pub(super) fn latin(&mut self, c: char, text: &str, at: usize) -> Option<char> {
        if !matches!(c, '\u{370}'..='\u{52f}') {
            return None;
        }
        if at >= self.end {
            self.read(text, at);
        }
        latin(c).filter(|_| self.disguised)
    }

    /// Reads the word that goes on at a place. Each is read once, so the work is that of the text.
    fn read(&mut self, text: &str, at: usize) {
        let letters = || text[at..].chars().take(LONGEST).take_while(|c| c.is_alphabetic());
        self.end = at + letters().map(char::len_utf8).sum::<usize>().max(1);
        let before = &text.as_bytes()[..at];
        let mixed = before.last().is_some_and(u8::is_ascii_alphabetic) || letters().any(|c| c.is_ascii());
        let beside =
            before.ends_with(b"--") || text.as_bytes()[self.end.min(text.len())..].starts_with(b"--");
        self.disguised = mixed || (beside && letters().all(|c| c.is_uppercase() && latin(c).is_some()));
    }
}

fn latin(c: char) -> Option<char> {
    let at = LOOKALIKES.iter().position(|(other, _)| *other == c)?;
    Some(LOOKALIKES[at].1)
}

/// Longer words are read in pieces.
const LONGEST: usize = 64;
const LOOKALIKES: &[(char, char)] = &[
    ('\u{430}', 'a'),
    ('\u{435}', 'e'),
    ('\u{43e}', 'o'),
    ('\u{440}', 'p'),
    ('\u{441}', 'c'),
    ('\u{443}', 'y'),
    ('\u{445}', 'x'),
    ('\u{456}', 'i'),
    ('\u{458}', 'j'),
    ('\u{455}', 's'),
    ('\u{43a}', 'k'),
    ('\u{4bb}', 'h'),
    ('\u{501}', 'd'),
    ('\u{51b}', 'q'),
    ('\u{51d}', 'w'),
    ('\u{410}', 'A'),
    ('\u{412}', 'B'),
    ('\u{415}', 'E'),
    ('\u{41a}', 'K'),
    ('\u{41c}', 'M'),
    ('\u{41d}', 'H'),
    ('\u{41e}', 'O'),
    ('\u{420}', 'P'),
    ('\u{421}', 'C'),
    ('\u{422}', 'T'),
    ('\u{425}', 'X'),
    ('\u{423}', 'Y'),
    ('\u{406}', 'I'),
    ('\u{408}', 'J'),
    ('\u{405}', 'S'),
    ('\u{391}', 'A'),
    ('\u{392}', 'B'),
    ('\u{395}', 'E'),
    ('\u{396}', 'Z'),
    ('\u{397}', 'H'),
    ('\u{399}', 'I'),
    ('\u{39a}', 'K'),
    ('\u{39c}', 'M'),
    ('\u{39d}', 'N'),
    ('\u{39f}', 'O'),
    ('\u{3a1}', 'P'),
    ('\u{3a4}', 'T'),
    ('\u{3a5}', 'Y'),
    ('\u{3a7}', 'X'),
    ('\u{3bf}', 'o'),
    ('\u{3b1}', 'a'),
    ('\u{3bd}', 'v'),
    ('\u{3c1}', 'p'),
    ('\u{3b9}', 'i'),
    ('\u{3ba}', 'k'),
    ('\u{3f2}', 'c'),
];
