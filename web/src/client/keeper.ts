// Keeps a device: one command at a time, and between commands it listens, sends, and connects again.
//
//   page ─▶ run(command) ─▶ jobs ─┐
//                                 ├─▶ loop: a job, else what is due, else the next news  ─▶ events
//   dial (beside it) ─▶ a socket ─┘
//
// Commands come first: whoever waits for news is stopped, which loses none. Reaching the server changes nothing of the device, so it happens
// beside the loop; only a socket that is open becomes a job. When nothing else is to be done, the index for search grows, a little at a time.
// Easy to get wrong: a pause that grows for ever. It ends when the browser says that it is online again, and when the person asks.

import type { ChatId } from "../format/index";
import { keepAnswerNotes } from "./answer_notes";
import type * as core from "./core";
import { type Device, type Dialled, dial, disconnect, greet, requestOne, wipeKeys } from "./device";
import { ClientError, isDenied, isOwn, isRefused, nameOf } from "./error";
import { type News, listen } from "./live";
import { flush } from "./send";
import { sync } from "./sync";
import { makeRoom } from "./thin";
import { Announcer } from "./announce";
import { Notes } from "./views";

/** What a keeper needs of its surroundings. */
export interface Around {
  emit(event: core.CoreEvent): void;
  clock(): number;
  /** Whether the browser says that there is a network. */
  isOnline(): boolean;
}

export class Keeper {
  notes = new Notes();
  connection: core.Connection = { state: "offline" };
  device: Device | null = null;
  /** The chat that the page shows. */
  shown: ChatId | null = null;
  readonly announcer: Announcer;
  /** The account was erased by another device: this one's copy goes too. */
  onErased: () => void = () => {};
  readonly #ended: Promise<void>;
  readonly #jobs: (() => Promise<void>)[] = [];
  #interrupt: AbortController | null = null;
  #isStopped = false;
  #isDialling = false;
  /** When the server may be tried again; null: not by itself. */
  #tryAt: number | null = null;
  #failures = 0;
  /** When what waits is sent. */
  #flushAt: number | null = null;
  /** When this socket is synced. */
  #syncAt: number | null = null;
  /** Which socket of the device that is: a command may have opened another. */
  #socket = 0;
  #heardAt = 0;
  /** When the index for search grows again; null: nobody looked whether it has to. */
  #indexAt: number | null = null;
  /** How much of it was told. */
  #indexed = "";
  /** Whether room is being made, and when that was last in vain. */
  #isMakingRoom = false;
  #fullAt: number | null = null;

  constructor(private readonly around: Around) {
    this.announcer = new Announcer((event) => around.emit(event), () => around.clock());
    this.#ended = this.#loop();
  }

