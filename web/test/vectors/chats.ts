// Every section of vectors/chats-v1.json, through the functions that the page uses.

import {
  AccountId, AccountKey, adopt, besideId, BoxKey, chain, ChatId, CredentialId, Digest, Entry, Floor, fromUtf8, Head, hex, history, ItemId, Key, Kind,
  Letter, live, Login, Manifest, Message, MessageId, openRecord, Origin, Pairing, PairingSecret, passwordSalt, Place, prfInput, PURPOSES,
  RecoveryCode, Ring, RingOf, ringsDigest, Root, serverSalt, Shelf, Snapshot, SnapshotId, SnapshotKey, SnapshotLink, SnapshotList, Statement,
  Text, Transcript, TurnId, utf8,
} from "../../src/format/index";
import type { Bytes, Purpose, SealedSnapshot, Signer, Wrap } from "../../src/format/index";
import {
  AES_256_GCM, letterKeyInsecureForTesting, newDeviceInsecureForTesting, pairingKeyInsecureForTesting, sealWithSalt,
} from "../../src/format/vectors";
import { context } from "./seal";
import type { Five } from "./seal";
import { bytes, digest, each, equal, inside, key, kid, publicKey, refusal } from "./sections";
import type { Section, Sections } from "./sections";

interface Proof {
  root: string; origin: string; purpose: string; signer: string; challenge: string; body: string; statement: string; public_key: string;
  proof: string;
}

function statement(one: Proof): Statement {
  const purpose = PURPOSES.find((name) => name === one.purpose) as Purpose;
  const signer: Signer = CredentialId.is(one.signer) ? one.signer : Login.parse(one.signer);
  const [challenge, body] = [bytes(one.challenge), bytes(one.body)];
  return new Statement({ origin: Origin.parse(one.origin), purpose, signer, challenge, body });
}

interface WrapCase {
  kek: string; account: string; generation: number; field: string; rev: number; salt: string; account_key: string; sealed: string;
}

async function wrapHolds(one: WrapCase): Promise<void> {
  const [kek, account] = [await key(one.kek), AccountId.parse(one.account)];
  const seen = { generation: one.generation, rev: one.rev };
  const { ak, rev } = await AccountKey.open(kek, account, one.generation, one.field as Wrap, bytes(one.sealed), seen);
  equal([hex(ak.key.dangerouslyExposeBytes()), ak.generation, rev], [one.account_key, one.generation, one.rev]);
  const where = context(["key", one.account, "", `account:${one.generation}`, one.field]);
  equal(hex(await sealWithSalt(AES_256_GCM, kek, where, one.rev, bytes(one.account_key), bytes(one.salt))), one.sealed);
  const fresh = await ak.wrap(kek, account, one.field as Wrap, one.rev);
  const again = await AccountKey.open(kek, account, one.generation, one.field as Wrap, fresh, seen);
  equal(ak.key.equals(again.ak.key), true, "wrapped again");
}

interface EntryCase {
  account_key: string; generation: number; account: string; container: string; field: string; n: number; key: string; born: number;
  kid: string; subs: string[]; salt: string; sealed: string;
}

function ringOf(field: string, container: string): RingOf {
  return field === "chat" ? RingOf.chat(ChatId.parse(container)) : field === "account" ? RingOf.ACCOUNT : RingOf.BOX;
}

async function entryHolds(one: EntryCase): Promise<void> {
  const [ak, account] = [new AccountKey(await key(one.account_key), one.generation), AccountId.parse(one.account)];
  const [of, inner] = [ringOf(one.field, one.container), await key(one.key)];
  const made = await Entry.seal(ak, account, of, one.n, inner, one.born);
  equal([made.n, made.kid, made.subs], [one.n, one.kid, one.subs]);
  const where = context(["key", one.account, one.container, `${one.n}:${one.kid}`, one.field]);
  const data = bytes(one.key + one.born.toString(16).padStart(8, "0"));
  const sealed = await sealWithSalt(AES_256_GCM, await ak.key.derive("wrap"), where, one.generation, data, bytes(one.salt));
  equal(hex(sealed), one.sealed);
  // A ring begins with entry 1: the ones before this are made here.
  const before = await Promise.all(
    Array.from({ length: one.n - 1 }, async (_, at) => Entry.seal(ak, account, of, at + 1, await Key.random(), 1)),
  );
  const ring = await Ring.open(ak, account, of, [{ ...made, sealed: bytes(one.sealed) }, ...before]);
  equal([ring.newest.n, ring.newest.born, ring.newest.key.equals(inner)], [one.n, one.born, true]);
}

