// The commands of the page about the account: who is here, what opens it, how it ends.
//
//   none ── register, logIn, pair ──▶ open ── lock ──▶ locked ── unlock ──▶ open
//     ◀──────────── logOut, forget, erase ────────────────┘
//
// What is done once in a while (a new account key, an export, pairing, …) is a part of its own, loaded when it is done.
// The key of this browser's files is made here and sealed for each credential that is used (lock.ts). Easy to get wrong: a credential that
// changed. Whoever changes, adds or replaces one here changes the lock with it, or the person cannot unlock with what they just set.

import { type Bytes, base32, fromBase32, random, wipe } from "../format/bytes";
import { CredentialId, DeviceId, Key, Login, RecoveryCode, Refused, fromHex, hex } from "../format/index";
import * as account from "./account";
import type * as core from "./core";
import { opened } from "./commands";
import { type Credential, lastMade, passwordOf } from "./credential";
import { type Device, type Setup, openDevice } from "./device";
import { ClientError, isRefused } from "./error";
import { type Keeper, errorOf } from "./keeper";
import { Lock, type Place, passkeyId } from "./lock";
import type { Offer } from "./pair";
import { part } from "./part";
import { flush } from "./send";
import type { Transport } from "./transport";

const parts = {
  export: () => part(() => import("./export")),
  pair: () => part(() => import("./pair")),
  putBack: () => part(() => import("./put_back")),
  restore: () => part(() => import("./restore")),
  rotate: () => part(() => import("./rotate")),
  ways: () => part(() => import("./ways_in")),
};

/** The commands of this file. */
export type AccountCommands = Pick<
  core.Core,
  | "account" | "register" | "registerWithPasskey" | "logIn" | "unlock" | "lock" | "stayUnlocked" | "logOut" | "forget" | "changePassword"
  | "newRecoveryCode" | "recover" | "addPasskey" | "totpSecret" | "totpOn" | "totpOff" | "rotate" | "waysIn" | "nameWayIn" | "passkeyId" | "removeWayIn" | "devices" | "labelDevice"
  | "revokeDevice" | "revokeSession" | "pairOffer" | "pairFetch" | "setUnlock" | "pairSend" | "exportAll" | "erase" | "restore" | "putBack"
>;

/** Who is in this browser. */
export class Door {
  #lock: Lock | null = null;
  /** The key of the files, while they are open. */
  #key: Key | null = null;
  #offer: { offer: Offer; key: Key } | null = null;

  constructor(
    readonly keeper: Keeper,
    private readonly place: Place,
    private readonly transport: Transport,
    private readonly around: { emit(event: core.CoreEvent): void; clock(): number },
  ) {
    keeper.onErased = () => void keeper.run(() => this.clear()).catch(() => {});
  }

