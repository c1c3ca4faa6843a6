// Why something was refused, by name.
//
// The names are part of the protocol: a server sends them, the page shows words for them, a vector expects them. Easy to
// get wrong: a new name. The list is closed; docs/FORMAT.md has it. A refusal carries no content, no id and no key.

/** Every name, in the order of the list, with what to tell a person. */
const TEXTS = {
  "bad-id": "an id is malformed; hint: use the id exactly as it was given",
  "kdf-refused": "the server asks for an unknown way to derive the key; hint: update this program, or do not log in there",
  "login-refused": "the login was refused; hint: check the name, the password and the one-time code",
  "account-missing": "the server sent no account key; hint: check the server's address; never make a new key for an old account",
  "ring-gap": "a key is missing from a list of keys; hint: ask the server's operator",
  "ring-forked": "the list of keys is not the one that was sealed; hint: compare with another device",
  "key-refused": "a key was refused; hint: log in again with a current credential",
  "rolled-back": "the server sent something older than this device has seen; hint: ask its operator whether a backup was restored",
  forked: "the server's history does not continue the one on this device; hint: compare with another device",
  withheld: "the server left something out; hint: load again; if the error stays, ask its operator",
  "list-refused": "a list is not the one that was sealed; hint: load again, then compare with another device",
  "record-refused": "a record cannot be decrypted or is malformed, so it is not shown; hint: restore it from another device",
  "parent-missing": "a message answers one that is missing; hint: load the chat again",
  duplicate: "this reply is stored already; hint: nothing to do",
  unasked: "this was not asked for and was dropped; hint: nothing to do",
  "box-refused": "the mailbox key is not the account's; hint: do not use this server until its operator explains",
  "pair-refused": "pairing failed; hint: start again on the new device",
  conflict: "another device wrote first; hint: load again and repeat",
  "two-credentials": "the request has a cookie and a token; hint: send one of them",
} as const;

export type RefusedName = keyof typeof TEXTS;

/** Why a client or a server refused: `error instanceof Refused && error.name === "forked"`. */
export class Refused extends Error {
  override readonly name: RefusedName;

  constructor(name: RefusedName) {
    super(TEXTS[name]);
    this.name = name;
  }

  /** Every name, in the order of the list. */
  static readonly ALL = Object.keys(TEXTS) as RefusedName[];

  /** The one with this name; `null` if there is none. */
  static fromName(name: string): Refused | null {
    return Object.hasOwn(TEXTS, name) ? new Refused(name as RefusedName) : null;
  }
}
