// Argon2id, the slow part of a password: one function, in a file of its own, so that the page loads it only when somebody
// types a password, and only in the worker. It takes 64 MiB and some tenths of a second of WebAssembly, in which nothing
// else of the worker runs.
//
// Easy to get wrong: parameters from the server. There are none here.

import { argon2id as derive } from "hash-wasm";
import type { Bytes } from "./bytes";

/** `Argon2id(password, salt, 64 MiB, 3 passes, 1 lane, 32)`. */
export async function argon2id(password: Bytes, salt: Bytes): Promise<Bytes> {
  const out = await derive({
    password,
    salt,
    memorySize: 64 * 1024,
    iterations: 3,
    parallelism: 1,
    hashLength: 32,
    outputType: "binary",
  });
  return new Uint8Array(out);
}
