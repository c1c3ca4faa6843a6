//! Hooks in a JSON file of settings, put in and taken out without touching anything else: order, spaces, comments and
//! members that we do not know stay byte for byte.
//!
//! So the text is not written anew. It is read for where its values are, and pieces are put in or cut out there. Whoever
//! calls checks afterwards that nothing else changed. Easy to get wrong: comments may stand anywhere between values.

use std::ops::Range;

use serde_json::Value;

use super::Hook;

/// Puts a hook in; nothing if the file has another form there than agents read.
pub(super) fn add(text: &str, hook: &Hook) -> Option<String> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let page = Page::of(text)?;
    let root = page.root()?;
    let Kind::Object(members) = &root.kind else { return None };
    let Some(hooks) = member(members, "hooks") else {
        let entry = format!("\"hooks\": {}", page.object(hook, 1));
        return Some(page.insert(&root, 1, &entry));
    };
    let Kind::Object(events) = &hooks.kind else { return None };
    let Some(list) = member(events, &hook.event) else {
        let entry = format!("\"{}\": {}", hook.event, page.list(hook, 2));
        return Some(page.insert(hooks, 2, &entry));
    };
    let Kind::Array(_) = &list.kind else { return None };
    Some(page.insert(list, 3, &page.group(hook, 3)))
}

/// Takes one hook out that is ours; nothing if there is none.
pub(super) fn remove_one(text: &str, is_ours: &dyn Fn(&str) -> bool) -> Option<String> {
    let page = Page::of(text)?;
    let root = page.root()?;
    let Kind::Object(members) = &root.kind else { return None };
    let hooks = member(members, "hooks")?;
    let Kind::Object(events) = &hooks.kind else { return None };
    for (_, _, list) in events {
        let Kind::Array(groups) = &list.kind else { continue };
        for (g, group) in groups.iter().enumerate() {
            let Kind::Object(parts) = &group.kind else { continue };
            let Some(handlers) = member(parts, "hooks") else { continue };
            let Kind::Array(each) = &handlers.kind else { continue };
            let Some(h) = each.iter().position(|handler| page.command(handler).is_some_and(|c| is_ours(&c)))
            else {
                continue;
            };
            // What has nothing but it goes with it.
            let (within, at) = if each.len() > 1 {
                (handlers, h)
            } else if groups.len() > 1 {
                (list, g)
            } else if events.len() > 1 {
                (hooks, events.iter().position(|(_, _, value)| value.at == list.at)?)
            } else {
                (&root, members.iter().position(|(_, _, value)| value.at == hooks.at)?)
            };
            return Some(page.cut(within, at));
        }
    }
    None
}

/// The text with blanks in the place of comments, so that everything stays where it is; nothing if a comment has no end.
pub(super) fn without_comments(text: &str) -> Option<String> {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1).copied()) {
            (b'"', _) => at = end_of_string(&bytes, at)?,
            (b'/', Some(b'/')) => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    bytes[at] = b' ';
                    at += 1;
                }
            }
            (b'/', Some(b'*')) => {
                let end = at + 2 + bytes[at + 2..].windows(2).position(|two| two == b"*/")? + 2;
                for byte in bytes[at..end].iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
                    *byte = b' ';
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    String::from_utf8(bytes).ok()
}

/// Where the string that begins here is over.
fn end_of_string(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// A value, and where it is.
struct Node {
    at: Range<usize>,
    kind: Kind,
}

enum Kind {
    /// Names, where each begins, and values.
    Object(Vec<(String, usize, Node)>),
    Array(Vec<Node>),
    Other,
}

/// As in a parser of JSON, the last of several with one name counts.
fn member<'n>(members: &'n [(String, usize, Node)], name: &str) -> Option<&'n Node> {
    members.iter().rfind(|(known, _, _)| known == name).map(|(_, _, node)| node)
}

impl Node {
    /// Where each of what it holds is, names included.
    fn parts(&self) -> Vec<Range<usize>> {
        match &self.kind {
            Kind::Object(members) => members.iter().map(|(_, from, node)| *from..node.at.end).collect(),
            Kind::Array(items) => items.iter().map(|item| item.at.clone()).collect(),
            Kind::Other => Vec::new(),
        }
    }
}

/// A text with what is needed to change it.
struct Page<'t> {
    text: &'t str,
    /// The same without comments.
    plain: String,
    /// What one step of its indentation is.
    unit: String,
    line_end: &'static str,
}

impl<'t> Page<'t> {
    /// The text must be JSON, comments aside.
    fn of(text: &'t str) -> Option<Self> {
        let plain = without_comments(text)?;
        serde_json::from_str::<Value>(&plain).ok()?;
        let indented =
            plain.lines().skip(1).find(|line| !line.trim().is_empty() && line.starts_with([' ', '\t']));
        let unit = indented.map(|line| line[..line.len() - line.trim_start().len()].to_owned());
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Some(Self { text, plain, unit: unit.unwrap_or_else(|| "  ".to_owned()), line_end })
    }