interface Row {
  n: number; kid: string; subs: string[]; sealed: string;
}

const entry = (row: Row): Entry => ({ n: row.n, kid: kid(row.kid), subs: row.subs.map(kid), sealed: bytes(row.sealed) });

/** Reads a record, and gives its JSON as it is written again. */
async function again(record: string, json: Bytes): Promise<string> {
  const shelf = await Shelf.of(ChatId.fromBits(new Uint8Array(16).fill(1)));
  switch (record) {
    case "message":
      return text(Message.toJson(Message.fromJson(json)));
    case "head":
      return text(Head.toJson(Head.fromJson(json)));
    case "manifest":
      return text(Manifest.toJson(Manifest.fromJson(json)));
    case "floor":
      return text(Floor.toJson(await Floor.fromJson(shelf, json)));
    default:
      return text(Text.toJson(Text.fromJson(json)));
  }
}

function text(json: Bytes): string {
  return fromUtf8(json) ?? "not UTF-8";
}

/** The ring with one key that the file's records are sealed under. */
async function chatRing(chatKey: string): Promise<Ring> {
  const ak = await AccountKey.first();
  return Ring.fromKept(ak, RingOf.chat(ChatId.random()), [{ key: await key(chatKey), born: 1 }]);
}

const record: Section = each<{
  name: string; key: string; label: string; context: Five; rev: number; salt: string; json: string; sealed: string;
}>(async (one) => {
  const sub = await (await key(one.key)).derive(one.label);
  const sealed = await sealWithSalt(AES_256_GCM, sub, context(one.context), one.rev, utf8(one.json), bytes(one.salt));
  equal(hex(sealed), one.sealed);
  equal(await again(one.name, utf8(one.json)), one.json, "written again, byte for byte");
});

interface MailboxCase {
  ephemeral: string; box_key: string; box_pub: string; context: Five; salt: string; json: string; key: string; wire: string;
}

async function openLetter(boxKey: string, five: Five, head: Head, listed: string[], wire: string): Promise<string> {
  const [purpose, account, chat, reply, turn] = five;
  const letter = new Letter({
    account: AccountId.parse(account), chat: ChatId.parse(chat), reply: MessageId.parse(reply), turn: TurnId.parse(turn),
  });
  const boxes = [await BoxKey.fromKey(await key(boxKey))];
  if (purpose !== "reply") return text(Text.toJson(await letter.openMore(boxes, head, bytes(wire))));
  const list = new Map(listed.map((id) => [ItemId.parse(id), Digest.ZERO]));
  return text(Message.toJson(await letter.open(boxes, head, list, bytes(wire))));
}

async function letterHolds(one: MailboxCase): Promise<void> {
  const [, , , reply, turn] = one.context;
  // A head that waits for this reply to the message with id bits 1.
  const asked = MessageId.fromBits(new Uint8Array(16).fill(1));
  const pending = [{ turn: TurnId.parse(turn), parent: asked, reply: MessageId.parse(reply) }];
  const head = { pending } as unknown as Head;
  equal(await openLetter(one.box_key, one.context, head, [], one.wire), one.json);
  const made = await letterKeyInsecureForTesting(await key(one.ephemeral), publicKey(one.box_pub));
  equal(made.kid, (await key(one.key)).kid, "the letter's key");
  const sealed = await sealWithSalt(AES_256_GCM, made, context(one.context), 1, utf8(one.json), bytes(one.salt));
  const point = (await BoxKey.fromKey(await key(one.ephemeral))).publicKey;
  equal(point + hex(sealed), Digest.fromBytes(bytes(one.wire).slice(0, 32)) + one.wire.slice(64));
}

interface PairingCase {
  secret: string; text: string; id: string; new_key: string; new_pub: string; old_key: string; origin: string; account: string;
  generation: number; account_key: string; manifest_rev: number; manifest: string; salt: string; key: string; wire: string;
}

type Receive = Pick<PairingCase, "secret" | "origin" | "account" | "new_key" | "generation" | "wire">;

function pairing(one: Receive): Pairing {
  const secret = PairingSecret.fromBytes(bytes(one.secret));
  return new Pairing(secret, Origin.parse(one.origin), AccountId.parse(one.account));
}

async function receive(one: Receive): ReturnType<Pairing["receive"]> {
  const fresh = await newDeviceInsecureForTesting(await key(one.new_key));
  return pairing(one).receive(fresh, one.generation, bytes(one.wire));
}

