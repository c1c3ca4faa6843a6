//! Hooks in Codex's `config.toml`, put in and taken out as whole groups of lines: comments, order and spaces of all other
//! lines stay.
//!
//! A group is what stands from `[[hooks.EVENT]]` to the next table that is not `[[hooks.EVENT.hooks]]`. Codex itself may
//! have written tables behind ours, so only lines of a group go, and only if all it runs is ours. Whoever calls checks
//! afterwards that nothing else changed.

use super::Hook;

/// Puts a hook at the end.
pub(super) fn add(text: &str, hook: &Hook) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    // A string of JSON is one of TOML.
    let (event, command) = (&hook.event, serde_json::Value::from(hook.command.as_str()));
    format!(
        "{text}{gap}{COMMENT}\n[[hooks.{event}]]\n[[hooks.{event}.hooks]]\ntype = \"command\"\ncommand = {command}\n\
         timeout = {}\n",
        hook.timeout
    )
}

/// Takes all hooks out that are ours.
pub(super) fn remove(text: &str, is_ours: &dyn Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut kept: Vec<&str> = Vec::with_capacity(lines.len());
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if let Some(event) = event_of(line) {
            let end = end_of_group(&lines, at, event);
            if commands(&lines[at..end].concat()).is_some_and(|all| all.iter().all(|one| is_ours(one))) {
                if kept.last().is_some_and(|line| line.trim() == COMMENT) {
                    kept.pop();
                }
                if kept.last().is_some_and(|line| line.trim().is_empty()) {
                    kept.pop();
                }
                at = end;
                continue;
            }
        }
        kept.push(line);
        at += 1;
    }
    kept.concat()
}

/// The event of a line such as `[[hooks.Stop]]`.
fn event_of(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix("[[hooks.")?.strip_suffix("]]")?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(name)
}

/// Behind the last line of a group that says something.
fn end_of_group(lines: &[&str], from: usize, event: &str) -> usize {
    let inner = format!("[[hooks.{event}.hooks]]");
    let is_another = |line: &&&str| line.trim_start().starts_with('[') && line.trim() != inner;
    let rest = &lines[from + 1..];
    let mut end = from + 1 + rest.iter().position(|line| is_another(&line)).unwrap_or(rest.len());
    let says_nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    while end > from + 1 && says_nothing(lines[end - 1]) {
        end -= 1;
    }
    end
}

/// What a group runs; nothing if it runs nothing, or something that is no command.
fn commands(group: &str) -> Option<Vec<String>> {
    let table: toml::Table = toml::from_str(group).ok()?;
    let groups = table.get("hooks")?.as_table()?.values().next()?.as_array()?;
    let mut commands = Vec::new();
    for handler in groups.iter().filter_map(|group| group.get("hooks")?.as_array()).flatten() {
        commands.push(handler.get("command")?.as_str()?.to_owned());
    }
    (!commands.is_empty()).then_some(commands)
}

const COMMENT: &str = "# Confidant's memory: `confidant memory hooks remove codex` takes this out.";

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(event: &str) -> Hook {
        Hook {
            event: event.to_owned(),
            command: format!("'/opt/a \"b\"/confidant' hook {event}"),
            timeout: 5,
        }
    }

    fn is_ours(command: &str) -> bool {
        command.contains("/confidant' hook ")
    }

    const FOREIGN: &str = "# mine\nmodel = \"o4\"  # the best\nnotify = [\"say\", \"done\"]\n\n[[hooks.Stop]]\n\
                           [[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"theirs\"\n\n[mcp_servers.x]\ncommand = \"y\"\n";

    #[test]
    fn what_was_there_comes_back_byte_for_byte() {
        for text in [FOREIGN, "", "a = 1\n"] {
            let with = add(&add(text, &hook("SessionStart")), &hook("Stop"));
            let table: toml::Table = toml::from_str(&with).unwrap();
            let last = table["hooks"]["Stop"].as_array().unwrap().last().unwrap();
            assert_eq!(last["hooks"][0]["command"].as_str(), Some(hook("Stop").command.as_str()));
            assert_eq!(remove(&with, &is_ours), text);
        }
        let bare = remove(&add("a = 1", &hook("Stop")), &is_ours);
        assert_eq!(bare.trim_end(), "a = 1");
    }

    #[test]
    fn what_another_wrote_behind_or_into_a_group_stays() {
        let behind = "[hooks.state.\"x:stop:0\"]\ntrusted_hash = \"sha256:1\"\n";
        let with = format!("{}{behind}", add(FOREIGN, &hook("Stop")));
        assert_eq!(remove(&with, &is_ours), format!("{FOREIGN}{behind}"));
        let into = format!(
            "{}[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"more\"\n",
            add("", &hook("Stop"))
        );
        assert_eq!(remove(&into, &is_ours), into);
    }
}
