// The chat that is open: its branch, the answers that are coming, its draft.
//
//   open(chat) ─▶ page ─────────────────────────┐
//   events: words ─▶ live turn ─▶ its own signal ┴▶ drawn; only the answer that grows draws again
//
// Easy to get wrong: an answer that arrives for a chat that is not open any more. Pages carry the number of the opening that asked.
import { signal, type Signal } from "@preact/signals";
import type { Approval, AskOptions, ChatPage, CoreEvent, Finish, MessageLine, Progress, TurnLine, WishLine } from "../../client/core";
import { t } from "../i18n";
import { ContentStore } from "../message/content";
import { memoryLabel } from "../message/names";
import { stepText } from "../message/steps";
import { isOpen, onLocked } from "./account";
import { core, nameOf } from "./core";
import { jumpTo, ledTo } from "./jump";
import { attempt } from "./notes";
import { go } from "./route";

/** An answer that is coming. */
export interface LiveTurn {
  chat: string;
  turn: string;
  message: string;
  reply: string;
  state: Signal<TurnLine["state"]>;
  error: Signal<string | null>;
  words: Signal<string>;
  progress: Signal<Progress | null>;
  /** What was done so far, newest last: tools and steps. */
  steps: Signal<string[]>;
  ahead: Signal<number>;
  historySent: Signal<number>;
  approvals: Signal<Approval[]>;
  /** What the server asks this device for. Nothing of it has left. */
  wishes: Signal<WishLine[]>;
  finish: Signal<Finish | null>;
  /** Whether it is being stopped. */
  isStopping: Signal<boolean>;
}

export const page = signal<ChatPage | null>(null);
/** Why the chat cannot be shown, by name. */
export const pageError = signal<string | null>(null);
export const isPageLoading = signal(false);
export const turns = signal<LiveTurn[]>([]);
export const content = new ContentStore();
/** First words of parts whose words went to make room, by content id. */
export const previews = signal<ReadonlyMap<string, string>>(new Map());

let opening = 0;

export function startChat(): void {
  core().on(hear);
  onLocked(closeChat);
}

/** Shows no chat. */
export function closeChat(): void {
  opening += 1;
  page.value = null;
  pageError.value = null;
  turns.value = [];
  previews.value = new Map();
  content.clear();
  ledTo.value = null;
  if (!isOpen.peek()) [seenTools.value, jumpTo.value] = [[], null];
}

/** Opens a chat. */
export async function openChat(chat: string): Promise<void> {
  if (page.value?.chat.id !== chat) {
    closeChat();
    if (jumpTo.peek()?.chat !== chat) jumpTo.value = null;
  }
  const mine = ++opening;
  isPageLoading.value = true;
  try {
    const got = await core().open(chat);
    if (mine === opening) take(got);
  } catch (error) {
    if (mine === opening) pageError.value = nameOf(error);
  } finally {
    if (mine === opening) isPageLoading.value = false;
  }
}

/** The chat again, after it changed. */
export async function refresh(): Promise<void> {
  const chat = page.value?.chat.id;
  if (chat !== undefined) await openChat(chat);
}

function take(got: ChatPage): void {
  const stored = new Set(got.messages.map((message) => message.id));
  const before = new Map(turns.value.map((turn) => [turn.turn, turn]));
  const next = got.turns.filter((line) => !stored.has(line.reply)).map((line) => merge(before.get(line.turn), line));
  pageError.value = got.chat.refused ?? null;
  turns.value = next;
  page.value = got;
  if (previews.value.size === 0 && got.messages.some((message) => message.missing !== undefined)) void loadPreviews(got.chat.id);
}

/** The first words are nice to have: without them there are empty places. */
async function loadPreviews(chat: string): Promise<void> {
  const found = await core().previews(chat).catch(() => []);
  if (page.value?.chat.id === chat) previews.value = new Map(found);
}

/** All words of a message: those that the page has, or the worker's, or the server's. */
export async function wholeBody(message: MessageLine): Promise<string> {
  const chat = page.value?.chat.id;
  const isHere = message.length === undefined && message.missing === undefined;
  return isHere || chat === undefined ? message.body : core().body(chat, message.id);
}