  /** Looks who is here; opens the files if their key stays in this browser. */
  async start(): Promise<void> {
    try {
      this.#lock = await Lock.read(this.place);
      const key = (await this.#lock?.openStaying()) ?? null;
      if (key !== null) return await this.openWith(key);
    } catch (error) {
      // What cannot be read stays locked; the person may try the password, or forget it. Nothing is thrown away here.
      this.#lock ??= Lock.make(this.place, null);
      this.around.emit({ type: "error", error: errorOf(error) });
    }
    this.tell();
  }

  account(): core.Account {
    const { device } = this.keeper;
    if (device !== null) {
      return {
        state: "open",
        login: this.#lock?.login ?? null,
        account: device.accountId,
        device: device.state.device,
        generation: device.generation,
        hasSession: device.isLoggedIn,
        staysUnlocked: this.#lock?.staysUnlocked ?? false,
      };
    }
    return this.#lock === null ? { state: "none" } : { state: "locked", login: this.#lock.login };
  }

  tell(): void {
    this.around.emit({ type: "account", account: this.account() });
  }

  get lock(): Lock | null {
    return this.#lock;
  }

  setup(key: Key): Setup {
    return { transport: this.transport, files: this.place, key, clock: () => this.around.clock() };
  }

  /** A device in an empty browser, whose files have a new key. */
  async fresh(login: string | null, make: (setup: Setup) => Promise<Device>, credentials: readonly Credential[]): Promise<Device> {
    if (this.#lock !== null || this.keeper.device !== null) throw new ClientError("occupied");
    // What somebody left behind without a lock opens for nobody.
    await Lock.clear(this.place);
    const key = await Key.random();
    const device = await make(this.setup(key));
    await this.settle(device, key, Lock.make(this.place, login), credentials);
    return device;
  }

  /** The device is here from now on, and these open it. */
  async settle(device: Device, key: Key, lock: Lock, credentials: readonly Credential[]): Promise<void> {
    await lock.write();
    [this.#lock, this.#key] = [lock, key];
    await this.mayOpen(credentials);
    this.keeper.take(device);
    this.tell();
  }

  /** From now on these open the files too. They were used just now, so nothing is stretched again. */
  async mayOpen(credentials: readonly Credential[]): Promise<void> {
    if (this.#lock === null || this.#key === null) throw new ClientError("locked");
    for (const credential of credentials) {
      const made = lastMade(credential);
      if (made !== null) await this.#lock.add(this.#key, made.signing, made.salt);
    }
  }

  /** Only these open the files from now on. */
  async onlyMayOpen(credentials: readonly Credential[]): Promise<void> {
    await this.mayOpen(credentials);
    await this.#lock?.keepOnly(credentials.flatMap((credential) => lastMade(credential)?.signing ?? []));
  }

  async openWith(key: Key): Promise<void> {
    const device = await openDevice(this.setup(key));
    if (device === null) throw new ClientError("damaged");
    this.#key = key;
    this.keeper.take(device);
    this.tell();
  }

  async unlock(credential: Credential): Promise<void> {
    if (this.keeper.device !== null) return;
    if (this.#lock === null) throw new ClientError("not-logged-in");
    await this.openWith(await this.#lock.open(await this.#lock.signing(credential)));
  }

  async close(): Promise<void> {
    if (this.#lock?.staysUnlocked === true && this.#key !== null) await this.#lock.stay(this.#key, false);
    this.#shut();
  }

  #shut(): void {
    this.keeper.drop();
    this.#key?.wipe();
    this.#key = null;
    this.tell();
  }

  async stay(isOn: boolean): Promise<void> {
    if (this.#lock === null || this.#key === null) throw new ClientError("locked");
    await this.#lock.stay(this.#key, isOn);
    this.tell();
  }

  /** Removes everything from this browser. */
  async clear(): Promise<void> {
    this.keeper.drop();
    try {
      await Lock.clear(this.place);
    } finally {
      this.#lock = null;
      this.#shut();
    }
  }

  async offer(): Promise<Offer> {
    if (this.#lock !== null || this.keeper.device !== null) throw new ClientError("occupied");
    await Lock.clear(this.place);
    const { Offer } = await parts.pair();
    const key = await Key.random();
    this.#offer = { key, offer: await Offer.make(this.setup(key)) };
    return this.#offer.offer;
  }

  async fetch(): Promise<"waiting" | "paired"> {
    if (this.#offer === null) throw new Refused("pair-refused");
    const { offer, key } = this.#offer;
    const device = await offer.finish();
    if (device === null) return "waiting";
    this.#offer = null;
    await this.settle(device, key, Lock.make(this.place, null), []);
    return "paired";
  }

  /** What a person shows, as a credential. */
  async credential(proof: core.Proof, login: string | null = this.#lock?.login ?? null): Promise<Credential> {
    switch (proof.kind) {
      case "password":
        if (login === null) throw new Refused("login-refused");
        return passwordOf(login, proof.password, proof.totp ?? null);
      case "recovery":
        return { kind: "recovery", code: RecoveryCode.parse(proof.code) };
      case "passkey": {
        const output = new Uint8Array(proof.prf);
        wipe(proof.prf as Bytes);
        if (output.length !== 32) throw new Refused("login-refused");
        return { kind: "passkey", id: await passkeyId(proof.credential), output };
      }
    }
  }
}

export function accountCommands(door: Door): AccountCommands {
  const how = new How(door);
  return { ...comingAndGoing(door, how), ...credentials(door, how), ...others(door, how) };
}

/** How a command is done. */
class How {
  constructor(private readonly door: Door) {}

  /** Nobody needs to be in yet. */
  readonly anywhere = <T>(act: () => Promise<T>): Promise<T> => this.door.keeper.run(act);

  /** Somebody is in. */
  readonly run = <T>(act: (device: Device) => Promise<T>): Promise<T> => this.anywhere(() => act(opened(this.door.keeper)));

  /** With a proof. */
  readonly by = <T>(proof: core.Proof, act: (device: Device, credential: Credential) => Promise<T>): Promise<T> =>
    this.run(async (device) => act(device, await this.door.credential(proof)));
}

/** In, out, and the end of it all. */
function comingAndGoing(door: Door, { anywhere, run, by }: How) {
  return {
    account: async () => door.account(),
    register: (login, password, code) => anywhere(() => registered(door, login, passwordOf(login, password), code ?? null)),
    registerWithPasskey: (login, passkey, code) =>
      anywhere(async () => registered(door, login, await door.credential(passkey), code ?? null)),
    logIn: (login, proof) => anywhere(() => loggedIn(door, login, proof)),
    unlock: (proof) => anywhere(async () => door.unlock(await door.credential(proof))),
    lock: () => anywhere(() => door.close()),
    stayUnlocked: (isOn) => anywhere(() => door.stay(isOn)),
    logOut: (options = {}) =>
      run(async (device) => {
        const waits = () => device.state.queue.ops.length > 0 && options.unsent !== "throw-away";
        // Who leaves loses nothing that can still be sent.
        if (waits()) await flush(device).catch(() => {});
        if (waits()) throw new Refused("conflict");
        if (device.isLoggedIn) await account.logOut(device, options.everywhere ?? false);
        await door.clear();
      }),
    forget: () => anywhere(() => door.clear()),
    exportAll: (proof) => by(proof, async (device, credential) => `${JSON.stringify(await (await parts.export()).exportAll(device, credential), null, 2)}\n`),
    erase: (proof) =>
      by(proof, async (device, credential) => {
        const receipt = await (await parts.export()).erase(device, credential);
        await door.clear().catch(() => {});
        return receipt;
      }),
    restore: (login, password, code, anew) => run((device) => restored(door, device, login, password, code, anew === true)),
    putBack: (proof) => run((device) => puttingBack(door, device, proof)),
  } satisfies Partial<AccountCommands>;
}

/** What opens the account. */
function credentials(door: Door, { run, by }: How) {
  return {
    changePassword: (proof, password) =>
      by(proof, async (device, credential) => {
        const added = passwordOf(loginOf(door), password);
        await account.changeCredentials(device, credential, [added]);
        await door.mayOpen([added]);
      }),
    newRecoveryCode: (proof) =>
      by(proof, async (device, credential) => {
        const code = RecoveryCode.random();
        const added: Credential = { kind: "recovery", code };
        await account.changeCredentials(device, credential, [added]);
        await door.mayOpen([added]);
        return { recoveryCode: code.dangerouslyToText() };
      }),
    recover: (code, password) => run((device) => recovered(door, device, RecoveryCode.parse(code), password)),
    addPasskey: (proof, passkey, name) =>
      by(proof, async (device, credential) => {
        const added = await door.credential(passkey);
        await account.changeCredentials(device, credential, [added]);
        await door.mayOpen([added]);
        if (added.kind === "passkey") await named(door, device, added.id, name);
      }),
    waysIn: () => run(async (device) => (await parts.ways()).waysIn(device)),
    nameWayIn: (id, name) => run((device) => named(door, device, CredentialId.parse(id), name)),
    passkeyId: (credential) => passkeyId(credential),
    removeWayIn: (id, shown) => run((device) => removed(door, device, CredentialId.parse(id), shown)),
    totpSecret: async () => {
      const secret = base32(random(32)).toUpperCase();
      const label = encodeURIComponent(`Confidant:${loginOf(door)}`);
      return { secret, uri: `otpauth://totp/${label}?secret=${secret}&issuer=Confidant&algorithm=SHA1&digits=6&period=30` };
    },
    totpOn: (proof, text, code) =>
      by(proof, async (device, credential) => {
        const secret = fromBase32(text.replaceAll(/\s/g, "").toLowerCase(), 32);
        if (secret === null) throw new Refused("login-refused");
        await account.changeCredentials(device, credential, [], { totp: "on", secret, code });
      }),
    totpOff: (proof) => by(proof, (device, credential) => account.changeCredentials(device, credential, [], { totp: "off" })),
    rotate: (proof, keep) => run((device) => rotated(door, device, proof, keep)),
  } satisfies Partial<AccountCommands>;
}

/** Other devices of the account. */
function others(door: Door, { anywhere, run, by }: How) {
  return {
    devices: () =>
      run(async (device) => {
        const lines = await account.devices(device);
        return lines.map((line) => ({ ...line, sessions: line.sessions.map(hex) }));
      }),
    labelDevice: (label) => run((device) => account.label(device, label)),
    revokeDevice: (proof, id) => by(proof, (device, credential) => account.revokeDevice(device, credential, DeviceId.parse(id))),
    revokeSession: (proof, session) =>
      by(proof, (device, credential) => {
        const bytes = fromHex(session, 16);
        if (bytes === null) throw new Refused("bad-id");
        return account.revokeSession(device, credential, bytes);
      }),
    pairOffer: () =>
      anywhere(async () => {
        const offer = await door.offer();
        return { text: offer.dangerouslyToText(), expiresAt: door.keeper.now() + offer.expiresMs };
      }),
    pairFetch: () => anywhere(() => door.fetch()),
    setUnlock: (login, proof) =>
      run(async (device) => {
        const credential = await door.credential(proof, login);
        // Stretched with the account's salt; whether it is the account's password is seen at the next log-in.
        await device.link.ready(credential);
        await door.mayOpen([credential]);
        door.tell();
      }),
    pairSend: (proof, text) =>
      by(proof, async (device, credential) => {
        // What the new device remembers is what this one has verified.
        if (device.account === null) await account.accountSeen(device);
        await (await parts.pair()).pair(device, text, credential);
      }),
  } satisfies Partial<AccountCommands>;
}

function loginOf(door: Door): string {
  const login = door.lock?.login ?? null;
  if (login === null) throw new Refused("login-refused");
  return login;
}

async function registered(door: Door, login: string, first: Credential, code: string | null): Promise<{ recoveryCode: string }> {
  const recovery = RecoveryCode.random();
  const credentials: Credential[] = [first, { kind: "recovery", code: recovery }];
  const who = { login: Login.parse(login), credentials, code };
  await door.fresh(login, (setup) => account.register(setup, who), credentials);
  return { recoveryCode: recovery.dangerouslyToText() };
}

async function loggedIn(door: Door, login: string, proof: core.Proof): Promise<void> {
  const credential = await door.credential(proof, login);
  if (door.lock === null) {
    await door.fresh(login, (setup) => account.logIn(setup, credential), [credential]);
    return;
  }
  if (door.lock.login !== null && door.lock.login !== login) throw new ClientError("occupied");
  if (door.keeper.device === null) {
    try {
      await door.unlock(credential);
    } catch (error) {
      // Perhaps the new password of the account; these files open with the one before.
      throw isRefused(error, "login-refused") ? new ClientError("damaged") : error;
    }
  }
  const device = opened(door.keeper);
  await account.logInAgain(device, credential);
  await door.mayOpen([credential]);
  door.keeper.take(device);
  door.tell();
}

async function recovered(door: Door, device: Device, code: RecoveryCode, password: string): Promise<{ recoveryCode: string }> {
  const fresh = RecoveryCode.random();
  const credential = passwordOf(loginOf(door), password);
  await account.recover(device, code, credential, fresh);
  // The one that opened this browser's files was used up.
  const recovery: Credential = { kind: "recovery", code: fresh };
  await device.link.ready(recovery);
  await door.mayOpen([credential, recovery]);
  return { recoveryCode: fresh.dangerouslyToText() };
}

async function rotated(door: Door, device: Device, proof: core.Proof, keep: core.Proof[]): Promise<{ recoveryCode: string }> {
  const { rotate } = await parts.rotate();
  const by = await door.credential(proof);
  const code = RecoveryCode.random();
  const others = await account.inTurn(keep.filter(({ kind }) => kind !== "recovery"), (one) => door.credential(one));
  const kept: Credential[] = [...(others.length > 0 ? others : by.kind === "recovery" ? [] : [by]), { kind: "recovery", code }];
  await rotate(device, by, kept);
  await door.onlyMayOpen(kept);
  return { recoveryCode: code.dangerouslyToText() };
}

async function named(door: Door, device: Device, id: CredentialId, name: string): Promise<void> {
  await (await parts.ways()).nameWayIn(device, id, name);
  door.keeper.sendSoon();
}

async function removed(door: Door, device: Device, id: CredentialId, shown: core.Proof[]): Promise<{ recoveryCode: string }> {
  const { forgetNames, removeWayIn, waysIn } = await parts.ways();
  const { ways } = await waysIn(device);
  const { code, kept } = await removeWayIn(device, id, await account.inTurn(shown, (one) => door.credential(one)));
  // Before anything else: the code is shown even if what follows fails.
  await door.onlyMayOpen(kept);
  await forgetNames(device, kept, ways).catch(() => {});
  return { recoveryCode: code.dangerouslyToText() };
}

async function restored(door: Door, device: Device, login: string, password: string, code: string, anew: boolean) {
  const [{ restore, restoreRings }, { putBack }] = await Promise.all([parts.restore(), parts.putBack()]);
  const fresh = RecoveryCode.random();
  const credential = passwordOf(login, password);
  const recovery: Credential = { kind: "recovery", code: fresh };
  const how = { login: Login.parse(login), credentials: [credential, recovery], code, rest: anew ? ("goes" as const) : ("stays" as const) };
  const became = await restore(device, how);
  await door.onlyMayOpen([credential, recovery]);
  if (became === "kept") await restoreRings(device, credential);
  else await putBack(device);
  door.keeper.take(device);
  door.tell();
  return { recoveryCode: fresh.dangerouslyToText(), restored: became };
}

async function puttingBack(door: Door, device: Device, proof: core.Proof | undefined): Promise<core.PutBackDone> {
  const { putBack, putBackBy } = await parts.putBack();
  if (proof === undefined) {
    const done = await putBack(device);
    door.keeper.take(device);
    return done;
  }
  const [again, done] = await putBackBy(device, await door.credential(proof));
  door.keeper.take(again);
  door.tell();
  return done;
}
