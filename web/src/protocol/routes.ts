// Requests over HTTP: a POST to each of these paths. `who` says who may ask: anybody, a session, or whoever signs for that purpose.

import {
  AccountChanged,
  ChangeCredentials,
  CredentialList,
  Erase,
  Erased,
  Export,
  Recover,
  RequestCredentials,
  Restore,
  RestoreBegin,
  RestoreOffer,
  RestoreRings,
  RingsRestored,
} from "./account";
import { Catalogue, RequestCatalogue } from "./catalogue";
import { Devices, RequestDevices, RevokeDevice, RevokeSession, Ticket, TicketRequest } from "./devices";
import { ClientFrame, ServerFrame } from "./frames";
import {
  Challenge,
  ChallengeRequest,
  Done,
  LoginRequest,
  Logout,
  Prelogin,
  PreloginAnswer,
  Register,
  RegisterBegin,
  RegisterOffer,
  SessionOpened,
} from "./login";
import { PairFetch, PairFetched, PairOffer, PairOffered, PairSend, PairTake, PairTaken } from "./pairing";
import { RotationBegin, RotationBegun, RotationCommit, RotationStage, RotationStaged } from "./rotation";
import type { ObjectShape, Value } from "./shapes";
import { MakeSnapshot, OpenSnapshot, RequestSnapshots, RevokeSnapshot, SnapshotMade, SnapshotSent, Snapshots } from "./snapshots";

export type Who = "anybody" | "session" | "login" | "change" | "export" | "erase" | "pair" | "restore";

interface Route<Request extends object, Answer extends object> {
  who: Who;
  request: ObjectShape<Request>;
  answer: ObjectShape<Answer>;
}

function route<Request extends object, Answer extends object>(
  who: Who,
  request: ObjectShape<Request>,
  answer: ObjectShape<Answer>,
): Route<Request, Answer> {
  return { who, request, answer };
}

/** Every request. */
export const ROUTES = {
  /** How to stretch the password of a login. */
  "/account/prelogin": route("anybody", Prelogin, PreloginAnswer),
  /** A challenge to sign. */
  "/account/challenge": route("anybody", ChallengeRequest, Challenge),
  /** An id for a new account. */
  "/account/register/begin": route("anybody", RegisterBegin, RegisterOffer),
  /** Opens an account and a session. */
  "/account/register": route("login", Register, SessionOpened),
  /** Opens a session with any credential. */
  "/account/login": route("login", LoginRequest, SessionOpened),
  /** Ends this session, or all. */
  "/account/logout": route("session", Logout, Done),
  /** Adds or replaces credentials. */
  "/account/credentials": route("change", ChangeCredentials, AccountChanged),
  /** The ways to log in. */
  "/account/credentials/list": route("session", RequestCredentials, CredentialList),
  /** Replaces a lost password by the recovery code. */
  "/account/recover": route("change", Recover, AccountChanged),
  /** Begins a rotation of the account key. */
  "/account/rotation/begin": route("change", RotationBegin, RotationBegun),
  /** Stages rings and floors. */
  "/account/rotation/stage": route("session", RotationStage, RotationStaged),
  /** Commits the rotation. */
  "/account/rotation/commit": route("change", RotationCommit, AccountChanged),
  /** The new device's public key. */
  "/account/pair/offer": route("anybody", PairOffer, PairOffered),
  /** The old device reads the offer. */
  "/account/pair/take": route("session", PairTake, PairTaken),
  /** The old device sends the account key, sealed. */
  "/account/pair/send": route("pair", PairSend, Done),
  /** The new device takes it, once. */
  "/account/pair/fetch": route("anybody", PairFetch, PairFetched),
  /** Devices and sessions. */
  "/account/devices": route("session", RequestDevices, Devices),
  /** Ends a device with its sessions. */
  "/account/devices/revoke": route("change", RevokeDevice, Done),
  /** Ends a session. */
  "/account/sessions/revoke": route("change", RevokeSession, Done),
  /** Everything, as frames of server events, one per line. */
  "/account/export": route("export", Export, ServerFrame),
  /** Erases the account. */
  "/account/erase": route("erase", Erase, Erased),
  /** What is left of an account, with the operator's code. */
  "/account/restore/begin": route("anybody", RestoreBegin, RestoreOffer),
  /** Puts a lost account back, and opens a session. */
  "/account/restore": route("restore", Restore, SessionOpened),
  /** Puts back the keys of chats that the server lost. */
  "/account/restore/rings": route("restore", RestoreRings, RingsRestored),
  /** What answers may use: tools and focus modes. */
  "/chats/catalogue": route("session", RequestCatalogue, Catalogue),
  /** A ticket for one socket. */
  "/chats/ticket": route("session", TicketRequest, Ticket),
  /** The snapshots that the account shares. */
  "/chats/snapshots": route("session", RequestSnapshots, Snapshots),
  /** Shares a snapshot of a chat. */
  "/chats/snapshots/make": route("session", MakeSnapshot, SnapshotMade),
  /** A snapshot, for whoever has its link. */
  "/chats/snapshots/open": route("anybody", OpenSnapshot, SnapshotSent),
  /** Ends a snapshot. */
  "/chats/snapshots/revoke": route("session", RevokeSnapshot, Done),
  /** A frame without a socket; the answers are frames, one per line. */
  "/chats/events": route("session", ClientFrame, ServerFrame),
} as const;

export type Path = keyof typeof ROUTES;
export type RequestOf<P extends Path> = Value<(typeof ROUTES)[P]["request"]>;
export type AnswerOf<P extends Path> = Value<(typeof ROUTES)[P]["answer"]>;
