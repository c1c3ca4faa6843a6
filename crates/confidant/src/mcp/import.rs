//! Where session files are looked for.

use std::path::PathBuf;

use confidant_memory::import::{Agent, Root};

use super::failure::Failure;

/// A file or folder that was named, or the agents' usual places below a home folder.
pub(crate) fn root(
    path: Option<PathBuf>,
    agent: Option<Agent>,
    home: Option<PathBuf>,
) -> Result<Root, Failure> {
    match (path, agent, home) {
        (Some(path), agent, _) => Ok(Root::Path { path, agent }),
        (None, None, Some(home)) => Ok(Root::Home(home)),
        (None, Some(_), _) => {
            Err(Failure::invalid("\"agent\" was given without \"path\"", "say where that agent's files are"))
        }
        (None, None, None) => {
            Err(Failure::invalid("\"path\" is missing", "give a session file, or a folder of such files"))
        }
    }
}
