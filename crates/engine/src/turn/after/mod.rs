//! What is left to do when a turn is over, or was cut off: decisions that come later, turns of dead processes, answers that the
//! log could not take, and turns that another process runs.

pub(super) mod decide;
pub(super) mod elsewhere;
pub(crate) mod forgotten;
pub(super) mod left_open;
pub(super) mod pay;
pub(super) mod recorded;
pub(super) mod remote;
pub(super) mod resume;
pub(super) mod unfinished;
