// The cases of the differential run: what one side seals the other opens; what one refuses the other refuses, with the same name.
// Each is a round of dice against the Rust side. Works in Node and in a browser.

import {
  AccountId, AccountKey, adopt, base64url, BoxKey, chain, ChatId, Claim, CredentialId, DeviceId, Digest, EmbedId, Entry, FieldName,
  fromUtf8, Head, hex, ItemId, Key, Kid, Letter, live, Login, Manifest, Message, MessageId, NewDevice, open, OpenFailed, Origin, Pairing, PairingSecret,
  PURPOSES, random, RecoveryCode, Ring, RingOf, ringsDigest, Root, seal, Shelf, Statement, Text, Transcript, TurnId, Floor,
} from "../../src/format/index";
import type { Bytes, Kind, Wrap } from "../../src/format/index";
import { newDeviceInsecureForTesting } from "../../src/format/vectors";
import { nearlyJson } from "./fuzz";
import { flip, spoil } from "./spoil";
import type { Answer, Dice, Row, Rust, State } from "./state";
import { answer, bytes, digest, entry, take } from "./take";
import { nothing, World } from "./world";

/** One case. */
export type Round = (dice: Dice, rust: Rust) => Promise<void>;

/** What there is, and how many rounds of each for one of the shortest. */
export const KINDS: readonly [name: string, round: Round, share: number][] = [
  ["envelopes", envelopes, 1],
  ["ids, logins, origins and codes", texts, 1],
  ["records as JSON", records, 10],
  ["passwords", passwords, 1 / 60],
  ["proofs", proofs, 1],
  ["wraps of the account key", wraps, 1],
  ["rings", rings, 1],
  ["digests, claims and transcripts", digests, 1],
  ["letters", letters, 1],
  ["pairings", pairings, 1],
  ["accounts that Rust made", rustWorlds, 1 / 10],
  ["accounts that the page made", ownWorlds, 1 / 10],
];

function agreeOn(own: unknown, theirs: unknown, what = ""): void {
  const [a, b] = [canonical(own), canonical(theirs)];
  if (a !== b) throw new Error(`${what}: here ${a}, there ${b}`);
}

