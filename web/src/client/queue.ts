// What was written on this device and is not known to be stored, in order; and what lost against another device.
//
//   write, edit, delete ─▶ Queue ─▶ folded into what waits unsent, or put behind it
//                                    │ sent: the mark of each attempt's head, kept before it is sent
//                                    ▼
//                     done ──▶ gone      lost ──▶ a copy that the person sees
//
// Easy to get wrong: an edit of something that itself waits. What waits unsent is changed in place; of what was sent and not
// answered nobody knows the outcome, so the edit is based on that very operation (Base "op") and shares its fate. Bases are the
// words that the person saw, not revisions: another device may have made the same revision of other words.
//
// The Rust client keeps a digest of those words. Here the words themselves are kept: hashing is asynchronous in a browser, and a
// queue that changes between two awaits is harder to get right than one that is a little longer.
//
// Everything in a queue is plain JSON data.

import type { ChatId, Digest, EmbedId, FieldName, Mark, MessageId, Role, Shared, TurnId } from "../format/index";
import type { BesideNote } from "./beside";
import type { Finish } from "../protocol/index";

/** What a change was made against. */
export type Base =
  /** There was nothing. */
  | { on: "nothing" }
  /** These words. */
  | { on: "words"; words: string }
  /** What this operation of the queue leaves. */
  | { on: "op"; n: number };

/** The base of a change of this text; null is nothing. */
export function baseOf(text: string | null): Base {
  return text === null ? NOTHING_THERE : { on: "words", words: text };
}

export const NOTHING_THERE: Base = { on: "nothing" };

/** Where a message goes. */
export type To =
  /** Behind the last message, whichever that is when it is stored. */
  | { to: "end" }
  /** Behind this message; if it is gone, behind the next of these that is there. */
  | { to: "after"; path: MessageId[] };

export const TO_END: To = { to: "end" };

/** A message that is not sealed yet. */
export interface Note {
  role: Role;
  body: string;
  model: string | null;
  refs: readonly EmbedId[];
  createdAt: number;
  /** The answer that is asked for with it: the head waits for it from the same write on. */
  ask: Wanted | null;
  /** What else leaves the device for this turn, by consent. */
  shared: readonly Shared[];
}

/** These words, and nothing else. */
export function noteOf(role: Role, body: string, createdAt: number): Note {
  return { role, body, model: null, refs: [], createdAt, ask: null, shared: [] };
}

/** An answer that is asked for. */
export interface Wanted {
  turn: TurnId;
  reply: MessageId;
}

/** An answer that was heard. */
export interface Answer {
  turn: TurnId;
  /** What it answers, as the head had it when it was heard. */
  parent: MessageId;
  body: string;
  model: string | null;
  /** Why that model was chosen. Files of before have none. */
  reason?: string | null;
  /** The server's proof that its model said this. */
  proof: Digest | null;
  createdAt: number;
  /** Fields of the chat that are set if it has no title: the title among them. */
  fields: [FieldName, string][];
  /** What left the device while it was made, by consent. Files of before have none. */
  shared?: Shared[];
  /** What is stored beside it. Files of before have none. */
  beside?: BesideNote[];
}

/** What is done. */
export type Act =
  | { do: "create" }
  | { do: "append"; id: MessageId; note: Note; to: To }
  | { do: "edit"; id: MessageId; body: string; base: Base }
  | { do: "delete"; id: MessageId; base: Base }
  | { do: "field"; name: FieldName; body: string; base: Base }
  /** Adds something that a message shows. */
  | { do: "embed"; id: EmbedId; body: string }
  /** Shows the branch that ends in this message. */
  | { do: "leaf"; id: MessageId }
  | { do: "delete-chat" }
  /** Stores or removes what was typed. */
  | { do: "draft"; body: string | null; base: Base }
  /** Stores or removes a piece of account data. */
  | { do: "data"; kind: FieldName; name: FieldName; body: string | null; base: Base }
  /** Waits for another answer to a message, in place of those that will not come. */
  | { do: "retry"; message: MessageId; wanted: Wanted; instead: MessageId[] }
  /** Stores the answer that the head waits for, as this message. */
  | { do: "reply"; id: MessageId; answer: Answer }
  /** Notes inside an answer that another device stored what this one gave for it. */
  | { do: "gave"; id: MessageId; shared: Shared[] }
  /** Waits no longer for this reply. */
  | { do: "give-up"; reply: MessageId }
  /** Sets fields that the server's model made. Nobody wrote what they replace. */
  | { do: "made"; fields: [FieldName, string][] }
  /** Notes how an answer ended, beside what is noted of others. */
  | { do: "ending"; reply: MessageId; finish: Finish; isHelp?: boolean }
  /** Adds to the account's suggestions for new chats. */
  | { do: "suggest"; texts: string[] };

