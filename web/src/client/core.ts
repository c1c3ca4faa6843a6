// What the page asks the worker for, and what it hears from it. Types only.
//
//   page ── command (a promise) ──▶ worker: Device, keys, files, socket
//   page ◀── CoreEvent ──────────── worker
//
// The worker runs one command at a time, in the order in which they came. Everything here is plain data that can be cloned: words, ids,
// numbers. Keys never come this way. A command that fails rejects with `CoreError`: `name` is one of the names of docs/CHATS.md,
// docs/PROTOCOL.md or the client's own (`offline`, `locked`, `too-large`, …), and it never has words of a chat in it.
// Easy to get wrong: `ask` resolves when the question is in the queue, which is kept; that it was sent is told by events.

/** An id as the wire spells it: `chat_…`, `msg_…`, `turn_…`, `dev_…`. The worker checks it. */
export type Id = string;

/** Why a command was not done, and why a state is what it is. */
export interface CoreError {
  name: string;
  /** When to try again, in milliseconds, if the server says so. */
  retryMs?: number;
  /** For `logged-out`: revoked, changed, rotated, expired or erased. */
  reason?: string;
}

/**
 * Where the account of this browser stands.
 *
 * none    nobody logged in here, or it was forgotten
 * locked  there are sealed files of a device; a password, recovery code or passkey opens them, also offline
 * open    the keys are in the worker's memory
 * elsewhere  another tab of this browser has the account open: `takeOver` ends that one
 */
export type Account =
  | { state: "none" }
  | { state: "elsewhere" }
  | { state: "locked"; login: string | null }
  | { state: "open"; login: string | null; account: Id; device: Id; generation: number; hasSession: boolean; staysUnlocked: boolean };

/**
 * offline     no socket, none is tried (the browser says that there is no network, or nobody is logged in)
 * connecting  a socket is being opened; `nextTryAt` while a pause is waited for
 * syncing     connected, and what changed is being taken in
 * online      in sync
 * ended       the session is over: log in again. What is unsent is kept
 * refused     what the server shows was refused (`error.name`: rolled-back, forked, withheld, …): see `putBack`
 */
export interface Connection {
  state: "offline" | "connecting" | "syncing" | "online" | "ended" | "refused";
  nextTryAt?: number;
  error?: CoreError;
}

/** Something that proves who a person is. `totp` is the code of an authenticator, where the account asks for one. */
export type Proof =
  | { kind: "password"; password: string; totp?: string }
  | { kind: "recovery"; code: string }
  /** `prf` is the output of the passkey's PRF extension; the page gets it from the browser. It is not kept. */
  | { kind: "passkey"; credential: string; prf: Uint8Array };

/** One line of the list of chats. Times are milliseconds since 1970. */
export interface ChatLine {
  id: Id;
  title: string | null;
  icon: string | null;
  category: string | null;
  summary: string | null;
  tags: string[];
  pinned: boolean;
  /** An answer came that was not looked at on this device. */
  unread: boolean;
  updatedAt: number;
  /** Something of it waits to be stored. */
  isWaiting: boolean;
  /** An answer is being waited for. */
  isAwaited: boolean;
  hasDraft: boolean;
  /** Only in this worker's memory; never stored. */
  isTemporary: boolean;
  /** It was ended for safety: no question is answered in it any more. */
  isEnded: boolean;
  /** Whether the server may keep the words for the next question, as was chosen for this chat on all devices. */
  isCached: boolean;
  /** What is given in this chat whenever the server asks for it. Nothing at first. */
  shares: GivenKind[];
  /** Set if the chat is on the server and was refused: nothing of it can be shown. */
  refused?: string;
}

/**
 * sealed      stored by the server, which cannot open it
 * unsent      waits in the outbox
 * conflicted  another device changed it first; what was written here is among the copies
 */
export type MessageStatus = "sealed" | "unsent" | "conflicted";

export type Role = "user" | "assistant" | "tool" | "summary";

