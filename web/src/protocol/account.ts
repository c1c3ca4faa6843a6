// The account: floors and manifest on the socket; credentials, export, erasure and restore as signed requests.
//
//   POST /account/restore/begin  account, login, the operator's code ──▶ salt, challenge, what is left of the account
//   POST /account/restore        Signed(Restore) ──▶ session
//   POST /account/restore/rings  Signed(RestoreRings) ──▶ which chats can be opened again
//
// Easy to get wrong: removing a credential by a plain change. A removed credential knows the account key, so removal is a rotation; a
// change only adds, or replaces what the person still holds.

import { FloorPut } from "./chats";
import { HeadPut, KeyEntry, MailboxPut, RingRows } from "./keys";
import { MAX_CREDENTIALS, MAX_FRAME, MAX_INVITE, MAX_KEY, MAX_RECEIPT, MAX_RING, MAX_RINGS, MAX_SIGNED, SHELVES } from "./limits";
import { type Value, list, object, optional, words } from "./shapes";
import { accountId, bytes, chatId, credentialId, deviceId, envelope, flag, login, secret, text, totp, u32 } from "./values";

/** What kind of credential. */
export const CredentialKind = words("CredentialKind", [
  /** A password. An account has at most one. */
  "password",
  /** A passkey with PRF. */
  "passkey",
  /** A recovery code. An account has at most one; using it replaces it. */
  "recovery",
]);
export type CredentialKind = Value<typeof CredentialKind>;

/** Why a device was logged out. */
export const LogoutReason = words("LogoutReason", [
  /** The session or its device was revoked. */
  "revoked",
  /** Credentials changed. */
  "changed",
  /** The account key changed. */
  "rotated",
  /** The session expired. */
  "expired",
  /** The account was erased. Erase this device's copy too. */
  "erased",
]);
export type LogoutReason = Value<typeof LogoutReason>;

/** A manifest that is written. Its revision is one more than that of the one before, else `write_conflict`. */
export const ManifestPut = object("ManifestPut", () => ({
  /** The manifest after this write. */
  head: HeadPut,
  /** The next entry of the account's ring. */
  ring: optional(KeyEntry),
  /** The next entry of the mailbox's ring. */
  mailbox: optional(MailboxPut),
}));
export type ManifestPut = Value<typeof ManifestPut>;

/**
 * Writes floors and the manifest, within 60 seconds of a write to a chat that left them out. Answer:
 * `manifest_stored`; the account's other devices get `account_updated`.
 */
export const UpdateManifest = object("UpdateManifest", () => ({
  /** The floors that changed. */
  floors: list(() => FloorPut, SHELVES),
  /** The manifest. */
  manifest: ManifestPut,
}), { link: "update_manifest" });
export type UpdateManifest = Value<typeof UpdateManifest>;

/** The manifest was stored. */
export const ManifestStored = object("ManifestStored", () => ({
  /** Its revision. */
  rev: u32,
}), { link: "manifest_stored" });
export type ManifestStored = Value<typeof ManifestStored>;

/** The session is over. The server closes the socket after it. */
export const ForceLogout = object("ForceLogout", () => ({
  /** Why. */
  reason: LogoutReason,
}), { link: "force_logout" });
export type ForceLogout = Value<typeof ForceLogout>;

/** A credential, as the server keeps it. */
export const NewCredential = object("NewCredential", () => ({
  /** What kind. */
  kind: CredentialKind,
  /** Its id; left out for a password, which is found by the login. */
  id: optional(credentialId),
  /** The public key that its proofs are checked with. */
  publicKey: bytes(32),
  /** The account key, sealed for it. */
  wrap: envelope(MAX_KEY),
}));
export type NewCredential = Value<typeof NewCredential>;

/** Codes of an authenticator, asked for with the password from now on. */
export const TotpSetup = object("TotpSetup", () => ({
  /** What the authenticator was given. */
  secret: secret,
  /** A code, to show that it has it. */
  code: totp,
}));
export type TotpSetup = Value<typeof TotpSetup>;

/** Asks for the ways to log in that the account has. */
export const RequestCredentials = object("RequestCredentials", () => ({
}));
export type RequestCredentials = Value<typeof RequestCredentials>;

/** The ways to log in that the account has. What each is called is account data of the kind `credential`, with its id as name. */
export const CredentialList = object("CredentialList", () => ({
  /** Each of them. */
  credentials: list(() => CredentialLine, MAX_CREDENTIALS),
  /** Whether the password is asked for with a code of an authenticator. */
  totp: flag,
}));
export type CredentialList = Value<typeof CredentialList>;

/** A way to log in. */
export const CredentialLine = object("CredentialLine", () => ({
  /** What kind. */
  kind: CredentialKind,
  /** Its id; left out for a password. */
  id: optional(credentialId),
}));
export type CredentialLine = Value<typeof CredentialLine>;

