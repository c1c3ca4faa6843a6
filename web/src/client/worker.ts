// The worker that owns the device: keys, files and socket are here, and the page talks to it by messages.
//
//   page ─ {id, name, args} ─▶ command ─▶ {id, value} or {id, error} ─▶ page
//                                events ─▶ {event} ──────────────────▶ page
//
// Only one tab of a browser has the files at a time: a lock of the browser's says which. Another tab may take over, and this one then
// forgets its keys. A second lock says which tab may still write: it is let go once the last write has ended, and only then the other tab reads. This file is small, so that the door is there at once: it looks who is here (glimpse.ts), and the device itself
// (opened.ts) is loaded with the first command that needs it. Easy to get wrong: two workers on the same files. Each would undo what
// the other remembers.

import type { AccountCommands } from "./account_commands";
import type { ChatCommands } from "./commands";
import type * as core from "./core";
import { DATABASE, glimpse } from "./glimpse";
import { ownName } from "./name";
import type { Here, Surroundings } from "./opened";

/** What of a worker's surroundings is used. */
interface Scope extends Surroundings {
  navigator: { onLine: boolean; locks?: LockManager };
  postMessage(message: core.FromWorker): void;
  addEventListener(type: "online" | "offline", hear: () => void): void;
  addEventListener(type: "message", hear: (event: MessageEvent<core.ToWorker>) => void): void;
}

// This file runs in a worker only; the compiler is told of pages as well.
const scope = globalThis as unknown as Scope;

type Commands = AccountCommands & ChatCommands;

/** Devices of a server that this page does not come from are apart. */
const { server } = ownName();
const OF_SERVER = server === null ? "" : `-${server}`;

const emit = (event: core.CoreEvent) => scope.postMessage({ event });

/** This tab's device: seen, loading, open, or in another tab. */
class Tab {
  /** Who is here, while nothing of the device is loaded. */
  #seen: core.Account | null = null;
  #opening: Promise<Here> | null = null;
  #isHere = false;
  /** That no other tab writes files any more. */
  #free: Promise<void> = Promise.resolve();
  /** Which time it is that this tab has the files. */
  #holding = 0;

  constructor(private readonly writing: Writing) {}

