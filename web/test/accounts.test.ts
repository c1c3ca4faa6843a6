// Accounts at a real server: credentials, devices and sessions, pairing, rotation, export and erasure.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, test } from "node:test";

import { changeCredentials, devices, label, logIn, logInAgain, logOut, recover, register, revokeDevice, revokeSession } from "../src/client/account";
import { chat, chats, newChat, say, setData } from "../src/client/chats";
import { type Credential, passwordOf } from "../src/client/credential";
import { type Device, connect, openDevice } from "../src/client/device";
import { nameOf } from "../src/client/error";
import { erase, exportAll } from "../src/client/export";
import { MemoryFiles } from "../src/client/files";
import { listen } from "../src/client/live";
import { Offer, pair } from "../src/client/pair";
import { rotate } from "../src/client/rotate";
import { flush } from "../src/client/send";
import { sync } from "../src/client/sync";
import { CredentialId, Login, RecoveryCode, random } from "../src/format/index";
import { forgetNames, nameWayIn, removeWayIn, waysIn } from "../src/client/ways_in";
import { World, bodies } from "./world/index";

let world: World;
let logins = 0;

before(async () => {
  world = await World.start();
  // The first account needs the server's code; the others are open to anybody.
  await world.person();
});
after(() => world.stop());

function someone(): string {
  logins += 1;
  return `ana-${logins}@example.org`;
}

async function registered(login: string, credentials: Credential[]): Promise<Device> {
  return register(world.setup(), { login: Login.parse(login), credentials, code: null });
}

const fails = async (act: Promise<unknown>): Promise<string> => act.then(() => "nothing", nameOf);

/** What ends listening. */
async function ends(device: Device): Promise<{ name: string; reason: unknown }> {
  for (;;) {
    try {
      await listen(device);
    } catch (error) {
      return { name: nameOf(error), reason: (error as { reason?: unknown }).reason };
    }
  }
}

/** RFC 6238, SHA-1, six digits. */
function totp(secret: Uint8Array, now: number): string {
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(now / 30_000)));
  const mac = createHmac("sha1", secret).update(step).digest();
  const number = mac.readUInt32BE((mac[19] ?? 0) & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
}

test("every credential opens the account and can be changed", async () => {
  const login = someone();
  const code: Credential = { kind: "recovery", code: RecoveryCode.random() };
  const passkey: Credential = { kind: "passkey", id: CredentialId.random(), output: random(32) };
  const password = (words: string, digits: string | null = null) => passwordOf(login, words, digits);
  const one = await registered(login, [password("old words"), code, passkey]);
  const trip = await newChat(one, "Trip");
  await flush(one);
  for (const credential of [password("old words"), code, passkey]) {
    const device = await logIn(world.setup(), credential);
    await sync(device, "all");
    assert.equal(chat(device, trip).fields.get("title"), "Trip");
  }
  await changeCredentials(one, passkey, [password("new words")]);
  const tries = (credential: Credential) => fails(logIn(world.setup(), credential));
  assert.equal(await tries(password("old words")), "login-refused");
  assert.equal(await tries(password("new words")), "nothing");
  assert.equal(await tries(code), "nothing");
  const secret = random(32);
  await changeCredentials(one, passkey, [], { totp: "on", secret, code: totp(secret, Date.now()) });
  assert.equal(await tries(password("new words")), "login-refused", "a code is missing");
  // The step before may still be used; the one that switched it on is used up.
  const next = password("new words", totp(secret, Date.now() + 30_000));
  assert.equal(await tries(next), "nothing");
  assert.equal(await tries(next), "login-refused", "a code counts once");
  assert.equal(await tries(passkey), "nothing");
  await changeCredentials(one, passkey, [], { totp: "off" });
  assert.equal(await tries(password("new words")), "nothing");
});

