//! The routes and the socket as clients and attackers meet them: over real connections to a port of this machine.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod attacks;
mod device;
mod guessing;
mod random;
mod routes;
mod sockets;
mod streams;
mod world;
