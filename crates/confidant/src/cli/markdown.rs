//! Markdown as a terminal shows it: words wrapped, lists and quotes indented, emphasis and code in colour.
//!
//! Text in, text out; [`Live`] decides when what is rendered takes the place of what came in as it was written.

use std::io::{self, IsTerminal as _, Write as _};

use pulldown_cmark::{Alignment, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr as _;

use crate::output::{Paint, clean};

/// Renders a text for so many columns.
pub(super) fn render(text: &str, width: usize, paint: Paint) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page { width: width.max(NARROWEST), paint, ..Page::new() };
    for event in Parser::new_ext(text, options) {
        page.take(event);
    }
    page.end_paragraph();
    page.out
}

/// Narrower than this nothing is wrapped.
const NARROWEST: usize = 10;
/// Lines that are longer are hard to read, however wide the terminal is.
pub(super) const WIDEST: usize = 100;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    strong: bool,
    emphasis: bool,
    struck: bool,
    code: bool,
    heading: bool,
    dim: bool,
}

impl Style {
    fn paint(self, text: &str, paint: Paint) -> String {
        let codes = [
            (self.strong || self.heading, "1"),
            (self.emphasis, "3"),
            (self.struck, "9"),
            (self.dim, "2"),
            (self.code, "36"),
            (self.heading, "34"),
        ];
        let codes: Vec<&str> = codes.into_iter().filter(|(on, _)| *on).map(|(_, code)| code).collect();
        if codes.is_empty() { text.to_owned() } else { paint.with(&codes.join(";"), text) }
    }
}

/// A page that is being written.
struct Page {
    width: usize,
    paint: Paint,
    out: String,
    /// What is being gathered: a paragraph, a heading, an item.
    spans: Vec<(Style, String)>,
    style: Style,
    /// What stands before each line, outermost first.
    margins: Vec<Margin>,
    /// The numbers of the lists that we are in; none if they have none.
    lists: Vec<Option<u64>>,
    code: Option<String>,
    links: Vec<(String, usize)>,
    table: Option<Table>,
}

/// What stands before the lines of something.
struct Margin {
    first: String,
    rest: String,
    /// Whether the first line is written.
    begun: bool,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
}

