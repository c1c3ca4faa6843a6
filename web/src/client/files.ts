// The device's files: whole or not at all, sealed, in this browser only.
//
//   device.key      32 random bytes; or the caller brings the key, and it is nowhere beside the files
//   state           account, session, what was seen, the queue        ┐ each sealed under a key made from it,
//   room-chat_…     a chat: its keys, head and items                  ┘ replaced as a whole
//
// In a browser the key is always the caller's (see lock.ts): what lies in IndexedDB opens with the password only. Easy to get wrong: two
// files that belong together. A tab may be closed between any two writes, so each file has to make sense beside an older one of the others;
// `state` is always written first.

import { type DBSchema, type IDBPDatabase, openDB } from "idb";

import type { Bytes } from "../format/bytes";
import { type Context, openOrNull, seal } from "../format/envelope";
import { Key } from "../format/key";
import { ClientError } from "./error";
import { DATABASE } from "./glimpse";

/** Where a device keeps its files, by name. A name is letters, digits, `.`, `-` and `_`. */
export interface Files {
  /** Reads a file; null if there is none. */
  read(name: string): Promise<Bytes | null>;
  /** Replaces a file, as a whole. */
  write(name: string, bytes: Bytes): Promise<void>;
  /** Replaces several files, each as a whole, in any order. One that cannot be written ends it; others may be. */
  writeAll(files: readonly (readonly [string, Bytes])[]): Promise<void>;
  /** Removes a file; one that is not there is fine. */
  remove(name: string): Promise<void>;
  /** The names of all files. */
  names(): Promise<string[]>;
}

/** Files that go with the tab: for tests, and for browsers that keep nothing. */
export class MemoryFiles implements Files {
  readonly #files = new Map<string, Bytes>();
  readonly #keys = new Map<string, CryptoKey>();

  async readKey(name: string): Promise<CryptoKey | null> {
    return this.#keys.get(name) ?? null;
  }

  async writeKey(name: string, key: CryptoKey): Promise<void> {
    this.#keys.set(name, key);
  }

  async removeKey(name: string): Promise<void> {
    this.#keys.delete(name);
  }

  async read(name: string): Promise<Bytes | null> {
    return this.#files.get(name)?.slice() ?? null;
  }

  async write(name: string, bytes: Bytes): Promise<void> {
    this.#files.set(name, bytes.slice());
  }

  async writeAll(files: readonly (readonly [string, Bytes])[]): Promise<void> {
    for (const [name, bytes] of files) await this.write(name, bytes);
  }

  async remove(name: string): Promise<void> {
    this.#files.delete(name);
  }

  async names(): Promise<string[]> {
    return [...this.#files.keys()];
  }
}

interface Schema extends DBSchema {
  files: { key: string; value: Bytes };
  /** Keys that no script can read out: only what they seal and open. */
  keys: { key: string; value: CryptoKey };
}

/**
 * Files in IndexedDB. A browser may close a database by itself, as when a server tells it to clear what it keeps: then it is opened again,
 * empty.
 */
export class DatabaseFiles implements Files {
  #isClosed = false;

  private constructor(
    private readonly name: string,
    private db: IDBPDatabase<Schema>,
  ) {}

  static async open(name: string): Promise<DatabaseFiles> {
    return new DatabaseFiles(name, await tried(() => opened(name)));
  }

  async read(name: string): Promise<Bytes | null> {
    return (await this.#with((db) => db.get("files", name))) ?? null;
  }

  async write(name: string, bytes: Bytes): Promise<void> {
    await this.writeAll([[name, bytes]]);
  }

  /** In one transaction: all of them, or none. */
  async writeAll(files: readonly (readonly [string, Bytes])[]): Promise<void> {
    await this.#with(async (db) => {
      const change = db.transaction("files", "readwrite", { durability: "strict" });
      const puts = files.map(([name, bytes]) => change.store.put(bytes, name));
      // The transaction says what was wrong; of a file that did not fit, only that it was given up.
      await Promise.allSettled(puts);
      await change.done;
    });
  }

