// Turns that this device hears: what came of each, and what may still be asked about it.
//
//   asked ──▶ answering ──▶ ended            the words are whole, and wait to be stored
//     │            └──────▶ over (error)     there is no answer to hear here
//     └ only here the history is given, twice at most, on the socket that the question went over
//
// Nothing here is kept: what outlives the worker is the reply that a chat's sealed head waits for. Easy to get wrong: words of a turn that
// this device does not listen to on this socket. They are `unasked`, whatever they say. And places: the wire counts bytes of UTF-8, a
// text here counts UTF-16 units; `Told` counts units.

import type { Digest } from "../format/bytes";
import type { ChatId, MessageId, TurnId } from "../format/ids";
import type { ErrorName, Finish, Given, ServerEvent } from "../protocol/index";
import type { Progress } from "./core";
import { utf8Length } from "../protocol/values";
import type { GivenText, Wish } from "./wishes";

/** A question that was asked: where its answer will be. */
export interface Asked {
  turn: TurnId;
  message: MessageId;
  /** The id that the reply will have. */
  reply: MessageId;
}

/** What came of a turn. */
export interface Told {
  chat: ChatId;
  turn: TurnId;
  what: Telling;
}

export type Telling =
  /** It runs, or waits for so many before it. */
  | { told: "begun"; ahead: number }
  /** The server had not the words before the question, and got so many messages. */
  | { told: "history"; messages: number }
  /** What is being done. */
  | { told: "progress"; progress: Progress }
  /** Words of the answer. Those that were told from `at` on are replaced. */
  | { told: "words"; at: number; text: string }
  /** A tool may only work if the person allows it: `decide`. */
  | { told: "approval"; approval: Approval }
  /** The server asks for something, which the person is shown before it goes: `give`. */
  | { told: "wish"; wish: Wish }
  /** The server asked for something that is switched on for this chat, and got this. */
  | { told: "gave"; pieces: GivenText[] }
  /** The answer is there. `flush` stores it. */
  | { told: "ended"; finish: Finish; reply: MessageId; tools: string[]; wanted: string[]; focus: string | null; category: string | null; isHelp: boolean; sent: SentWith | null }
  /** There is no answer. The person may ask again, or give up. */
  | { told: "failed"; error: ErrorName }
  /** A summary, tags and suggestions were made. `flush` stores them. */
  | { told: "made" };

/** What went with a question besides its words. */
export interface SentWith {
  /** Whether the server may keep the words for the next question. */
  isKept: boolean;
  /** What was switched off. */
  off: string[];
  /** How many names of settings and memories it was told. */
  names: number;
  focus: string | null;
  /** What it was allowed to ask for. */
  asks: Given[];
}

/** A tool that waits for the person's word. */
export interface Approval {
  /** Which question. */
  id: string;
  tool: string;
  /** What it would be called with, in JSON. */
  input: string;
  /** Why it is asked. */
  why: string;
  /** Until when it can be decided, by the clock of this device. */
  expiresAt: number;
}

/** A reply that a chat waits for. */
export interface Awaited {
  chat: ChatId;
  turn: TurnId;
  /** The message that it answers. */
  message: MessageId;
  /** The id that it will have. */
  reply: MessageId;
  state: Awaiting;
}

/** What is known about a reply. */
export type Awaiting =
  /** Nothing: the server was not asked since the last connection. A sync asks. */
  | { is: "unknown" }
  /** The question is stored, and was not asked yet. */
  | { is: "unsent" }
  /** It is being answered, and this device listens. */
  | { is: "running" }
  /** It is here, and waits to be stored. */
  | { is: "heard" }
  /** No answer will come: the name says why, `not-found` if the server knows nothing of it. */
  | { is: "unanswered"; error: ErrorName };

/** How far a turn is. */
export type Stage = { at: "asked" } | { at: "answering" } | { at: "ended" } | { at: "over"; error: ErrorName };

/** What words were: they go here, they are known, or some before them are missing. */
export type Heard = { heard: "words"; at: number } | { heard: "known" } | { heard: "gap" };

/** A message of the branch that a question names, and its revision then. */
export type BranchItem = readonly [MessageId, number];

/** A turn that this device hears, or heard. */
export class Turn {
  stage: Stage = { at: "asked" };
  words = "";
  /** How many bytes the words have. */
  bytes = 0;
  /** How often the history was given. */
  histories = 0;
  /** How often words were missing. */
  gaps = 0;
  /** Whether words that were missing are on their way. */
  isCatchingUp = false;
  /** Whether all words were asked for once more, because their hash was another. */
  isRepeated = false;
  /** Whether the person stopped it here. */
  isCancelled = false;
  /** What the server may ask for while it answers. */
  asks: Given[] = [];
  /** What it has asked for, and of that what is not answered. */
  asked: Given[] = [];
  open: Given[] = [];
  /** What went with the question, if this device asked it. */
  sent: SentWith | null = null;

  constructor(
    readonly chat: ChatId,
    readonly turn: TurnId,
    readonly message: MessageId,
    readonly reply: MessageId,
    /** The digest of the branch with message and reply. */
    readonly after: Digest,
    /** The branch before the message, as the question names it. */
    readonly branch: readonly BranchItem[],
    /** The socket over which this device asked the question; null if it only listens. */
    readonly begunOn: number | null,
    /** The socket over which it hears. */
    readonly heardOn: number,
  ) {}

