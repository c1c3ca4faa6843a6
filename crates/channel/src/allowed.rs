//! Who may talk to the agent.

/// The people of an operator's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    everyone: bool,
    people: std::collections::BTreeSet<String>,
}

impl Allowed {
    /// A list of platform ids; `*` stands for everyone, and an empty list for nobody.
    #[must_use]
    pub fn new(list: &[String]) -> Self {
        let people = list.iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty());
        let people: std::collections::BTreeSet<String> = people.collect();
        Self { everyone: people.contains("*"), people }
    }

    /// Whether this person is on it.
    #[must_use]
    pub fn has(&self, person: &str) -> bool {
        self.everyone || self.people.contains(person)
    }

    /// Whether nobody is.
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.people.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_is_nobody_and_a_star_is_everyone() {
        let list = |of: &[&str]| Allowed::new(&of.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
        assert!(!list(&[]).has("1") && list(&[""]).is_nobody());
        assert!(list(&["*"]).has("1") && list(&["2", " * "]).has("1"));
        assert!(list(&["1"]).has("1") && !list(&["1"]).has("11"));
    }
}
