// Doors that only the vectors and tests may use: salts and ephemeral keys of the caller's, and why a record did not open.
// Nothing of the page imports this file; index.ts does not export it.

import type { PublicKey } from "./bytes";
import { letterKey, BoxKey } from "./mailbox";
import type { Key } from "./key";
import { NewDevice } from "./pairing";
import type { Pairing } from "./pairing";

export { AES_256_GCM, openWithReason, paddedLength, sealPlainWithSalt, sealWithSalt } from "./envelope";
export type { Aead, Reason } from "./envelope";

/** The key of a letter from the holder of `ephemeral`. A key pair used twice gives nothing away but joins two letters. */
export async function letterKeyInsecureForTesting(ephemeral: Key, boxPub: PublicKey): Promise<Key> {
  const pair = await BoxKey.fromKey(ephemeral);
  return letterKey(pair, boxPub, pair.publicKey, boxPub);
}

/** The key under which an old device with this key pair seals. */
export async function pairingKeyInsecureForTesting(pairing: Pairing, old: Key, fresh: PublicKey): Promise<Key> {
  const pair = await BoxKey.fromKey(old);
  return pairing.key(pair, fresh, fresh, pair.publicKey);
}

/** A new device with this key pair. */
export async function newDeviceInsecureForTesting(key: Key): Promise<NewDevice> {
  return new NewDevice(await BoxKey.fromKey(key));
}
