//! Programs that the user configured, run so that they end with us and see no key of ours.

use std::io;

use tokio::process::{Child, Command};

/// A process and those that it started. Unless it is done, all end when this is dropped.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) child: Child,
    pub(crate) is_done: bool,
}

impl Group {
    /// Starts a command without the environment variables that it must not see.
    pub(crate) fn start(command: &mut Command, hidden: &[String]) -> io::Result<Self> {
        for variable in hidden {
            command.env_remove(variable);
        }
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        Ok(Self { child: command.spawn()?, is_done: false })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        #[cfg(unix)]
        if let Some(leader) = self.child.id().and_then(|id| i32::try_from(id).ok())
            && let Some(leader) = rustix::process::Pid::from_raw(leader)
        {
            // It may have ended by itself.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}