export interface MessageLine {
  id: Id;
  role: Role;
  parent: Id | null;
  body: string;
  embeds: Id[];
  model: string | null;
  /** Why that model was chosen, in a sentence of the server's. */
  reason: string | null;
  createdAt: number;
  rev: number;
  status: MessageStatus;
  /** Its place among the messages with the same parent, for ‹2/3›: `ids` in order of time, itself at `at`. One: no alternatives. */
  alternatives: { at: number; ids: Id[] };
  /** What went to the server in clear besides the branch, by consent; noted inside the sealed message. */
  shared: { what: GivenKind; bytes: number }[];
  /** For an answer: how it ended, where that is known: on every device, unless it is whole. */
  finish?: Finish;
  /** For an answer: the server says that the person may need help, and names it. */
  isHelp?: boolean;
  /** For an answer: what it used, what the server saw. Only known on the device that received it, which keeps it as long as there is room. */
  heard?: AnswerNote;
  /** Copies of mine that lost against another device's version of this message. */
  copies: number[];
  /** Only the first words are here, of so many characters: `body` has them all. */
  length?: number;
  /** Set if the words went to make room: what is known of their parts. `body` loads them. */
  missing?: MissingPart[];
}

/** A part of a message whose words are not on this device. */
export interface MissingPart {
  type: "text" | "code" | "table" | "link" | "paste";
  lines: number;
  words: number;
  lang?: string;
  /** Its content id: the first words may be among `previews`. */
  cid: string;
}

/** What is known about how an answer came. */
export interface AnswerNote {
  finish: Finish;
  tools: string[];
  focus: string | null;
  /** What kind of request it was: why this model answered. */
  category: string | null;
  /** Settings and memories that would have helped, by name: the page may offer to give them. */
  wanted: string[];
  /** Messages of the history that were sent to the server for it, as far as this device knows. 0, with `sent`: its cache had them. */
  historySent: number;
  /** Whether the server says that the person may need help. */
  isHelp?: boolean;
  /** What went with the question. Only known where this device asked it, and was not loaded again before the answer. */
  sent?: SentNote;
}

/** What went with a question besides its words and what was given. */
export interface SentNote {
  /** Whether the server may keep the words for the next question. */
  isKept: boolean;
  /** What was switched off. */
  off: string[];
  /** How many names of settings and memories it was told. */
  names: number;
  focus: string | null;
  /** What it was allowed to ask this device for. */
  asks: GivenKind[];
}

/** How an answer ended. `declined`: refused, the words say why. `ended`: the chat was ended for safety. */
export type Finish = "whole" | "cut" | "cancelled" | "declined" | "ended" | "asked_to_forget";

/** A reply that is waited for. */
export interface TurnLine {
  chat: Id;
  turn: Id;
  message: Id;
  reply: Id;
  /** unknown: ask again at the next connection; unsent: in the outbox; heard: whole, being stored; unanswered: see `error`. */
  state: "unknown" | "unsent" | "running" | "heard" | "unanswered";
  error?: string;
  /** The words so far. */
  words: string;
  /** The last progress. */
  progress: Progress | null;
  /** Turns before it in the queue of its chat. */
  ahead: number;
  approvals: Approval[];
  /** Messages of the history that were sent for it. */
  historySent: number;
  /** What the server asks this device for, and has no answer to. */
  wishes: WishLine[];
}

/** What a turn is doing: its kind, and the server's own words for it, in English. */
export interface Progress {
  step: "preparing" | "answering" | "working";
  text: string;
}

/** Something that the server asks for while it answers. Nothing of it has left the device: see `give`. */
export interface WishLine {
  what: GivenKind;
  /** Settings and memories by name, or what the question is about. */
  names: string[];
  /** What is searched for. */
  query: string | null;
  /** What would go: exactly this. */
  pieces: { name: string; text: string }[];
  /** Since when, in milliseconds since 1970. The server waits a few seconds. */
  at: number;
}

export interface Approval {
  chat: Id;
  turn: Id;
  id: string;
  tool: string;
  /** What it would be called with, in JSON: to be shown exactly. */
  input: string;
  why: string;
  /** Until when it can be decided, in milliseconds since 1970 by this device's clock. */
  expiresAt: number;
}

/** A tool or a focus mode. */
export interface Offer {
  name: string;
  title: string | null;
  /** What it is for, in a line: the operator's word of a focus mode, a tool server's of a tool. */
  about: string;
}

