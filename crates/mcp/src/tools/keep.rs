//! The keeper of a server's process: `confidant tools keep -- PROGRAM`, which nobody but us calls.
//!
//! A process that is killed cannot end those it started, and a server that hangs does not notice that nobody is there any
//! more. So a small process stands in between. It hands our messages on, and when there will be no more of them, because
//! the connection was closed or because we are gone, it gives the server a moment and then ends the whole process group,
//! itself included. What the server says goes to us directly.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use rustix::process::{Signal, getpgrp, getpid, kill_process_group};

/// Runs the program until it or its messages end. Does not return if that went well.
pub fn keep(command: &[OsString]) -> anyhow::Result<()> {
    // It would end the group that it was started in, which is only meant to be its own.
    if getpgrp() != getpid() {
        return Err(anyhow!(
            "this command needs a process group of its own; hint: only Confidant itself runs it"
        ));
    }
    let (program, arguments) = command.split_first().ok_or_else(|| anyhow!("no program is named"))?;
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn()?;
    let mut messages = child.stdin.take().ok_or_else(|| anyhow!("the program has no stdin"))?;
    let (ended, end) = mpsc::channel();
    let child_ended = ended.clone();
    thread::spawn(move || {
        let _ = child.wait();
        let _ = child_ended.send(End::Program);
    });
    thread::spawn(move || {
        // That the program does not listen any more is for the other thread to find.
        let _ = io::copy(&mut io::stdin().lock(), &mut messages);
        drop(messages);
        let _ = ended.send(End::Messages);
    });
    if end.recv() == Ok(End::Messages) {
        let _ = end.recv_timeout(PATIENCE);
    }
    kill_process_group(getpgrp(), Signal::KILL)?;
    Ok(())
}

/// What came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Program,
    Messages,
}

/// Less than we are patient ourselves, so that it is done by then.
const PATIENCE: Duration = Duration::from_secs(2);
