// The commands of the page about chats, the outbox and settings. Those about the account are in account_commands.ts.
//
//   command ─▶ ids are checked ─▶ keeper.run ─▶ Device ─▶ what waits is sent afterwards
//
// What only looks is answered at once, also while something is being loaded. Easy to get wrong: waiting for the server where nobody needs
// to. A command that writes is done once its words are kept in the queue.

import { ChatId, EmbedId, MessageId, Refused, TurnId, wellFormed } from "../format/index";
import { type CatalogueEntry, Given } from "../protocol/index";
import { keepAnswerNotes, readAnswerNotes } from "./answer_notes";
import { type AskOptions, ask, askInstead, cancel, catalogue, decide, giveUp, hearAgain, retry, setSwitch } from "./asks";
import * as chats from "./chats";
import type * as core from "./core";
import type { Device } from "./device";
import { setEdit } from "./edits";
import { ClientError, isRefused } from "./error";
import type { Keeper } from "./keeper";
import { readPreviews } from "./outline";
import { part } from "./part";
import { search } from "./search";
import { embed, loadOlder, openChat } from "./sync";
import { exportChat } from "./take_out";
import { askTemporary, giveUpTemporary, isTemporary, newTemporary, retryTemporary, showTemporary } from "./temporary";
import type { Asked } from "./turns";
import { give, setCached, share, similarTo, switchedOff } from "./wishes";
import { chatLines, chatPage, copyLine, leafUnder, suggestionsOf, turnLines, viewOf, waitingLine } from "./views";

/** The commands of this file. */
export type ChatCommands = Pick<
  core.Core,
  | "chats" | "hasOlder" | "loadOlder" | "newChat" | "open" | "body" | "previews" | "embed" | "say" | "ask" | "askInstead" | "retry" | "cancel" | "giveUp" | "decide" | "hearAgain"
  | "showBranch" | "edit" | "deleteMessage" | "rename" | "setPinned" | "setField" | "deleteChat" | "undoDelete" | "setDraft" | "firstDraft"
  | "setFirstDraft" | "setEdit" | "search"
  | "exportChat" | "importChats" | "waiting" | "copies" | "useCopy" | "discardCopy" | "awaited" | "switchedOff" | "setSwitch" | "catalogue" | "data"
  | "dataOf" | "setData" | "suggestions" | "retryNow" | "connection" | "give" | "share" | "setCached" | "similar"
>;

/** The device, if its keys are in memory. */
export function opened(keeper: Keeper): Device {
  if (keeper.device === null) throw new ClientError("locked");
  return keeper.device;
}

export function chatCommands(keeper: Keeper): ChatCommands {
  const how = new How(keeper);
  return { ...looking(keeper, how), ...asking(keeper, how), ...writing(keeper, how), ...deleting(keeper, how) };
}

/** How a command is done. */
class How {
  constructor(private readonly keeper: Keeper) {}

  /** Looks at once. */
  readonly look = async <T>(act: (device: Device) => T): Promise<T> => act(opened(this.keeper));

  /** Does it when nothing else is done. */
  readonly run = <T>(act: (device: Device) => Promise<T>): Promise<T> => this.keeper.run(() => act(opened(this.keeper)));

  /** The same, and sends what waits afterwards. */
  readonly write = <T>(act: (device: Device) => Promise<T>, afterMs = 0): Promise<T> =>
    this.run(async (device) => {
      const done = await act(device);
      this.keeper.sendSoon(afterMs);
      return done;
    });
}

/** What changes nothing. */
function looking(keeper: Keeper, { look }: How) {
  return {
    connection: async () => keeper.connection,
    chats: () => look((device) => chatLines(device, keeper.notes)),
    hasOlder: () => look((device) => device.state.older),
    search: (words) => look((device) => search(device, keeper.notes, words)),
    exportChat: (chat, as) => look((device) => exportChat(viewOf(device, ChatId.parse(chat)), as)),
    waiting: () => look((device) => chats.waiting(device).map(waitingLine)),
    copies: () => look((device) => chats.copies(device).map(copyLine)),
    awaited: () => look((device) => turnLines(device, keeper.notes, null)),
    switchedOff: () => look(switchedOff),
    data: (kind, name) => look((device) => chats.data(device, kind, name)),
    dataOf: (kind) => look((device) => dataOf(device, kind)),
    suggestions: () => look(suggestionsOf),
    firstDraft: () => look((device) => device.state.firstDraft ?? null),
    similar: (chat, words) => look((device) => similarTo(device, chat === null ? null : ChatId.parse(chat), [words]).map(([name, text]) => ({ name, text }))),
    retryNow: async () => keeper.tryNow(),
  } satisfies Partial<ChatCommands>;
}