async function pairingHolds(one: PairingCase): Promise<void> {
  const secret = PairingSecret.parse(one.text.toUpperCase());
  equal([await secret.id(), secret.dangerouslyToText()], [one.id, one.text]);
  equal((await newDeviceInsecureForTesting(await key(one.new_key))).publicKey, publicKey(one.new_pub));
  const { ak, seen } = await receive(one);
  equal([hex(ak.key.dangerouslyExposeBytes()), ak.generation], [one.account_key, one.generation]);
  equal(seen, { generation: one.generation, manifest: { rev: one.manifest_rev, envelope: digest(one.manifest) } });
  const made = await pairingKeyInsecureForTesting(pairing(one), await key(one.old_key), publicKey(one.new_pub));
  equal(made.kid, (await key(one.key)).kid, "the pairing's key");
  const data = bytes(one.account_key + one.manifest_rev.toString(16).padStart(8, "0") + one.manifest);
  const where = context(["pair", one.account, one.id, `account:${one.generation}`, ""]);
  equal(hex(await sealWithSalt(AES_256_GCM, made, where, 0, data, bytes(one.salt))), one.wire.slice(64));
}

interface Line {
  id: string; kind: Kind; text: string; deltas: string[]; transcript: string; proof: string;
}

const transcript: Section = each<{ account_key: string; chat: string; start: string; lines: Line[] }>(async (one) => {
  const [under, chat] = [await key(one.account_key), ChatId.parse(one.chat)];
  let at = await Transcript.start();
  equal(at.digest, digest(one.start));
  for (const line of one.lines) {
    equal(line.deltas.join(""), hex(utf8(line.text)));
    const said = { id: MessageId.parse(line.id), kind: line.kind, text: line.text, proof: digest(line.proof) };
    const next = await adopt(under, chat, at, [said]);
    equal([next.kinds, next.at.digest], [[line.kind], digest(line.transcript)]);
    equal(await next.at.prove(under, chat, said.id, said.kind), said.proof);
    at = next.at;
  }
});

const snapshot = (list: string, items: [string, string][]): SealedSnapshot => ({
  list: bytes(list),
  items: items.map(([item, sealed]) => [ItemId.parse(item), bytes(sealed)] as const),
});

interface SnapshotCase {
  key: string; id: string; origin: string; link: string; now: number; salt: string; list_json: string; list: string;
  items: { item: string; json: string; sealed: string }[]; chat_key: string; kept_context: Five; kept_salt: string; kept: string;
}

async function snapshotHolds(one: SnapshotCase): Promise<void> {
  const link = await SnapshotLink.parse(one.link);
  equal([link.origin, link.id, link.key.kid], [one.origin, one.id, (await key(one.key)).kid]);
  equal(SnapshotLink.dangerouslyToText(link), one.link);
  const opened = await Snapshot.open(link.key, link.id, one.now, snapshot(one.list, one.items.map(({ item, sealed }) => [item, sealed])));
  const list = SnapshotList.fromJson(utf8(one.list_json));
  equal([opened.at, opened.until, opened.title], [list.at, list.until, list.title]);
  equal(text(SnapshotList.toJson(list)), one.list_json, "written again, byte for byte");
  const place = (object: string, field: string): Five => ["snapshot", "", one.id, object, field];
  const sealed = async (label: string, five: Five, json: string) => {
    return hex(await sealWithSalt(AES_256_GCM, await link.key.derive(label), context(five), 1, utf8(json), bytes(one.salt)));
  };
  equal(await sealed("meta", place("list", ""), one.list_json), one.list);
  for (const { item, json, sealed: right } of one.items) {
    equal(await sealed(item.startsWith("msg_") ? "msg" : "embed", place(item, "content"), json), right);
  }
  // Sealed anew, it has the same words under other ids.
  const again = Snapshot.ofBranch([opened.at, opened.until], opened.title, opened.messages, opened.embeds);
  if (again === null) throw new Error("a snapshot has a message");
  const reopened = await Snapshot.open(link.key, link.id, one.now, await Snapshot.seal(again, link.key, link.id));
  equal(reopened.messages.map(({ body, refs }) => [body, refs.length]), opened.messages.map(({ body, refs }) => [body, refs.length]));
  equal(reopened.messages.some(({ id }) => opened.messages.some((other) => other.id === id)), false);
  // The owner's devices have the key from the chat's.
  const [, account, chat, id, field] = one.kept_context;
  const [ring, owner] = [await chatRing(one.chat_key), AccountId.parse(account)];
  const kept = await SnapshotKey.kept(ring, owner, ChatId.parse(chat), SnapshotId.parse(id), bytes(one.kept));
  equal([kept.kid, field], [link.key.kid, "key"]);
  const salted = sealWithSalt(AES_256_GCM, await (await key(one.chat_key)).derive("meta"), context(one.kept_context), 1, bytes(one.key), bytes(one.kept_salt));
  equal(hex(await salted), one.kept);
  const fresh = await SnapshotKey.keep(link.key, ring.newest, owner, ChatId.parse(chat), link.id);
  equal((await SnapshotKey.kept(ring, owner, ChatId.parse(chat), link.id, fresh)).kid, link.key.kid);
  equal(await refusal(() => SnapshotKey.kept(ring, owner, ChatId.random(), link.id, fresh)), "key-refused");
}

