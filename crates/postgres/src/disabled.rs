//! What stands in for PostgreSQL where it is not built in: no address can be had, so nothing of the rest can be called.

use std::convert::Infallible;

/// The address of a database, which this program was built without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresAddress(Infallible);

impl PostgresAddress {
    /// Says that there is none.
    pub fn parse(_: &str) -> Result<Self, String> {
        Err("this program was built without PostgreSQL; hint: `scripts/run --all` or `cargo build --release -p confidant` builds it, \
             or use another address"
            .to_owned())
    }

    /// The same address with this password.
    #[must_use]
    pub fn with_password(self, _: &str) -> Self {
        self
    }

    /// Hosts and database, for people to see.
    #[must_use]
    pub fn shown(&self) -> String {
        self.never()
    }

    /// Whoever has an address can do anything with it.
    pub fn never(&self) -> ! {
        match self.0 {}
    }
}
