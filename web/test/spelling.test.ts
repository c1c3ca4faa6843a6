// Everything has one spelling: bytes in text, ids, logins, and what people type. As the unit tests of crates/chat-format.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  base64url, ChatId, Digest, FieldName, fromBase64url, fromHex, hex, ItemId, Kid, Login, Origin, PairingSecret, random, RecoveryCode, Refused, utf8,
} from "../src/format/index";
import { base32, fromBase32 } from "../src/format/bytes";

const refuses = (name: string) => (error: unknown) => error instanceof Refused && error.name === name;

test("base64url has no padding, no other digits and no spare bits", () => {
  for (let length = 0; length < 70; length++) {
    const bytes = random(length);
    const text = base64url(bytes);
    assert.equal(text, Buffer.from(bytes).toString("base64url"));
    assert.deepEqual(fromBase64url(text), bytes);
  }
  for (const bad of ["A", "AA=", "AA==", "A+", "A/", "A A", "AB", "AAB", "AAAAA", "Ä", "\u0100A", "AA\n"]) assert.equal(fromBase64url(bad), null, bad);
  const digest = Digest.fromBytes(new Uint8Array(32).fill(0xff));
  assert.equal(Digest.parse(digest), digest);
  assert.equal(Digest.parse(digest.replace(/8$/, "9")), null, "a spare bit");
  assert.equal(Digest.parse("AAAA"), null);
});

test("base32 and hexadecimal", () => {
  // RFC 4648, section 10.
  const known = [["", ""], ["f", "my"], ["fo", "mzxq"], ["foob", "mzxw6yq"], ["foobar", "mzxw6ytboi"]] as const;
  for (const [plain, text] of known) {
    assert.equal(base32(utf8(plain)), text);
    assert.deepEqual(fromBase32(text, plain.length), utf8(plain));
  }
  for (const bad of ["mz", "MY", "m", "my=", "m1", "m\u00e9"]) assert.equal(fromBase32(bad, 1), null, bad);
  assert.deepEqual([fromHex("0aFF"), fromHex("0"), fromHex("0g"), fromHex("+1")], [Uint8Array.of(10, 255), null, null, null]);
  assert.equal(Kid.parse("6C3FB748B5227A7C"), "6c3fb748b5227a7c");
  assert.deepEqual([Kid.parse("6c3fb748b5227a7"), hex(Uint8Array.of(0, 255))], [null, "00ff"]);
});

test("ids, names, logins and origins", () => {
  const id = ChatId.fromBits(new Uint8Array(16).fill(0xff));
  assert.equal(ChatId.parse(id), id);
  for (const bad of [id.toUpperCase(), id.replace("chat", "msg"), `${id}a`, id.slice(0, -1), id.replace(/4$/, "5"), id.replace("_", ""), ""]) {
    assert.throws(() => ChatId.parse(bad), refuses("bad-id"), bad);
  }
  assert.equal(ItemId.fieldOf(ItemId.parse("meta:title")), "title");
  for (const bad of ["meta:", "meta:Title", "title", "meta:" + "a".repeat(65)]) assert.throws(() => ItemId.parse(bad), refuses("bad-id"), bad);
  assert.ok(FieldName.is("a".repeat(64)) && !FieldName.is("9a") && !FieldName.is("a\n"));
  assert.equal(Login.parse("ana@example.org"), "ana@example.org");
  for (const bad of ["", "e\u0301", "a\n", "a\u0085", "cred_x", "a".repeat(257), "é".repeat(129), "\ud83d"]) {
    assert.throws(() => Login.parse(bad), refuses("login-refused"), JSON.stringify(bad));
  }
  assert.equal(Origin.parse("https://chat.example:8443"), "https://chat.example:8443");
  for (const bad of ["", "https://", "ftp://x", "https://Chat.example", "https://chat.example/", "https://a b", "https://a\n"]) {
    assert.throws(() => Origin.parse(bad), refuses("login-refused"), bad);
  }
});

test("codes are read as people type them", () => {
  const text = RecoveryCode.fromBytes(new Uint8Array(20).fill(0xa5)).dangerouslyToText();
  for (const typed of [text, text.toUpperCase(), text.replaceAll("-", " "), text.replaceAll("-", ""), ` ${text}\u00a0\n`]) {
    assert.equal(RecoveryCode.parse(typed).dangerouslyToText(), text);
  }
  // The Kelvin sign is a k in lower case, and not one that anybody was shown.
  for (const bad of [`${text}a`, text.slice(1), "\u212a".repeat(32), ""]) assert.throws(() => RecoveryCode.parse(bad), refuses("login-refused"), bad);
  const secret = PairingSecret.random().dangerouslyToText();
  assert.equal(PairingSecret.parse(secret.toUpperCase().replace(/(.{4})/g, "$1 ")).dangerouslyToText(), secret);
  assert.throws(() => PairingSecret.parse(`${secret}a`), refuses("pair-refused"));
});
