//! Long answers in parts that a platform takes, each readable by itself: a code block that goes over the end of one part
//! is closed there and opened again in the next, under the same language.

/// How a platform counts the length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// In UTF-16 code units, which is never less than in characters.
    Utf16,
    /// In bytes of UTF-8.
    Bytes,
}

impl Measure {
    /// The length of a text.
    #[must_use]
    pub fn of(self, text: &str) -> usize {
        match self {
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Bytes => text.len(),
        }
    }

    fn of_char(self, c: char) -> usize {
        match self {
            Self::Utf16 => c.len_utf16(),
            Self::Bytes => c.len_utf8(),
        }
    }
}

/// The text in parts of at most `limit`; at least one, and never one of white space alone unless the text is.
#[must_use]
pub fn split(text: &str, limit: usize, measure: Measure) -> Vec<String> {
    if measure.of(text) <= limit {
        return vec![text.to_owned()];
    }
    let mut parts =
        Parts { limit: limit.max(SMALLEST), measure, done: Vec::new(), now: String::new(), fence: None };
    for line in text.split('\n') {
        parts.line(line);
    }
    parts.flush();
    parts.done
}

/// Below this there is no room for a fence and something in it; every platform has far more.
const SMALLEST: usize = 32;

/// An open code block: what opened it, and what closes it.
#[derive(Clone)]
struct Fence {
    opening: String,
    closing: String,
    /// Whether anything is in it yet, in this part.
    empty: bool,
}

struct Parts {
    limit: usize,
    measure: Measure,
    done: Vec<String>,
    now: String,
    fence: Option<Fence>,
}

impl Parts {
    fn line(&mut self, line: &str) {
        match &self.fence {
            Some(fence) if closes(line, &fence.closing) => {
                // Room for this was kept all along.
                let closing = fence.closing.clone();
                self.push(&closing);
                self.fence = None;
            }
            None if fence_of(line).is_some() => {
                let closing = fence_of(line).unwrap_or_default();
                let mut opening = line.trim_end().to_owned();
                if self.measure.of(&opening) > self.limit / 3 {
                    opening.clone_from(&closing);
                }
                // A block is not begun where nothing of it fits.
                let least = self.measure.of(&opening) + self.measure.of(&closing) + LEAST_OF_A_BLOCK;
                if self.left().is_none_or(|left| left < least) {
                    self.flush();
                }
                self.push(&opening);
                self.fence = Some(Fence { opening, closing, empty: true });
            }
            _ => self.plain(line),
        }
    }

    fn plain(&mut self, line: &str) {
        let mut rest = line;
        loop {
            let Some(room) = self.left() else {
                self.next();
                continue;
            };
            let size = self.measure.of(rest);
            if size <= room {
                self.push(rest);
                break;
            }
            // A line that fits a part of its own begins one; only a longer one is cut.
            let fresh = self.limit.saturating_sub(self.overhead());
            if size <= fresh && !self.is_fresh() {
                self.next();
                continue;
            }
            if room < LEAST_OF_A_BLOCK.min(fresh) && !self.is_fresh() {
                self.next();
                continue;
            }
            let at = self.cut(rest, room);
            let (head, tail) = rest.split_at(at);
            self.push(head);
            rest = if self.fence.is_some() { tail } else { tail.trim_start() };
            self.next();
            if rest.is_empty() {
                break;
            }
        }
    }

    /// Where to cut a line so that at most `room` of it comes before: at its last blank if that is not too early.
    fn cut(&self, line: &str, room: usize) -> usize {
        let (mut used, mut end, mut blank) = (0, 0, 0);
        for (at, c) in line.char_indices() {
            let size = self.measure.of_char(c);
            if used + size > room && end > 0 {
                break;
            }
            used += size;
            if c.is_whitespace() && at > 0 {
                blank = at;
            }
            end = at + c.len_utf8();
        }
        if blank * 2 >= end && self.fence.is_none() { blank } else { end }
    }

    /// What still fits after a line break, the closing of an open block kept free; `None` if not even the break does.
    fn left(&self) -> Option<usize> {
        let used = self.measure.of(&self.now) + usize::from(!self.now.is_empty());
        let closing = self.fence.as_ref().map_or(0, |fence| self.measure.of(&fence.closing) + 1);
        self.limit.checked_sub(used + closing)
    }

    /// What a part spends on opening and closing a block that goes on in it.
    fn overhead(&self) -> usize {
        let both = |fence: &Fence| self.measure.of(&fence.opening) + self.measure.of(&fence.closing) + 2;
        self.fence.as_ref().map_or(0, both)
    }

    fn is_fresh(&self) -> bool {
        match &self.fence {
            Some(fence) => fence.empty && self.now == fence.opening,
            None => self.now.is_empty(),
        }
    }

    fn push(&mut self, line: &str) {
        if !self.now.is_empty() {
            self.now.push('\n');
        }
        self.now.push_str(line);
        if let Some(fence) = &mut self.fence {
            fence.empty = false;
        }
    }

