// What is sent and received. Node prints these without what somebody said, and without anybody's name.

export type Audience = "private" | "room";
export type Decision = "approve" | "deny";
export type Json = Record<string, unknown>;

/** Something that was said in the room just now. It goes into one prompt and is never stored. */
export interface RoomLine {
  sender: string;
  content: string;
  /** Unix time in seconds, or a date. */
  timestamp?: number | Date;
  isBot?: boolean;
  eventId?: string;
  /** The event that this one edits, or with `redacted` deletes. */
  replaces?: string;
  redacted?: boolean;
}

/** What may go along with a message. */
export interface TurnOptions {
  /** The same id gets the recorded answer, never a second one. Made up if missing. */
  requestId?: string;
  room?: readonly RoomLine[];
  audience?: Audience;
  focus?: string;
  profile?: Json;
  pastChats?: readonly { title?: string; summary: string }[];
  settings?: Record<string, string>;
  availableSettings?: readonly string[];
  title?: string;
  /** Wait for the event `enriched` after the answer. */
  enrich?: boolean;
  /** Stops listening. The turn goes on; `TurnStream.cancel` ends it. */
  signal?: AbortSignal;
}

export interface Progress {
  type: "progress";
  text: string;
}

/** A piece of the answer. The pieces add up to the answer's text. */
export interface Delta {
  type: "delta";
  text: string;
  seq: number;
}

/** Names of settings that would help; the next turn can send them. */
export interface SettingsRequest {
  type: "settings_request";
  names: string[];
}

/** What was made of an answer: suggestions, summary, tags. */
export interface Enriched {
  type: "enriched";
  raw: Json;
}

export interface Answer {
  type: "answer";
  requestId: string;
  text: string;
  /** What memory did: `kept`, or why not. */
  memory: "kept" | "off" | "unavailable" | "forgotten";
  model: string | undefined;
  recalled: number;
  /** Whether this is the recorded answer to an earlier request with the same id. */
  replayed: boolean;
  pendingApprovals: number;
  /** Everything else that the server says of the answer; /openapi.json describes it. */
  raw: Json;
}

/** A tool call that somebody must approve. Its turn waits until then. */
export interface Approval {
  type: "approval";
  approvalId: string;
  requestId: string;
  question: string;
  tool: string;
  arguments: unknown;
  /** What a decision is bound to: exactly this call. */
  hash: string;
  /** For channels without buttons: `approve CODE` or `deny CODE` as the next message. */
  code: string;
  expiresAt: Date;
  audience: Audience;
}

/** A question of another program's worker (`bus.mode = "compat"`). The next message answers it. */
export interface Question {
  type: "question";
  requestId: string;
  text: string;
  options: string[];
}

export type Ending = Answer | Approval | Question;
export type TurnEvent = Progress | Delta | SettingsRequest | Enriched | Ending;

export interface Message {
  kind: "human" | "ai" | "tool";
  text: string;
  at: Date;
  audience: Audience;
  requestId: string;
  unanswered: string | undefined;
  raw: Json;
}

export interface SessionExport {
  sessionId: string;
  exportedAt: Date;
  messages: Message[];
  raw: Json;
}

export interface PersonExport {
  userId: string;
  exportedAt: Date;
  sessions: SessionExport[];
  /** Why some sessions could not be opened. */
  unreadable: string[];
  raw: Json;
}

/** Proof of an erasure. `confidant audit verify --receipt FILE` checks `JSON.stringify(receipt.raw)`. */
export interface Receipt {
  erased: "session" | "person";
  at: Date;
  sessions: number;
  records: number;
  tokens: number;
  derived: Record<string, number>;
  raw: Json;
}

/** What an erasure would erase. Nothing was erased. */
export interface WouldErase {
  erased: "session" | "person";
  sessions: number;
  /** Undefined if they cannot be read. */
  messages: number | undefined;
  derived: Record<string, number>;
}

/** What is kept of a session of work: redacted, a few lines. */
export interface Card {
  title: string;
  summary_bullets: string[];
  decisions: string[];
  todos: string[];
  entities: string[];
  keywords: string[];
  notable_quotes: string[];
}

export interface StoreOptions {
  tags?: readonly string[];
  metadata?: Json;
  /** Store only exactly what a preview has shown. */
  expectSha256?: string;
}

export interface Stored {
  sessionId: string;
  uri: string;
  indexed: boolean;
  /** Whether exactly this was kept before, so that nothing was done. */
  alreadyStored: boolean;
  card: Card;
  /** How often each rule of redaction fired. */
  redactions: Record<string, number>;
  raw: Json;
}

/** What would be kept, byte for byte. Nothing was kept. */
export interface Preview {
  sha256: string;
  size: number;
  payload: string;
  card: Card;
  redactions: Record<string, number>;
  raw: Json;
}

export interface PageOptions {
  tags?: readonly string[];
  limit?: number;
  offset?: number;
  /** Only sessions within this time. */
  start?: Date;
  end?: Date;
}

export interface Hit {
  sessionId: string;
  uri: string;
  title: string;
  snippet: string;
  tags: string[];
  createdAt: string;
  /** Lower is better. */
  score: number;
}

export interface Memory {
  uri: string;
  sessionId: string;
  timestamp: string | undefined;
  card: Card;
  tags: string[];
  /** The redacted transcript, if it was kept. */
  transcript: Json | undefined;
  raw: Json;
}

export interface Forgotten {
  forgotten: number;
  dryRun: boolean;
  /** Copies in a store that cannot delete. Without their keys nobody can open them. */
  permanent: number;
  /** Copies that will be deleted when their store answers again. */
  pending: number;
  uris: string[];
}

/** What storing costs. Null where no exchange rate is set. */
export interface Estimate {
  size: number;
  monthlyStorageUsd: number;
  requestUsd: number | null;
  totalUsd: number | null;
  assumptions: Json;
}
