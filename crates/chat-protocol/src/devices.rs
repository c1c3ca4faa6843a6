//! Devices, their sessions, and tickets for sockets.
//!
//! The server knows a device by an id and by the day on which it was last seen; its label is sealed. Revoking is a
//! signed request, so that whoever stole a session cannot lock the person out.

use confidant_chat_format::DeviceId;

use crate::limits::{MAX_DEVICES, MAX_FRAME, MAX_KEY};
use crate::lists::List;
use crate::shapes::objects;
use crate::values::{Bytes, Envelope, Secret};

objects! {
    /// Asks for the account's devices and sessions. Answer: `devices`.
    pub struct RequestDevices {}

    /// The account's devices and sessions.
    pub struct Devices (limit MAX_FRAME) {
        /// The devices.
        pub devices: List<Device, MAX_DEVICES>,
        /// The sessions that are open.
        pub sessions: List<Session, MAX_DEVICES>,
    }

    /// A device.
    pub struct Device {
        /// Its id.
        pub device: DeviceId,
        /// Its label: account data of the kind `device`, with the device's id as name. Left out if it has none.
        pub label: Option<Envelope<MAX_KEY>>,
        /// When it first came, in milliseconds since 1970.
        pub created_at: u64,
        /// The day on which it was last seen, in days since 1970.
        pub last_seen_day: u32,
        /// Up to which `seq` it has everything.
        pub seq: u64,
    }

    /// A session.
    pub struct Session {
        /// What it is revoked by. Not its secret.
        pub session: Bytes<16>,
        /// Its device.
        pub device: DeviceId,
        /// Whether it is the one that asks.
        pub this: bool,
        /// When it was opened, in milliseconds since 1970.
        pub created_at: u64,
        /// When it ends, in milliseconds since 1970.
        pub expires_at: u64,
        /// The day on which it was last seen, in days since 1970.
        pub last_seen_day: u32,
    }

    /// Gives a device a label. Answer: `devices_changed`.
    pub struct LabelDevice {
        /// The device.
        pub device: DeviceId,
        /// The sealed label.
        pub label: Envelope<MAX_KEY>,
    }

    /// A device or session came, went, or got a label. Ask with `request_devices`.
    pub struct DevicesChanged {}

    /// Revokes a device with its sessions: the signed body of `devices/revoke`.
    pub struct RevokeDevice {
        /// The device.
        pub device: DeviceId,
    }

    /// Revokes a session: the signed body of `sessions/revoke`.
    pub struct RevokeSession {
        /// The session, as `devices` names it.
        pub session: Bytes<16>,
    }

    /// Asks for a ticket. Needs a session.
    pub struct TicketRequest {}

    /// A ticket for one socket.
    pub struct Ticket {
        /// What `hello` carries: good once, for this session and origin.
        pub ticket: Secret,
        /// How long it is valid, in milliseconds.
        pub expires_ms: u64,
    }
}
