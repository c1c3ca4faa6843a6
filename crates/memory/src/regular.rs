//! Files that somebody named, opened so that a name can neither lead elsewhere nor make a thread wait.
//!
//! A link leads to a file that was not named; opening a named pipe waits until somebody writes to it, which may be never; and
//! opening some devices does something. Easy to get wrong: what was looked at by its name may be another thing by the time it
//! is opened, so it is opened first, without following and without waiting, and then the open file is asked what it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file for reading. Its last name may not be a link.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    if path.symlink_metadata()?.is_symlink() {
        return Err(not_regular());
    }
    let file = options.open(path).map_err(named)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// The same for a file that whoever runs the machine has named, as in settings: a link of theirs is resolved first, since
/// that is how Kubernetes and others hand files in. What it leads to must be a regular file.
pub fn open_linked(path: &Path) -> io::Result<File> {
    open(&path.canonicalize()?)
}

/// The whole of a file that [`open_linked`] opens, as text.
pub fn read_linked(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_linked(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Says of a link what it is: the system's own word for it is that there are too many of them. A socket cannot be opened at all.
fn named(error: io::Error) -> io::Error {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let code = error.raw_os_error();
        if [Errno::LOOP, Errno::NXIO, Errno::OPNOTSUPP].iter().any(|one| code == Some(one.raw_os_error())) {
            return not_regular();
        }
    }
    error
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// Whether an error of this module says that there is something, which is not a regular file.
#[must_use]
pub fn is_not_regular(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// Why a file was not read, in words for whoever named it.
#[must_use]
pub fn why(error: &io::Error) -> String {
    if is_not_regular(error) { "it is not a regular file".to_owned() } else { error.kind().to_string() }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "words").expect("a file");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("a link");
        std::os::unix::fs::symlink(at("pipe"), at("to-pipe")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo runs");
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        assert!(open(&at("file")).is_ok());
        for name in ["link", "pipe", "socket", "to-pipe", "."] {
            let error = open(&at(name)).expect_err(name);
            assert!(is_not_regular(&error), "{name}: {error}");
        }
        assert!(is_not_regular(&open(Path::new("/dev/null")).expect_err("a device")));
        assert_eq!(open(&at("nothing")).expect_err("nothing").kind(), io::ErrorKind::NotFound);
        assert_eq!(read_linked(&at("link")).expect("a link of whoever runs the machine"), "words");
        assert!(is_not_regular(&open_linked(&at("to-pipe")).expect_err("it leads to a pipe")));
    }
}
