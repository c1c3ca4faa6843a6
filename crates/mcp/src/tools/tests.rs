//! The toolbox against servers that misbehave: `tests/tool_server.py`, over both transports.

mod behaviour;
mod ends;
mod modern;
mod rig;