    fn root(&self) -> Option<Node> {
        Reader { text: &self.plain, at: 0 }.value()
    }

    fn newline(&self, depth: usize) -> String {
        format!("{}{}", self.line_end, self.unit.repeat(depth))
    }

    /// A group of one hook, that begins so deep.
    fn group(&self, hook: &Hook, depth: usize) -> String {
        let [zero, one, two, three] = [0, 1, 2, 3].map(|more| self.newline(depth + more));
        let command = Value::from(hook.command.as_str());
        format!(
            "{{{one}\"hooks\": [{two}{{{three}\"type\": \"command\",{three}\"command\": {command},{three}\"timeout\": \
             {}{two}}}{one}]{zero}}}",
            hook.timeout
        )
    }

    fn list(&self, hook: &Hook, depth: usize) -> String {
        format!("[{}{}{}]", self.newline(depth + 1), self.group(hook, depth + 1), self.newline(depth))
    }

    fn object(&self, hook: &Hook, depth: usize) -> String {
        let (inner, outer) = (self.newline(depth + 1), self.newline(depth));
        format!("{{{inner}\"{}\": {}{outer}}}", hook.event, self.list(hook, depth + 1))
    }

    /// The text with an entry more at the end of an object or a list, whose entries stand so deep.
    fn insert(&self, within: &Node, depth: usize, entry: &str) -> String {
        let newline = self.newline(depth);
        let Some(last) = within.parts().pop() else {
            let inner = within.at.start + 1..within.at.end - 1;
            // A comment in what is empty stays.
            let kept = self.text[inner.clone()].trim_end();
            let (before, after) = (&self.text[..inner.start], &self.text[inner.end..]);
            return format!("{before}{kept}{newline}{entry}{}{after}", self.newline(depth.saturating_sub(1)));
        };
        let rest = &self.plain[last.end..];
        let line = rest.find('\n').unwrap_or(rest.len());
        let line = rest[..line].trim_end_matches('\r').len();
        // A comment behind the last entry is about that one.
        let is_commented =
            rest[..line].trim().is_empty() && !self.text[last.end..last.end + line].trim().is_empty();
        let at = if is_commented { last.end + line } else { last.end };
        format!("{},{}{newline}{entry}{}", &self.text[..last.end], &self.text[last.end..at], &self.text[at..])
    }

    /// The text without one of the entries of an object or a list.
    fn cut(&self, within: &Node, index: usize) -> String {
        let parts = within.parts();
        let own = parts[index].clone();
        let is_blank =
            |range: Range<usize>| self.text[range].trim_matches([' ', '\t', '\r', '\n', ',']).is_empty();
        let comma = |range: Range<usize>| self.plain[range.clone()].find(',').map(|at| range.start + at);
        let mut gone: Vec<Range<usize>> = Vec::new();
        if let Some(next) = parts.get(index + 1) {
            if is_blank(own.end..next.start) {
                gone.push(own.start..next.start);
            } else {
                gone.push(own.clone());
                gone.extend(comma(own.end..next.start).map(|at| at..at + 1));
            }
        } else if let Some(before) = index.checked_sub(1).map(|before| &parts[before]) {
            if is_blank(before.end..own.start) {
                gone.push(before.end..own.end);
            } else {
                gone.extend(comma(before.end..own.start).map(|at| at..at + 1));
                let blank = self.text[..own.start].trim_end().len();
                gone.push(blank..own.end);
            }
        } else {
            let inner = within.at.start + 1..within.at.end - 1;
            let alone = is_blank(inner.start..own.start) && is_blank(own.end..inner.end);
            gone.push(if alone { inner } else { own });
        }
        let mut kept = String::with_capacity(self.text.len());
        let mut from = 0;
        for range in gone {
            kept.push_str(&self.text[from..range.start]);
            from = range.end;
        }
        kept.push_str(&self.text[from..]);
        kept
    }

    /// What a hook runs.
    fn command(&self, handler: &Node) -> Option<String> {
        let Kind::Object(members) = &handler.kind else { return None };
        serde_json::from_str(&self.plain[member(members, "command")?.at.clone()]).ok()
    }
}

