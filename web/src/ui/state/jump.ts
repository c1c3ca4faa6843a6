// The way to a message that was searched for: what has to happen before it can be seen, one step at a time.
//
//   of another chat ─▶ nothing yet      on another branch ─▶ that branch is shown      behind a summary ─▶ the whole conversation
//   further up than is drawn ─▶ more is drawn      drawn ─▶ there, and shown whole
//
// Easy to get wrong: the chat that is still open when the result is clicked. It does not have the message, and must not give up for the other.
import { signal } from "@preact/signals";
import type { MessageLine } from "../../client/core";

/** A message that was searched for, and whether its branch was asked for already. */
export interface Jump {
  chat: string;
  message: string;
  isBranchAsked?: true;
}

/** Where to go as soon as it can be seen. */
export const jumpTo = signal<Jump | null>(null);
/** The message that the person was led to: it is not shortened. */
export const ledTo = signal<string | null>(null);

/** What comes next on the way to a message. `draw`: so many of the last messages. */
export type Way = { is: "wait" | "branch" | "unfold" | "there" | "lost" } | { is: "draw"; last: number };

/** What a page shows: its messages, from which one on, and how many of those, counted from the last. */
export interface Shown {
  chat: string;
  messages: readonly Pick<MessageLine, "id" | "missing">[];
  from: number;
  limit: number;
}

/** The next step. */
export function wayTo(jump: Jump | null, { chat, messages, from, limit }: Shown): Way {
  if (jump === null || jump.chat !== chat) return { is: "wait" };
  const at = messages.findIndex(({ id }) => id === jump.message);
  if (at === -1) {
    // Which branches there are is known once the words are here, and they are being loaded.
    if (messages.some(({ missing }) => missing !== undefined)) return { is: "wait" };
    return { is: jump.isBranchAsked === true ? "lost" : "branch" };
  }
  if (at < from) return { is: "unfold" };
  const fromFoot = messages.length - at;
  return fromFoot > limit ? { is: "draw", last: fromFoot + 3 } : { is: "there" };
}