/** JSON with sorted names, so that equal values have equal texts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (typeof one !== "object" || one === null || Array.isArray(one)) return one;
    return Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function sure(holds: boolean, what = "does not hold"): asserts holds {
  if (!holds) throw new Error(what);
}

const key64 = (): string => base64url(random(32));
const keyOf = (text: string): Promise<Key> => Key.fromBytes(bytes(text));

function ok(answer: Answer): unknown {
  sure("ok" in answer, "refused" in answer ? `the Rust side refused: ${answer.refused}` : "");
  return answer.ok;
}

async function envelopes(dice: Dice, rust: Rust): Promise<void> {
  const key = key64();
  const five = Array.from({ length: 5 }, () => dice.text());
  const [purpose = "", owner = "", container = "", object = "", field = ""] = five;
  const context = { purpose, owner, container, object, field };
  const [rev, data] = [dice.pick([0, 1, 0xffff_ffff, dice.roll(1000)]), dice.bytes(dice.roll(dice.chance(5) ? 5000 : 130))];
  const theirs = bytes(ok(await rust.ask({ do: "seal", key, context: five, rev, data: base64url(data) })) as string);
  const opened = await open(await keyOf(key), context, theirs);
  agreeOn([opened.rev, hex(opened.data)], [rev, hex(data)]);
  const own = base64url(await seal(await keyOf(key), context, rev, data));
  const sealed = dice.chance(2) ? own : flip(dice, own);
  const said = await rust.ask({ do: "open", key, context: five, sealed });
  const verdict = await open(await keyOf(key), context, bytes(sealed)).catch((error: unknown) => {
    sure(error instanceof OpenFailed);
    return null;
  });
  agreeOn(said, verdict === null ? { refused: "record-refused" } : { ok: [verdict.rev, base64url(verdict.data)] });
}

async function texts(dice: Dice, rust: Rust): Promise<void> {
  const code = RecoveryCode.random().dangerouslyToText();
  const secret = PairingSecret.random().dangerouslyToText();
  const base = dice.pick([
    ChatId.random(), MessageId.random(), EmbedId.random(), CredentialId.random(), "meta:title", "title", "a-b_9", `${"a".repeat(64)}`, "a".repeat(65),
    "ana@example.org", dice.text(), "https://chat.example:8443", "http://[::1]:80", "https://chat.example", code, secret, code.toUpperCase(),
    secret.replace(/(.{5})/g, "$1 "), "\u212a".repeat(32), "k".repeat(257), "\u0085x", "e\u0301", "cred_x", "\u00a0".repeat(3) + code,
  ]);
  const text = dice.chance(2) ? base : base.slice(0, dice.roll(base.length + 1)) + dice.pick(["", "a", "7", "-", " ", "é", "_"]) + base.slice(dice.roll(base.length + 1));
  if (/[\ud800-\udfff]/u.test(text)) return;
  const own: Record<string, () => unknown> = {
    chat: () => ChatId.parse(text),
    item: () => ItemId.parse(text),
    field: () => FieldName.parse(text),
    login: () => Login.parse(text),
    origin: () => Origin.parse(text),
    code: () => RecoveryCode.parse(text).dangerouslyToText(),
    pair: () => PairingSecret.parse(text).id(),
  };
  for (const [kind, parse] of Object.entries(own)) {
    agreeOn(await answer(async () => parse()), await rust.ask({ do: "parse", kind, text }), `${kind} ${JSON.stringify(text)}`);
  }
}

async function records(dice: Dice, rust: Rust): Promise<void> {
  const [record, json] = await nearlyJson(dice);
  const own = await answer(async () => base64url(await again(record, json)));
  agreeOn(own, await rust.ask({ do: "read", record, json: base64url(json) }), `${record}: ${fromUtf8(json) ?? hex(json)}`);
}

async function again(record: string, json: Bytes): Promise<Bytes> {
  switch (record) {
    case "message":
      return Message.toJson(Message.fromJson(json));
    case "text":
      return Text.toJson(Text.fromJson(json));
    case "head":
      return Head.toJson(Head.fromJson(json));
    case "manifest":
      return Manifest.toJson(Manifest.fromJson(json));
    default: {
      const shelf = Shelf.ALL.find((one) => Shelf.digit(one) === record) ?? 0;
      return Floor.toJson(await Floor.fromJson(shelf, json));
    }
  }
}

async function passwords(dice: Dice, rust: Rust): Promise<void> {
  const [password, salt] = [dice.text() + dice.pick(["ﬁ", "Å", "①", "ｶﾞ", "e\u0301\u0323"]), random(16)];
  const root = ok(await rust.ask({ do: "password", password, salt: base64url(salt) })) as string;
  sure((await Root.fromPassword(password, salt, 1)).equals(await Root.fromPrf(bytes(root))));
}

async function proofs(dice: Dice, rust: Rust): Promise<void> {
  const root = key64();
  const signer = dice.chance(2) ? Login.parse("ana") : CredentialId.random();
  const [origin, purpose] = [Origin.parse(dice.pick(["https://a.example", "http://localhost:7367"])), dice.pick(PURPOSES)];
  const [challenge, body] = [random(32), dice.bytes(dice.roll(200))];
  const statement = { origin, purpose, signer, challenge: base64url(challenge), body: base64url(body) };
  const [publicKey, proof] = ok(await rust.ask({ do: "prove", root, statement })) as [string, string];
  const own = new Statement({ origin, purpose, signer, challenge, body });
  const made = await Root.fromPrf(bytes(root));
  agreeOn([base64url(await made.publicKey()), base64url(await made.prove(own))], [publicKey, proof]);
  const given = dice.chance(2) ? proof : base64url(bytes(proof).with(dice.roll(64), dice.roll(256)));
  const said = await rust.ask({ do: "verify", public_key: publicKey, proof: given, statement });
  agreeOn(await answer(() => own.verify(bytes(publicKey), bytes(given))), said);
}

async function wraps(dice: Dice, rust: Rust): Promise<void> {
  const [kek, ak, account, generation, rev] = [key64(), key64(), AccountId.random(), 1 + dice.roll(3), dice.roll(9)];
  const field = dice.pick<Wrap>(["pw", "rec", `prf:${CredentialId.random()}`]);
  const theirs = ok(await rust.ask({ do: "wrap", kek, ak, generation, account, field, rev })) as string;
  const own = base64url(await new AccountKey(await keyOf(ak), generation).wrap(await keyOf(kek), account, field, rev));
  const whole = dice.pick([theirs, own]);
  const sealed = dice.chance(3) ? flip(dice, whole) : whole;
  const seen: [number, number] = [dice.chance(3) ? generation + 1 : 0, dice.roll(12)];
  const given = dice.chance(6) ? generation + 1 : generation;
  const said = await rust.ask({ do: "open-wrap", kek, generation: given, account, field, sealed, seen });
  const mine = await answer(async () => {
    const opened = await AccountKey.open(await keyOf(kek), account, given, field, bytes(sealed), { generation: seen[0], rev: seen[1] });
    return [base64url(opened.ak.key.dangerouslyExposeBytes()), opened.rev];
  });
  agreeOn(mine, said);
}

async function rings(dice: Dice, rust: Rust): Promise<void> {
  const [ak, account, generation, chat] = [key64(), AccountId.random(), 1 + dice.roll(3), ChatId.random()];
  const of = dice.pick([chat, "account", "box"]);
  const ringOf = of === chat ? RingOf.chat(chat) : of === "account" ? RingOf.ACCOUNT : RingOf.BOX;
  const keys = Array.from({ length: 1 + dice.roll(3) }, (): [string, number] => [key64(), dice.roll(generation + 2)]);
  const theirs = ok(await rust.ask({ do: "seal-ring", ak, generation, account, of, keys })) as Row[];
  const key = new AccountKey(await keyOf(ak), generation);
  const own = await Promise.all(keys.map(async ([one, born], at) => Entry.seal(key, account, ringOf, at + 1, await keyOf(one), born)));
  agreeOn(own.map(({ n, kid, subs }) => [n, kid, subs]), theirs.map(({ n, kid, subs }) => [n, kid, subs]));
  const rows = dice.chance(2) ? theirs : own.map((row) => ({ ...row, subs: [...row.subs], sealed: base64url(row.sealed) }));
  const one = dice.pick(rows);
  if (dice.chance(4)) one.sealed = flip(dice, one.sealed);
  if (dice.chance(6)) one.n += 1;
  if (dice.chance(8)) rows.push(structuredClone(one));
  const said = await rust.ask({ do: "open-ring", ak, generation, account, of, rows });
  const mine = await answer(async () => {
    const ring = await Ring.open(key, account, ringOf, rows.map(entry));
    return ring.held.map((held) => [base64url(held.key.dangerouslyExposeBytes()), held.born]);
  });
  agreeOn(mine, said);
}

async function digests(dice: Dice, rust: Rust): Promise<void> {
  const anything = (): Digest => Digest.fromBytes(random(32));
  const item = (): ItemId => dice.pick([() => MessageId.random(), () => EmbedId.random(), () => ItemId.field(FieldName.parse(dice.pick(["title", "icon", "a-b"])))])();
  const list = [...new Map(Array.from({ length: dice.roll(6) }, (): [ItemId, Digest] => [item(), anything()]))];
  const rings = Array.from({ length: dice.roll(6) }, (): [string, number, string] => [dice.chance(2) ? "" : ChatId.random(), dice.roll(12), hex(random(8))]);
  const before = anything();
  const now = await live(new Map(list));
  const rows = rings.map(([container, n, kid]) => [ChatId.is(container) ? RingOf.chat(container) : RingOf.ACCOUNT, { n, kid: Kid.parse(kid) as Kid }] as const);
  const own = [now, await chain(before, now, now), await ringsDigest(rows)];
  agreeOn({ ok: own }, await rust.ask({ do: "digests", list, before, rings }));

  const line = (): [MessageId, number] => [MessageId.random(), dice.roll(5)];
  const [key, branch, message, reply] = [key64(), Array.from({ length: dice.roll(4) }, line), line(), MessageId.random()];
  const ring = await Ring.fromKept(await AccountKey.first(), RingOf.chat(ChatId.random()), [{ key: await keyOf(key), born: 1 }]);
  agreeOn({ ok: await Claim.make(ring.newest, branch, message, reply) }, await rust.ask({ do: "claim", key, branch, message, reply }));

  const chat = ChatId.random();
  const said: { id: MessageId; kind: Kind; text: string; proof: Digest | null }[] = [];
  let at = await Transcript.start();
  for (let left = 1 + dice.roll(4); left > 0; left--) {
    const [id, kind, text] = [MessageId.random(), dice.pick<Kind>([1, 2, 3, 4, 5]), dice.text()];
    at = await at.after(kind, text);
    said.push({ id, kind, text, proof: dice.pick([null, anything(), await at.prove(await keyOf(key), chat, id, kind)]) });
  }
  const { kinds, at: end } = await adopt(await keyOf(key), chat, await Transcript.start(), said);
  const [last, kind] = [said.at(-1), kinds.at(-1)];
  const proof = last && kind ? await end.prove(await keyOf(key), chat, last.id, kind) : null;
  agreeOn({ ok: [kinds, end.digest, proof] }, await rust.ask({ do: "adopt", key, chat, said }));
}

async function letters(dice: Dice, rust: Rust): Promise<void> {
  const about = { account: AccountId.random(), chat: ChatId.random(), reply: MessageId.random(), turn: TurnId.random() };
  const keys = Array.from({ length: 1 + dice.roll(3) }, key64);
  const boxes = await Promise.all(keys.map(async (key) => BoxKey.fromKey(await keyOf(key))));
  const [to, parent, more] = [dice.pick(boxes).publicKey, MessageId.random(), dice.chance(3)];
  const role = dice.chance(6) ? "user" : "assistant";
  const message: Message = { role, parent, createdAt: 7, body: dice.text(), model: null, reason: null, refs: [], proof: null, shared: [] };
  const json = fromUtf8(more ? Text.toJson({ body: message.body }) : Message.toJson(message));
  const theirs = ok(await rust.ask({ do: "seal-letter", letter: about, box_pub: to, json, more })) as string;
  const own = await (more ? new Letter(about).sealMore(to, { body: message.body }) : new Letter(about).seal(to, message));
  const whole = dice.chance(2) ? theirs : base64url(own);
  const wire = dice.chance(4) ? flip(dice, whole) : dice.chance(10) ? base64url(bytes(whole).fill(0, 0, 32)) : whole;
  const pending = dice.chance(6) ? [] : [{ turn: dice.chance(6) ? TurnId.random() : about.turn, parent: dice.chance(6) ? MessageId.random() : parent, reply: about.reply }];
  const kid = Kid.parse("00112233445566ff") as Kid;
  const head: Head = { key: 1, kid, count: 0, live: Digest.ZERO, chain: Digest.ZERO, leaf: null, pending, at: 7, device: DeviceId.random() };
  const listed = dice.chance(8) ? [about.reply] : [];
  const said = await rust.ask({ do: "open-letter", letter: about, boxes: keys, head: fromUtf8(Head.toJson(head)), listed, wire, more });
  const mine = await answer(async () => {
    const [letter, list] = [new Letter(about), new Map(listed.map((id) => [id, Digest.ZERO]))];
    if (more) return base64url(Text.toJson(await letter.openMore(boxes, head, bytes(wire))));
    return base64url(Message.toJson(await letter.open(boxes, head, list, bytes(wire))));
  });
  agreeOn(mine, said);
}

async function pairings(dice: Dice, rust: Rust): Promise<void> {
  const [secret, ak, fresh, generation] = [random(16), key64(), key64(), 1 + dice.roll(3)];
  const [origin, account, mark] = [Origin.parse("https://a.example"), AccountId.random(), { rev: dice.roll(99), envelope: digest(key64()) }];
  const pair = { secret: base64url(secret), origin, account };
  const device: NewDevice = await newDeviceInsecureForTesting(await keyOf(fresh));
  const pairing = new Pairing(PairingSecret.fromBytes(secret), origin, account);
  const theirs = ok(await rust.ask({ do: "send", pair, ak, generation, mark, new: device.publicKey })) as string;
  const own = await pairing.send(device.publicKey, new AccountKey(await keyOf(ak), generation), mark);
  const whole = dice.chance(2) ? theirs : base64url(own);
  const wire = dice.chance(3) ? flip(dice, whole) : dice.chance(10) ? base64url(bytes(whole).fill(0, 0, 32)) : whole;
  const given = dice.chance(6) ? generation + 1 : generation;
  const said = await rust.ask({ do: "receive", pair, generation: given, new: fresh, wire });
  const mine = await answer(async () => {
    const { ak, seen } = await pairing.receive(device, given, bytes(wire));
    return [base64url(ak.key.dangerouslyExposeBytes()), seen.generation, seen.manifest];
  });
  agreeOn(mine, said);
}

/** What was said of states, and how often. */
export const verdicts = new Map<string, number>();
/** What a hundred rounds come across. */
export const OFTEN = ["ok", "ring-gap", "ring-forked", "key-refused", "rolled-back", "forked", "withheld", "list-refused", "record-refused", "box-refused", "parent-missing"];

