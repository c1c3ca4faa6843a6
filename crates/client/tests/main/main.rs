//! The client against the real service, in one process.

mod accounts;
mod convergence;
mod devices;
mod malicious;
mod world;