test("ways to log in are listed and named; one is removed with what was not shown, and nothing unproven stays", async () => {
  const login = someone();
  const code: Credential = { kind: "recovery", code: RecoveryCode.random() };
  const passkey = (): Credential & { kind: "passkey" } => ({ kind: "passkey", id: CredentialId.random(), output: random(32) });
  const [blue, red, green] = [passkey(), passkey(), passkey()];
  const password = passwordOf(login, "old words");
  const one = await registered(login, [password, code, blue, red, green]);
  const trip = await newChat(one, "Trip");
  await nameWayIn(one, blue.id, " Blue stick ");
  await nameWayIn(one, green.id, "Green stick");
  await flush(one);
  const two = await logIn(world.setup(), code);
  await sync(two, "all");
  const before = await waysIn(two);
  assert.equal(before.hasTotp, false);
  assert.deepEqual(before.ways.map(({ kind, name }) => [kind, name]), [["password", null], ["recovery", null], ["passkey", "Blue stick"], ["passkey", null], ["passkey", "Green stick"]]);
  assert.deepEqual(before.ways.map(({ id }) => id).slice(2), [blue.id, red.id, green.id]);
  // Nothing but the recovery code would be left; what goes is shown; a passkey and a password that are not this account's.
  const refused = (shown: Credential[]) => fails(removeWayIn(two, blue.id, shown));
  assert.equal(await refused([]), "last-way");
  assert.equal(await refused([code]), "last-way");
  assert.equal(await refused([password, blue]), "login-refused");
  assert.equal(await refused([password, passkey()]), "login-refused");
  assert.equal(await refused([red, passwordOf(login, "slip of the hand")]), "login-refused", "a password that stays is proven");
  assert.equal(await fails(removeWayIn(two, CredentialId.random(), [password])), "conflict");
  assert.deepEqual((await waysIn(two)).ways, before.ways, "nothing was changed");
  assert.equal(await fails(logIn(world.setup(), blue)), "nothing");
  const { code: next, kept } = await removeWayIn(two, blue.id, [red, password, red]);
  await forgetNames(two, kept, before.ways);
  const left = await waysIn(two);
  assert.deepEqual(left.ways.map(({ kind, id }) => [kind, kind === "passkey" ? id : null]), [["passkey", red.id], ["password", null], ["recovery", null]]);
  assert.deepEqual([chats(two).length, two.state.data.filter(({ kind, body }) => kind === "credential" && body !== null).length], [1, 0], "names go along");
  for (const gone of [blue, green, code]) assert.equal(await fails(logIn(world.setup(), gone)), "login-refused");
  const stays: Credential[] = [red, password, { kind: "recovery", code: next }];
  for (const credential of stays) {
    const device = await logIn(world.setup(), credential);
    await sync(device, "all");
    assert.equal(chat(device, trip).fields.get("title"), "Trip");
  }
});

test("with a second factor, one code is enough to remove a way in", async () => {
  const login = someone();
  const code: Credential = { kind: "recovery", code: RecoveryCode.random() };
  const passkey: Credential & { kind: "passkey" } = { kind: "passkey", id: CredentialId.random(), output: random(32) };
  const one = await registered(login, [passwordOf(login, "old words"), code, passkey]);
  const secret = random(32);
  await changeCredentials(one, passkey, [], { totp: "on", secret, code: totp(secret, Date.now()) });
  assert.equal((await waysIn(one)).hasTotp, true);
  assert.equal(await fails(removeWayIn(one, passkey.id, [passwordOf(login, "old words")])), "login-refused");
  // The step before may still be used; the one that switched it on is used up.
  const { code: next } = await removeWayIn(one, passkey.id, [passwordOf(login, "old words", totp(secret, Date.now() + 30_000))]);
  assert.equal(await fails(logIn(world.setup(), passkey)), "login-refused");
  assert.equal(await fails(logIn(world.setup(), { kind: "recovery", code: next })), "nothing");
});

test("a lost password is replaced by the recovery code, once", async () => {
  const login = someone();
  const code = RecoveryCode.random();
  const one = await registered(login, [{ kind: "recovery", code }, passwordOf(login, "forgotten")]);
  await connect(one);
  const two = await logIn(world.setup(), { kind: "recovery", code });
  const next = RecoveryCode.random();
  await recover(two, code, passwordOf(login, "remembered"), next);
  assert.deepEqual(await ends(one), { name: "logged-out", reason: "changed" });
  const gone: Credential[] = [{ kind: "recovery", code }, passwordOf(login, "forgotten")];
  for (const credential of gone) assert.equal(await fails(logIn(world.setup(), credential)), "login-refused");
  await logInAgain(one, passwordOf(login, "remembered"));
  await sync(one, "all");
  await sync(await logIn(world.setup(), { kind: "recovery", code: next }), "all");
});

test("a device is paired by digits that are good once", async () => {
  const { person, device: old } = await world.person();
  const trip = await newChat(old, "Trip");
  await flush(old);
  const offer = await Offer.make(world.setup());
  assert.equal(await offer.finish(), null, "nobody answered yet");
  const digits = offer.dangerouslyToText();
  assert.equal(digits.length, 26);
  await pair(old, digits.toUpperCase(), person.recovery);
  const fresh = await offer.finish();
  assert.ok(fresh !== null);
  await sync(fresh, "all");
  assert.equal(chat(fresh, trip).fields.get("title"), "Trip");
  assert.equal(await fails(offer.finish()), "nothing");
  assert.equal(await fails(pair(old, digits, person.recovery)), "not-found");
  await say(fresh, trip, "from the new device");
  await flush(fresh);
  await sync(old, "all");
  assert.deepEqual(bodies(old, trip), ["from the new device"]);
});