/** What the server's answers may use. */
export interface Catalogue {
  tools: Offer[];
  focusModes: Offer[];
  /** Whether these are all. */
  isWhole: boolean;
}

/** A chat that is open. */
export interface ChatPage {
  chat: ChatLine;
  /** The branch that is shown, its first message first. */
  messages: MessageLine[];
  /** Replies that are waited for, of any branch. */
  turns: TurnLine[];
  draft: string | null;
  /** What was typed in the place of a message and not sent, on this device. */
  edits: { message: Id; body: string }[];
  followUps: string[];
  /** The server's last word of who wrote it and when: "as of …, by …". */
  asOf: { at: number; device: Id } | null;
}

export type GivenKind = "settings" | "summary" | "search";

/** What goes with a question. Everything left out is off. */
export interface AskOptions {
  /** turn: the server keeps the words only until the answer is stored. cache (the default): as its settings say. */
  keep?: "cache" | "turn";
  focus?: string;
  /** Switched off for this question, besides the account's switches: tools, focus, settings, similar, search, suggestions, or a tool. */
  off?: string[];
  /** Settings and memories that could be given, by name only. */
  available?: string[];
  /** What the person lets the server have for this turn: at most three, 4 KiB together. Noted inside the sealed message. */
  given?: { what: GivenKind; name: string; text: string }[];
  /** Whether somebody is there to be shown what the server asks for while it answers. Else only what is switched on for the chat. */
  isPerson?: boolean;
}

export interface Asked {
  chat: Id;
  turn: Id;
  message: Id;
  reply: Id;
}

/** What waits in the outbox. `what` is: create, message, edit, delete, field, embed, branch, delete-chat, draft, data, retry, give-up, reply, made. */
export interface WaitingLine {
  number: number;
  chat: Id | null;
  what: string;
  /** The message, field or kind/name that it is about. */
  about: string | null;
  text: string | null;
  /** Sent and not answered: it may be stored already. */
  isSent: boolean;
}

/** What was written here, and another device was first. `why`: changed, deleted, chat-deleted, or the name of a refusal. */
export interface CopyLine {
  number: number;
  chat: Id | null;
  what: string;
  about: string | null;
  text: string | null;
  why: string;
}

export interface DeviceLine {
  device: Id;
  label: string | null;
  createdAt: number;
  /** Days since 1970. */
  lastSeenDay: number;
  /** Sessions, each by what it is revoked by. */
  sessions: string[];
  isThis: boolean;
}

/** A way to log in. A password has no id; `name` is what the person calls it. */
export interface WayIn {
  kind: "password" | "passkey" | "recovery";
  id: Id | null;
  name: string | null;
}

/** A piece of account data: settings, suggestions. Sealed; kind and name are seen by the server. */
export interface DataLine {
  kind: string;
  name: string;
  body: string;
}

export interface PutBackDone {
  chats: number;
  written: number;
  removed: number;
  copies: number;
  missing: number;
  refused: Id[];
}

/** A chat from an export. */
export interface ImportedChat {
  title: string | null;
  /** Texts of its fields: icon, category, summary, tags, pinned. */
  fields?: Record<string, string>;
  /** One behind the other. `createdAt` in milliseconds since 1970; without it, now. */
  messages: { role: Role; body: string; model?: string; createdAt?: number; refs?: string[] }[];
  /** What messages show, by the ids that their `refs` have. */
  embeds?: Record<string, string>;
}

export interface Import {
  chats: ImportedChat[];
  /** One whose name is there already stays as it is here. */
  memories: { name: string; body: string }[];
}

/** What was brought in, and how many things were left out. */
export interface Imported {
  chats: Id[];
  messages: number;
  memories: number;
  skipped: number;
}

/** A chat that has all words that were searched for. */
export interface Found {
  chat: Id;
  title: string | null;
  /** The message that fits best; null if only its title, summary or tags fit. */
  message: Id | null;
  /** Words around what was found, and where it is in them. */
  excerpt: string;
  at: number;
  length: number;
  /** The words of the message went to make room: opening the chat loads them. */
  isMissing?: true;
}

