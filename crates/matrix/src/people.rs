//! Who may talk to the agent, by Matrix id. Pure.

use confidant_channel::Allowed;

/// The people of an operator's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    named: Allowed,
    /// Servers all of whose people are meant.
    servers: Vec<String>,
}

impl People {
    /// A list of Matrix ids; `*:server` stands for everyone of a server, `*` for everyone, an empty list for nobody.
    #[must_use]
    pub fn new(list: &[String]) -> Self {
        let servers = list.iter().filter_map(|one| one.trim().strip_prefix("*:"));
        let servers = servers.filter(|server| !server.is_empty()).map(str::to_owned).collect();
        Self { named: Allowed::new(list), servers }
    }

    /// Whether this person is on it.
    #[must_use]
    pub fn has(&self, person: &str) -> bool {
        // The server is everything after the first colon: a server's name may have a port, a localpart has no colon.
        let server = person.split_once(':').map(|(_, server)| server);
        self.named.has(person) || server.is_some_and(|server| self.servers.iter().any(|one| one == server))
    }

    /// Whether nobody is.
    #[must_use]
    pub fn is_nobody(&self) -> bool {
        self.named.is_nobody()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_named_one_by_one_or_by_their_server() {
        let list = |of: &[&str]| People::new(&of.iter().map(|&one| one.to_owned()).collect::<Vec<_>>());
        assert!(list(&["*"]).has("@a:x") && !list(&[]).has("@a:x") && list(&[" "]).is_nobody());
        assert!(list(&["@a:x"]).has("@a:x") && !list(&["@a:x"]).has("@a:xy"));
        let server = list(&["*:x.org:8448"]);
        assert!(server.has("@a:x.org:8448") && !server.has("@a:x.org") && !server.has("@x.org:8448:y"));
        assert!(!list(&["*:"]).has("@a:") && !list(&["*:x"]).has("x") && !list(&["*:x"]).is_nobody());
    }
}
