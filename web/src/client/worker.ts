// The worker that owns the device: keys, files and socket are here, and the page talks to it by messages.
//
//   page ─ {id, name, args} ─▶ command ─▶ {id, value} or {id, error} ─▶ page
//                                events ─▶ {event} ──────────────────▶ page
//
// Only one tab of a browser has the files at a time: a lock of the browser's says which. Another tab may take over, and this one then
// forgets its keys. Easy to get wrong: two workers on the same files. Each would undo what the other remembers.

import { Origin } from "../format/index";
import type { Bytes } from "../format/bytes";
import { type AccountCommands, Door, accountCommands } from "./account_commands";
import { type ChatCommands, chatCommands } from "./commands";
import type * as core from "./core";
import { stretchWith } from "./credential";
import { DatabaseFiles } from "./files";
import { Http } from "./http";
import { Keeper, errorOf } from "./keeper";
import type { Stretching } from "./kdf.worker";

/** What of a worker's surroundings is used. */
interface Scope {
  location: { origin: string };
  navigator: { onLine: boolean; locks?: LockManager };
  postMessage(message: core.FromWorker): void;
  addEventListener(type: "message", hear: (event: MessageEvent<core.ToWorker>) => void): void;
  addEventListener(type: "online" | "offline", hear: () => void): void;
}

// This file runs in a worker only; the compiler is told of pages as well.
const scope = globalThis as unknown as Scope;

type Commands = AccountCommands & ChatCommands & Pick<core.Core, "takeOver">;

const emit = (event: core.CoreEvent) => scope.postMessage({ event });

/** Commands that are answered before anybody is in, and in a tab that has not the files. */
const ALWAYS: readonly (keyof Commands)[] = ["account", "connection", "takeOver"];

async function start(): Promise<void> {
  const hold = new Hold();
  let [commands, isHere]: [Commands | null, boolean] = [null, false];
  const elsewhere: Pick<Commands, "account" | "connection"> = {
    account: async () => ({ state: "elsewhere" }),
    connection: async () => ({ state: "offline" }),
  };
  const open = async () => {
    isHere = true;
    commands = { ...(await opened(hold)), takeOver: async () => {} };
  };
  hold.lost = () => {
    isHere = false;
    commands = null;
    emit({ type: "account", account: { state: "elsewhere" } });
  };
  const first = hold.take(false).then(async (isMine) => {
    if (isMine) await open();
    else emit({ type: "account", account: { state: "elsewhere" } });
  });
  const takeOver = async () => {
    if (isHere || !(await hold.take(true))) return;
    // The other tab may be writing its last file.
    await new Promise((resolve) => setTimeout(resolve, HANDOVER));
    await open();
  };
  scope.addEventListener("message", ({ data: { id, name, args } }) => {
    const answer = async (): Promise<core.FromWorker> => {
      try {
        await first;
        const found = name === "takeOver" ? takeOver : (commands ?? (ALWAYS.includes(name) ? elsewhere : {}))[name as keyof typeof elsewhere];
        if (typeof found !== "function") return { id, error: { name: "elsewhere" } };
        // The page calls by the interface; ids and shapes are checked by each command.
        const value: unknown = await (found as (...args: unknown[]) => Promise<unknown>)(...args);
        return { id, value };
      } catch (error) {
        return { id, error: errorOf(error) };
      }
    };
    void answer().then((message) => scope.postMessage(message));
  });
  await first;
}

/** The device of this browser. */
async function opened(hold: Hold): Promise<AccountCommands & ChatCommands> {
  const place = await DatabaseFiles.open("confidant");
  const around = { emit, clock: () => Date.now(), isOnline: () => scope.navigator.onLine };
  const keeper = new Keeper(around);
  const door = new Door(keeper, place, new Http(Origin.parse(scope.location.origin)), around);
  hold.drop = () => {
    keeper.stop();
    place.close();
  };
  scope.addEventListener("online", () => keeper.tryNow());
  scope.addEventListener("offline", () => {
    if (!keeper.device?.isConnected) keeper.setConnection({ state: "offline" });
  });
  stretchWith(stretched);
  await door.start();
  return { ...accountCommands(door), ...chatCommands(keeper) };
}

/** Which tab has the files. */
class Hold {
  lost: () => void = () => {};
  drop: () => void = () => {};
  #release: (() => void) | null = null;

  /** Whether this tab has them. `steal`: takes them from another. A browser without such locks has one tab, as far as anybody can tell. */
  take(steal: boolean): Promise<boolean> {
    const { locks } = scope.navigator;
    if (locks === undefined) return Promise.resolve(true);
    return new Promise((resolve) => {
      const held = (lock: unknown) => {
        resolve(lock !== null);
        if (lock === null) return Promise.resolve();
        return new Promise<void>((release) => {
          this.#release = release;
        });
      };
      locks.request("confidant-device", steal ? { steal: true } : { ifAvailable: true }, held).catch(() => this.#stolen());
    });
  }

  #stolen(): void {
    this.#release?.();
    this.#release = null;
    this.drop();
    this.lost();
  }
}

/** Argon2id in a worker of its own; here, if there cannot be one. */
async function stretched(password: Bytes, salt: Bytes): Promise<Bytes> {
  const derived = await inWorker({ password, salt }).catch(() => null);
  if (derived !== null) return derived;
  const { argon2id } = await import("../format/kdf");
  return argon2id(password, salt);
}

function inWorker(stretching: Stretching): Promise<Bytes | null> {
  return new Promise((resolve, reject) => {
    // The constructor takes what the policy made; its type is not known to TypeScript.
    const worker = new Worker(kdfAddress() as string, { type: "module" });
    const end = (act: () => void) => {
      worker.terminate();
      act();
    };
    worker.onmessage = ({ data }: MessageEvent<Bytes | null>) => end(() => resolve(data));
    worker.onerror = () => end(() => reject(new TypeError("the worker did not start")));
    worker.postMessage(stretching);
  });
}

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (input: string) => string }): { createScriptURL(input: string): unknown };
}

let address: unknown;

/** The script of the other worker, as Trusted Types want it: one policy that knows this address and no other. */
function kdfAddress(): unknown {
  const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;
  const policy = { createScriptURL: (input: string) => input };
  const only = {
    createScriptURL: (input: string) => {
      if (input !== KDF) throw new TypeError("not a script of this page");
      return input;
    },
  };
  address ??= (factory?.createPolicy("app", only) ?? policy).createScriptURL(KDF);
  return address;
}

const KDF = "/kdf.worker.js";
/** How long the other tab has to end what it writes, in milliseconds. */
const HANDOVER = 300;

void start();