/** An operation that waits. */
export interface Pending {
  n: number;
  chat: ChatId | null;
  act: Act;
  /** The head of each attempt, kept before it was sent. Of a draft or a piece of data, a mark of its envelope. */
  sent: Mark[];
}

/** What an operation is about. */
export type What =
  | { what: "create" }
  | { what: "message"; id: MessageId }
  | { what: "edit"; id: MessageId }
  | { what: "delete"; id: MessageId }
  | { what: "field"; name: FieldName }
  | { what: "embed"; id: EmbedId }
  /** Which branch is shown. */
  | { what: "branch"; id: MessageId }
  | { what: "delete-chat" }
  | { what: "draft" }
  | { what: "data"; kind: FieldName; name: FieldName }
  /** Another answer to this message is asked for. */
  | { what: "retry"; id: MessageId }
  /** An answer that was heard. */
  | { what: "reply"; id: MessageId }
  /** This reply is not waited for any more. */
  | { what: "give-up"; id: MessageId }
  /** What was made of an answer: a summary, tags, suggestions. */
  | { what: "made" };

/** Why something lost. */
export type Why =
  /** Another device changed the same thing first. */
  | { why: "changed" }
  /** Another device deleted it. */
  | { why: "deleted" }
  /** Another device deleted the chat. */
  | { why: "chat-deleted" }
  /** The server does not take it; the name of the refusal. */
  | { why: "refused"; name: string };

/** An operation that waits to be stored, as a person sees it. */
export interface Waiting {
  number: number;
  /** The chat; null for account data. */
  chat: ChatId | null;
  what: What;
  /** What was written, if anything was. */
  text: string | null;
  /** Whether it was sent and not answered: it may be stored already. */
  isSent: boolean;
}

/** A conflicted copy: what this device wrote, and another device was first. */
export interface Copy {
  number: number;
  /** The chat; null for account data. */
  chat: ChatId | null;
  what: What;
  /** What was written here. */
  text: string | null;
  why: Why;
}

/** A queue as the files have it. */
export interface QueueJson {
  next: number;
  ops: Pending[];
  copies: Copy[];
}

/** The queue and the copies. */
export class Queue {
  #next = 0;
  ops: Pending[] = [];
  copies: Copy[] = [];

  /** From its JSON: the file was sealed by this device, so its shape is known. */
  static fromJson(json: QueueJson): Queue {
    const queue = new Queue();
    queue.#next = json.next;
    queue.ops = structuredClone(json.ops);
    queue.copies = structuredClone(json.copies);
    return queue;
  }