const MUST_FAIL: Sections = {
  snapshots: each<{ key: string; id: string; now: number; list: string; items: [string, string][]; error: string }>(async (one) => {
    const [under, id] = [await key(one.key), SnapshotId.parse(one.id)];
    equal(await refusal(() => Snapshot.open(under, id, one.now, snapshot(one.list, one.items))), one.error);
  }),
  profiles: each<{ profile: number; error: string }>(async (one) =>
    equal(await refusal(() => Root.fromPassword("x", new Uint8Array(16).fill(7), one.profile)), one.error),
  ),
  proofs: each<{ name: string; case: Proof; error: string }>(async (one) => {
    const { public_key, proof } = one.case;
    equal(await refusal(() => statement(one.case).verify(bytes(public_key), bytes(proof))), one.error);
  }),
  wraps: each<{
    kek: string; account: string; generation: number; sealed: string | null; seen_generation: number; seen_rev: number; error: string;
  }>(async (one) => {
    const seen = { generation: one.seen_generation, rev: one.seen_rev };
    const [kek, sealed] = [await key(one.kek), one.sealed === null ? null : bytes(one.sealed)];
    const open = () => AccountKey.open(kek, AccountId.parse(one.account), one.generation, "pw", sealed, seen);
    equal(await refusal(open), one.error);
  }),
  rings: each<{ account_key: string; generation: number; account: string; chat: string; rows: Row[]; error: string }>(async (one) => {
    const ak = new AccountKey(await key(one.account_key), one.generation);
    const of = RingOf.chat(ChatId.parse(one.chat));
    equal(await refusal(() => Ring.open(ak, AccountId.parse(one.account), of, one.rows.map(entry))), one.error);
  }),
  json: each<{ record: string; json: string; error: string }>(async (one) =>
    equal(await refusal(() => again(one.record, utf8(one.json))), one.error),
  ),
  envelopes: each<{ key: string; context: Five; sealed: string; error: string }>(async (one) => {
    const [, account, chat, item] = one.context;
    const place = Place.item(ChatId.parse(chat), ItemId.parse(item));
    const ring = await chatRing(one.key);
    equal(await refusal(() => openRecord(ring, AccountId.parse(account), place, bytes(one.sealed))), one.error);
  }),
  transcripts: each<{
    account_key: string; chat: string; before: string; id: string; kind: Kind; text: string; proof: string; adopted: Kind;
    transcript: string;
  }>(async (one) => {
    const said = { id: MessageId.parse(one.id), kind: one.kind, text: one.text, proof: digest(one.proof) };
    const from = new Transcript(digest(one.before));
    const { kinds, at } = await adopt(await key(one.account_key), ChatId.parse(one.chat), from, [said]);
    equal([kinds, at.digest], [[one.adopted], digest(one.transcript)]);
  }),
  letters: each<{ box_key: string; context: Five; head: string; listed: string[]; wire: string; error: string }>(async (one) => {
    const head = Head.fromJson(utf8(one.head));
    equal(await refusal(() => openLetter(one.box_key, one.context, head, one.listed, one.wire)), one.error);
  }),
  pairings: each<Receive & { error: string }>(async (one) => equal(await refusal(() => receive(one)), one.error)),
};

