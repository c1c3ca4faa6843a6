//! What an error's message tells: what happened, and what to do next.

use std::error::Error;

/// The two parts of what an error says. Every error has them.
pub trait Hinted: Error {
    /// What happened.
    fn what(&self) -> String {
        let message = self.to_string();
        parted(&message).map_or(message.as_str(), |(what, _)| what).to_owned()
    }

    /// What to do next, where the error says so.
    fn hint(&self) -> Option<String> {
        parted(&self.to_string()).map(|(_, hint)| hint.to_owned())
    }

    /// Both, with a hint for an error that has none.
    fn what_and_hint(&self, otherwise: &str) -> (String, String) {
        let message = self.to_string();
        let (what, hint) = parted(&message).unwrap_or((&message, otherwise));
        (what.to_owned(), hint.to_owned())
    }
}

impl<E: Error + ?Sized> Hinted for E {}

/// The same for an error of which only the text is left: what happened and what to do next, if it has both.
/// The hint begins after the first separator; another one belongs to it.
#[must_use]
pub fn parted(message: &str) -> Option<(&str, &str)> {
    message.split_once(SEPARATOR)
}

const SEPARATOR: &str = "; hint: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Said(&'static str);

    impl std::fmt::Display for Said {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Said {}

    #[test]
    fn an_error_parts_at_its_first_hint() {
        for (message, what, hint) in [
            ("it is full; hint: free some space", "it is full", Some("free some space")),
            ("a; b; hint: c; d", "a; b", Some("c; d")),
            ("a; hint: b; hint: c", "a", Some("b; hint: c")),
            ("it is full", "it is full", None),
            ("it is full; free some space", "it is full; free some space", None),
            ("it is full; hint:", "it is full; hint:", None),
            ("it is full; hint: ", "it is full", Some("")),
            ("; hint: free some space", "", Some("free some space")),
            ("; hint: ", "", Some("")),
            ("", "", None),
        ] {
            let error = Said(message);
            assert_eq!(parted(message), hint.map(|hint| (what, hint)), "{message:?}");
            assert_eq!((error.what(), error.hint().as_deref()), (what.to_owned(), hint), "{message:?}");
            let both = (what.to_owned(), hint.unwrap_or("try again").to_owned());
            assert_eq!(error.what_and_hint("try again"), both, "{message:?}");
        }
    }

    #[test]
    fn a_boxed_error_has_the_same_parts() {
        let error: Box<dyn Error> = Box::new(Said("a; hint: b"));
        assert_eq!(error.as_ref().what_and_hint("c"), ("a".to_owned(), "b".to_owned()));
    }
}
