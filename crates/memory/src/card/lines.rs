//! From Markdown, logs and chat to statements, one sentence or list item each.
//!
//! Owns what is structure and what is said: fenced code, headings, lists, boxes to tick, quotes, wrapped lines. Marks
//! go only where a blank stands on their outer side, so that taking them away brings no two pieces of a word together.

use super::lists;
use super::sentences::sentences;
use super::source::Source;
use super::words::{clip, has_blob, one_line, words};

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// One line, without marks.
    pub(super) text: String,
    pub(super) form: Form,
    pub(super) source: Source,
}

/// How it was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Sentence,
    Question,
    Heading,
    Item,
    /// A box to tick, or an item under a heading of things to do.
    Open,
    /// A ticked box.
    Done,
    /// A line of code or of a program's output.
    Code,
}

/// The statements of a text.
pub(super) fn statements(text: &str, source: Source) -> Vec<Statement> {
    let mut reader = Reader { source, said: Vec::new(), paragraph: String::new(), todo: false };
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let bare = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (Some(open), _) if bare.starts_with(open) => fence = None,
            (Some(_), _) => reader.push(one_line(bare), Form::Code),
            (None, Some(mark)) if !bare[3..].contains(mark) => {
                reader.flush();
                fence = Some(mark);
            }
            _ if source == Source::Output => reader.push(one_line(bare), Form::Code),
            _ => reader.line(line),
        }
    }
    reader.flush();
    reader.said
}

struct Reader {
    source: Source,
    said: Vec<Statement>,
    /// Lines that are wrapped prose so far.
    paragraph: String,
    /// Whether the last heading announced things to do.
    todo: bool,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let bare = line.trim_start_matches([' ', '\t', '>']).trim_end();
        if bare.is_empty() || is_rule(bare) {
            self.flush();
        } else if let Some(title) = heading(bare) {
            self.flush();
            self.todo = lists::TODO_HEADINGS.has_phrase(title);
            self.push(inline(title), Form::Heading);
        } else if let Some((form, item)) = item(bare) {
            self.flush();
            let form = if form == Form::Item && self.todo { Form::Open } else { form };
            self.item(item, form);
        } else if is_code(line, bare) {
            self.flush();
            self.push(one_line(bare), Form::Code);
        } else {
            self.prose(bare);
        }
    }

    fn prose(&mut self, bare: &str) {
        // A wrapped line goes on in lower case; anything else is a line of its own.
        let wraps = self.paragraph.len() >= LEAST_WRAPPED
            && !self.paragraph.ends_with(['.', '!', '?', ':', ';', '。'])
            && bare.starts_with(|letter: char| letter.is_lowercase() || letter == '<');
        if wraps {
            self.paragraph.push(' ');
        } else {
            self.flush();
        }
        // "Next steps:" before a list is a heading, too.
        let label = bare.strip_suffix(':').filter(|label| label.len() <= LONGEST_LABEL);
        match label {
            Some(label) if !wraps => {
                self.todo = lists::TODO_HEADINGS.has_phrase(label.trim_matches('*'));
                self.push(inline(label), Form::Heading);
            }
            _ => self.paragraph.push_str(bare),
        }
    }

    fn item(&mut self, item: &str, form: Form) {
        let item = strip_label(item);
        match form {
            // What is to do may take more than one sentence, of which the first says it.
            Form::Open | Form::Done => {
                if let Some(first) = sentences(item).first() {
                    let first = clip(first, LONGEST_SENTENCE);
                    self.push(first.map(|first| inline(&first)).unwrap_or_default(), form);
                }
            }
            _ => self.sentences(item, form),
        }
    }

    fn flush(&mut self) {
        if !self.paragraph.is_empty() {
            let paragraph = std::mem::take(&mut self.paragraph);
            self.todo = false;
            self.sentences(&paragraph, Form::Sentence);
        }
    }

    fn sentences(&mut self, text: &str, form: Form) {
        for sentence in sentences(text) {
            let asks = sentence.trim_end_matches(['"', '”', '*', ')']).ends_with(['?', '？', '؟']);
            // Longer ones are no sentences, and marks are looked for in short texts only.
            let Some(sentence) = clip(sentence, LONGEST_SENTENCE) else { continue };
            self.push(inline(&sentence), if asks { Form::Question } else { form });
        }
    }

    fn push(&mut self, text: String, form: Form) {
        // What has a key's or a number's looks tells nobody anything, and alone it looks worse than in its place.
        let form = if has_blob(&text) { Form::Code } else { form };
        if text.chars().any(char::is_alphanumeric) {
            self.said.push(Statement { text, form, source: self.source });
        }
    }
}

