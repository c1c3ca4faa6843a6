//! Letters: which script they are of, and what is compared of them.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Which alphabet a letter is of, as far as words are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Digit,
    Latin,
    Kana,
    Han,
    /// Thai and its neighbours, which write without spaces too.
    Unspaced,
    Other,
}

impl Script {
    /// The script of a letter.
    pub(super) fn of(c: char) -> Self {
        match c {
            '0'..='9' => Self::Digit,
            'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => Self::Latin,
            // Wide, circled, script and double-struck letters are Latin ones in other clothes.
            '\u{2100}'..='\u{214F}'
            | '\u{24B6}'..='\u{24E9}'
            | '\u{FF10}'..='\u{FF5A}'
            | '\u{1D400}'..='\u{1D7FF}' => Self::Latin,
            '\u{3041}'..='\u{309F}' | '\u{30A0}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9D}' => Self::Kana,
            '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{2FA1F}' => Self::Han,
            '\u{0E01}'..='\u{0E4E}'
            | '\u{0E81}'..='\u{0EDF}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1780}'..='\u{17DC}' => Self::Unspaced,
            _ => Self::Other,
        }
    }

    /// Whether it writes words without spaces between them.
    pub(super) fn is_spaceless(self) -> bool {
        matches!(self, Self::Kana | Self::Han | Self::Unspaced)
    }

    /// Whether a letter of `next` cannot go on with a word of this script.
    pub(super) fn parts(self, next: Self) -> bool {
        self != next && (self.is_spaceless() || next.is_spaceless())
    }
}

/// A letter in the form in which letters are compared.
pub(super) fn fold(c: char, into: &mut String) {
    if c.is_ascii() {
        into.push(c.to_ascii_lowercase());
        return;
    }
    let mut push = |c: char| {
        if is_combining_mark(c) {
            return;
        }
        for lower in c.to_lowercase() {
            match lower {
                'ß' => into.push_str("ss"),
                'æ' => into.push_str("ae"),
                'œ' => into.push_str("oe"),
                'þ' => into.push_str("th"),
                'ø' => into.push('o'),
                'ł' => into.push('l'),
                'đ' | 'ð' => into.push('d'),
                'ı' => into.push('i'),
                _ if is_combining_mark(lower) || !lower.is_alphanumeric() => {}
                _ => into.push(lower),
            }
        }
    };
    // A joined syllable of Korean stays whole: its parts are no words.
    if matches!(c, '\u{AC00}'..='\u{D7A3}') { push(c) } else { decompose_compatible(c, push) }
}

/// The Latin letter that a letter of another alphabet is taken for.
pub(super) fn look_alike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'α' | 'ɑ' => 'a',
        'ь' | 'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ё' | 'ε' | 'є' => 'e',
        'ɡ' | 'ց' => 'g',
        'һ' | 'н' => 'h',
        'і' | 'ι' | 'ї' | 'ɩ' | 'ⅰ' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'ӏ' => 'l',
        'м' => 'm',
        'п' | 'η' | 'ո' => 'n',
        'о' | 'ο' | 'σ' | 'օ' => 'o',
        'р' | 'ρ' => 'p',
        'ԛ' => 'q',
        'г' | 'ɾ' => 'r',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' | 'ω' => 'w',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'ᴢ' => 'z',
        _ => return None,
    })
}