export const CHATS: Sections = {
  ids: each<{ bits: string; account: string; chat: string; message: string }>(async (one) => {
    const bits = bytes(one.bits);
    equal([AccountId.fromBits(bits), ChatId.fromBits(bits), MessageId.fromBits(bits)], [one.account, one.chat, one.message]);
    equal([AccountId.is(one.account), ChatId.is(one.chat), MessageId.is(one.message)], [true, true, true]);
  }),
  refused_ids: each<string>(async (id) => equal(await refusal(async () => ChatId.parse(id)), "bad-id")),
  salts: each<{ logins_key: string; login: string; server_salt: string; salt: string }>(async (one) => {
    const login = Login.parse(one.login);
    equal(hex(await serverSalt(await key(one.logins_key), login)), one.server_salt);
    equal(hex(await passwordSalt(login, bytes(one.server_salt))), one.salt);
  }),
  prf_input: async (one) => {
    equal(hex(await prfInput()), one);
    return 1;
  },
  password_roots: each<{ password: string; salt: string; profile: number; root: string }>(async (one) => {
    const root = await Root.fromPassword(one.password, bytes(one.salt), one.profile);
    equal(root.equals(await Root.fromPrf(bytes(one.root))), true);
  }),
  recovery_roots: each<{ code: string; text: string; root: string; credential: string }>(async (one) => {
    const code = RecoveryCode.parse(one.text);
    equal([code.dangerouslyToText(), await code.credentialId()], [one.text, one.credential]);
    equal(RecoveryCode.fromBytes(bytes(one.code)).dangerouslyToText(), one.text);
    equal((await Root.fromRecovery(code)).equals(await Root.fromPrf(bytes(one.root))), true);
  }),
  keys_of_roots: each<{ root: string; kek: string; sign_seed: string; public_key: string }>(async (one) => {
    const root = await Root.fromPrf(bytes(one.root));
    equal([(await root.kek()).kid, hex(await root.publicKey())], [(await key(one.kek)).kid, one.public_key]);
    equal(hex(await (await key(one.root)).dangerouslyDerive("sign")), one.sign_seed);
  }),
  proofs: each<Proof>(async (one) => {
    const [made, root] = [statement(one), await Root.fromPrf(bytes(one.root))];
    equal([hex(await made.bytes()), hex(await root.publicKey())], [one.statement, one.public_key]);
    equal(hex(await root.prove(made)), one.proof);
    await made.verify(bytes(one.public_key), bytes(one.proof));
  }),
  wraps: each<WrapCase>(wrapHolds),
  entries: each<EntryCase>(entryHolds),
  lives: each<{ list: [string, string][]; live: string }>(async (one) => {
    const items = one.list.map(([id, hash]) => [ItemId.parse(id), digest(hash)] as const);
    equal([await live(new Map(items)), await live(new Map(items.reverse()))], [digest(one.live), digest(one.live)]);
  }),
  chains: each<{ before: string; envelope_before: string; live: string; chain: string }>(async (one) =>
    equal(await chain(digest(one.before), digest(one.envelope_before), digest(one.live)), digest(one.chain)),
  ),
  shelves: each<{ chat: string; digit: string }>(async (one) =>
    equal(Shelf.digit(await Shelf.of(ChatId.parse(one.chat))), one.digit),
  ),
  manifest_lives: each<{ floors: string[]; live: string }>(async (one) =>
    equal(await Manifest.live(one.floors.map(digest)), digest(one.live)),
  ),
  records: record,
  histories: each<{ chat_key: string; branch: [string, number][]; digest: string }>(async (one) => {
    const ring = await chatRing(one.chat_key);
    equal(await history(ring.newest, one.branch.map(([id, rev]) => [MessageId.parse(id), rev])), digest(one.digest));
  }),
  transcripts: transcript,
  beside: each<{ turn: string; n: number; id: string }>(async (one) => equal(await besideId(TurnId.parse(one.turn), one.n), one.id)),
  summaries: each<{ account_key: string; chat: string; sums_up: string; id: string; text: string; proof: string; next: string; transcript: string }>(
    async (one) => {
      const id = MessageId.parse(one.id);
      const sumsUp = new Transcript(digest(one.sums_up));
      const summary = { id, kind: Kind.SUMMARY, text: one.text, proof: digest(one.proof), sumsUp };
      const next = { id, kind: Kind.USER, text: one.next, proof: null };
      const { kinds, at } = await adopt(await key(one.account_key), ChatId.parse(one.chat), await Transcript.start(), [summary, next]);
      equal([kinds, at.digest], [[Kind.SUMMARY, Kind.USER], digest(one.transcript)]);
    },
  ),
  mailbox: each<MailboxCase>(letterHolds),
  pairing: each<PairingCase>(pairingHolds),
  rotation: each<{ entries: [string, number, string][]; digest: string }>(async (one) => {
    const rows = one.entries.map(([container, n, name]) => [ringOf(container ? "chat" : "account", container), { n, kid: kid(name) }] as const);
    equal([await ringsDigest(rows), await ringsDigest(rows.toReversed())], [digest(one.digest), digest(one.digest)]);
  }),
  snapshots: each<SnapshotCase>(snapshotHolds),
  refused_links: each<string>(async (link) => equal(await refusal(() => SnapshotLink.parse(link)), "bad-id")),
  must_fail: inside(MUST_FAIL),
};