impl Page {
    fn new() -> Self {
        Self {
            width: 80,
            paint: Paint::none(),
            out: String::new(),
            spans: Vec::new(),
            style: Style::default(),
            margins: Vec::new(),
            lists: Vec::new(),
            code: None,
            links: Vec::new(),
            table: None,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.say(&text),
            Event::Code(text) => self.say_code(&text),
            Event::SoftBreak => self.say(" "),
            Event::HardBreak => self.say("\n"),
            Event::Rule => {
                self.gap();
                let line = "─".repeat(self.width.min(40));
                self.line(&Style { dim: true, ..Style::default() }.paint(&line, self.paint));
            }
            Event::TaskListMarker(done) => self.say(if done { "[x] " } else { "[ ] " }),
            Event::Html(text) | Event::InlineHtml(text) => self.say(text.trim_end_matches('\n')),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.say(&text)
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                self.style.heading = true;
                if !self.paint.is_on() {
                    let depth = if level == HeadingLevel::H1 { "# " } else { "## " };
                    self.say(depth);
                }
            }
            Tag::BlockQuote(_) => {
                self.gap();
                let bar = Style { dim: true, ..Style::default() }.paint("│ ", self.paint);
                self.margins.push(Margin { first: bar.clone(), rest: bar, begun: false });
            }
            Tag::CodeBlock(_) => {
                self.gap();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_paragraph();
                let sign = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(sign.width());
                self.margins.push(Margin { first: sign, rest, begun: false });
            }
            Tag::Emphasis => self.style.emphasis = true,
            Tag::Strong => self.style.strong = true,
            Tag::Strikethrough => self.style.struck = true,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.spans.len()));
            }
            Tag::Table(alignments) => {
                self.gap();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                self.table.iter_mut().for_each(|table| table.rows.push(Vec::new()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.style.heading = false;
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_paragraph();
                self.margins.pop();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                let style = Style { code: true, ..Style::default() };
                for line in code.lines() {
                    self.line(&format!("  {}", style.paint(line, self.paint)));
                }
            }
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Emphasis => self.style.emphasis = false,
            TagEnd::Strong => self.style.strong = false,
            TagEnd::Strikethrough => self.style.struck = false,
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let text: String = self.spans.drain(..).map(|(_, text)| text).collect();
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(text.trim().to_owned());
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn say(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.spans.push((self.style, text.to_owned())),
        }
    }

    fn say_code(&mut self, text: &str) {
        let shown = if self.paint.is_on() { text.to_owned() } else { format!("`{text}`") };
        self.spans.push((Style { code: true, ..self.style }, shown));
    }

    /// The address stands behind what it is called, unless that is the address.
    fn end_link(&mut self) {
        let Some((address, from)) = self.links.pop() else { return };
        let called: String =
            self.spans[from.min(self.spans.len())..].iter().map(|(_, text)| text.as_str()).collect();
        if called != address && !address.is_empty() {
            self.spans.push((Style { dim: true, ..self.style }, format!(" ({address})")));
        }
    }

    /// An empty line before what begins now, unless it is the first of all or of its item.
    fn gap(&mut self) {
        self.end_paragraph();
        let is_first = self.margins.last().is_some_and(|margin| !margin.begun);
        if !self.out.is_empty() && !is_first {
            let margin: String = self.margins.iter().map(|margin| margin.rest.as_str()).collect();
            self.out.push_str(margin.trim_end());
            self.out.push('\n');
        }
    }

    fn end_paragraph(&mut self) {
        let spans = std::mem::take(&mut self.spans);
        if spans.iter().all(|(_, text)| text.trim().is_empty()) {
            return;
        }
        let indent: usize = self.margins.iter().map(|margin| visible(&margin.rest)).sum();
        for line in wrapped(&spans, self.width.saturating_sub(indent).max(NARROWEST), self.paint) {
            self.line(&line);
        }
    }

    /// Writes a line behind its margins.
    fn line(&mut self, line: &str) {
        for margin in &mut self.margins {
            self.out.push_str(if margin.begun { &margin.rest } else { &margin.first });
            margin.begun = true;
        }
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest =
            |at: usize| table.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max();
        let widths: Vec<usize> = (0..columns).map(|at| widest(at).unwrap_or(0)).collect();
        for (number, row) in table.rows.iter().enumerate() {
            let cells = widths.iter().enumerate().map(|(at, width)| {
                let cell = row.get(at).map_or("", String::as_str);
                let room = " ".repeat(width.saturating_sub(cell.width()));
                match table.alignments.get(at) {
                    Some(Alignment::Right) => format!("{room}{cell}"),
                    _ => format!("{cell}{room}"),
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            let style = Style { strong: number == 0, ..Style::default() };
            self.line(&style.paint(line.trim_end(), self.paint));
            if number == 0 {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("  ");
                self.line(&Style { dim: true, ..Style::default() }.paint(&rule, self.paint));
            }
        }
    }
}

/// The columns that a text takes, less what a terminal obeys.
fn visible(text: &str) -> usize {
    let mut rest = text;
    let mut width = 0;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        width += before.width();
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    width + rest.width()
}

/// Lines of at most so many columns, broken between words; a word that is longer stands alone.
fn wrapped(spans: &[(Style, String)], width: usize, paint: Paint) -> Vec<String> {
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    // A space that waits for its word, in the style of where it stood.
    let mut space: Option<Style> = None;
    for (style, text) in spans {
        for (number, part) in text.split('\n').enumerate() {
            if number > 0 {
                lines.push(std::mem::take(&mut line));
                (used, space) = (0, None);
            }
            let mut words = part.split(' ').peekable();
            while let Some(word) = words.next() {
                if !word.is_empty() {
                    let gap = usize::from(space.is_some());
                    if used > 0 && space.is_some() && used + gap + word.width() > width {
                        lines.push(std::mem::take(&mut line));
                        used = 0;
                    } else if let Some(before) = space.filter(|_| used > 0) {
                        let shared = if before == *style { *style } else { Style::default() };
                        line.push_str(&shared.paint(" ", paint));
                        used += 1;
                    }
                    space = None;
                    line.push_str(&style.paint(word, paint));
                    used += word.width();
                }
                if words.peek().is_some() {
                    space = Some(*style);
                }
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// An answer as it comes: shown as it is written, and rendered as soon as a part of it is whole.
pub(super) struct Live {
    /// What is not rendered yet.
    pending: String,
    /// How much of it is on the screen, as it was written.
    shown: bool,
    /// Whether something was rendered before, which the next part stands apart from.
    begun: bool,
    width: usize,
    height: usize,
    paint: Paint,
}

impl Live {
    /// None where no terminal shows it: then the words go out as they are.
    pub(super) fn on_terminal() -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        // A terminal that does not know its size says 0.
        let size = rustix::termios::tcgetwinsize(io::stdout())
            .ok()
            .filter(|size| size.ws_col > 0 && size.ws_row > 0);
        let (columns, rows) = size.map_or((80, 24), |size| (size.ws_col, size.ws_row));
        let paint = Paint::of_stdout();
        Some(Self::sized(usize::from(columns.max(20)), usize::from(rows.max(5)), paint))
    }

    fn sized(width: usize, height: usize, paint: Paint) -> Self {
        Self { pending: String::new(), shown: false, begun: false, width, height, paint }
    }

    /// Takes more of the answer.
    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        let out = self.pushed(text);
        write_out(&out)
    }

    /// Shows what is left, whole or not.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let out = self.finished();
        write_out(&out)
    }

    fn pushed(&mut self, text: &str) -> String {
        let mut out = self.taken_back();
        self.pending.push_str(&clean(text));
        if let Some(end) = whole_until(&self.pending) {
            let rest = self.pending.split_off(end);
            let part = std::mem::replace(&mut self.pending, rest);
            out.push_str(&self.rendered(&part));
        }
        // Only as much as can be taken back again.
        if self.rows() < self.height {
            out.push_str(&self.pending);
            self.shown = true;
        }
        out
    }

    fn finished(&mut self) -> String {
        let mut out = self.taken_back();
        let part = std::mem::take(&mut self.pending);
        out.push_str(&self.rendered(&part));
        out
    }

    fn rendered(&mut self, part: &str) -> String {
        let text = render(part, self.width.min(WIDEST), self.paint);
        if text.is_empty() {
            return text;
        }
        let gap = if std::mem::replace(&mut self.begun, true) { "\n" } else { "" };
        format!("{gap}{text}")
    }

    /// What takes the words off the screen that are shown as they were written.
    fn taken_back(&mut self) -> String {
        if !std::mem::take(&mut self.shown) {
            return String::new();
        }
        match self.rows() - 1 {
            0 => "\r\u{1b}[J".to_owned(),
            up => format!("\u{1b}[{up}A\r\u{1b}[J"),
        }
    }

    /// The rows of the screen that the pending words take.
    fn rows(&self) -> usize {
        let rows = |line: &str| line.width().saturating_sub(1) / self.width + 1;
        self.pending.split('\n').map(rows).sum()
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Where the last part ends that can be rendered by itself: at an empty line that is in no block of code, before text that does
/// not go on with a list or a quote.
fn whole_until(text: &str) -> Option<usize> {
    let (mut at, mut end, mut fence) = (0, None, None::<&str>);
    let mut after_blank = None;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        // What is indented, or another item, belongs to the list before the empty line.
        let goes_on = line.starts_with(' ') || is_item(trimmed);
        if let Some(blank) = after_blank.take()
            && !line.trim().is_empty()
            && !goes_on
        {
            end = Some(blank);
        }
        at += line.len();
        if fence.is_none() && line.ends_with('\n') && line.trim().is_empty() {
            after_blank = Some(at);
        }
    }
    end
}

fn is_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.len() < line.len() && (digits.starts_with(". ") || digits.starts_with(") "));
    numbered || ["- ", "* ", "+ ", "> "].iter().any(|sign| line.starts_with(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: usize) -> String {
        render(text, width, Paint::none())
    }

    #[test]
    fn words_are_wrapped_and_markdown_is_gone() {
        assert_eq!(plain("one **two** three four", 13), "one two three\nfour\n");
        assert_eq!(plain("# Title\n\ntext with `code`", 80), "# Title\n\ntext with `code`\n");
        assert_eq!(
            plain("- one\n- two words here\n  - deeper", 12),
            "• one\n• two words\n  here\n  • deeper\n"
        );
        assert_eq!(plain("3. a\n4. b", 80), "3. a\n4. b\n");
        assert_eq!(plain("> said\n> so", 80), "│ said so\n");
        assert_eq!(plain("```rust\nlet a = 1;\n\nlet b = 2;\n```", 12), "  let a = 1;\n  \n  let b = 2;\n");
        assert_eq!(
            plain("[here](https://a.example) <https://b.example>", 80),
            "here (https://a.example) https://b.example\n"
        );
        assert_eq!(plain("| a | bb |\n|---|---:|\n| x | 1 |", 80), "a  bb\n─  ──\nx   1\n");
        assert_eq!(plain("one  \ntwo\nthree", 80), "one\ntwo three\n");
        assert_eq!(plain("", 80), "");
        // Wide characters take two columns.
        assert_eq!(plain("日本 日本 日本", 10), "日本 日本\n日本\n");
    }

    #[test]
    fn colours_are_there_only_if_they_are_welcome() {
        let shown = render("**a** `b`", 80, Paint::always());
        assert_eq!(shown, "\u{1b}[1ma\u{1b}[0m \u{1b}[36mb\u{1b}[0m\n");
        assert!(!plain("**a** `b` *c* ~~d~~\n\n---", 80).contains('\u{1b}'));
    }

    #[test]
    fn a_part_is_rendered_once_it_is_whole() {
        for (text, whole) in [
            ("one", None),
            ("one\n\n", None),
            ("one\n\ntwo", Some(5)),
            ("- a\n\n- b", None),
            ("- a\n\n  more\n\ntext", Some(13)),
            ("```\na\n\nb\n```\n\ntext", Some(14)),
            ("```\na\n\nb", None),
        ] {
            assert_eq!(whole_until(text), whole, "{text:?}");
        }
    }

    /// What a screen shows after these bytes, for the few codes that are sent.
    fn screen(bytes: &str) -> String {
        let (mut rows, mut row, mut column) = (vec![String::new()], 0, 0);
        let mut chars = bytes.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\u{1b}' => {
                    chars.next();
                    let mut code = String::new();
                    let end = loop {
                        match chars.next().expect("codes end") {
                            c if c.is_ascii_alphabetic() => break c,
                            c => code.push(c),
                        }
                    };
                    match end {
                        'A' => row -= code.parse::<usize>().expect("it is a number"),
                        'J' => {
                            rows.truncate(row + 1);
                            rows[row] = rows[row].chars().take(column).collect();
                        }
                        _ => {}
                    }
                }
                '\r' => column = 0,
                '\n' => {
                    (row, column) = (row + 1, 0);
                    if rows.len() == row {
                        rows.push(String::new());
                    }
                }
                c => {
                    if column == 20 {
                        (row, column) = (row + 1, 0);
                        rows.push(String::new());
                    }
                    rows[row].push(c);
                    column += 1;
                }
            }
        }
        rows.join("\n")
    }

    #[test]
    fn what_was_shown_as_written_is_taken_back_for_what_is_rendered() {
        let answer = "**First** part that is longer than a line.\n\n- an *item*\n- another\n\nThe `end`.";
        let whole = plain(answer, 20);
        for size in [1, 3, 7, 1000] {
            let mut live = Live::sized(20, 24, Paint::none());
            let mut bytes = String::new();
            let chars: Vec<char> = answer.chars().collect();
            for piece in chars.chunks(size) {
                bytes.push_str(&live.pushed(&piece.iter().collect::<String>()));
            }
            bytes.push_str(&live.finished());
            assert_eq!(screen(&bytes), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn what_is_taller_than_the_screen_is_not_taken_back_from_beyond_it() {
        let mut live = Live::sized(20, 5, Paint::none());
        let mut bytes = String::new();
        for i in 0..50 {
            bytes.push_str(&live.pushed(&format!("line {i}\n")));
        }
        bytes.push_str(&live.finished());
        let highest =
            bytes.split("\u{1b}[").filter_map(|code| code.split_once('A')?.0.parse::<usize>().ok()).max();
        assert!(highest.is_none_or(|up| up < 5), "{highest:?}");
    }
}