    /// Ends this part and begins the next one, in the same block.
    fn next(&mut self) {
        let fence = self.fence.take();
        if let Some(fence) = &fence {
            if fence.empty {
                // The block moves on as a whole.
                self.now.truncate(self.now.len() - fence.opening.len());
            } else {
                self.now.push('\n');
                self.now.push_str(&fence.closing);
            }
        }
        self.flush();
        if let Some(mut fence) = fence {
            self.now.clone_from(&fence.opening);
            fence.empty = true;
            self.fence = Some(fence);
        }
    }

    fn flush(&mut self) {
        let part = std::mem::take(&mut self.now);
        let part = part.trim_end().trim_start_matches('\n');
        let part = match self.fence.take() {
            Some(fence) => format!("{part}\n{}", fence.closing),
            None => part.to_owned(),
        };
        if !part.trim().is_empty() || self.done.is_empty() {
            self.done.push(part);
        }
    }
}

/// What closes the code block that this line opens, if it opens one.
fn fence_of(line: &str) -> Option<String> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| *c == '`' || *c == '~')?;
    let count = line.chars().take_while(|c| *c == mark).count();
    // A line of inline code is none: its marks come again.
    let again = mark == '`' && line[count..].contains('`');
    (count >= 3 && !again).then(|| mark.to_string().repeat(count))
}

fn closes(line: &str, closing: &str) -> bool {
    let line = line.trim();
    let mark = closing.chars().next().unwrap_or('`');
    line.len() >= closing.len() && line.chars().all(|c| c == mark)
}

/// Less than this of a block or a line is not worth a place at the end of a part.
const LEAST_OF_A_BLOCK: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_whole(part: &str) -> bool {
        let mut open: Option<String> = None;
        for line in part.split('\n') {
            match &open {
                Some(closing) if closes(line, closing) => open = None,
                Some(_) => {}
                None => open = fence_of(line),
            }
        }
        open.is_none()
    }

    #[test]
    fn short_texts_stay_as_they_are() {
        assert_eq!(split("hi\n\n", 2000, Measure::Utf16), ["hi\n\n"]);
        assert_eq!(split("", 2000, Measure::Utf16), [""]);
    }

    #[test]
    fn a_code_block_is_closed_and_opened_again() {
        let code: String = (0..30).map(|n| format!("let x{n} = {n};\n")).collect();
        let text = format!("Look:\n```rust\n{code}```\nDone.");
        let parts = split(&text, 200, Measure::Utf16);
        assert!(parts.len() > 2);
        for part in &parts {
            assert!(is_whole(part) && part.len() <= 200, "{part}");
        }
        assert!(parts[0].starts_with("Look:\n```rust\nlet x0 = 0;") && parts[0].ends_with("\n```"));
        assert!(parts[1].starts_with("```rust\nlet x"));
        assert!(parts.last().unwrap().ends_with("Done."));
        for n in 0..30 {
            let line = format!("let x{n} = {n};");
            assert_eq!(parts.iter().filter(|part| part.lines().any(|l| l == line)).count(), 1, "{line}");
        }
    }

    #[test]
    fn prose_is_cut_at_blanks_and_words_that_are_too_long_anywhere() {
        let parts = split(&"word ".repeat(100), 64, Measure::Utf16);
        assert!(parts.iter().all(|part| part.split(' ').all(|word| word == "word")), "{parts:?}");
        let parts = split(&"x".repeat(100), 40, Measure::Utf16);
        assert_eq!(parts.concat(), "x".repeat(100));
    }

    #[test]
    fn length_is_counted_as_the_platform_does() {
        let text = "😀".repeat(1500);
        let parts = split(&text, 2000, Measure::Utf16);
        assert_eq!(parts.len(), 2);
        assert!(parts.iter().all(|part| Measure::Utf16.of(part) <= 2000));
        assert_eq!(parts.concat(), text);
    }

    proptest::proptest! {
        /// Whatever the text: no part is too long, each is whole, and no word is lost or doubled.
        #[test]
        fn parts_fit_and_are_whole(
            lines in proptest::collection::vec(
                proptest::prop_oneof!["[a-z ]{0,60}", "```[a-z]{0,4}", "~~~", "````", "    [a-z]{0,20}", "\\PC{0,80}", ""],
                0..60),
            limit in 32_usize..300,
        ) {
            let text = lines.join("\n");
            let parts = split(&text, limit, Measure::Utf16);
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace() && !"`~".contains(*c)).collect::<String>();
            let whole = Measure::Utf16.of(&text) <= limit;
            for part in &parts {
                proptest::prop_assert!(Measure::Utf16.of(part) <= limit, "{part:?}");
                proptest::prop_assert!(whole || is_whole(part), "{part:?}");
            }
            if !text.contains("```") && !text.contains("~~~") {
                proptest::prop_assert_eq!(letters(&parts.concat()), letters(&text));
            }
        }
    }
}
