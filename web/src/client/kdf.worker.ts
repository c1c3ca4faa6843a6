// Argon2id in a worker of its own: it takes about a second and 64 MiB, in which the socket and the page go on.
//
//   { password, salt } ──▶ 32 bytes
//
// The answer goes to the worker that owns this one, and to nobody else: no page has a way here. It ends after each answer, so that the
// memory of the derivation goes with it.

import { argon2id } from "../format/kdf";
import type { Bytes } from "../format/bytes";

/** What is asked for. */
export interface Stretching {
  password: Bytes;
  salt: Bytes;
}

// This file runs in a worker only; the compiler is told of pages as well.
const worker = globalThis as unknown as {
  onmessage: ((event: MessageEvent<Stretching>) => void) | null;
  postMessage(answer: Bytes | null, transfer: Transferable[]): void;
};

worker.onmessage = ({ data }) => {
  void answer(data);
};

async function answer({ password, salt }: Stretching): Promise<void> {
  try {
    const derived = await argon2id(password, salt);
    worker.postMessage(derived, [derived.buffer]);
  } catch {
    worker.postMessage(null, []);
  } finally {
    password.fill(0);
  }
}