fn heading(bare: &str) -> Option<&str> {
    let marks = bare.bytes().take_while(|byte| *byte == b'#').count();
    let rest = bare.get(marks..)?;
    let good = (1..=6).contains(&marks) && rest.starts_with(' ');
    if good {
        return Some(rest.trim().trim_end_matches('#').trim_end());
    }
    // A line that is bold as a whole.
    let inner = bare.strip_prefix("**")?;
    let inner = inner.strip_suffix("**").or_else(|| inner.strip_suffix("**:"))?;
    (!inner.contains("**") && inner.len() <= LONGEST_LABEL).then(|| inner.trim_end_matches(':'))
}

fn item(bare: &str) -> Option<(Form, &str)> {
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (1..=3).contains(&digits) && bare[digits..].starts_with(['.', ')']);
    let rest = if numbered {
        bare[digits + 1..].strip_prefix(' ')
    } else {
        ["- ", "* ", "+ ", "• ", "– "].iter().find_map(|mark| bare.strip_prefix(mark))
    };
    // "☐ this" needs no bullet.
    let rest = rest.map_or(bare, str::trim_start);
    let ticked = ["[x] ", "[X] ", "☑ ", "✅ ", "✔ ", "✓ "].iter().find_map(|mark| rest.strip_prefix(mark));
    let open = ["[ ] ", "[] ", "☐ ", "⬜ "].iter().find_map(|mark| rest.strip_prefix(mark));
    match (ticked, open) {
        (Some(item), _) => Some((Form::Done, item)),
        (_, Some(item)) => Some((Form::Open, item)),
        _ if rest.len() < bare.len() => Some((Form::Item, rest)),
        _ => None,
    }
}

/// `**Label:** text` is its text when the label says only what kind of thing it is.
fn strip_label(item: &str) -> &str {
    let Some((label, rest)) = item.strip_prefix("**").and_then(|rest| rest.split_once("**")) else {
        return item;
    };
    let rest = rest.trim_start_matches([':', ' ', '-', '–', '—']);
    let kind = lists::LABELS.has(&label.trim_end_matches(':').to_lowercase());
    if kind && words(rest).len() > 1 { rest } else { item }
}

/// Dashes, stars, or the bars of a table.
fn is_rule(bare: &str) -> bool {
    bare.bytes().all(|byte| matches!(byte, b'-' | b'*' | b'_' | b'=' | b'|' | b':' | b' '))
        || bare.starts_with('|')
}

/// Indented, or a line that only programs write.
fn is_code(line: &str, bare: &str) -> bool {
    let indented = line.starts_with("    ") || line.starts_with('\t');
    let ends = bare.ends_with(['{', '}', ';', '\\']) || bare.ends_with("=>");
    let starts = [
        "$ ",
        "diff --git",
        "@@ ",
        "+++",
        "import ",
        "#include",
        "fn ",
        "def ",
        "func ",
        "const ",
        "let mut ",
    ]
    .iter()
    .any(|start| bare.starts_with(start));
    ends || starts
        || (indented && bare.contains(['=', '(', '{', '<']))
        || (bare.starts_with('<') && is_markup(bare))
}

/// `<tag …>`, but no placeholder.
fn is_markup(bare: &str) -> bool {
    let tag = bare.trim_start_matches(['<', '/']);
    tag.starts_with(|letter: char| letter.is_ascii_lowercase()) && bare.ends_with('>')
}

/// A sentence without the marks of Markdown, on one line and without its full stop.
pub(super) fn inline(text: &str) -> String {
    let text = text.trim();
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let mut before = text[..at].trim_end_matches('*').chars().rev();
        let opens = match before.next() {
            None => true,
            Some('(' | '"' | '“') => is_outer(before.next()),
            Some(letter) => letter.is_whitespace(),
        };
        let step = match letter {
            '`' if opens => code(&text[at..]),
            '*' => stars(&text[at..], opens, &text[..at]),
            '[' | '!' if opens => link(&text[at..]),
            _ => None,
        };
        match step {
            Some((kept, length)) => {
                plain.push_str(kept);
                at += length;
            }
            None => {
                plain.push(letter);
                at += letter.len_utf8();
            }
        }
    }
    let line = one_line(&plain);
    line.trim_end_matches(['.', '。', ':', ';', ',', ' ']).trim_start_matches(['-', '–', '—', ' ']).to_owned()
}