/** Questions and what comes of them. */
function asking(keeper: Keeper, { run, write }: How) {
  return {
    ask: (chat, body, options) => write((device) => asked(chat, anyAsk(device, ChatId.parse(chat), null, body, optionsOf(options)))),
    askInstead: (chat, message, body, options) =>
      write((device) => asked(chat, anyAsk(device, ChatId.parse(chat), MessageId.parse(message), body, optionsOf(options)))),
    retry: (chat, message, options) =>
      write((device) => asked(chat, anyRetry(device, ChatId.parse(chat), MessageId.parse(message), optionsOf(options)))),
    cancel: (chat, turn) => run((device) => cancel(device, ChatId.parse(chat), TurnId.parse(turn))),
    giveUp: (chat, turn) =>
      write(async (device) => {
        const [id, one] = [ChatId.parse(chat), TurnId.parse(turn)];
        return isTemporary(device, id) ? giveUpTemporary(device, id, one) : giveUp(device, id, one);
      }),
    decide: (chat, turn, approval, allow) =>
      run(async (device) => {
        await decide(device, ChatId.parse(chat), TurnId.parse(turn), approval, allow);
        const note = keeper.notes.turn(TurnId.parse(turn));
        note.approvals = note.approvals.filter(({ id }) => id !== approval);
      }),
    hearAgain: (_, turn) =>
      run(async (device) => {
        await hearAgain(device, TurnId.parse(turn));
      }),
    catalogue: () =>
      run(async (device) => {
        const { tools, focusModes, whole } = await catalogue(device);
        const offer = ({ name, title, about }: CatalogueEntry): core.Offer => ({ name, title: title ?? null, about });
        return { tools: tools.map(offer), focusModes: focusModes.map(offer), isWhole: whole };
      }),
    give: (chat, turn, what, pieces) =>
      run(async (device) => {
        const note = keeper.notes.turn(TurnId.parse(turn));
        const wish = note.wishes.find((one) => one.what === what);
        if (wish === undefined) throw new Refused("unasked");
        // Whatever comes of it, it is asked for once.
        note.wishes = note.wishes.filter((one) => one !== wish);
        await give(device, ChatId.parse(chat), TurnId.parse(turn), wish.what, wish.pieces.filter((_, at) => pieces.includes(at)));
      }),
  } satisfies Partial<ChatCommands>;
}

/** What is written, and what is loaded. */
function writing(keeper: Keeper, { run, write }: How) {
  return {
    loadOlder: () => run(async (device) => (await loadOlder(device, OLDER)).older),
    newChat: (options = {}) =>
      write((device) => {
        return options.temporary === true ? newTemporary(device) : newStored(device, options);
      }),
    open: (chat) => openedPage(keeper, ChatId.parse(chat)),
    body: (chat, message) => bodyOf(keeper, ChatId.parse(chat), MessageId.parse(message)),
    previews: (chat) => run((device) => readPreviews(device, ChatId.parse(chat))),
    embed: (chat, id) => run((device) => embed(device, ChatId.parse(chat), EmbedId.parse(id))),
    say: (chat, body) => write((device) => chats.say(device, ChatId.parse(chat), body)),
    showBranch: (chat, message) =>
      write(async (device) => {
        const id = ChatId.parse(chat);
        const leaf = leafUnder(device, id, MessageId.parse(message));
        return isTemporary(device, id) ? showTemporary(device, id, leaf) : chats.showBranch(device, id, leaf);
      }),
    edit: (chat, message, body) => write((device) => chats.edit(device, ChatId.parse(chat), MessageId.parse(message), body)),
    deleteMessage: (chat, message) =>
      write(async (device) => {
        const id = ChatId.parse(chat);
        await chats.deleteMessage(device, id, MessageId.parse(message));
        await keepAnswerNotes(device, keeper.notes, id);
      }),
    rename: (chat, title) => write((device) => chats.rename(device, ChatId.parse(chat), title)),
    setPinned: (chat, pinned) => write((device) => chats.setField(device, ChatId.parse(chat), "pinned", pinned ? "1" : "0")),
    setCached: (chat, isOn) => write((device) => setCached(device, ChatId.parse(chat), isOn)),
    share: (chat, what, isOn) => write((device) => share(device, ChatId.parse(chat), givenOf(what), isOn)),
    setField: (chat, name, body) => write((device) => chats.setField(device, ChatId.parse(chat), name, body)),
    setDraft: (chat, body) =>
      write(async (device) => {
        const id = ChatId.parse(chat);
        // Nothing is kept of a temporary chat: the page has what is typed.
        if (!isTemporary(device, id)) await chats.setDraft(device, id, body);
      }, body === null ? 0 : DRAFTS),
    setFirstDraft: (body) => run((device) => chats.setFirstDraft(device, body)),
    setEdit: (chat, message, body) =>
      run(async (device) => {
        const id = ChatId.parse(chat);
        if (!isTemporary(device, id)) await setEdit(device, id, MessageId.parse(message), body);
      }),
    importChats: (all) => write(async (device) => (await part(() => import("./bring_in"))).bringIn(device, all)),
    useCopy: (number) => write((device) => chats.useCopy(device, number)),
    discardCopy: (number) => write((device) => chats.discardCopy(device, number)),
    setSwitch: (name, isOn) => write((device) => setSwitch(device, wellFormed(name), isOn)),
    setData: (kind, name, body) => write((device) => chats.setData(device, kind, name, body)),
  } satisfies Partial<ChatCommands>;
}