test("devices are listed, labelled and revoked", async () => {
  const { person, device: one } = await world.person();
  await connect(one);
  await label(one, "Laptop");
  const two = await world.synced(person);
  const laptop = (await devices(two)).find((line) => !line.isThis);
  assert.ok(laptop !== undefined);
  assert.deepEqual([laptop.label, laptop.sessions.length], ["Laptop", 1]);
  await revokeDevice(two, person.recovery, laptop.device);
  assert.deepEqual(await ends(one), { name: "logged-out", reason: "revoked" });
  assert.equal(await fails(sync(one, "all")), "logged-out");
  const three = await world.synced(person);
  const other = (await devices(two)).find((line) => line.device === three.state.device);
  const session = other?.sessions[0];
  assert.ok(session !== undefined);
  await revokeSession(two, person.recovery, session);
  assert.equal((await ends(three)).name, "logged-out");
  await logOut(two, false);
  assert.ok(!two.isLoggedIn);
  assert.equal(await fails(connect(two)), "not-logged-in");
});

test("a rotation replaces the account key: who was not presented is out, and nothing is lost", async () => {
  const login = someone();
  const [old, code]: Credential[] = [passwordOf(login, "known to a thief"), { kind: "recovery", code: RecoveryCode.random() }];
  assert.ok(old !== undefined && code !== undefined);
  const one = await registered(login, [old, code]);
  const trip = await newChat(one, "Trip");
  await say(one, trip, "before");
  await setData(one, "settings", "style", "short");
  await flush(one);
  const two = await logIn(world.setup(), code);
  await sync(two, "all");
  const fresh = passwordOf(login, "known to nobody");
  await rotate(one, code, [fresh]);
  assert.equal(one.generation, 2);
  assert.equal((await ends(two)).name, "logged-out");
  for (const credential of [old, code]) assert.equal(await fails(logIn(world.setup(), credential)), "login-refused");
  await say(one, trip, "after");
  await flush(one);
  const three = await logIn(world.setup(), fresh);
  await sync(three, "all");
  assert.deepEqual(bodies(three, trip), ["before", "after"]);
  // The other device keeps what it remembers, and goes on with the new key.
  await logInAgain(two, fresh);
  await sync(two, "all");
  assert.deepEqual(bodies(two, trip), ["before", "after"]);
});

test("files open again with what was verified, and are another account's nobody's", async () => {
  const { person, device: one } = await world.person();
  const files = new MemoryFiles();
  const setup = world.setup(files);
  const two = await logIn(setup, person.recovery);
  const trip = await newChat(two, "Trip");
  await flush(two);
  await say(two, trip, "unsent");
  const again = await openDevice(setup);
  assert.ok(again !== null);
  assert.deepEqual(bodies(again, trip), ["unsent"]);
  await flush(again);
  await sync(one, "all");
  assert.deepEqual(bodies(one, trip), ["unsent"]);
  const { person: other } = await world.person();
  assert.equal(await fails(logIn(setup, other.recovery)), "occupied");
  const { device: empty } = await world.person();
  assert.deepEqual(chats(empty), []);
});

test("everything goes out in clear, and is erased with a receipt", async () => {
  const { person, device } = await world.person();
  const trip = await newChat(device, "Trip");
  await say(device, trip, "Grüße");
  await setData(device, "settings", "style", "short");
  await flush(device);
  const exported = await exportAll(device, person.recovery);
  assert.equal(exported.account, device.accountId);
  assert.deepEqual(exported.chats.map((one) => [one.id, one.fields["title"], one.messages.map((message) => message["body"])]), [
    [trip, "Trip", ["Grüße"]],
  ]);
  assert.deepEqual(exported.data, [{ kind: "settings", name: "style", body: "short" }]);
  assert.deepEqual(exported.devices, [device.state.device]);
  assert.equal(await fails(exportAll(device, { kind: "recovery", code: RecoveryCode.random() })), "login-refused");
  const receipt = await erase(device, person.recovery);
  const said = JSON.parse(receipt) as { erased: string; derived: { chats: number }; signature: string };
  assert.deepEqual([said.erased, said.derived.chats, said.signature.length], ["person", 1, 64]);
  assert.equal(await fails(logIn(world.setup(), person.recovery)), "login-refused");
});