fn is_outer(letter: Option<char>) -> bool {
    letter.is_none_or(char::is_whitespace)
}

/// Whether what follows a mark lets it go: the end, a blank, or a stop before one.
fn closes(rest: &str) -> bool {
    let rest = rest.trim_start_matches('*');
    let rest = rest.strip_prefix(['.', ',', ';', ':', '!', '?', ')', '"', '”']).unwrap_or(rest);
    let rest = rest.strip_prefix(['.', ',', ')']).unwrap_or(rest);
    is_outer(rest.chars().next())
}

fn code(rest: &str) -> Option<(&str, usize)> {
    let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
    let inner = rest[ticks..].find(&rest[..ticks])?;
    let end = ticks + inner + ticks;
    closes(&rest[end..]).then(|| (&rest[ticks..ticks + inner], end))
}

fn stars<'t>(rest: &'t str, opens: bool, before: &str) -> Option<(&'t str, usize)> {
    let run = rest.bytes().take_while(|byte| *byte == b'*').count();
    let after = &rest[run..];
    let opening = opens && !is_outer(after.chars().next());
    let closing = !is_outer(before.chars().next_back()) && closes(after);
    // A run that stays is passed as a whole, or its second star would open what its first did not.
    Some((if opening || closing { "" } else { &rest[..run] }, run))
}

fn link(rest: &str) -> Option<(&str, usize)> {
    let image = rest.starts_with('!');
    let label = rest.strip_prefix("![").or_else(|| rest.strip_prefix('['))?;
    let lead = rest.len() - label.len();
    let middle = label.find("](").filter(|at| !label[..*at].contains(['[', ']']))?;
    let target = &label[middle + 2..];
    let end = target.find(')').filter(|at| !target[..*at].contains(char::is_whitespace))?;
    let length = lead + middle + 2 + end + 1;
    closes(&rest[length..]).then(|| (if image { "" } else { &label[..middle] }, length))
}

/// Shorter lines are not wrapped but over.
const LEAST_WRAPPED: usize = 50;
const LONGEST_LABEL: usize = 60;
const LONGEST_SENTENCE: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<(Form, String)> {
        statements(text, Source::Answer).into_iter().map(|one| (one.form, one.text)).collect()
    }

    #[test]
    fn marks_go_and_words_stay_apart() {
        let cases = [
            ("**Fixed** the `main.rs` file.", "Fixed the main.rs file"),
            ("See [the docs](https://a.example/x), please", "See the docs, please"),
            ("a**b**c and 2 ** 3", "a**b**c and 2 ** 3"),
            ("x`y`z", "x`y`z"),
            ("__init__ stays", "__init__ stays"),
            ("(`foo`) and **`bar`**.", "(foo) and bar"),
            ("half[a](b)half", "half[a](b)half"),
            ("glob `**/*.rs` works", "glob **/*.rs works"),
            ("mail <REDACTED:EMAIL>.", "mail <REDACTED:EMAIL>"),
        ];
        for (text, expected) in cases {
            assert_eq!(inline(text), expected, "{text}");
        }
    }

    #[test]
    fn structure_is_told_from_what_is_said() {
        let text = "# Plan\n\nFirst. Why so?\n- [ ] open one\n- [x] done one\n1. item\n```rust\nfn main() {}\n```\n\
            ## Next steps\n- write tests\n\n> quoted";
        let expected = [
            (Form::Heading, "Plan"),
            (Form::Sentence, "First"),
            (Form::Question, "Why so?"),
            (Form::Open, "open one"),
            (Form::Done, "done one"),
            (Form::Item, "item"),
            (Form::Code, "fn main() {}"),
            (Form::Heading, "Next steps"),
            (Form::Open, "write tests"),
            (Form::Sentence, "quoted"),
        ];
        assert_eq!(said(text), expected.map(|(form, text)| (form, text.to_owned())));
    }

    #[test]
    fn wrapped_lines_are_one_sentence() {
        let text = "The validation of tokens failed since the last deploy, and\nso every login did. We know.";
        let expected =
            ["The validation of tokens failed since the last deploy, and so every login did", "We know"];
        assert_eq!(said(text).into_iter().map(|(_, text)| text).collect::<Vec<_>>(), expected);
    }
}
