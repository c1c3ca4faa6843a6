//! What a person hears of work that comes to no end: which calls were made, which were not, and of which nobody knows.

use crate::approval::Work;
use crate::turn::calls::NOT_CALLED;

/// The tools that were called and have said something, in their order.
pub(in crate::turn) fn called(work: &Work) -> Vec<&str> {
    let done = work.done.iter().flat_map(|step| step.calls.iter().zip(&step.results));
    let begun = work.current.iter().flat_map(|current| current.calls.iter().zip(&current.results));
    let begun = begun.filter_map(|(call, result)| Some((call, result.as_ref()?)));
    let called = done.chain(begun).filter(|(_, result)| !result.starts_with(NOT_CALLED));
    called.map(|(call, _)| call.name.as_str()).collect()
}

/// The calls of a turn that ends here, in words.
pub(in crate::turn) fn told(work: &Work) -> String {
    let (called, current) = (called(work), work.current.as_ref());
    let calling = work.calling.and_then(|at| current?.calls.get(at));
    let waiting = work.waiting_call().filter(|_| work.approval.is_some() && calling.is_none());
    let mut told = Vec::new();
    if !called.is_empty() {
        told.push(format!("I had already called {}; that has not been undone.", called.join(", ")));
    }
    if let Some(call) = calling {
        let name = &call.name;
        told.push(format!(
            "I also called {name}, but whether it took effect is not known: please check before you ask again."
        ));
    }
    if let Some((_, call)) = waiting {
        told.push(format!("{} was not called.", call.name));
    }
    if told.is_empty() { "Nothing was done.".to_owned() } else { told.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::Current;
    use confidant_model::{Step, ToolCall};

    fn call(name: &str) -> ToolCall {
        let arguments = serde_json::json!({});
        ToolCall { id: String::new(), name: name.to_owned(), arguments, signatures: Vec::new() }
    }

    #[test]
    fn what_was_done_is_told_apart_from_what_was_not() {
        let mut work = Work::default();
        assert_eq!(told(&work), "Nothing was done.");
        let results = vec!["The tool said".to_owned(), format!("{NOT_CALLED}it was denied.")];
        work.done =
            vec![Step { text: String::new(), calls: vec![call("a.read"), call("a.denied")], results }];
        assert_eq!(told(&work), "I had already called a.read; that has not been undone.");
        work.current = Some(Current::new(String::new(), vec![call("a.write")]));
        work.calling = Some(0);
        assert!(told(&work).contains("I also called a.write, but whether it took effect is not known"));
    }
}
