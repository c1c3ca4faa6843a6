// What the page is told without asking: which lines of the list changed, whether the open chat did, what came of turns.
//
//   Device now ─ compared with what was told last ─▶ chats, chat, draft, outbox
//   Told ─▶ begun, words, progress, history, approval, wishes, gave, ended, failed, made
//
// Easy to get wrong: telling too much. A line is made again only if its chat changed or something of it waits; a chat of two thousand
// messages is not looked through for one word.

import type { ChatId, TurnId } from "../format/index";
import { chats } from "./chats";
import type * as core from "./core";
import type { Device } from "./device";
import type { Pending } from "./queue";
import type { Room } from "./room";
import type { Told } from "./turns";
import { type NotedWish, type Notes, type TurnNote, chatLine, chatLines, opsByChat, wishLine } from "./views";

interface Seen {
  room: Room | undefined;
  line: string;
  /** What waits, by its numbers. */
  ops: string;
  draft: string | null;
}

export class Announcer {
  #seen = new Map<ChatId, Seen>();
  #outbox = "";

  constructor(
    private readonly emit: (event: core.CoreEvent) => void,
    private readonly now: () => number,
  ) {}

  forget(): void {
    this.#seen = new Map();
    this.#outbox = "";
  }

  /** Compares with what was told last. */
  announce(device: Device, notes: Notes, shown: ChatId | null): void {
    const waiting = opsByChat(device);
    const changed: core.ChatLine[] = [];
    const now = new Set<ChatId>([...device.temporary.keys(), ...chats(device)].filter((id) => !notes.going.has(id)));
    for (const id of now) {
      const line = this.#changed(device, notes, id, waiting.get(id) ?? [], id === shown);
      if (line !== null) changed.push(line);
    }
    const gone = [...this.#seen.keys()].filter((id) => !now.has(id));
    for (const id of gone) this.#seen.delete(id);
    if (notes.refused !== null) changed.push(...chatLines(device, notes).filter((line) => line.refused !== undefined));
    if (changed.length > 0 || gone.length > 0) this.emit({ type: "chats", changed, gone });
    const { ops, copies } = device.state.queue;
    const outbox = `${ops.length}/${copies.length}`;
    if (outbox !== this.#outbox) this.emit({ type: "outbox", waiting: ops.length, copies: copies.length });
    this.#outbox = outbox;
  }

  /** The line, if it is another one than before. The chat that is shown is told as well. */
  #changed(device: Device, notes: Notes, id: ChatId, ops: readonly Pending[], isShown: boolean): core.ChatLine | null {
    const room = device.rooms.get(id) ?? device.temporary.get(id);
    const before = this.#seen.get(id);
    const line = chatLine(device, notes, id, ops);
    const now: Seen = {
      room,
      // A chat that is not stored has no time of its own: the list would change with every look.
      line: JSON.stringify({ ...line, updatedAt: room?.updatedAt ?? 0 }),
      ops: ops.map(fingerprint).join(" "),
      draft: room?.draft?.body ?? null,
    };
    this.#seen.set(id, now);
    if (isShown && before !== undefined) {
      if (before.room?.mark !== room?.mark || before.ops !== now.ops) this.emit({ type: "chat", chat: id });
      if (before.draft !== now.draft && !ops.some(({ act }) => act.do === "draft")) this.emit({ type: "draft", chat: id, draft: now.draft });
    }
    return before === undefined || before.line !== now.line ? line : null;
  }

  /** Tells what came of a turn, and notes it. Gives whether there is something to store. */
  tell({ chat, turn, what }: Told, notes: Notes): boolean {
    const note = notes.turn(turn);
    switch (what.told) {
      case "begun":
        note.ahead = what.ahead;
        this.emit({ type: "begun", chat, turn, ahead: what.ahead });
        return false;
      case "history":
        note.historySent += what.messages;
        this.emit({ type: "history", chat, turn, messages: what.messages });
        return false;
      case "progress":
        note.progress = what.progress;
        // It goes on: somebody has decided, here or elsewhere.
        note.approvals = [];
        this.emit({ type: "progress", chat, turn, progress: what.progress });
        return false;
      case "words":
        // Words that were on their way when it asked say nothing; later ones say that the answer went on.
        this.#wishes(note, chat, turn, (wish) => wish.at + IN_FLIGHT > this.now());
        note.approvals = [];
        this.emit({ type: "words", chat, turn, at: what.at, text: what.text });
        return false;
      case "approval": {
        const approval = { chat, turn, ...what.approval };
        note.approvals = [...note.approvals.filter(({ id }) => id !== approval.id), approval];
        this.emit({ type: "approval", approval });
        return false;
      }
      case "wish": {
        const wish = { ...what.wish, at: this.now() };
        this.#wishes(note, chat, turn, ({ what: kind }) => kind !== wish.what, [wish]);
        return false;
      }
      case "gave":
        this.emit({ type: "gave", chat, turn, pieces: what.pieces.map(({ what: kind, name }) => ({ what: kind, name })) });
        return false;
      case "ended": {
        const { finish, reply, tools, wanted, focus, category, isHelp, sent } = what;
        notes.answers.set(reply, { finish, tools, focus, category, wanted, historySent: note.historySent, ...(isHelp ? { isHelp } : {}), ...(sent === null ? {} : { sent }) });
        note.approvals = [];
        this.#wishes(note, chat, turn, () => false);
        this.emit({ type: "ended", chat, turn, reply, finish, wanted, tools });
        return true;
      }
      case "failed":
        note.approvals = [];
        this.#wishes(note, chat, turn, () => false);
        this.emit({ type: "failed", chat, turn, error: what.error });
        return false;
      case "made":
        this.emit({ type: "made", chat, turn });
        return true;
    }
  }

  /** What a turn asks for: these stay, and these are new. */
  #wishes(note: TurnNote, chat: ChatId, turn: TurnId, stays: (wish: NotedWish) => boolean, more: NotedWish[] = []): void {
    const wishes = [...note.wishes.filter(stays), ...more];
    if (wishes.length === note.wishes.length && more.length === 0) return;
    note.wishes = wishes;
    this.emit({ type: "wishes", chat, turn, wishes: wishes.map(wishLine) });
  }
}

/** How long words may take that were said before the server asked for something. */
const IN_FLIGHT = 1_500;

/** What tells whether an operation is still the same: drafts and edits change in place. */
function fingerprint({ n, act }: Pending): string {
  if (act.do === "append") return `${n}:${markOf(act, act.note.body)}`;
  return "body" in act && act.do !== "draft" ? `${n}:${markOf(act, act.body)}` : `${n}`;
}

const marks = new WeakMap<object, { body: string | null; mark: number }>();
let newest = 0;

/** A number that changes when the words do, also to others of the same length; without looking through words that are the same. */
function markOf(act: object, body: string | null): number {
  const known = marks.get(act);
  if (known !== undefined && known.body === body) return known.mark;
  newest += 1;
  marks.set(act, { body, mark: newest });
  return newest;
}