  /** Does something with the device when nothing else is done with it. */
  run<T>(act: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#jobs.push(async () => {
        try {
          if (this.#isStopped) throw new ClientError("locked");
          resolve(await act());
        } catch (error) {
          reject(error);
          this.#note(error, "told");
        }
        this.announce();
      });
      this.#wake();
    });
  }

  now(): number {
    return this.around.clock();
  }

  /** The device is open from now on. */
  take(device: Device): void {
    this.device = device;
    device.onFull = () => this.#makeRoom(device);
    this.notes = new Notes();
    this.announcer.forget();
    [this.#failures, this.#flushAt, this.#syncAt, this.#socket] = [0, null, null, 0];
    [this.#indexAt, this.#indexed] = [null, ""];
    this.tryNow();
  }

  /** No device is open any more, and its keys are gone. */
  drop(): void {
    if (this.device !== null) {
      disconnect(this.device);
      wipeKeys(this.device);
    }
    [this.device, this.shown, this.#tryAt, this.#flushAt] = [null, null, null, null];
    this.notes = new Notes();
    this.announcer.forget();
    this.setConnection({ state: "offline" });
  }

  /** Ends when the command that runs has ended; those that wait are refused. */
  stop(): Promise<void> {
    this.drop();
    this.#isStopped = true;
    this.#wake();
    return this.#ended;
  }

  /** Connects as soon as can be. */
  tryNow(): void {
    [this.#tryAt, this.#failures] = [this.around.clock(), 0];
    if (this.device?.isConnected === true) this.#syncAt = this.#tryAt;
    this.#wake();
  }

  /** What waits is sent after so many milliseconds, or earlier. */
  sendSoon(afterMs = 0): void {
    const at = this.around.clock() + afterMs;
    this.#flushAt = Math.min(this.#flushAt ?? at, at);
    this.#wake();
  }

  setConnection(connection: core.Connection): void {
    const before = this.connection;
    const isSame =
      before.state === connection.state && before.nextTryAt === connection.nextTryAt && before.error?.name === connection.error?.name;
    this.connection = connection;
    if (!isSame) this.around.emit({ type: "connection", connection });
  }

  /** Tells the page what changed. */
  announce(): void {
    if (this.device !== null) this.announcer.announce(this.device, this.notes, this.shown);
  }

  #wake(): void {
    this.#interrupt?.abort();
  }

  async #loop(): Promise<void> {
    while (!this.#isStopped) {
      const job = this.#jobs.shift();
      if (job !== undefined) await job();
      else await this.#idle();
    }
    // Nobody waits for ever for what is not done any more.
    for (const job of this.#jobs.splice(0)) await job();
  }

  /** What is done when nobody asks for anything. Never throws. */
  async #idle(): Promise<void> {
    const stop = new AbortController();
    this.#interrupt = stop;
    // A job may have come since the last look: then this ends at once.
    if (this.#jobs.length > 0) return;
    const { device } = this;
    this.#dialIfDue();
    if (device?.isConnected === true && device.socketNumber !== this.#socket) this.#isNew(device);
    this.#indexIfDue(device);
    try {
      if (device !== null && this.#isDue(this.#indexAt)) await this.#index(device);
      else if (device === null || !device.isConnected) await this.#sleep(stop.signal, earliest(this.#isDialling ? null : this.#tryAt, this.#indexAt));
      else if (this.#isDue(this.#syncAt)) await this.#sync(device);
      else if (this.#isDue(this.#flushAt)) await this.#flush(device);
      else await this.#listen(device, stop);
    } catch (error) {
      this.#note(error, "untold");
      this.announce();
    }
  }

  async #sync(device: Device): Promise<void> {
    this.#syncAt = null;
    this.setConnection({ state: "syncing" });
    try {
      // A new device shows the last chat before it has the others.
      if (device.rooms.size === 0) {
        await sync(device, "last_chat");
        this.announce();
      }
      await sync(device, "all");
      this.notes.refused = null;
    } catch (error) {
      if (isDenied(error)) this.#syncAt = this.around.clock() + (error.retryMs ?? BUSY);
      if (!isRefused(error)) throw error;
      // Everything else was taken in. The socket stays: what is asked and written goes on where it can.
      this.notes.refused = error.name;
      this.setConnection({ state: "refused", error: { name: error.name } });
      this.announce();
      return;
    }
    await this.#flush(device);
    this.#failures = 0;
    this.setConnection({ state: "online" });
  }

  async #flush(device: Device): Promise<void> {
    this.#flushAt = null;
    await flush(device);
    // What came of it waits, too: a note inside an answer that another device stored.
    if (device.state.queue.ops.some(({ act }) => act.do === "gave")) this.sendSoon();
    this.announce();
  }

  async #listen(device: Device, stop: AbortController): Promise<void> {
    const quiet = this.#heardAt + QUIET;
    const at = Math.min(this.#flushAt ?? quiet, this.#syncAt ?? quiet, this.#indexAt ?? quiet, quiet);
    const timer = setTimeout(() => stop.abort(), Math.max(0, at - this.around.clock()));
    try {
      const news = await listen(device, stop.signal);
      if (news !== null) {
        this.#heardAt = this.around.clock();
        this.#hear(news);
      } else if (this.around.clock() >= quiet) await this.#ask(device);
    } finally {
      clearTimeout(timer);
    }
  }

  #indexIfDue(device: Device | null): void {
    if (device === null || !device.words.isDue(device)) this.#indexAt = null;
    else this.#indexAt ??= this.around.clock() + SETTLED;
  }

  /** One step of the index. It is of use, and not needed: whatever goes wrong, it is tried again much later. */
  async #index(device: Device): Promise<void> {
    try {
      await device.words.step(device, STEP);
      this.#indexAt = this.around.clock() + BETWEEN;
    } catch {
      this.#indexAt = this.around.clock() + LONGEST;
    }
    if (this.device !== device) return;
    const index = device.words.progress(device);
    const told = `${index.done === index.all ? index.done : index.done - (index.done % TOLD)}/${index.all}`;
    if (told !== this.#indexed) this.around.emit({ type: "search", index });
    this.#indexed = told;
  }

  /** Asks whether the server is there: a socket may be gone without anybody having said so. */
  async #ask(device: Device): Promise<void> {
    const late = setTimeout(() => device.socket?.close(), ANSWER);
    try {
      await requestOne(device, { type: "ping" });
      this.#heardAt = this.around.clock();
    } finally {
      clearTimeout(late);
    }
  }

  #hear(news: News): void {
    if (news.news === "turn") {
      const { chat, what } = news.told;
      if (what.told === "ended" && chat !== this.shown) this.notes.unread.add(chat);
      if (this.announcer.tell(news.told, this.notes)) this.sendSoon();
      const { device } = this;
      if (what.told === "ended" && device !== null) this.#jobs.push(async () => (device === this.device ? keepAnswerNotes(device, this.notes, chat).catch(() => undefined) : undefined));
      // Words change one text on the page, and no list.
      if (news.told.what.told === "words" || news.told.what.told === "progress") return;
    }
    if (news.news === "data") this.around.emit({ type: "data", kind: news.kind, name: news.name });
    if (news.news === "devices") this.around.emit({ type: "devices" });
    this.announce();
  }

  /** What a failure means for the connection. One that a command waited for is told to whoever asked. */
  #note(error: unknown, is: "told" | "untold"): void {
    const name = nameOf(error);
    if (this.device === null) return;
    if (isOwn(error, "logged-out") || isOwn(error, "not-logged-in")) {
      this.#tryAt = null;
      disconnect(this.device);
      const reason = error.reason ?? undefined;
      this.setConnection({ state: "ended", error: reason === undefined ? { name } : { name, reason } });
      if (reason === "erased") this.onErased();
      return;
    }
    if (this.device.socket === null && this.connection.state !== "ended") {
      if (this.#tryAt === null && !this.#isDialling) this.#later(error);
      return;
    }
    if (is === "told") return;
    if (isDenied(error)) this.sendSoon(error.retryMs ?? BUSY);
    else if (isOwn(error, "frozen")) this.sendSoon(FROZEN);
    // What was refused is told; that nobody is there is the state of the connection.
    else if (!isOwn(error, "offline")) this.around.emit({ type: "error", error: errorOf(error) });
  }

  /**
   * Something could not be kept. Words of old chats go, and come back when they are opened. If that is not enough, the person is told, and
   * everything goes on in memory.
   */
  #makeRoom(device: Device): void {
    const now = this.around.clock();
    if (this.#isMakingRoom || (this.#fullAt !== null && now - this.#fullAt < FULL)) return;
    this.#isMakingRoom = true;
    this.#jobs.push(async () => {
      const keep = new Set(this.shown === null ? [] : [this.shown]);
      // Not even that could be written, if it throws.
      const isDone = this.device !== device || (await makeRoom(device, keep, ROOM).catch(() => false));
      const isNews = (this.#fullAt === null) === !isDone;
      [this.#isMakingRoom, this.#fullAt] = [false, isDone ? null : this.around.clock()];
      if (isNews) this.around.emit({ type: "quota", isFull: !isDone });
      // There may be room later: then everything is kept again.
      if (!isDone) setTimeout(() => this.device === device && this.#makeRoom(device), FULL);
      this.announce();
    });
    this.#wake();
  }

  /** Tries again after a pause that grows. A page that the server refuses as old is told why: only loading it again helps. */
  #later(why?: unknown): void {
    const pause = Math.min(LONGEST, SHORTEST * 2 ** this.#failures) * (0.75 + Math.random() / 2);
    this.#failures += 1;
    this.#tryAt = this.around.clock() + pause;
    const isOnline = this.around.isOnline();
    const old = isDenied(why, "stale-client") ? { error: errorOf(why) } : {};
    this.setConnection(isOnline ? { state: "connecting", nextTryAt: this.#tryAt, ...old } : { state: "offline", ...old });
  }

  #dialIfDue(): void {
    const { device } = this;
    if (device === null || device.isConnected || this.#isDialling || !this.#isDue(this.#tryAt)) return;
    if (!device.isLoggedIn) {
      this.#tryAt = null;
      this.setConnection({ state: "ended", error: { name: "not-logged-in" } });
      return;
    }
    this.#isDialling = true;
    this.#tryAt = null;
    this.setConnection({ state: "connecting" });
    const ends = (then: () => void) => {
      this.#isDialling = false;
      if (this.device === device) then();
      this.#wake();
    };
    dial(device).then(
      // One that was locked meanwhile hangs up.
      (dialled) => {
        if (this.device !== device) dialled.connection.close();
        ends(() => void this.run(() => this.#greet(device, dialled)).catch(() => (this.#isStopped ? dialled.connection.close() : undefined)));
      },
      (error: unknown) => ends(() => this.#unreached(error)),
    );
  }

  #unreached(error: unknown): void {
    if (isOwn(error, "logged-out") || isOwn(error, "not-logged-in")) this.#note(error, "untold");
    else this.#later(error);
  }

  async #greet(device: Device, dialled: Dialled): Promise<void> {
    // A command may have connected meanwhile, or locked.
    if (this.device !== device || device.isConnected) return dialled.connection.close();
    await greet(device, dialled);
  }

  /** A socket that was not synced yet, whoever opened it. */
  #isNew(device: Device): void {
    this.#socket = device.socketNumber;
    this.#heardAt = this.around.clock();
    [this.#syncAt, this.#tryAt] = [this.#heardAt, null];
  }

  #isDue(at: number | null): boolean {
    return at !== null && at <= this.around.clock();
  }

  /** Until it is stopped, or this time. */
  async #sleep(stop: AbortSignal, until: number | null): Promise<void> {
    if (stop.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = until === null ? undefined : setTimeout(resolve, Math.max(0, until - this.around.clock()));
      stop.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/** The earlier of two times, either of which may be never. */
function earliest(one: number | null, two: number | null): number | null {
  return one === null || two === null ? (one ?? two) : Math.min(one, two);
}

/** An error as the page gets it. */
export function errorOf(error: unknown): core.CoreError {
  const name = nameOf(error);
  if (!(error instanceof ClientError)) return { name };
  return {
    name,
    ...(error.retryMs === null ? {} : { retryMs: error.retryMs }),
    ...(error.reason === null ? {} : { reason: error.reason }),
  };
}

/** How much room is made at once, in bytes. */
const ROOM = 8 * 1024 * 1024;
/** After room was made in vain, it is not tried again for so long. */
const FULL = 30_000;
/** The first pause before the server is tried again, and the longest. */
const SHORTEST = 1_000;
const LONGEST = 60_000;
/** After so much silence the server is asked whether it is there, and how long it may take to answer. */
const QUIET = 45_000;
const ANSWER = 15_000;
/** How long nothing has to change before the index grows, how long a step takes, and the time between two: somebody may be waiting. */
const SETTLED = 400;
const STEP = 12;
const BETWEEN = 20;
/** After so many chats, how far the index is is told. */
const TOLD = 25;
/** When a server that is busy is asked again, if it does not say. */
const BUSY = 5_000;
/** How long another device may take to replace the account key before this one looks again. */
const FROZEN = 60_000;