  toJSON(): QueueJson {
    return { next: this.#next, ops: this.ops, copies: this.copies };
  }

  /** What the person wrote, where it changes nothing that waits unsent. */
  #push(chat: ChatId | null, act: Act): void {
    this.#next += 1;
    this.ops.push({ n: this.#next, chat, act, sent: [] });
  }

  append(chat: ChatId, act: Act): void {
    this.#push(chat, act);
  }

  /** Suggestions for new chats, which belong to no chat. */
  suggest(texts: string[]): void {
    this.#push(null, { do: "suggest", texts });
  }

  /** Whether this turn is asked for by something that waits. */
  asks(turn: TurnId): boolean {
    return this.ops.some(({ act }) => {
      if (act.do === "append") return act.note.ask?.turn === turn;
      return act.do === "retry" && act.wanted.turn === turn;
    });
  }

  /** Whether the answer of this turn waits to be stored. */
  answers(turn: TurnId): boolean {
    return this.ops.some(({ act }) => act.do === "reply" && act.answer.turn === turn);
  }

  /** An edit: of what waits unsent, in place; else behind it. `seen` is what the chat has now. */
  edit(chat: ChatId, id: MessageId, body: string, seen: Base): void {
    const there = this.#last(chat, (act) => isTextOf(act, id));
    if (there === undefined) return this.#push(chat, { do: "edit", id, body, base: seen });
    if (!isUnsent(there)) return this.#push(chat, { do: "edit", id, body, base: { on: "op", n: there.n } });
    if (there.act.do === "append") there.act.note.body = body;
    else if (there.act.do === "edit") there.act.body = body;
  }

  /** A deletion: what waits unsent for this message goes; if the message itself does, nothing is sent at all. */
  delete(chat: ChatId, id: MessageId, seen: Base): void {
    const unsent = (op: Pending) => op.chat === chat && isUnsent(op);
    const isUnsentNew = this.ops.some((op) => unsent(op) && op.act.do === "append" && op.act.id === id);
    // The words that the first edit was made against are those that the chat has.
    const first = this.ops.find((op) => unsent(op) && isTextOf(op.act, id));
    const base = first === undefined ? null : baseOfAct(first.act);
    const isAbout = (act: Act) => isTextOf(act, id) || (act.do === "leaf" && act.id === id);
    this.ops = this.ops.filter((op) => !(unsent(op) && isAbout(op.act)));
    if (isUnsentNew) return;
    const sent = this.#last(chat, (act) => isTextOf(act, id));
    const onSent: Base | null = sent === undefined ? null : { on: "op", n: sent.n };
    this.#push(chat, { do: "delete", id, base: onSent ?? base ?? seen });
  }

  setField(chat: ChatId, name: FieldName, body: string, seen: Base): void {
    const there = this.#last(chat, (act) => act.do === "field" && act.name === name);
    if (there?.act.do === "field" && isUnsent(there)) there.act.body = body;
    else this.#push(chat, { do: "field", name, body, base: behind(there, seen) });
  }

  setDraft(chat: ChatId, body: string | null, seen: Base): void {
    const there = this.#last(chat, (act) => act.do === "draft");
    if (there?.act.do === "draft" && isUnsent(there)) there.act.body = body;
    else this.#push(chat, { do: "draft", body, base: behind(there, seen) });
  }

  setData(kind: FieldName, name: FieldName, body: string | null, seen: Base): void {
    const there = this.ops.findLast(({ act }) => act.do === "data" && act.kind === kind && act.name === name);
    if (there?.act.do === "data" && isUnsent(there)) there.act.body = body;
    else this.#push(null, { do: "data", kind, name, body, base: behind(there, seen) });
  }

  showBranch(chat: ChatId, id: MessageId): void {
    this.ops = this.ops.filter((op) => !(op.chat === chat && isUnsent(op) && op.act.do === "leaf"));
    this.#push(chat, { do: "leaf", id });
  }

  /** Deletes a chat: what waits unsent for it goes. One that was never sent needs no more than that. */
  deleteChat(chat: ChatId): void {
    const unsent = (op: Pending) => op.chat === chat && isUnsent(op);
    const neverSent = this.ops.some((op) => unsent(op) && op.act.do === "create");
    this.ops = this.ops.filter((op) => !unsent(op));
    if (!neverSent) this.#push(chat, { do: "delete-chat" });
  }

  #last(chat: ChatId, isAbout: (act: Act) => boolean): Pending | undefined {
    return this.ops.findLast((op) => op.chat === chat && isAbout(op.act));
  }

  ofChat(chat: ChatId): Pending[] {
    return this.ops.filter((op) => op.chat === chat);
  }

  /** These operations are stored: what was based on them is based on what they left. */
  done(numbers: readonly number[]): void {
    for (const n of numbers) {
      const at = this.ops.findIndex((op) => op.n === n);
      const [op] = at < 0 ? [] : this.ops.splice(at, 1);
      if (op === undefined) continue;
      const left = leaves(op.act);
      for (const { act } of this.ops) {
        if ("base" in act && act.base.on === "op" && act.base.n === n) act.base = left;
      }
    }
  }

  /** This operation lost: it becomes a copy, with the last words of whatever was based on it. */
  lost(n: number, why: Why): void {
    const at = this.ops.findIndex((op) => op.n === n);
    const [op] = at < 0 ? [] : this.ops.splice(at, 1);
    if (op === undefined) return;
    let text = textOfAct(op.act);
    let isKept = isWorthACopy(op.act);
    const lost = [n];
    for (let one = lost.pop(); one !== undefined; one = lost.pop()) {
      const isBased = ({ act }: Pending) => "base" in act && act.base.on === "op" && act.base.n === one;
      const based = this.ops.filter(isBased);
      this.ops = this.ops.filter((op) => !isBased(op));
      for (const { n, act } of based) {
        // Whoever deleted it wants no copy either.
        if (act.do === "delete") isKept = false;
        else text = textOfAct(act);
        lost.push(n);
      }
    }
    if (isKept) this.copies.push({ number: op.n, chat: op.chat, what: whatOf(op.act), text, why });
  }

  /** Keeps words that came too late, and never waited here. */
  keepCopy(chat: ChatId | null, what: What, text: string | null, why: Why): void {
    this.#next += 1;
    this.copies.push({ number: this.#next, chat, what, text, why });
  }

  /** Notes which head an attempt would make. Kept before it is sent. */
  noteSent(numbers: readonly number[], mark: Mark): void {
    for (const op of this.ops) if (numbers.includes(op.n)) op.sent.push(mark);
  }

  /** Heads of a chat that the server shows to be stored: whatever was sent with one of them is done. */
  confirm(chat: ChatId, stored: readonly Mark[]): void {
    const isStored = (mark: Mark) => stored.some((one) => one.rev === mark.rev && one.envelope === mark.envelope);
    this.done(this.ofChat(chat).filter((op) => op.sent.some(isStored)).map((op) => op.n));
  }

  waiting(): Waiting[] {
    return this.ops.map((op) => {
      const { n: number, chat, act } = op;
      return { number, chat, what: whatOf(act), text: textOfAct(act), isSent: !isUnsent(op) };
    });
  }
}

function isUnsent(op: Pending): boolean {
  return op.sent.length === 0;
}

/** What a change of the same thing is based on. */
function behind(there: Pending | undefined, seen: Base): Base {
  return there === undefined ? seen : { on: "op", n: there.n };
}

/** Whether an operation says what a message is: it adds or edits it. */
function isTextOf(act: Act, id: MessageId): boolean {
  return (act.do === "append" || act.do === "edit") && act.id === id;
}

function baseOfAct(act: Act): Base | null {
  return "base" in act ? act.base : null;
}

/** What an operation leaves, for whatever is based on it. */
function leaves(act: Act): Base {
  switch (act.do) {
    case "append":
      return baseOf(act.note.body);
    case "edit":
    case "field":
    case "draft":
    case "data":
      return baseOf(act.body);
    default:
      return NOTHING_THERE;
  }
}

function textOfAct(act: Act): string | null {
  switch (act.do) {
    case "append":
      return act.note.body;
    case "edit":
    case "field":
    case "embed":
    case "draft":
    case "data":
      return act.body;
    case "reply":
      return act.answer.body;
    default:
      return null;
  }
}

function whatOf(act: Act): What {
  switch (act.do) {
    case "create":
    case "delete-chat":
    case "draft":
      return { what: act.do };
    case "append":
      return { what: "message", id: act.id };
    case "edit":
    case "delete":
    case "reply":
      return { what: act.do, id: act.id };
    case "gave":
      return { what: "reply", id: act.id };
    case "embed":
      return { what: "embed", id: act.id };
    case "field":
      return { what: "field", name: act.name };
    case "leaf":
      return { what: "branch", id: act.id };
    case "data":
      return { what: "data", kind: act.kind, name: act.name };
    case "retry":
      return { what: "retry", id: act.message };
    case "give-up":
      return { what: "give-up", id: act.reply };
    case "made":
    case "ending":
    case "suggest":
      return { what: "made" };
  }
}

function isWorthACopy(act: Act): boolean {
  switch (act.do) {
    case "create":
    case "leaf":
    case "delete-chat":
      return false;
    // Nobody typed it.
    case "retry":
    case "gave":
    case "give-up":
    case "made":
    case "ending":
    case "suggest":
      return false;
    case "draft":
    case "data":
      return act.body !== null;
    default:
      return true;
  }
}
