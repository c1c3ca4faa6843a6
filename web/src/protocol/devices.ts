// Devices, their sessions, and tickets for sockets.
//
// The server knows a device by an id and by the day on which it was last seen; its label is sealed. Revoking is a signed request, so that
// whoever stole a session cannot lock the person out.

import { MAX_DEVICES, MAX_FRAME, MAX_KEY } from "./limits";
import { type Value, list, object, optional } from "./shapes";
import { bytes, deviceId, envelope, flag, secret, u32, u64 } from "./values";

/** Asks for the account's devices and sessions. Answer: `devices`. */
export const RequestDevices = object("RequestDevices", () => ({
}), { link: "request_devices" });
export type RequestDevices = Value<typeof RequestDevices>;

/** The account's devices and sessions. */
export const Devices = object("Devices", () => ({
  /** The devices. */
  devices: list(() => Device, MAX_DEVICES),
  /** The sessions that are open. */
  sessions: list(() => Session, MAX_DEVICES),
}), { limit: MAX_FRAME, link: "devices" });
export type Devices = Value<typeof Devices>;

/** A device. */
export const Device = object("Device", () => ({
  /** Its id. */
  device: deviceId,
  /** Its label: account data of the kind `device`, with the device's id as name. Left out if it has none. */
  label: optional(envelope(MAX_KEY)),
  /** When it first came, in milliseconds since 1970. */
  createdAt: u64,
  /** The day on which it was last seen, in days since 1970. */
  lastSeenDay: u32,
  /** Up to which `seq` it has everything. */
  seq: u64,
}));
export type Device = Value<typeof Device>;

/** A session. */
export const Session = object("Session", () => ({
  /** What it is revoked by. Not its secret. */
  session: bytes(16),
  /** Its device. */
  device: deviceId,
  /** Whether it is the one that asks. */
  this: flag,
  /** When it was opened, in milliseconds since 1970. */
  createdAt: u64,
  /** When it ends, in milliseconds since 1970. */
  expiresAt: u64,
  /** The day on which it was last seen, in days since 1970. */
  lastSeenDay: u32,
}));
export type Session = Value<typeof Session>;

/** Gives a device a label. Answer: `devices_changed`. */
export const LabelDevice = object("LabelDevice", () => ({
  /** The device. */
  device: deviceId,
  /** The sealed label. */
  label: envelope(MAX_KEY),
}), { link: "label_device" });
export type LabelDevice = Value<typeof LabelDevice>;

/** A device or session came, went, or got a label. Ask with `request_devices`. */
export const DevicesChanged = object("DevicesChanged", () => ({
}), { link: "devices_changed" });
export type DevicesChanged = Value<typeof DevicesChanged>;

/** Revokes a device with its sessions: the signed body of `devices/revoke`. */
export const RevokeDevice = object("RevokeDevice", () => ({
  /** The device. */
  device: deviceId,
}));
export type RevokeDevice = Value<typeof RevokeDevice>;

/** Revokes a session: the signed body of `sessions/revoke`. */
export const RevokeSession = object("RevokeSession", () => ({
  /** The session, as `devices` names it. */
  session: bytes(16),
}));
export type RevokeSession = Value<typeof RevokeSession>;

/** Asks for a ticket. Needs a session. */
export const TicketRequest = object("TicketRequest", () => ({
}));
export type TicketRequest = Value<typeof TicketRequest>;

/** A ticket for one socket. */
export const Ticket = object("Ticket", () => ({
  /** What `hello` carries: good once, for this session and origin. */
  ticket: secret,
  /** How long it is valid, in milliseconds. */
  expiresMs: u64,
}));
export type Ticket = Value<typeof Ticket>;