  async remove(name: string): Promise<void> {
    await this.#with((db) => db.delete("files", name));
  }

  names(): Promise<string[]> {
    return this.#with((db) => db.getAllKeys("files"));
  }

  async readKey(name: string): Promise<CryptoKey | null> {
    return (await this.#with((db) => db.get("keys", name))) ?? null;
  }

  async writeKey(name: string, key: CryptoKey): Promise<void> {
    await this.#with((db) => db.put("keys", key, name));
  }

  async removeKey(name: string): Promise<void> {
    await this.#with((db) => db.delete("keys", name));
  }

  /** For good: another tab has the files from now on. */
  close(): void {
    this.#isClosed = true;
    this.db.close();
  }

  #with<T>(act: (db: IDBPDatabase<Schema>) => Promise<T>): Promise<T> {
    return tried(async () => {
      try {
        return await act(this.db);
      } catch (error) {
        if (this.#isClosed || !isEnded(error)) throw error;
        this.db = await opened(this.name);
        return act(this.db);
      }
    });
  }
}

function opened(name: string): Promise<IDBPDatabase<Schema>> {
  return openDB<Schema>(name, DATABASE.version, {
    upgrade: (db) => {
      db.createObjectStore("files");
      db.createObjectStore("keys");
    },
  });
}

/** Whether the browser closed the database, before or while it was used. */
function isEnded(error: unknown): boolean {
  return error instanceof DOMException && ["InvalidStateError", "AbortError", "UnknownError"].includes(error.name);
}

/** What a browser refuses, by name: no room is `quota`, everything else `files`. */
async function tried<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
    throw new ClientError(isFull ? "quota" : "files");
  }
}

/** Files, sealed under the device's key. */
export class Cabinet {
  private constructor(
    private readonly files: Files,
    private readonly key: Key,
  ) {}

  /** With the caller's key, or the one beside the files, which is made if there is none. */
  static async open(files: Files, key: Key | null): Promise<Cabinet> {
    const secret = key ?? (await keyBeside(files));
    return new Cabinet(files, await secret.derive("client"));
  }

  /** Null if there is none; `damaged` if it does not open. */
  async read(name: string): Promise<Bytes | null> {
    const bytes = await this.files.read(name);
    if (bytes === null) return null;
    const opened = await openOrNull(this.key, context(name), bytes);
    if (opened === null) throw new ClientError("damaged");
    return opened.data;
  }

  async write(name: string, bytes: Bytes): Promise<void> {
    await this.files.write(name, await seal(this.key, context(name), 1, bytes));
  }

  /** Several files, in any order. */
  async writeAll(files: readonly (readonly [string, Bytes])[]): Promise<void> {
    const sealed = files.map(async ([name, bytes]) => [name, await seal(this.key, context(name), 1, bytes)] as const);
    await this.files.writeAll(await Promise.all(sealed));
  }

  remove(name: string): Promise<void> {
    return this.files.remove(name);
  }

  /** Names that begin with this. */
  async names(prefix: string): Promise<string[]> {
    return (await this.files.names()).filter((name) => name.startsWith(prefix));
  }

  /** Removes everything, the key last. */
  async clear(): Promise<void> {
    for (const name of await this.files.names()) if (name !== KEY) await this.files.remove(name);
    await this.files.remove(KEY);
  }
}

async function keyBeside(files: Files): Promise<Key> {
  const bytes = await files.read(KEY);
  if (bytes !== null) {
    if (bytes.length !== 32) throw new ClientError("damaged");
    return Key.fromBytes(bytes);
  }
  const key = await Key.random();
  await files.write(KEY, key.dangerouslyExposeBytes());
  return key;
}

function context(name: string): Context {
  return { purpose: "client", owner: "", container: "", object: name, field: "" };
}

const KEY = "device.key";
