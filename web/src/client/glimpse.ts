// Who is in this browser, seen through the door: one unsealed file is read, and nothing is opened or made.
//
//   IndexedDB ─ file "lock" ─▶ none · locked, by which login · null: something that only the whole device can tell
//
// It imports nothing: it is all that the worker needs until a person has typed something. Easy to get wrong: making the database by
// looking. A visitor who only sees the door leaves no trace.
import type { Account } from "./core";

/** The browser's database with the device, and where its files are in it. */
export const DATABASE = { name: "confidant", version: 1, files: "files", keys: "keys" } as const;
/** The name of the file that is not sealed; lock.ts says what is in it. */
export const LOCK = "lock";

export interface Way {
  kind: "password" | "recovery" | "passkey";
  /** The credential's id; null for a password. */
  id: string | null;
  /** The key of the files, sealed for it. */
  sealed: string;
}

export interface LockFile {
  v: 1;
  /** The login; null if only a code was used here. */
  login: string | null;
  /** How the password is stretched: the server's half of the salt, and the profile. */
  salt: { server: string; profile: number } | null;
  ways: Way[];
  /** The key of the files, sealed under the key that stays in the browser: nonce and ciphertext. */
  stays: string | null;
}

/** The lock's file; null if it is damaged. This browser wrote it; whoever changed it since opens nothing with that. */
export function parseLock(bytes: Uint8Array): LockFile | null {
  try {
    const file = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as LockFile;
    return file.v === 1 && Array.isArray(file.ways) ? file : null;
  } catch {
    return null;
  }
}

/** Who is here. Null: the files stay open, or are damaged, or cannot be read. */
export async function glimpse(database: string): Promise<Account | null> {
  try {
    const bytes = await lockBytes(database);
    if (bytes === undefined) return { state: "none" };
    const file = bytes instanceof Uint8Array ? parseLock(bytes) : null;
    return file === null || file.stays !== null ? null : { state: "locked", login: file.login };
  } catch {
    return null;
  }
}

async function lockBytes(database: string): Promise<unknown> {
  const db = await existing(database);
  if (db === null) return undefined;
  try {
    return await new Promise((resolve, reject) => {
      const asked = db.transaction(DATABASE.files).objectStore(DATABASE.files).get(LOCK);
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error ?? new TypeError("not read"));
    });
  } finally {
    db.close();
  }
}

/** The database, if there is one. */
function existing(database: string): Promise<IDBDatabase | null> {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(database, DATABASE.version);
    let isNew = false;
    asked.onupgradeneeded = () => {
      isNew = true;
      asked.transaction?.abort();
    };
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => (isNew ? resolve(null) : reject(asked.error ?? new TypeError("not opened")));
    asked.onblocked = () => reject(new TypeError("not opened"));
  });
}
