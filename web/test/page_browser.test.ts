// Whether a browser can seal at all: found out before anybody types a password.
import assert from "node:assert/strict";
import { test } from "node:test";
import { lackOf } from "../src/ui/state/browser";

const isSecureContext = true;
const without = (missing: string) => ({
  subtle: { generateKey: (async (name: string) => { if (name === missing) throw new DOMException("not known", "NotSupportedError"); }) as unknown as SubtleCrypto["generateKey"] },
});

test("over plain HTTP there are no keys, whether or not the browser says why", async () => {
  assert.equal(await lackOf({ isSecureContext: false, crypto: {} }), "secure");
  assert.equal(await lackOf({ isSecureContext: false, crypto }), "secure");
  assert.equal(await lackOf({ isSecureContext, crypto: {} }), "secure");
});

test("a browser that cannot make the keys of an account is too old; one that can is not", async () => {
  assert.equal(await lackOf({ isSecureContext, crypto: without("Ed25519") }), "keys");
  assert.equal(await lackOf({ isSecureContext, crypto: without("X25519") }), "keys");
  assert.equal(await lackOf({ isSecureContext, crypto: without("") }), null);
  assert.equal(await lackOf({ isSecureContext, crypto }), null, "this one");
});