/** Loads the words of a message that went to make room; the others of its chat come with them. */
export const loadWords = (message: string) => inChat((chat) => core().body(chat, message));

function merge(old: LiveTurn | undefined, line: TurnLine): LiveTurn {
  const turn = old ?? blank(line);
  turn.state.value = line.state;
  turn.error.value = line.error ?? null;
  if (line.words.length > turn.words.value.length) turn.words.value = line.words;
  turn.progress.value = line.progress ?? turn.progress.value;
  turn.ahead.value = line.ahead;
  turn.historySent.value = Math.max(turn.historySent.value, line.historySent);
  turn.approvals.value = line.approvals;
  turn.wishes.value = line.wishes;
  return turn;
}

function blank(line: Pick<TurnLine, "chat" | "turn" | "message" | "reply">): LiveTurn {
  return {
    chat: line.chat,
    turn: line.turn,
    message: line.message,
    reply: line.reply,
    state: signal<TurnLine["state"]>("unsent"),
    error: signal<string | null>(null),
    words: signal(""),
    progress: signal<Progress | null>(null),
    steps: signal<string[]>([]),
    ahead: signal(0),
    historySent: signal(0),
    approvals: signal<Approval[]>([]),
    wishes: signal<WishLine[]>([]),
    finish: signal<Finish | null>(null),
    isStopping: signal(false),
  };
}

/** Asks. Without a chat, one is made; it is opened before the question is stored, so that nothing of the answer is missed. */
export async function ask(body: string, options: AskOptions, place: { chat: string | null; temporary?: boolean; uncached?: boolean }): Promise<boolean> {
  return attempt(async () => {
    let chat = place.chat;
    if (chat === null) {
      chat = await core().newChat({ temporary: place.temporary === true, uncached: place.uncached === true });
      await openChat(chat);
      go({ page: "chat", chat });
    }
    await core().ask(chat, body, options);
    await openChat(chat);
  });
}

export const askInstead = (message: string, body: string, options: AskOptions) => inChat((chat) => core().askInstead(chat, message, body, options));
export const retry = (message: string, options: AskOptions) => inChat((chat) => core().retry(chat, message, options));
export const showBranch = (message: string) => inChat((chat) => core().showBranch(chat, message));
export const deleteMessage = (message: string) => inChat((chat) => core().deleteMessage(chat, message));
export const giveUp = (turn: string) => inChat((chat) => core().giveUp(chat, turn));

export async function stop(turn: LiveTurn): Promise<void> {
  turn.isStopping.value = true;
  if (!(await attempt(() => core().cancel(turn.chat, turn.turn)))) turn.isStopping.value = false;
}

/** The person's word on a tool. */
export async function decide(turn: LiveTurn, approval: Approval, allow: boolean): Promise<void> {
  await attempt(async () => {
    await core().decide(turn.chat, turn.turn, approval.id, allow);
    turn.approvals.value = turn.approvals.value.filter((one) => one.id !== approval.id);
  });
}

/** Asks the server what came of a turn whose time to decide is over. What fails is said if the person asked for it. */
export async function hearAgain(turn: LiveTurn, isAsked = false): Promise<void> {
  const look = () => core().hearAgain(turn.chat, turn.turn);
  if (isAsked) await attempt(look);
  else await look().catch(() => undefined);
}

/** The person's word on what the server asks for: these pieces go, or nothing; and whether such things go by themselves from now on. */
export async function answerWish(turn: LiveTurn, wish: WishLine, pieces: number[], isAlways: boolean): Promise<void> {
  await attempt(async () => {
    try {
      await core().give(turn.chat, turn.turn, wish.what, pieces);
      if (pieces.length > 0) step(turn, t("youGave", { n: pieces.length, names: wish.pieces.filter((_, at) => pieces.includes(at)).map(({ name }) => memoryLabel(name)).join(", ") }));
    } catch (error) {
      if (nameOf(error) !== "unasked") throw error;
      // It went on, was stopped, or the connection is another: that is no attack.
      step(turn, t("wishLate"));
    } finally {
      turn.wishes.value = turn.wishes.value.filter((one) => one.what !== wish.what);
    }
    if (isAlways) await core().share(turn.chat, wish.what, true);
  });
}

