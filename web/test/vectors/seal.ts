// Every section of vectors/seal-v1.json.

import { concat, hex, Key, open, OpenFailed, Sealed, utf8 } from "../../src/format/index";
import type { Bytes, Context } from "../../src/format/index";
import { lp } from "../../src/format/bytes";
import { encodeContext } from "../../src/format/envelope";
import { AES_256_GCM, openWithReason, paddedLength, sealWithSalt } from "../../src/format/vectors";
import type { Aead } from "../../src/format/vectors";
import { bytes, each, equal, key } from "./sections";
import type { Sections } from "./sections";
import { CHACHA20_POLY1305 } from "./suite2";

export type Five = [string, string, string, string, string];

interface Seal {
  name: string;
  key: string;
  suite: number;
  context: Five;
  rev: number;
  salt: string;
  data: string;
  sealed: string;
}

export function context([purpose, owner, container, object, field]: Five): Context {
  return { purpose, owner, container, object, field };
}

function suite(number: number): Aead {
  return number === 2 ? CHACHA20_POLY1305 : AES_256_GCM;
}

async function holds(one: Seal): Promise<void> {
  const [under, where, data] = [await key(one.key), context(one.context), bytes(one.data)];
  const again = await sealWithSalt(suite(one.suite), under, where, one.rev, data, bytes(one.salt));
  equal(hex(again), one.sealed, "sealed again");
  const opened = await openWithReason(suite(one.suite), under, where, bytes(one.sealed));
  if (typeof opened === "string") throw new Error(`did not open: ${opened}`);
  equal([opened.rev, hex(opened.data)], [one.rev, one.data], "opened");
  equal(await opens(under, where, bytes(one.sealed)), one.suite === 1, "a client opens suite 1 only");
}

async function opens(under: Key, where: Context, sealed: Sealed): Promise<boolean> {
  try {
    await open(under, where, sealed);
    return true;
  } catch (error) {
    if (error instanceof OpenFailed) return false;
    throw error;
  }
}

interface Scope {
  tenant: string;
  channel: string;
  place: string | null;
  thread: string | null;
  user: string;
  canonical: string;
  session_id: string;
}

/** Scopes, their names and what is refused there belong to the server, and the page has no code for them. What their bytes
 *  say is checked all the same, since they are contexts of envelopes. */
async function scopeHolds(scope: Scope): Promise<void> {
  const { place, thread } = scope;
  const inner = place === null || thread === null ? [] : [place, thread];
  const parts = [scope.tenant, scope.channel, ...inner, scope.user].map((part) => lp(part.normalize("NFC")));
  equal(hex(concat(Uint8Array.of(1, inner.length ? 1 : 2), ...parts)), scope.canonical, "canonical");
  equal(scope.session_id.length > 0, true);
}

async function root(master: Bytes): Promise<Bytes> {
  const stretch = await crypto.subtle.importKey("raw", master, "PBKDF2", false, ["deriveBits"]);
  const how = { name: "PBKDF2", hash: "SHA-256", salt: utf8("confidant/root/v1"), iterations: 100_000 };
  return new Uint8Array(await crypto.subtle.deriveBits(how, stretch, 256));
}

async function serverText(one: string): Promise<void> {
  equal(typeof one, "string");
}

export const SEAL: Sections = {
  kids: each<{ key: string; kid: string }>(async (one) => equal((await key(one.key)).kid, one.kid)),
  sub_keys: each<{ key: string; label: string; sub_key: string; kid: string }>(async (one) => {
    const made = await key(one.key);
    equal(hex(await made.dangerouslyDerive(one.label)), one.sub_key);
    equal((await made.derive(one.label)).kid, one.kid);
  }),
  roots: each<{ master_base64: string; root: string }>(async (one) => {
    const master = Uint8Array.from(atob(one.master_base64), (c) => c.charCodeAt(0));
    equal(hex(await root(master)), one.root);
  }),
  macs: each<{ key: string; domain: string; bytes: string; mac: string; tag: string }>(async (one) => {
    const mac = hex(await (await key(one.key)).mac(one.domain, bytes(one.bytes)));
    equal([mac, mac.slice(0, 32)], [one.mac, one.tag]);
  }),
  contexts: each<{ context: Five; encoded: string }>(async (one) =>
    equal(hex(encodeContext(context(one.context))), one.encoded),
  ),
  padding: each<{ data: number; plain: number }>(async (one) => equal(paddedLength(one.data), one.plain)),
  seals: each<Seal>(holds),
  session_keys: each<{ root: string; scope: string; generation: number; data_key: string; seal: Seal }>(async (one) => {
    equal(hex(await (await key(one.root)).dangerouslyDerive("sessions")), one.seal.key);
    equal([one.seal.data, one.seal.context[3]], [one.data_key, `session:${one.generation}`]);
    equal(one.seal.context[1], Sealed.toBase64url(bytes(one.scope)));
    await holds(one.seal);
  }),
  named_keys: each<{ root: string; name: string; named_key: string; seal: Seal }>(async (one) => {
    equal([one.seal.key, one.seal.data, one.seal.context[3]], [one.root, one.named_key, `named:${one.name}`]);
    await holds(one.seal);
  }),
  sealed_scopes: each<{ root: string; tag: string; scope: string; seal: Seal }>(async (one) => {
    equal([one.seal.key, one.seal.data, one.seal.context[2]], [one.root, one.scope, one.tag]);
    await holds(one.seal);
  }),
  scopes: each<Scope>(scopeHolds),
  refused_session_ids: each<string>(serverText),
  refused_scopes: each<string>(serverText),
  must_fail: each<{ name: string; key: string; context: Five; sealed: string; reason: string }>(async (one) => {
    const [under, where, sealed] = [await key(one.key), context(one.context), bytes(one.sealed)];
    const opened = await openWithReason(suite(sealed[1] ?? 0), under, where, sealed);
    equal(typeof opened === "string" ? opened : "opened", one.reason);
    equal(await opens(under, where, sealed), false, "a client's open");
  }),
};
