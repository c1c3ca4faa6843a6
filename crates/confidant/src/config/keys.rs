//! `[keys]`: where the master key comes from, when the environment does not say.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeysSection {
    /// A file that holds it.
    pub(crate) file: Option<PathBuf>,
    /// A program with its arguments that prints it, such as a vault's.
    pub(crate) command: Vec<String>,
}
