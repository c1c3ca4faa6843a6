// Whether this browser can seal here at all: asked once, before anybody types anything.
import { signal } from "@preact/signals";

/** secure: browsers give no keys to a page that came over plain HTTP. keys: this one is too old for the keys that accounts have. */
export type Lack = "secure" | "keys";

/** What is lacking; null as far as is known. */
export const lack = signal<Lack | null>(null);

/** What of a browser is looked at. */
export interface Browser {
  isSecureContext: boolean;
  crypto: { subtle?: Pick<SubtleCrypto, "generateKey"> };
}

/** What this browser lacks. */
export async function lackOf({ isSecureContext, crypto }: Browser): Promise<Lack | null> {
  if (!isSecureContext || crypto.subtle === undefined) return "secure";
  try {
    await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
    await crypto.subtle.generateKey("X25519", false, ["deriveBits"]);
    return null;
  } catch {
    return "keys";
  }
}

/** Looks at this browser. */
export async function startBrowser(): Promise<void> {
  lack.value = await lackOf(globalThis);
}