/** Chats that go, with a while to think better of it. */
function deleting(keeper: Keeper, { run, write }: How) {
  const going = new Map<ChatId, ReturnType<typeof setTimeout>>();
  /** Deletes a chat whose time to undo is over. */
  const goes = (id: ChatId) =>
    write(async (device) => {
      going.delete(id);
      keeper.notes.going.delete(id);
      await chats.deleteChat(device, id);
    });
  return {
    deleteChat: (chat, undoMs = 0) =>
      run(async (device) => {
        const id = ChatId.parse(chat);
        // Nobody else has a temporary one, and it does not come back.
        if (device.temporary.delete(id)) return;
        chats.there(device, id);
        keeper.notes.going.add(id);
        clearTimeout(going.get(id));
        // Locked meanwhile: the chat stays, which is the harmless end of a doubt.
        going.set(id, setTimeout(() => void goes(id).catch(() => {}), undoMs));
      }),
    undoDelete: (chat) =>
      run(async () => {
        const id = ChatId.parse(chat);
        if (!going.has(id)) throw new ClientError("no-such-chat");
        clearTimeout(going.get(id));
        going.delete(id);
        keeper.notes.going.delete(id);
      }),
  } satisfies Partial<ChatCommands>;
}

/** What this device has of a chat, at once; what it has not is loaded first. The server is told that it was opened. */
async function openedPage(keeper: Keeper, id: ChatId): Promise<core.ChatPage> {
  const device = opened(keeper);
  const isFirst = keeper.shown !== id;
  keeper.shown = id;
  keeper.notes.unread.delete(id);
  const isHere = isTemporary(device, id) || device.rooms.has(id) || device.state.queue.ofChat(id).length > 0;
  if (!isHere) await keeper.run(() => openChat(device, id));
  else if (isFirst && device.rooms.has(id)) {
    // Behind what the person sees. Offline, the next sync tells it.
    keeper.run(() => openChat(device, id)).catch((error: unknown) => {
      if (isRefused(error)) keeper.setConnection({ state: "refused", error: { name: error.name } });
    });
  }
  await readAnswerNotes(device, keeper.notes, id);
  // Locked meanwhile: nothing is shown any more.
  return chatPage(opened(keeper), keeper.notes, id);
}

/** All words of a message. Those that went to make room are loaded with their chat. */
async function bodyOf(keeper: Keeper, chat: ChatId, message: MessageId): Promise<string> {
  const device = opened(keeper);
  const here = () => viewOf(device, chat).messages.get(message)?.body;
  const known = here();
  if (known !== undefined) return known;
  await keeper.run(() => openChat(device, chat));
  const loaded = here();
  if (loaded === undefined) throw new ClientError("no-such-message");
  return loaded;
}

function anyAsk(device: Device, chat: ChatId, instead: MessageId | null, body: string, options: AskOptions): Promise<Asked> {
  if (isTemporary(device, chat)) return askTemporary(device, chat, body, options, instead);
  return instead === null ? ask(device, chat, body, options) : askInstead(device, chat, instead, body, options);
}

function anyRetry(device: Device, chat: ChatId, message: MessageId, options: AskOptions): Promise<Asked> {
  return isTemporary(device, chat) ? retryTemporary(device, chat, message, options) : retry(device, chat, message, options);
}

async function newStored(device: Device, { title, uncached }: { title?: string; uncached?: boolean }): Promise<ChatId> {
  const id = await chats.newChat(device, title ?? null);
  // Before the first question: nothing of this chat is ever kept.
  if (uncached === true) await setCached(device, id, false);
  return id;
}

async function asked(chat: string, asking: Promise<Asked>): Promise<core.Asked> {
  const { turn, message, reply } = await asking;
  return { chat, turn, message, reply };
}

function optionsOf(options: core.AskOptions = {}): AskOptions {
  return {
    keep: options.keep ?? "cache",
    focus: options.focus === undefined ? null : wellFormed(options.focus),
    off: (options.off ?? []).map(wellFormed),
    available: (options.available ?? []).map(wellFormed),
    // Half of a surrogate pair could never be sent, and what is asked waits for ever.
    given: (options.given ?? []).map(({ what, name, text }) => ({ what: givenOf(what), name: wellFormed(name), text: wellFormed(text) })),
    isPerson: options.isPerson === true,
  };
}

function givenOf(what: string): Given {
  const given = Given.words.find((word) => word === what);
  if (given === undefined) throw new ClientError("unexpected");
  return given;
}

/** Every piece of this kind, with what waits laid over it. */
function dataOf(device: Device, kind: string): core.DataLine[] {
  const waits = device.state.queue.ops.flatMap(({ act }) => (act.do === "data" && act.kind === kind ? [act.name] : []));
  const names = new Set([...device.state.data.filter((piece) => piece.kind === kind).map(({ name }) => name), ...waits]);
  return [...names].sort().flatMap((name): core.DataLine[] => {
    const body = chats.data(device, kind, name);
    return body === null ? [] : [{ kind, name, body }];
  });
}

/** Older chats that are asked for at once. */
const OLDER = 50;
/** Servers ask for at most one draft every five seconds. */
const DRAFTS = 5_000;