/** Both say the same of a state; if it is refused, with the same name. */
async function agree(rust: Rust, state: State, what: string): Promise<Answer> {
  const [own, theirs] = [await answer(() => take(state)), await rust.ask({ do: "take", state })];
  agreeOn(own, theirs, what);
  const name = "refused" in own ? own.refused : "ok";
  verdicts.set(name, (verdicts.get(name) ?? 0) + 1);
  return own;
}

async function rustWorlds(dice: Dice, rust: Rust): Promise<void> {
  const act = (): [string, number, string] => [
    dice.pick(["create", "say", "say", "say", "title", "ask", "rotate-chat", "rotate", "publish", "delete", "sync"]), dice.roll(4), dice.text(),
  ];
  const script: [string, number, string][] = [["create", 0, ""], ["say", 0, "first"], ...Array.from({ length: dice.roll(12) }, act)];
  const world = async (steps: [string, number, string][]): Promise<[State, State]> => ok(await rust.ask({ do: "world", script: steps })) as [State, State];
  const [told, fresh] = await world(script);
  for (const state of [told, fresh]) ok(await agree(rust, state, "an honest state"));
  // Of another account with the same story: every key differs.
  const [other] = await world(script);
  for (let left = 12; left > 0; left--) {
    const [state, what] = spoil(dice, dice.pick([told, fresh]), dice.pick([other, fresh, told]));
    await agree(rust, state, what);
  }
}

