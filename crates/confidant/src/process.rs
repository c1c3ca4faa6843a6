//! What the operating system is asked for at the start: that the keys in this process stay in it, and enough files.

/// Sees to it that no crash writes keys to a disk, and that no other process of this user can read them from memory.
///
/// Where that is refused, the program runs all the same: it is a second line, not the first.
pub(crate) fn keep_to_itself() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        // Before logging is set up; `doctor` does not need it and an operator can see it in /proc.
        let _ = setrlimit(Resource::Core, none);
    }
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// How many connections there can be of those that are wanted: each is a file, and the rest of the program needs some.
pub(crate) fn connections(wanted: usize) -> usize {
    let files = files(wanted.saturating_add(OTHER_FILES));
    wanted.min(files.saturating_sub(OTHER_FILES)).max(FEWEST)
}

/// Raises the limit of open files as far as is wanted and allowed; says what it is.
#[cfg(unix)]
fn files(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let as_count =
        |files: Option<u64>| files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    let (have, most) = (as_count(limit.current), as_count(limit.maximum));
    if have >= wanted {
        return have;
    }
    let raised = wanted.min(most);
    let asked = Rlimit { current: Some(raised as u64), maximum: limit.maximum };
    if setrlimit(Resource::Nofile, asked).is_ok() { raised } else { have }
}

#[cfg(not(unix))]
fn files(_: usize) -> usize {
    usize::MAX
}

/// Databases, journals, logs, tools, connections to stores and models.
const OTHER_FILES: usize = 512;
const FEWEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_never_take_all_files() {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let most = usize::try_from(limit.maximum.unwrap_or(1 << 40)).expect("a limit is a count");
        let (few, all) = (connections(100), connections(usize::MAX / 2));
        assert!((FEWEST..=100).contains(&few) && all >= FEWEST);
        assert!(most < OTHER_FILES + FEWEST || all + OTHER_FILES <= most);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_of_this_process_is_dumped() {
        use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};
        keep_to_itself();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().expect("Linux tells"), DumpableBehavior::NotDumpable);
    }
}