/// Reads where values are. The text is known to be JSON, so what does not fit is no error of anybody's.
struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Node> {
        self.blank();
        let from = self.at;
        let kind = match self.peek()? {
            b'{' => self.object()?,
            b'[' => self.array()?,
            b'"' => {
                self.at = end_of_string(self.text.as_bytes(), self.at)?;
                Kind::Other
            }
            _ => {
                let rest = &self.text[self.at..];
                self.at += rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
                Kind::Other
            }
        };
        Some(Node { at: from..self.at, kind })
    }

    fn object(&mut self) -> Option<Kind> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.blank();
            match self.peek()? {
                b'}' => break,
                b',' => self.at += 1,
                _ => {
                    let from = self.at;
                    self.at = end_of_string(self.text.as_bytes(), from)?;
                    let name = serde_json::from_str(&self.text[from..self.at]).ok()?;
                    self.blank();
                    // The colon.
                    self.at += 1;
                    members.push((name, from, self.value()?));
                }
            }
        }
        self.at += 1;
        Some(Kind::Object(members))
    }

    fn array(&mut self) -> Option<Kind> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.blank();
            match self.peek()? {
                b']' => break,
                b',' => self.at += 1,
                _ => items.push(self.value()?),
            }
        }
        self.at += 1;
        Some(Kind::Array(items))
    }

    fn blank(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hook(event: &str) -> Hook {
        Hook { event: event.to_owned(), command: format!("'/opt/it''s/confidant' hook {event}"), timeout: 5 }
    }

    fn added(text: &str) -> String {
        add(&add(text, &hook("SessionEnd")).unwrap(), &hook("SessionStart")).unwrap()
    }

    fn removed(text: &str) -> String {
        let mut text = text.to_owned();
        while let Some(less) = remove_one(&text, &|command| command.contains("/confidant' hook ")) {
            text = less;
        }
        text
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(&without_comments(text).unwrap()).unwrap()
    }

    const FOREIGN: &str = r#"{
    "model": "opus",   "permissions": {"allow": ["Bash(ls:*)"]},
    "hooks": {
        "SessionEnd": [
            { "hooks": [ { "type": "command", "command": "say \"bye\"" } ] } // mine
        ],
        /* not now
        "Stop": [], */
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check"}]}]
    },
    "z": 1.0e5,
    "a": "ünïcödé \u00e9 // no comment"
}
"#;

    #[test]
    fn what_was_there_comes_back_byte_for_byte() {
        for text in [
            FOREIGN,
            "{}",
            "{\"a\":1}",
            "{\n  \"a\": 1\n}\n",
            "{\r\n\t\"a\": {},\r\n\t\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"x\"}]}]}\r\n}\r\n",
            "{\n  \"a\": 1 // one\n}\n",
            "// all of it\n{\n  // nothing yet\n  \"b\": [1, 2] /* two */\n}",
        ] {
            let with = added(text);
            let hooks = &value(&with)["hooks"];
            for event in ["SessionStart", "SessionEnd"] {
                let last = hooks[event].as_array().unwrap().last().unwrap();
                assert_eq!(last["hooks"][0]["command"], json!(hook(event).command), "{with}");
                assert_eq!(last["hooks"][0]["timeout"], json!(5));
            }
            assert_eq!(removed(&with), text, "{with}");
        }
        assert!(added(FOREIGN).contains("} ] }, // mine\n"));
    }

    #[test]
    fn a_new_file_reads_as_a_person_would_write_it() {
        let expected = "{\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \
                        \"type\": \"command\",\n            \"command\": \"'/opt/it''s/confidant' hook Stop\",\n            \
                        \"timeout\": 5\n          }\n        ]\n      }\n    ]\n  }\n}\n";
        assert_eq!(add("", &hook("Stop")).unwrap(), expected);
        assert_eq!(removed(expected), "{}\n");
    }

    #[test]
    fn what_another_put_into_our_group_stays() {
        let text = r#"{"hooks": {"Stop": [{"hooks": [{"command": "'/x/confidant' hook y"}, {"command": "theirs"}]}]}}"#;
        assert_eq!(removed(text), r#"{"hooks": {"Stop": [{"hooks": [{"command": "theirs"}]}]}}"#);
        let behind = r#"{"hooks": {"Stop": [{"hooks": [{"command": "theirs"}, {"command": "'/x/confidant' hook y"}]}]}}"#;
        assert_eq!(removed(behind), r#"{"hooks": {"Stop": [{"hooks": [{"command": "theirs"}]}]}}"#);
    }

    #[test]
    fn another_form_is_left_alone() {
        for text in [
            "[]",
            "1",
            "{\"hooks\": []}",
            "{\"hooks\": {\"Stop\": {}}}",
            "{\"a\": }",
            "{",
            "/* no end",
            "\"x",
        ] {
            assert_eq!(add(text, &hook("Stop")), None, "{text}");
            assert_eq!(remove_one(text, &|_| true), None, "{text}");
        }
    }

    /// Whatever is changed is JSON still, and what is not JSON is not changed.
    #[test]
    fn a_damaged_file_is_left_alone() {
        for end in 0..FOREIGN.trim_end().len() {
            let Some(text) = FOREIGN.get(..end) else { continue };
            if let Some(with) = add(text, &hook("Stop")) {
                assert!(text.trim().is_empty(), "{end}");
                assert!(serde_json::from_str::<Value>(&with).is_ok(), "{with}");
            }
        }
    }
}
