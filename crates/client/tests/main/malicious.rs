//! A server that lies.
