// Pairing: a new device gets the account key from an old one, by a secret that is shown and never sent.
//
//   new: Offer.make ─ shows 26 digits ─▶ person ─▶ old: pair(device, digits, credential)
//   new: Offer.finish ─▶ Device, which remembers the manifest that the old one saw
//
// Easy to get wrong: a second try with the same digits. They are good once and for two minutes; start anew.

import type { Bytes } from "../format/bytes";
import { NewDevice, Pairing, PairingSecret } from "../format/index";
import { takeSession } from "./account";
import { type Credential, Link } from "./credential";
import { Device, type Setup, save, vacant } from "./device";
import { ClientError, isNotFound } from "./error";
import { newState, seenAccount } from "./state";

/** A pairing that the new device began. */
export class Offer {
  private constructor(
    private readonly setup: Setup,
    private readonly secret: PairingSecret,
    private readonly keys: NewDevice,
    private readonly id: string,
    private readonly claim: Bytes,
    /** How long it waits, in milliseconds. */
    readonly expiresMs: number,
  ) {}

  /** Begins a pairing on the new device. */
  static async make(setup: Setup): Promise<Offer> {
    await vacant(setup);
    const [secret, keys] = [PairingSecret.random(), await NewDevice.random()];
    const id = await secret.id();
    const answer = await new Link(setup.transport, null).post("/account/pair/offer", { id, publicKey: keys.publicKey });
    return new Offer(setup, secret, keys, id, answer.claim, answer.expiresMs);
  }

  /** The 26 digits to show, for the old device to read. */
  dangerouslyToText(): string {
    return this.secret.dangerouslyToText();
  }

  /** Takes what the old device sent. Null: it has not sent anything yet; ask again. What does not open is `pair-refused`. */
  async finish(): Promise<Device | null> {
    const { setup } = this;
    const answered = await fetched(new Link(setup.transport, null), this.id, this.claim);
    if (answered === null) return null;
    const [{ session: opened, sealed }, id] = answered;
    const pairing = new Pairing(this.secret, setup.transport.origin, opened.account);
    const { ak, seen } = await pairing.receive(this.keys, opened.generation, sealed);
    const cabinet = await vacant(setup);
    const state = newState(opened.account, opened.device, ak);
    state.pinned = seen.manifest;
    takeSession(setup, state, opened, id);
    const device = new Device(setup, cabinet, state);
    await save(device);
    return device;
  }
}

async function fetched(link: Link, id: string, claim: Bytes) {
  try {
    return await link.postForSession("/account/pair/fetch", { id, claim });
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}

/** On the old device: sends the account key to the new device that shows these digits. The credential proves that it is the person who asks. */
export async function pair(device: Device, digits: string, by: Credential): Promise<void> {
  const secret = PairingSecret.parse(digits);
  const id = await secret.id();
  const signing = await device.link.ready(by);
  const taken = await device.link.post("/account/pair/take", { id });
  const { manifest } = await seenAccount(device.state);
  if (manifest === null) throw new ClientError("offline");
  const pairing = new Pairing(secret, device.link.transport.origin, device.state.account);
  const sealed = await pairing.send(taken.publicKey, device.ak, manifest);
  await device.link.prove("/account/pair/send", { id, sealed }, signing);
}
