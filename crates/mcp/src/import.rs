//! Where session files are looked for.

use std::path::{Path, PathBuf};

use confidant_memory::import::{Agent, Root};

use super::failure::Failure;

/// A file or folder that was named, or the agents' usual places below a home folder.
pub fn root(path: Option<PathBuf>, agent: Option<Agent>, home: Option<PathBuf>) -> Result<Root, Failure> {
    match (path, agent, home) {
        (Some(path), agent, home) => Ok(Root::Path { path: below_home(path, home.as_deref()), agent }),
        (None, None, Some(home)) => Ok(Root::Home(home)),
        (None, Some(_), _) => {
            Err(Failure::invalid("\"agent\" was given without \"path\"", "say where that agent's files are"))
        }
        (None, None, None) => {
            Err(Failure::invalid("\"path\" is missing", "give a session file, or a folder of such files"))
        }
    }
}

/// `~/…` as a shell reads it: an agent that names a path has no shell between.
fn below_home(path: PathBuf, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_folder() {
        let home = Some(Path::new("/home/a"));
        for (path, home, expected) in [
            ("~/.claude/projects", home, "/home/a/.claude/projects"),
            ("~", home, "/home/a"),
            ("~x/y", home, "~x/y"),
            ("/a/~/b", home, "/a/~/b"),
            ("~/x", None, "~/x"),
        ] {
            assert_eq!(below_home(path.into(), home), Path::new(expected), "{path}");
        }
    }
}