  /** Whether nothing is heard of it any more. */
  get isDone(): boolean {
    return this.stage.at === "ended" || this.stage.at === "over";
  }

  /**
   * Takes in words that stand at this byte of the answer. Other words than those that were heard there replace them, and what follows:
   * whether they are right is seen at the end, by their hash.
   */
  hear(atByte: number, text: string): Heard {
    const at = this.#unitOf(atByte);
    if (at === null) return { heard: "gap" };
    this.isCatchingUp = false;
    const heard = this.words.slice(at);
    if (heard.startsWith(text)) return { heard: "known" };
    if (text.startsWith(heard)) {
      // Both end where a character does.
      const from = this.words.length;
      const more = text.slice(from - at);
      this.words += more;
      this.bytes += utf8Length(more);
      return { heard: "words", at: from };
    }
    this.words = this.words.slice(0, at) + text;
    this.bytes = atByte + utf8Length(text);
    return { heard: "words", at };
  }

  forgetWords(): void {
    [this.words, this.bytes] = ["", 0];
  }

  /** Where a byte is among the units; null beyond the words, and inside a character. */
  #unitOf(atByte: number): number | null {
    if (atByte >= this.bytes) return atByte === this.bytes ? this.words.length : null;
    let [bytes, at] = [0, 0];
    for (const character of this.words) {
      if (bytes >= atByte) break;
      bytes += utf8Length(character);
      at += character.length;
    }
    return bytes === atByte ? at : null;
  }

  /** Whether this device may give the history of this turn on this socket. */
  mayGive(chat: ChatId, message: MessageId, socket: number): boolean {
    return (
      this.chat === chat &&
      this.message === message &&
      this.begunOn === socket &&
      this.stage.at === "asked" &&
      this.histories < HISTORIES
    );
  }

  /** Whether the server may ask for something of this kind, for this turn on this socket. */
  mayBeAsked(chat: ChatId, what: Given, socket: number): boolean {
    return this.#isOpen(chat, socket) && this.asks.includes(what) && !this.asked.includes(what);
  }

  /** Whether it asked, and waits for it. */
  mayAnswer(chat: ChatId, what: Given, socket: number): boolean {
    return this.#isOpen(chat, socket) && this.open.includes(what);
  }

  /** Whether this device asked the question on this socket, and it has no answer. */
  #isOpen(chat: ChatId, socket: number): boolean {
    const isUnanswered = this.stage.at === "asked" || this.stage.at === "answering";
    return this.chat === chat && this.begunOn === socket && isUnanswered && !this.isCancelled;
  }

  tell(what: Telling): Told {
    return { chat: this.chat, turn: this.turn, what };
  }
}

/** The turns, and what is to be told of them. */
export class Turns {
  #all: Turn[] = [];
  /** What happened outside `listen`. */
  told: Told[] = [];

  /** A turn that is heard from now on, in place of what was known of it. Words that were heard before stay. */
  add(turn: Turn): void {
    const old = this.find(turn.turn);
    if (old !== undefined) {
      [turn.words, turn.bytes, turn.sent] = [old.words, old.bytes, turn.sent ?? old.sent];
      // Asked anew on another socket: what was asked for is not asked for again.
      turn.asked = [...new Set([...turn.asked, ...old.asked])];
    }
    this.#all = this.#all.filter((one) => one.turn !== turn.turn);
    this.#all.push(turn);
    if (this.#all.length > REMEMBERED) {
      const done = this.#all.findIndex((one) => one.isDone);
      this.#all.splice(Math.max(done, 0), 1);
    }
  }

  find(turn: TurnId): Turn | undefined {
    return this.#all.find((one) => one.turn === turn);
  }

  /** The turn, if this device hears it in this chat on this socket. */
  heard(chat: ChatId, turn: TurnId, socket: number): Turn | undefined {
    const one = this.find(turn);
    return one !== undefined && one.chat === chat && one.heardOn === socket ? one : undefined;
  }

  /** It was not begun after all. */
  forget(turn: TurnId): void {
    this.#all = this.#all.filter((one) => one.turn !== turn);
  }

  /** It ends without an answer, and that is told. */
  fail(turn: TurnId, error: ErrorName): void {
    const one = this.find(turn);
    if (one === undefined) return;
    one.stage = { at: "over", error };
    this.told.push(one.tell({ told: "failed", error }));
  }
}

/** Whether an event says what came of a turn. Such events may follow the first answer to a request, with its number. */
export function isTold(event: ServerEvent): boolean {
  return TOLD.has(event.type);
}

const TOLD: ReadonlySet<ServerEvent["type"]> = new Set<ServerEvent["type"]>([
  "request_chat_history",
  "request_client_data",
  "preprocessing_step",
  "ai_typing_started",
  "ai_message_update",
  "ai_typing_ended",
  "ai_task_failed",
  "post_processing_completed",
  "pending_ai_response",
  "ai_approval_requested",
]);

/** How often the history of one turn is given. */
const HISTORIES = 2;
/** Turns that are remembered, those that are over included: what is still on its way about them is no attack. */
const REMEMBERED = 256;
