// Opening an account and a session: questions that anybody may ask, and proofs.
//
//   POST /account/prelogin   login ──▶ salt, the same shape for everybody
//   POST /account/challenge  purpose ──▶ challenge, good once
//   POST /account/login      Signed(LoginRequest) ──▶ session, account key for this credential
//
// Easy to get wrong: signing a value and sending another. A proof is over bytes, so the bytes are what is sent: see `Signed`.

import { CredentialKind, FirstManifest, NewCredential } from "./account";
import { KeyEntry } from "./keys";
import { MAX_CREDENTIALS, MAX_FRAME, MAX_INVITE, MAX_KEY, MAX_REGISTER, MAX_SIGNED } from "./limits";
import { type Value, choice, list, object, optional } from "./shapes";
import {
  accountId,
  bytes,
  credentialId,
  deviceId,
  envelope,
  flag,
  login,
  publicKey,
  purpose,
  secret,
  text,
  totp,
  u32,
  u64,
} from "./values";

/** Who signs. */
export const SignerName = choice("SignerName", () => ({
  /** Anybody who knows the password of this login. */
  login: login,
  /** Anybody who has this passkey or recovery code. */
  credential: credentialId,
}));
export type SignerName = Value<typeof SignerName>;

/** Asks how to stretch a password. The answer has the same shape, whether or not somebody has this login. */
export const Prelogin = object("Prelogin", () => ({
  /** The login. */
  login: login,
}));
export type Prelogin = Value<typeof Prelogin>;

/** How to stretch a password. */
export const PreloginAnswer = object("PreloginAnswer", () => ({
  /** The profile, 1. Refuse another. */
  profile: u32,
  /** The server's half of the salt. */
  serverSalt: bytes(16),
}));
export type PreloginAnswer = Value<typeof PreloginAnswer>;

/** Asks for a challenge to sign. */
export const ChallengeRequest = object("ChallengeRequest", () => ({
  /** What for. */
  purpose: purpose,
}));
export type ChallengeRequest = Value<typeof ChallengeRequest>;

/** A challenge. */
export const Challenge = object("Challenge", () => ({
  /** 32 random bytes: good once, for 60 seconds and this purpose. */
  challenge: secret,
  /** How long it is valid, in milliseconds. */
  expiresMs: u64,
}));
export type Challenge = Value<typeof Challenge>;

/** Asks to open an account. Everything in it is sealed for its id, so the id comes first. */
export const RegisterBegin = object("RegisterBegin", () => ({
  /** The login that it shall have. */
  login: login,
  /** The invitation, or the code that the server printed for the first account. */
  invite: optional(text(MAX_INVITE)),
}));
export type RegisterBegin = Value<typeof RegisterBegin>;

/** An id for a new account, and what to make its first credential with. */
export const RegisterOffer = object("RegisterOffer", () => ({
  /** The account's id, kept for this challenge. */
  account: accountId,
  /** The profile, 1. */
  profile: u32,
  /** The server's half of the salt. */
  serverSalt: bytes(16),
  /** The challenge to sign, with the purpose `login`. */
  challenge: secret,
}));
export type RegisterOffer = Value<typeof RegisterOffer>;

/** Opens an account: the signed body of `register`. */
export const Register = object("Register", () => ({
  /** The id that was offered. */
  account: accountId,
  /** Its login. */
  login: login,
  /** Its credentials; a recovery code has to be among them if a passkey is. */
  credentials: list(() => NewCredential, MAX_CREDENTIALS),
  /** The first entry of the account's ring. */
  ring: KeyEntry,
  /** The first entry of the mailbox's ring. */
  mailbox: KeyEntry,
  /** The mailbox's public key. */
  boxPub: publicKey,
  /** Floors and manifest, at revision 1. */
  first: FirstManifest,
  /** The device that writes this. */
  device: deviceId,
}), { limit: MAX_REGISTER });
export type Register = Value<typeof Register>;

/** Opens a session: the signed body of `login`. */
export const LoginRequest = object("LoginRequest", () => ({
  /** Which kind of credential signs. */
  kind: CredentialKind,
  /** This device, if it was here before; left out by a new one, which gets an id. */
  device: optional(deviceId),
}));
export type LoginRequest = Value<typeof LoginRequest>;

/** A session is open. Its cookie comes beside this. */
export const SessionOpened = object("SessionOpened", () => ({
  /** The account. */
  account: accountId,
  /** The device's id. */
  device: deviceId,
  /** What the header `Confidant-Session` has from now on. */
  session: secret,
  /** When the session ends, in milliseconds since 1970. */
  expiresAt: u64,
  /** The revision of the account. */
  accountRev: u32,
  /** The generation of the account key. */
  generation: u32,
  /**
   * The account key, sealed for this credential; left out if the server has none (`account-missing`), and after
   * pairing, where the other device gave it.
   */
  wrap: optional(envelope(MAX_KEY)),
}));
export type SessionOpened = Value<typeof SessionOpened>;

/** Ends sessions. */
export const Logout = object("Logout", () => ({
  /** All sessions of the account, not only this one. */
  everywhere: flag,
}));
export type Logout = Value<typeof Logout>;

/** It was done. */
export const Done = object("Done", () => ({
}));
export type Done = Value<typeof Done>;

/**
 * A request with a proof.
 *
 * The proof signs the hash of the request's bytes. Two JSON libraries may write one request in two ways: another
 * order, other spaces and escapes. If the server checked the proof over its own writing of the request, an honest
 * proof could fail; if it checked one text and carried out another, a proof could cover what nobody asked for. So
 * the request travels as a text, and the bytes of this text are what is signed, checked and read.
 */
export const Signed = object("Signed", () => ({
  /** The JSON text of the request. */
  body: text(MAX_SIGNED),
  /** The challenge that is used up by this. */
  challenge: secret,
  /** Who signs. */
  signer: SignerName,
  /** The proof over origin, purpose, signer, challenge and body. */
  proof: bytes(64),
  /** The code of an authenticator, if the account asks for one with the password. */
  totp: optional(totp),
}), { limit: MAX_FRAME });
export type Signed = Value<typeof Signed>;