export interface SearchResult {
  /** The best ones. */
  hits: Found[];
  /** How many chats fit. */
  all: number;
  /** How many may fit: their words are not on this device, and the index does not know them either. */
  unsearched: number;
  /** How far the index is. What it does not have yet was read instead. */
  index: SearchProgress;
}

/** How many of the chats on this device are in the index. */
export interface SearchProgress {
  done: number;
  all: number;
}

/** What the page can ask for. */
export interface Core {
  // ---- the account ----
  account(): Promise<Account>;
  connection(): Promise<Connection>;
  /** Loads what comes next, as soon as a person begins to type. `not-loaded`: it did not come; it is asked for again with the next command. */
  warm(): Promise<void>;
  /** Opens an account, and makes a recovery code, which is shown once. `code`: the code that the server printed, or an invitation. */
  register(login: string, password: string, code?: string): Promise<{ recoveryCode: string }>;
  /** With a passkey in place of a password. */
  registerWithPasskey(login: string, passkey: Proof & { kind: "passkey" }, code?: string): Promise<{ recoveryCode: string }>;
  /** Logs in here, as a new device or as the one whose session ended. `damaged`: other files are here, see `forget`. */
  logIn(login: string, proof: Proof): Promise<void>;
  /** Opens the files of the device that is here. Needs no server. `login-refused`: it does not open them. */
  unlock(proof: Proof): Promise<void>;
  /** Opens the account here, and no longer in the other tab. */
  takeOver(): Promise<void>;
  /** Forgets the keys; the files stay, sealed. */
  lock(): Promise<void>;
  /** Whether the keys outlive this tab. Off at first. */
  stayUnlocked(isOn: boolean): Promise<void>;
  /** Ends the session and removes everything from this browser. `unsent` throws away what waits: without it, `conflict` if something does. */
  logOut(options?: { everywhere?: boolean; unsent?: "throw-away" }): Promise<void>;
  /** Removes what this browser has, without asking the server. */
  forget(): Promise<void>;
  changePassword(by: Proof, password: string): Promise<void>;
  /** A new recovery code in place of the old one. */
  newRecoveryCode(by: Proof): Promise<{ recoveryCode: string }>;
  /** After `logIn` with a recovery code: a new password, and a new code. */
  recover(code: string, password: string): Promise<{ recoveryCode: string }>;
  addPasskey(by: Proof, passkey: Proof & { kind: "passkey" }, name: string): Promise<void>;
  /** The ways to log in that the server has; whether the password is asked for with a code of an authenticator. */
  waysIn(): Promise<{ ways: WayIn[]; hasTotp: boolean }>;
  /** Calls a way to log in by a name, sealed. */
  nameWayIn(id: Id, name: string): Promise<void>;
  /** The id that the server knows a passkey by: `credential` is the browser's. */
  passkeyId(credential: string): Promise<Id>;
  /**
   * Removes a way to log in, and every other one that is not shown: a new account key and a new recovery code. `last-way`: nothing but the
   * recovery code would be left.
   */
  removeWayIn(id: Id, shown: Proof[]): Promise<{ recoveryCode: string }>;
  /** A secret for an authenticator: `totpOn` switches it on with a code of it. */
  totpSecret(): Promise<{ secret: string; uri: string }>;
  totpOn(by: Proof, secret: string, code: string): Promise<void>;
  totpOff(by: Proof): Promise<void>;
  /** Replaces the account key. Credentials that are not named are removed. Gives a new recovery code. */
  rotate(by: Proof, keep: Proof[]): Promise<{ recoveryCode: string }>;
  devices(): Promise<DeviceLine[]>;
  labelDevice(label: string): Promise<void>;
  revokeDevice(by: Proof, device: Id): Promise<void>;
  revokeSession(by: Proof, session: string): Promise<void>;
  /** This browser is new: shows `text` as a QR code or 26 digits, then waits with `pairFetch` until the other device has answered. */
  pairOffer(): Promise<{ text: string; expiresAt: number }>;
  pairFetch(): Promise<"waiting" | "paired">;
  /** After pairing: which password (or other proof) opens this browser's files from now on. */
  setUnlock(login: string, proof: Proof): Promise<void>;
  /** This browser has the account: lets the device in that shows `text`. */
  pairSend(by: Proof, text: string): Promise<void>;
  /** Everything that the server has, opened, as JSON. */
  exportAll(by: Proof): Promise<string>;
  /** Erases the account everywhere. Gives the receipt. */
  erase(by: Proof): Promise<string>;
  /** The server lost the account: puts it back with the operator's code. */
  restore(login: string, password: string, code: string, anew?: boolean): Promise<{ recoveryCode: string; restored: "kept" | "empty" }>;
  /** The server shows an older state, and the person says that this is right: writes what is here again. */
  putBack(by?: Proof): Promise<PutBackDone>;

