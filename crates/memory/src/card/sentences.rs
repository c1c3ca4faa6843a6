//! From a line of prose to its sentences.
//!
//! A full stop is rarely the end of a sentence in `v2.3.1`, `e.g. this`, `example.org` or `foo.bar()`, so it counts
//! only before white space, never after a short form and never inside inline code.

use super::lists;

/// The sentences of a line, trimmed; none is without a letter or a digit.
pub(super) fn sentences(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut code: Option<usize> = None;
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '`' {
            // Only a pair makes code.
            code = match code {
                Some(_) => None,
                None => line[at + 1..].contains('`').then_some(at),
            };
            continue;
        }
        if code.is_some() {
            continue;
        }
        let mut end = at + letter.len_utf8();
        let over = match letter {
            '。' | '！' | '？' | '｡' | '؟' | '۔' | '।' => {
                while let Some((at, next)) =
                    letters.next_if(|(_, next)| matches!(next, '」' | '』' | '”' | '）' | '！' | '？'))
                {
                    end = at + next.len_utf8();
                }
                true
            }
            '!' | '?' | '…' | '.' => {
                let from = at;
                while let Some((at, next)) = letters.next_if(|(_, next)| is_closing(*next)) {
                    end = at + next.len_utf8();
                }
                let rest = &line[end..];
                let spaced = rest.chars().next().is_none_or(char::is_whitespace);
                spaced && ends(&line[start..from], letter, &line[from..end], rest.trim_start())
            }
            _ => false,
        };
        if over {
            push(&mut found, &line[start..end]);
            start = end;
        }
    }
    push(&mut found, &line[start..]);
    found
}

fn push<'t>(found: &mut Vec<&'t str>, sentence: &'t str) {
    let sentence = sentence.trim();
    if sentence.chars().any(char::is_alphanumeric) {
        found.push(sentence);
    }
}

/// Whether a sentence ends at this stop, given what stands before and after it.
fn ends(before: &str, stop: char, stops: &str, after: &str) -> bool {
    let next = after.trim_start_matches(['"', '“', '(', '*', '`', '\'', '«']).chars().next();
    let lower = next.is_some_and(char::is_lowercase);
    // "wait... what"
    if stop == '…' || stops.starts_with("..") {
        return !lower;
    }
    if stop != '.' {
        return !(lower && stop == '!' && before.trim().is_empty());
    }
    let last = before
        .rsplit(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '"' | '“' | '*'))
        .next();
    let last = last.unwrap_or_default();
    // "1. First": a number that opens a sentence counts it.
    if before.trim() == last && !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    // "am 7. Mai": a number that counts a day of a month.
    let month: String = after.chars().take_while(|letter| letter.is_alphabetic()).collect();
    let counts = (1..=2).contains(&last.len()) && last.bytes().all(|byte| byte.is_ascii_digit());
    if counts && month != "May" && lists::MONTHS.has(&month.to_lowercase()) {
        return false;
    }
    let mut letters = last.chars();
    if let (Some(first), None) = (letters.next(), letters.next()) {
        // "J. Doe", but not the pronoun nor a number.
        return !first.is_alphabetic() || first == 'I';
    }
    let dotted = last.contains('.')
        && last.split('.').all(|part| part.chars().count() == 1 && part.chars().all(char::is_alphabetic));
    let plain = last.to_lowercase();
    if dotted || lists::OPEN_SHORT_FORMS.has(&plain) {
        // "in the U.S. The", "logs etc. We": only a word that opens sentences does so here.
        let word: String = after.chars().take_while(|letter| letter.is_alphabetic()).collect();
        return next.is_none()
            || (next.is_some_and(char::is_uppercase) && lists::OPENERS.has(&word.to_lowercase()));
    }
    let number = next.is_some_and(|next| next.is_ascii_digit() || next == '#');
    !(lists::SHORT_FORMS.has(&plain) || (number && lists::NUMBER_FORMS.has(&plain)))
}

fn is_closing(letter: char) -> bool {
    matches!(
        letter,
        '.' | '!' | '?' | '…' | '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '*' | '_' | '」' | '』'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_survive_what_has_dots() {
        let cases: &[(&str, &[&str])] = &[
            ("Rolled back to v2.3.1. Then slept.", &["Rolled back to v2.3.1.", "Then slept."]),
            ("Use e.g. Redis, i.e. a cache. Done.", &["Use e.g. Redis, i.e. a cache.", "Done."]),
            ("Dr. Who met Mr. Fox. Fine.", &["Dr. Who met Mr. Fox.", "Fine."]),
            ("In the U.S. market. In the U.S. The end.", &["In the U.S. market.", "In the U.S.", "The end."]),
            ("Took 3.5 s. See main.rs. Or not.", &["Took 3.5 s. See main.rs.", "Or not."]),
            ("See https://a.example/b.html?c=d. Next.", &["See https://a.example/b.html?c=d.", "Next."]),
            ("Call `foo.bar(). Baz`. Then stop.", &["Call `foo.bar(). Baz`.", "Then stop."]),
            ("Call foo.bar() now. Ok.", &["Call foo.bar() now.", "Ok."]),
            ("Wait... what? Yes... No.", &["Wait... what?", "Yes...", "No."]),
            ("认证失败。已回滚！好", &["认证失败。", "已回滚！", "好"]),
            ("He said \"no.\" Then left.", &["He said \"no.\"", "Then left."]),
            ("It failed in 2024. We know.", &["It failed in 2024.", "We know."]),
            ("Am 7. Mai und am 24. Dezember. Ja.", &["Am 7. Mai und am 24. Dezember.", "Ja."]),
            ("We had 7. May we go?", &["We had 7.", "May we go?"]),
            ("1. First thing. Second", &["1. First thing.", "Second"]),
            (
                "Logs, metrics etc. are fine. Logs etc. We go.",
                &["Logs, metrics etc. are fine.", "Logs etc.", "We go."],
            ),
            ("a lone ` tick. Two.", &["a lone ` tick.", "Two."]),
            ("**Done.** Next", &["**Done.**", "Next"]),
            ("... !", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(&sentences(line), expected, "{line}");
        }
    }
}
