// A server that lost everything: a device puts the account back with the operator's code, and what it has.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { logIn } from "../src/client/account";
import { newChat, say } from "../src/client/chats";
import { nameOf } from "../src/client/error";
import { putBack } from "../src/client/put_back";
import { restore, restoreRings, verifiedAt } from "../src/client/restore";
import { flush } from "../src/client/send";
import { sync } from "../src/client/sync";
import { Login, RecoveryCode } from "../src/format/index";
import { World, bodies } from "./world/index";

let world: World;
before(async () => {
  world = await World.start();
});
after(() => world.stop());

const fails = async (act: Promise<unknown>) => act.then(() => "nothing", nameOf);

test("an account that the server lost is put back from a device, and by nobody without the code", async () => {
  const { person, device } = await world.person();
  const trip = await newChat(device, "Trip");
  await say(device, trip, "kept here");
  await flush(device);
  assert.ok((verifiedAt(device) ?? 0) > 0);
  const two = await world.synced(person);
  await world.server.use("lost");
  assert.equal(await fails(logIn(world.setup(), person.recovery)), "login-refused");
  const fresh = { kind: "recovery" as const, code: RecoveryCode.random() };
  const how = (code: string) => ({ login: Login.parse(person.login), credentials: [fresh], code, rest: "stays" as const });
  assert.equal(await fails(restore(device, how("guessed"))), "login-refused");
  assert.equal(await restore(device, how(await world.server.restoreCode(device.accountId))), "empty");
  const done = await putBack(device);
  assert.deepEqual([done.chats, done.refused, done.missing], [1, [], 0]);
  assert.deepEqual(await restoreRings(device, fresh), { restored: 0, refused: [] }, "nothing was lost of what is there now");
  const again = await logIn(world.setup(), fresh);
  await sync(again, "all");
  assert.deepEqual(bodies(again, trip), ["kept here"]);
  // The other device knows more than the server shows, until its person says that this is right.
  assert.equal(await fails(logIn(world.setup(), person.recovery)), "login-refused", "no credential of before is one now");
  assert.deepEqual(bodies(two, trip), ["kept here"]);
});