  /** This tab has the files now. */
  async begin(): Promise<void> {
    this.#isHere = true;
    const mine = ++this.#holding;
    this.#free = this.writing.begin();
    await this.#free;
    if (mine !== this.#holding) return;
    const seen = await glimpse(`${DATABASE.name}${OF_SERVER}`);
    if (mine !== this.#holding) return;
    this.#seen = seen;
    if (seen !== null) emit({ type: "account", account: seen });
    else await this.device();
  }

  /** Another tab has them. */
  lose(): void {
    const opening = this.#opening;
    [this.#isHere, this.#opening, this.#seen] = [false, null, null];
    this.#holding += 1;
    const [free, ended] = [this.#free, opening?.then((here) => here.drop(), () => undefined)];
    void Promise.all([free, ended]).then(() => this.writing.end());
    emit({ type: "account", account: { state: "elsewhere" } });
  }

  get isHere(): boolean {
    return this.#isHere;
  }

  /** The device, loaded when it is first asked for. One that did not come is asked for again the next time. */
  device(): Promise<Here> {
    const mine = this.#holding;
    this.#opening ??= this.#open().catch((error: unknown) => {
      if (mine === this.#holding) this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<Here> {
    const mine = this.#holding;
    const { open, errorOf } = await import("./opened").catch(() => {
      throw new Failed({ name: "not-loaded" });
    });
    await this.#free;
    // Words of one that is another tab's meanwhile are not said.
    const told = (event: core.CoreEvent) => (mine === this.#holding ? emit(event) : undefined);
    const here = mine === this.#holding ? await open(scope, told).catch((error: unknown) => {
      throw new Failed(errorOf(error));
    }) : null;
    if (here === null) throw new Failed({ name: "elsewhere" });
    describe = errorOf;
    return here;
  }

  async do(name: core.ToWorker["name"], args: unknown[]): Promise<unknown> {
    if (!this.#isHere) {
      if (name === "account") return { state: "elsewhere" } satisfies core.Account;
      if (name === "connection") return { state: "offline" } satisfies core.Connection;
      throw new Failed({ name: "elsewhere" });
    }
    if (this.#opening === null && this.#seen !== null) {
      if (name === "account") return this.#seen;
      if (name === "connection") return { state: "offline" } satisfies core.Connection;
    }
    const { commands } = await this.device();
    if (name === "warm") return undefined;
    const found: unknown = commands[name as keyof Commands];
    if (typeof found !== "function" || !this.#isHere) throw new Failed({ name: "elsewhere" });
    // The page calls by the interface; ids and shapes are checked by each command.
    return (found as (...args: unknown[]) => Promise<unknown>)(...args);
  }
}

/** A failure that has its name already. */
class Failed extends Error {
  constructor(readonly why: core.CoreError) {
    super(why.name);
  }
}

/** The name of what went wrong: the device's own words for it, once it is loaded. */
let describe: (error: unknown) => core.CoreError = () => ({ name: "unexpected" });

function start(): void {
  const tab = new Tab(new Writing());
  const hold = new Hold(() => tab.lose());
  /** The other tab may go by itself; one that is just being loaded again is gone in a moment, and is not worth a word. */
  const wait = () => hold.wait().then((isMine) => (isMine ? tab.begin() : undefined));
  hold.onLost = () => void wait().catch(() => undefined);
  const first = hold.take(false).then(async (isMine) => {
    if (isMine) return tab.begin();
    const comes = wait();
    comes.catch(() => undefined);
    await Promise.race([comes, new Promise((resolve) => setTimeout(resolve, MOMENT))]);
    if (!tab.isHere) emit({ type: "account", account: { state: "elsewhere" } });
    return undefined;
  });
  // Whoever asks hears why it failed; here nobody does.
  const settled = first.catch(() => undefined);
  const takeOver = async () => {
    if (!tab.isHere && (await hold.take(true))) await tab.begin();
  };
  scope.addEventListener("message", ({ data: { id, name, args } }) => {
    const answer = async (): Promise<core.FromWorker> => {
      try {
        await settled;
        return { id, value: name === "takeOver" ? await takeOver() : await tab.do(name, args) };
      } catch (error) {
        return { id, error: error instanceof Failed ? error.why : describe(error) };
      }
    };
    void answer().then((message) => scope.postMessage(message));
  });
}

/** Which tab has the files. */
class Hold {
  onLost: () => void = () => {};
  #waiting: AbortController | null = null;

  constructor(private readonly lost: () => void) {}

  /** Whether this tab has them. `steal`: takes them from another. A browser without such locks has one tab, as far as anybody can tell. */
  take(steal: boolean): Promise<boolean> {
    this.#waiting?.abort();
    return this.#ask(steal ? { steal: true } : { ifAvailable: true });
  }

  /** Waits until the other tab is gone; false if it was given up. */
  wait(): Promise<boolean> {
    const stop = new AbortController();
    this.#waiting = stop;
    return this.#ask({ signal: stop.signal });
  }

  #ask(how: LockOptions): Promise<boolean> {
    const { locks } = scope.navigator;
    if (locks === undefined) return Promise.resolve(true);
    return new Promise((resolve) => {
      let isHeld = false;
      const held = (lock: unknown) => {
        isHeld = lock !== null;
        resolve(isHeld);
        // For as long as this tab lives, or until another one takes them.
        return isHeld ? new Promise<void>(() => {}) : Promise.resolve();
      };
      // It ends with an error when another tab takes them, or when this one does not wait any more.
      locks.request(`confidant-device${OF_SERVER}`, how, held).catch(() => (isHeld ? this.#stolen() : resolve(false)));
    });
  }

  #stolen(): void {
    this.lost();
    this.onLost();
  }
}

/** Which tab writes files: one that lost them may be writing its last one. */
class Writing {
  #end: () => void = () => {};

  /** Waits until no other tab writes. One that does not end, as it was frozen by the browser, is not waited for for ever. */
  begin(): Promise<void> {
    const { locks } = scope.navigator;
    if (locks === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const held = () => {
        resolve();
        return new Promise<void>((end) => {
          this.#end = end;
        });
      };
      const name = `confidant-files${OF_SERVER}`;
      locks.request(name, { signal: AbortSignal.timeout(HANDOVER) }, held).catch((error: unknown) => {
        // Taken by a tab that waited long enough: this one has nothing to write any more.
        const isLate = error instanceof DOMException && error.name === "TimeoutError";
        if (isLate) locks.request(name, { steal: true }, held).catch(() => undefined);
      });
    });
  }

  /** This tab writes nothing any more. */
  end(): void {
    this.#end();
  }
}

/** How long another tab may take to go before it is mentioned, in milliseconds. */
const MOMENT = 400;
/** How long the other tab has to end what it writes, in milliseconds. */
const HANDOVER = 10_000;

start();