  // ---- chats ----
  chats(): Promise<ChatLine[]>;
  /** Whether the server has chats older than those that are here, as far as the last sync told. */
  hasOlder(): Promise<boolean>;
  /** Loads older chats from the server; gives whether there are more. */
  loadOlder(): Promise<boolean>;
  newChat(options?: { title?: string; temporary?: boolean; uncached?: boolean }): Promise<Id>;
  /** Opens a chat: it counts as read, and its words are told from now on. */
  open(chat: Id): Promise<ChatPage>;
  /** All words of a message: from memory, or from the server, where they went to make room. */
  body(chat: Id, message: Id): Promise<string>;
  /** First words of parts whose words went, by content id, as far as this browser still has them. */
  previews(chat: Id): Promise<[cid: string, text: string][]>;
  /** What a message shows. Loaded from the server if it is not here. */
  embed(chat: Id, embed: Id): Promise<string>;
  /** Stores a message without asking. */
  say(chat: Id, body: string): Promise<Id>;
  ask(chat: Id, body: string, options?: AskOptions): Promise<Asked>;
  /** Edit and resend: another branch in place of a message of the person. */
  askInstead(chat: Id, message: Id, body: string, options?: AskOptions): Promise<Asked>;
  /** Another answer to a message of the person; the answers before stay as alternatives. */
  retry(chat: Id, message: Id, options?: AskOptions): Promise<Asked>;
  cancel(chat: Id, turn: Id): Promise<void>;
  giveUp(chat: Id, turn: Id): Promise<void>;
  decide(chat: Id, turn: Id, approval: string, allow: boolean): Promise<void>;
  /** Asks the server what came of a turn that waits, as when the time to decide is over. */
  hearAgain(chat: Id, turn: Id): Promise<void>;
  /** Gives what the server asked for: these pieces of the wish, by their place; none denies it. `unasked`: it does not wait any more, and nothing went. */
  give(chat: Id, turn: Id, what: GivenKind, pieces: number[]): Promise<void>;
  /** Gives something in this chat whenever the server asks for it, on all devices; or asks again. */
  share(chat: Id, what: GivenKind, isOn: boolean): Promise<void>;
  /** Whether the server may keep the words of this chat for the next question, on all devices. */
  setCached(chat: Id, isOn: boolean): Promise<void>;
  /** Chats that have to do with these words, by their summaries; looked up on this device. */
  similar(chat: Id | null, words: string): Promise<{ name: string; text: string }[]>;
  /** Shows the branch through this message, on every device. */
  showBranch(chat: Id, message: Id): Promise<void>;
  /** Changes the words of a stored message in place. */
  edit(chat: Id, message: Id, body: string): Promise<void>;
  deleteMessage(chat: Id, message: Id): Promise<void>;
  rename(chat: Id, title: string): Promise<void>;
  setPinned(chat: Id, pinned: boolean): Promise<void>;
  /** Any other field of a chat: `icon`, `category`, `tags`. */
  setField(chat: Id, name: string, body: string): Promise<void>;
  /** Goes after `undoMs`; until then `undoDelete` takes it back. */
  deleteChat(chat: Id, undoMs?: number): Promise<void>;
  undoDelete(chat: Id): Promise<void>;
  /** Kept at once; sent every five seconds at most. `null` when it was sent or thrown away. */
  setDraft(chat: Id, body: string | null): Promise<void>;
  /** What was typed for a chat that does not exist yet. Kept sealed on this device, and only there. */
  firstDraft(): Promise<string | null>;
  setFirstDraft(body: string | null): Promise<void>;
  /** What was typed in the place of a message, likewise: `edits` of the chat has it. `null` when it was sent or thrown away. */
  setEdit(chat: Id, message: Id, body: string | null): Promise<void>;
  /** Looks for chats that have all of these words, the last of which may be cut off. On this device only; nothing leaves it. */
  search(words: string): Promise<SearchResult>;
  /** A chat as Markdown or JSON. */
  exportChat(chat: Id, as: "markdown" | "json"): Promise<string>;
  /** Chats and memories from an export: one new chat for each. What is too large is left out and counted. */
  importChats(all: Import): Promise<Imported>;

