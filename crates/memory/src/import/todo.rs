//! The to-do lists that agents keep through their tools.
//!
//! Two kinds: tools that write the whole list each time (the last list holds), and tools that add and change items. Only
//! what is still open comes out.

use serde_json::Value;

use super::text;

/// A to-do list.
#[derive(Default)]
pub(crate) struct Todos {
    items: Vec<(String, bool)>,
}

impl Todos {
    /// Takes note of a tool call, if the tool keeps a list.
    pub(crate) fn see(&mut self, tool: &str, input: &Value) {
        match tool {
            "TodoWrite" | "todowrite" | "todo_write" | "write_todos" => self.replace(input.get("todos")),
            "update_plan" => self.replace(input.get("plan")),
            "TaskCreate" => self.add(input),
            "TaskUpdate" => self.change(input),
            _ => {}
        }
    }

    /// A whole list.
    pub(crate) fn replace(&mut self, list: Option<&Value>) {
        if let Some(Value::Array(list)) = list {
            self.items.clear();
            list.iter().for_each(|item| self.add(item));
        }
    }

    /// What is left to do.
    pub(crate) fn open(self) -> Vec<String> {
        self.items.into_iter().filter(|(_, is_open)| *is_open).map(|(what, _)| what).collect()
    }

    fn add(&mut self, item: &Value) {
        let names = ["content", "step", "description", "subject", "title", "text"];
        let first = if item.get("subject").is_some() { text::member(item, "subject") } else { None };
        let what = first.or_else(|| names.iter().find_map(|name| text::member(item, name)));
        let what = what.or_else(|| item.as_str());
        if let Some(what) = what.filter(|what| what.len() <= LONGEST && self.items.len() < MOST) {
            self.items.push((what.to_owned(), is_open(item)));
        }
    }

    /// Items are numbered from 1 in the order in which they were added.
    fn change(&mut self, input: &Value) {
        let number = text::member(input, "taskId").and_then(|id| id.parse::<usize>().ok());
        let item = number.and_then(|number| number.checked_sub(1)).and_then(|at| self.items.get_mut(at));
        if let Some((what, open)) = item {
            if input.get("status").is_some() {
                *open = is_open(input);
            }
            if let Some(subject) = text::member(input, "subject").filter(|subject| subject.len() <= LONGEST) {
                subject.clone_into(what);
            }
        }
    }
}

fn is_open(item: &Value) -> bool {
    !matches!(
        item.get("status").and_then(Value::as_str),
        Some("completed" | "cancelled" | "done" | "deleted")
    )
}

const LONGEST: usize = 16 << 10;
const MOST: usize = 1000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_list_holds() {
        let mut todos = Todos::default();
        todos.see("TodoWrite", &json!({"todos": [{"content": "a", "status": "pending"}]}));
        todos.see("update_plan", &json!({"plan": [{"step": "b", "status": "completed"}, {"step": "c"}]}));
        todos.see("Bash", &json!({"todos": []}));
        assert_eq!(todos.open(), ["c"]);
    }

    #[test]
    fn items_can_be_added_and_closed() {
        let mut todos = Todos::default();
        todos.see("TaskCreate", &json!({"subject": "a", "description": "long"}));
        todos.see("TaskCreate", &json!({"subject": "b"}));
        todos.see("TaskUpdate", &json!({"taskId": "1", "status": "completed"}));
        todos.see("TaskUpdate", &json!({"taskId": "0", "status": "completed"}));
        todos.see("TaskUpdate", &json!({"taskId": "9", "status": "completed"}));
        assert_eq!(todos.open(), ["b"]);
    }
}