function step(turn: LiveTurn, text: string): void {
  if (turn.steps.value.at(-1) !== text) turn.steps.value = [...turn.steps.value.slice(-11), text];
}

/** Tools that answers used since the page was loaded. */
export const seenTools = signal<readonly string[]>([]);

/** Whether an answer waits for the person's word. */
export function isWaitingForPerson(): boolean {
  return turns.value.some((turn) => turn.wishes.value.length > 0 || turn.approvals.value.length > 0);
}

/** Whether an answer is coming that can be stopped. */
export function runningTurn(): LiveTurn | null {
  return turns.value.find((turn) => turn.state.value === "running") ?? null;
}

async function inChat(work: (chat: string) => Promise<unknown>): Promise<boolean> {
  const chat = page.value?.chat.id;
  if (chat === undefined) return false;
  return attempt(async () => {
    await work(chat);
    await refresh();
  });
}

// Words come faster than the screen draws: they are collected, and written once a frame.
const pending = new Map<LiveTurn, string>();

function words(turn: LiveTurn, at: number, text: string): void {
  const so = pending.get(turn) ?? turn.words.value;
  if (pending.size === 0) requestAnimationFrame(drawWords);
  pending.set(turn, so.slice(0, at) + text);
}

function drawWords(): void {
  for (const [turn, text] of pending) turn.words.value = text;
  pending.clear();
}

function hear(event: CoreEvent): void {
  const chat = page.value?.chat.id;
  if (event.type === "chat" && event.chat === chat) {
    void refresh();
    return;
  }
  if (event.type === "connection" && event.connection.state !== "online" && event.connection.state !== "syncing") {
    // Whoever asked is gone: it is asked for nothing any more.
    for (const turn of turns.value) turn.wishes.value = [];
    return;
  }
  if (event.type === "approval") {
    const turn = find(event.approval.turn);
    if (turn) turn.approvals.value = [...turn.approvals.value.filter((one) => one.id !== event.approval.id), event.approval];
    return;
  }
  if (!("turn" in event) || event.chat !== chat) return;
  const turn = find(event.turn);
  if (turn === undefined) {
    // A turn that began on another device.
    if (event.type === "begun") void refresh();
    return;
  }
  tell(turn, event);
}

function find(turn: string): LiveTurn | undefined {
  return turns.value.find((one) => one.turn === turn);
}

function tell(turn: LiveTurn, event: Extract<CoreEvent, { turn: string }>): void {
  switch (event.type) {
    case "begun":
      turn.state.value = "running";
      turn.ahead.value = event.ahead;
      break;
    case "words":
      turn.state.value = "running";
      turn.approvals.value = [];
      words(turn, event.at, event.text);
      break;
    case "progress":
      turn.progress.value = event.progress;
      turn.approvals.value = [];
      step(turn, stepText(event.progress));
      break;
    case "wishes":
      if (event.wishes.length < turn.wishes.value.length && turn.state.value === "running") step(turn, t("wishLate"));
      turn.wishes.value = event.wishes;
      break;
    case "gave":
      if (event.pieces.length > 0) step(turn, t("gaveItself", { n: event.pieces.length, names: event.pieces.map(({ name }) => memoryLabel(name)).join(", ") }));
      break;
    case "history":
      turn.historySent.value += event.messages;
      break;
    case "ended":
      turn.state.value = "heard";
      turn.wishes.value = [];
      turn.approvals.value = [];
      seenTools.value = [...new Set([...seenTools.value, ...event.tools])];
      turn.finish.value = event.finish;
      turn.progress.value = null;
      break;
    case "failed":
      turn.state.value = "unanswered";
      turn.wishes.value = [];
      turn.approvals.value = [];
      turn.error.value = event.error;
      break;
    case "made":
      void refresh();
      break;
  }
}
