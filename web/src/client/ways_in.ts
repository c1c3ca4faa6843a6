// The ways to log in: which there are, what they are called, and how one is removed.
//
//   list ── the server: kinds and ids ── this account's data "credential": their names, sealed
//   remove ── what stays is shown, each of it ──▶ a new account key, sealed for these and a new recovery code ──▶ all others are gone
//
// Whoever held what is removed knows the account key, so removing is a rotation. Easy to get wrong: what stays without having been shown to be
// right. A password with a slip of the hand would become the account's, so a password that stays is what signs; a passkey is known by its id.

import { type CredentialId, RecoveryCode, Refused } from "../format/index";
import type { CredentialList } from "../protocol/index";
import { data, setData } from "./chats";
import type { Credential } from "./credential";
import type { Device } from "./device";
import { ClientError } from "./error";
import { rotate } from "./rotate";
import { flush } from "./send";

/** A way to log in. */
export interface WayIn {
  kind: "password" | "passkey" | "recovery";
  /** Its id; a password has none. */
  id: CredentialId | null;
  /** What the person calls it. */
  name: string | null;
}

/** The kind of account data that has the names. */
const NAMES = "credential";

/** Every way that the server has, and whether the password is asked for with a code. */
export async function waysIn(device: Device): Promise<{ ways: WayIn[]; hasTotp: boolean }> {
  const { credentials, totp } = await listed(device);
  const ways = credentials.map(({ kind, id }) => ({ kind, id: id ?? null, name: id === undefined ? null : data(device, NAMES, id) }));
  return { ways, hasTotp: totp };
}

function listed(device: Device): Promise<CredentialList> {
  return device.link.post("/account/credentials/list", {});
}

/** Calls it by this name from now on. */
export function nameWayIn(device: Device, id: CredentialId, name: string): Promise<void> {
  return setData(device, NAMES, id, name.trim() === "" ? null : name.trim());
}

/**
 * Removes a way, with every other one that is not among `shown`: the account gets a new key and a new recovery code. Gives what opens the
 * account from now on. `last-way`: nothing but the recovery code would be left. `login-refused`: something that was shown is not this account's.
 */
export async function removeWayIn(device: Device, id: CredentialId, shown: readonly Credential[]): Promise<{ code: RecoveryCode; kept: Credential[] }> {
  const { credentials } = await listed(device);
  // Somebody else removed it.
  if (!credentials.some((one) => one.id === id)) throw new Refused("conflict");
  const stay = shown.filter((one, at) => one.kind !== "recovery" && shown.findIndex((other) => nameOf(other) === nameOf(one)) === at);
  const isOurs = (one: Credential) => one.kind === "password" || (one.kind === "passkey" && one.id !== id && credentials.some((has) => has.id === one.id));
  if (!stay.every(isOurs)) throw new Refused("login-refused");
  const by = stay.find(({ kind }) => kind === "password") ?? stay[0];
  if (by === undefined) throw new ClientError("last-way");
  const code = RecoveryCode.random();
  const kept: Credential[] = [...stay, { kind: "recovery", code }];
  await rotate(device, by, kept);
  return { code, kept };
}

/** What was removed has no name any more. What cannot be sent now waits. */
export async function forgetNames(device: Device, kept: readonly Credential[], before: readonly WayIn[]): Promise<void> {
  const gone = before.filter(({ id, name }) => id !== null && name !== null && !kept.some((one) => one.kind === "passkey" && one.id === id));
  for (const { id } of gone) if (id !== null) await setData(device, NAMES, id, null);
  if (gone.length > 0) await flush(device).catch(() => {});
}

function nameOf(credential: Credential): string {
  return credential.kind === "passkey" ? credential.id : credential.kind;
}
