//! The environment, read once.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};

/// The variables of this process, as they were at the start. Values may be secrets and print as such.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<String, SecretString>);

impl Environment {
    /// Takes the variables of this process. Those that are not Unicode cannot be ours.
    pub(crate) fn of_this_process() -> Self {
        let unicode = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?.into()))
        };
        Self(std::env::vars_os().filter_map(unicode).collect())
    }

    /// The value of a variable; one that is empty counts as unset.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(SecretString::expose_secret).filter(|value| !value.trim().is_empty())
    }

    /// Whether colours are welcome: <https://no-color.org>.
    pub(crate) fn welcomes_colour(&self) -> bool {
        self.0.get("NO_COLOR").is_none_or(|value| value.expose_secret().is_empty())
            && self.value("TERM") != Some("dumb")
    }

    /// All variables whose names begin like this.
    pub(crate) fn beginning_with(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let named = self.0.iter().map(|(name, value)| (name.as_str(), value.expose_secret()));
        named.filter(move |(name, _)| name.starts_with(prefix))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(vars: [(&str, &str); N]) -> Self {
        Self(vars.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned().into())).collect())
    }
}
