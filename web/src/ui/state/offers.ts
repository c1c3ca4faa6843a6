// What the server's answers may use: its focus modes and tools, by name. Asked of the server when somebody looks at them; nothing of it is
// kept.
import { signal } from "@preact/signals";
import type { Catalogue } from "../../client/core";
import { onLocked } from "./account";
import { core, nameOf } from "./core";

export const offers = signal<Catalogue | null>(null);
/** Why there are none, by name. */
export const offersProblem = signal<string | null>(null);

onLocked(() => {
  [offers.value, offersProblem.value] = [null, null];
});

/** Asks for them. Those of before stay until the others are there. */
export async function loadOffers(): Promise<void> {
  offersProblem.value = null;
  try {
    offers.value = await core().catalogue();
  } catch (error) {
    offersProblem.value = nameOf(error);
  }
}