/** Adds credentials, or replaces those of the same kind and id. Removing one is a rotation. */
export const ChangeCredentials = object("ChangeCredentials", () => ({
  /** The revision of the account before; else `conflict`. */
  accountRev: u32,
  /** The credentials, each with the account key sealed for the next revision. */
  credentials: list(() => NewCredential, MAX_CREDENTIALS),
  /** Sets up codes of an authenticator. */
  totp: optional(TotpSetup),
  /** Asks for no more codes. */
  totpOff: flag,
}));
export type ChangeCredentials = Value<typeof ChangeCredentials>;

/**
 * Replaces the password and the recovery code that signs this, in one step. Log in with the code first, for the
 * wrap.
 */
export const Recover = object("Recover", () => ({
  /** The revision of the account before; else `conflict`. */
  accountRev: u32,
  /** The new password. */
  password: NewCredential,
  /** The new recovery code. The used one no longer works. */
  recovery: NewCredential,
}));
export type Recover = Value<typeof Recover>;

/** The account changed. Other sessions are closed where the change says so. */
export const AccountChanged = object("AccountChanged", () => ({
  /** The revision of the account now. */
  accountRev: u32,
  /** The generation of the account key now. */
  generation: u32,
}));
export type AccountChanged = Value<typeof AccountChanged>;

/**
 * Asks for everything that the server has of the account. The answer is frames of server events, one per line:
 * `account_state`, `data_records`, `devices`, chats as `chat_content_batch_response`, embeds included, then
 * `phased_sync_complete`.
 */
export const Export = object("Export", () => ({
  /** The account. */
  account: accountId,
}));
export type Export = Value<typeof Export>;

/** Erases the account: every row, key, device, session and cache. */
export const Erase = object("Erase", () => ({
  /** The account. */
  account: accountId,
}));
export type Erase = Value<typeof Erase>;

/** The account is erased. */
export const Erased = object("Erased", () => ({
  /** The receipt, as `confidant audit verify --receipt` reads it. */
  receipt: text(MAX_RECEIPT),
}), { limit: MAX_FRAME });
export type Erased = Value<typeof Erased>;

/** Asks to put an account back that the server has lost, or cannot open any more. */
export const RestoreBegin = object("RestoreBegin", () => ({
  /** The account. */
  account: accountId,
  /** The login that it shall have. */
  login: login,
  /** The code that the operator made for this account. */
  code: text(MAX_INVITE),
}));
export type RestoreBegin = Value<typeof RestoreBegin>;

/** What the server has of the account, and what to make its credentials with. */
export const RestoreOffer = object("RestoreOffer", () => ({
  /** The profile, 1. */
  profile: u32,
  /** The server's half of the salt. */
  serverSalt: bytes(16),
  /** The challenge to sign, with the purpose `restore`. */
  challenge: secret,
  /** The newest revision of the account that the server has, or remembers; 0 if there is none. */
  accountRev: u32,
  /** The generation of the account key that the server has; 0 if it has nothing. */
  generation: u32,
}));
export type RestoreOffer = Value<typeof RestoreOffer>;

/**
 * Puts an account back, signed by one of the new credentials. Nothing of it is taken from an account that can be
 * opened, or that was erased.
 */
export const Restore = object("Restore", () => ({
  /** The account. */
  account: accountId,
  /** Its login. */
  login: login,
  /** The revision of the account from now on: more than what the server has. */
  accountRev: u32,
  /** The generation of the account key. */
  generation: u32,
  /** The credentials, each with the account key sealed for the new revision; all others are gone. */
  credentials: list(() => NewCredential, MAX_CREDENTIALS),
  /** The account's ring: every entry that the server has, or all of them. */
  ring: list(() => KeyEntry, MAX_RING),
  /** The mailbox's ring, likewise. */
  mailbox: list(() => MailboxPut, MAX_RING),
  /**
   * Floors and manifest, at revision 1, to begin anew: what the server still has of the account goes. Left out, the
   * server keeps chats, floors and manifest as they are; then it has to have them, else `conflict`.
   */
  first: optional(FirstManifest),
  /** The device that writes this. */
  device: deviceId,
}), { limit: MAX_SIGNED });
export type Restore = Value<typeof Restore>;

/** Puts rings of chats back whose keys the server has lost. */
export const RestoreRings = object("RestoreRings", () => ({
  /** The rings of chats: of each, every entry that the server has. */
  rings: list(() => RingRows, MAX_RINGS),
}), { limit: MAX_SIGNED });
export type RestoreRings = Value<typeof RestoreRings>;

/** Rings that were put back. */
export const RingsRestored = object("RingsRestored", () => ({
  /** How many the server had lost and has again. */
  restored: u32,
  /** Chats whose ring is another one here, or that are not here. */
  refused: list(() => chatId, MAX_RINGS),
}));
export type RingsRestored = Value<typeof RingsRestored>;

/** The first floors of a new account, which are empty, and its manifest. */
export const FirstManifest = object("FirstManifest", () => ({
  /** All sixteen floors, shelf 0 first. */
  floors: list(() => envelope(MAX_KEY), SHELVES, SHELVES),
  /** The manifest. */
  manifest: HeadPut,
}));
export type FirstManifest = Value<typeof FirstManifest>;