async function ownWorlds(dice: Dice, rust: Rust): Promise<void> {
  const world = await World.make();
  const [first, chats] = [await world.create(), (): ChatId[] => [...world.chats.keys()]];
  await world.say(first, dice.text());
  let [memory, older] = [nothing(), await world.state(nothing())];
  for (let left = dice.roll(10); left > 0; left--) {
    const chat = dice.pick(chats());
    const acts: (() => Promise<unknown>)[] = [
      () => world.create(), () => world.say(chat, dice.text()), () => world.say(chat, dice.text()), () => world.title(chat, dice.text()),
      () => world.ask(chat), () => world.rotateChat(chat), () => world.rotate(), () => world.publish(),
      async () => {
        ok(await agree(rust, await world.state(memory), "an honest state"));
        [memory, older] = [world.memory(), await world.state(memory)];
      },
    ];
    await dice.pick(acts)();
  }
  const states = [await world.state(memory), await world.state(nothing())];
  for (const state of states) ok(await agree(rust, state, "an honest state"));
  for (let left = 12; left > 0; left--) {
    const [state, what] = spoil(dice, dice.pick(states), older);
    await agree(rust, state, what);
  }
  await thief(dice, rust, world, memory);
}

/** A writer who has the keys writes something authentic and wrong. */
async function thief(dice: Dice, rust: Rust, world: World, memory: ReturnType<typeof nothing>): Promise<void> {
  const [chat, anything] = [dice.pick([...world.chats.keys()]), Digest.fromBytes(random(32))];
  const heads: ((head: Head) => Head)[] = [
    (head) => ({ ...head, key: head.key + 1 }), (head) => ({ ...head, kid: Kid.parse("00112233445566ff") as Kid }), (head) => ({ ...head, count: head.count + 1 }),
    (head) => ({ ...head, live: anything }), (head) => ({ ...head, chain: anything }), (head) => ({ ...head, leaf: MessageId.random() }),
  ];
  const manifests: ((manifest: Manifest) => Manifest)[] = [
    (manifest) => ({ ...manifest, g: manifest.g + 1 }), (manifest) => ({ ...manifest, uk: manifest.uk + 1 }), (manifest) => ({ ...manifest, boxN: manifest.boxN + 1 }),
    (manifest) => ({ ...manifest, chain: anything }), (manifest) => ({ ...manifest, floors: manifest.floors.with(dice.roll(16), anything) }),
  ];
  const ways: [string, () => Promise<void>][] = [
    ["a wrong head", async () => ((world.spoilHead = dice.pick(heads)), world.write(chat))],
    ["a wrong manifest", async () => ((world.spoilManifest = dice.pick(manifests)), world.publish())],
    ["a manifest under an old key", () => world.publish(1)],
    ["a head under an old key", () => world.write(chat, 1)],
    ["a head under an old key, in the floor", async () => (await world.write(chat, 1), world.publish())],
    ["a missing parent", async () => ((world.spoilMessage = (message) => ({ ...message, parent: MessageId.random() })), world.say(chat, "x"))],
    ["a circle", async () => {
      const leaf = world.chats.get(chat)?.leaf;
      if (leaf) await world.move(chat, leaf, leaf);
    }],
  ];
  const [what, write] = dice.pick(ways);
  await write();
  for (const state of [await world.state(memory), await world.state(nothing())]) await agree(rust, state, what);
}

