// Passkeys: the browser asks the person, and the authenticator gives 32 secret bytes (the PRF extension) that only it can make.
//
//   PRF(first = H("seal/v1/prf"))  ──▶  the worker: root of a credential
//
// Nothing else of WebAuthn is used, so the server has no part in it. Passkeys belong to a host name: on bare `localhost` and by
// address they are not offered. Easy to get wrong: an authenticator without PRF. It says so only after the person has touched it.
import type { Proof } from "../client/core";

/** Whether passkeys can be used on this page at all. */
export function canUsePasskeys(): boolean {
  const host = location.hostname;
  const isName = host !== "localhost" && !host.endsWith(".localhost") && !/^[\d.]+$|:/.test(host);
  return isName && isSecureContext && typeof PublicKeyCredential === "function";
}

export class NoPrf extends Error {
  override readonly name = "passkey-without-prf";
}

/** The person chose a passkey of somebody else: it would open another account than the one that was named. */
export class OtherPasskey extends Error {
  override readonly name = "passkey-of-another";
}

/** Makes a passkey for this login. */
export async function makePasskey(login: string): Promise<Proof & { kind: "passkey" }> {
  const made = await navigator.credentials.create({
    publicKey: {
      rp: { id: location.hostname, name: "Confidant" },
      user: { id: await handleOf(login), name: login, displayName: login },
      challenge: random(),
      pubKeyCredParams: [{ type: "public-key", alg: -8 }, { type: "public-key", alg: -7 }, { type: "public-key", alg: -257 }],
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      extensions: { prf: { eval: { first: await prfInput() } } },
    },
  });
  if (!(made instanceof PublicKeyCredential)) throw new NoPrf();
  const prf = made.getClientExtensionResults().prf;
  // One that cannot is not asked again: the person has touched it once for nothing.
  if (!prf?.enabled && !prf?.results) throw new NoPrf();
  // Some authenticators give it only when they are asked again.
  return prf.results?.first ? proofOf(made, prf.results.first) : usePasskey(login, made.rawId);
}

/** Uses one of this login (null: of anybody); `only` names it, else the person chooses. */
export async function usePasskey(login: string | null, only?: BufferSource): Promise<Proof & { kind: "passkey" }> {
  const got = await navigator.credentials.get({
    publicKey: {
      rpId: location.hostname,
      challenge: random(),
      userVerification: "required",
      ...(only ? { allowCredentials: [{ type: "public-key", id: only }] } : {}),
      extensions: { prf: { eval: { first: await prfInput() } } },
    },
  });
  const output = got instanceof PublicKeyCredential ? got.getClientExtensionResults().prf?.results?.first : undefined;
  if (!(got instanceof PublicKeyCredential) || output === undefined) throw new NoPrf();
  const handle = (got.response as AuthenticatorAssertionResponse).userHandle;
  if (login !== null && handle !== null && !isSame(handle, await handleOf(login))) throw new OtherPasskey();
  return proofOf(got, output);
}

function proofOf(credential: PublicKeyCredential, output: BufferSource): Proof & { kind: "passkey" } {
  const prf = ArrayBuffer.isView(output) ? new Uint8Array(output.buffer, output.byteOffset, output.byteLength) : new Uint8Array(output);
  return { kind: "passkey", credential: credential.id, prf: prf.slice() };
}

/** What an authenticator knows a login by. */
function handleOf(login: string): Promise<ArrayBuffer> {
  return hashed(`user:${login}`);
}

function isSame(one: ArrayBuffer, two: ArrayBuffer): boolean {
  const [first, second] = [new Uint8Array(one), new Uint8Array(two)];
  return first.length === second.length && first.every((byte, at) => byte === second[at]);
}

function random(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(32));
}

async function prfInput(): Promise<ArrayBuffer> {
  return hashed("seal/v1/prf");
}

async function hashed(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}