  // ---- outbox, copies, settings ----
  waiting(): Promise<WaitingLine[]>;
  copies(): Promise<CopyLine[]>;
  useCopy(number: number): Promise<void>;
  discardCopy(number: number): Promise<void>;
  awaited(): Promise<TurnLine[]>;
  /** What is switched off for every question, on every device. */
  switchedOff(): Promise<string[]>;
  setSwitch(name: string, isOn: boolean): Promise<void>;
  /** What the server's answers may use now: asked of it each time. */
  catalogue(): Promise<Catalogue>;
  data(kind: string, name: string): Promise<string | null>;
  /** Every piece of this kind. */
  dataOf(kind: string): Promise<DataLine[]>;
  setData(kind: string, name: string, body: string | null): Promise<void>;
  /** What new chats could begin with. */
  suggestions(): Promise<string[]>;
  /** Tries to connect now, without waiting for the next try. */
  retryNow(): Promise<void>;

  /** Hears events until the function that it gives is called. */
  on(hear: (event: CoreEvent) => void): () => void;
}

/** What the worker tells by itself. */
export type CoreEvent =
  | { type: "account"; account: Account }
  | { type: "connection"; connection: Connection }
  /** Lines of the list changed: ask for `chats()` again, or take `changed` and `gone`. */
  | { type: "chats"; changed: ChatLine[]; gone: Id[] }
  /** The open chat changed in a way that is not a word of a turn: ask with `open(chat)` again. */
  | { type: "chat"; chat: Id }
  | { type: "draft"; chat: Id; draft: string | null }
  | { type: "data"; kind: string; name: string }
  | { type: "devices" }
  | { type: "outbox"; waiting: number; copies: number }
  /** A turn runs, or waits for `ahead` others. */
  | { type: "begun"; chat: Id; turn: Id; ahead: number }
  /** Words of an answer: those from the character `at` on are replaced by `text`. `at` counts UTF-16 units, as strings do here. */
  | { type: "words"; chat: Id; turn: Id; at: number; text: string }
  | { type: "progress"; chat: Id; turn: Id; progress: Progress }
  | { type: "history"; chat: Id; turn: Id; messages: number }
  | { type: "approval"; approval: Approval }
  /** What a turn asks this device for, all of it. */
  | { type: "wishes"; chat: Id; turn: Id; wishes: WishLine[] }
  /** Something went without asking, since that is switched on for the chat. */
  | { type: "gave"; chat: Id; turn: Id; pieces: { what: GivenKind; name: string }[] }
  | { type: "ended"; chat: Id; turn: Id; reply: Id; finish: Finish; wanted: string[]; tools: string[] }
  | { type: "failed"; chat: Id; turn: Id; error: string }
  /** Summary, tags and suggestions were made. */
  | { type: "made"; chat: Id; turn: Id }
  /** The index for search grew. */
  | { type: "search"; index: SearchProgress }
  /** Something failed that no command waited for. */
  | { type: "error"; error: CoreError }
  /** The browser has no room for files any more: what is written is only in memory until there is. */
  | { type: "quota"; isFull: boolean };

/** What goes over the wire between page and worker. */
export type ToWorker = { id: number; name: Exclude<keyof Core, "on">; args: unknown[] };
export type FromWorker = { id: number; value: unknown } | { id: number; error: CoreError } | { event: CoreEvent };
