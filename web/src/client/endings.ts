// How answers of a chat ended, in a field of the chat: sealed, on every device, for answers that ended other than whole.
//
//   {"msg_…": "declined", "msg_…": "ended"}
//
// Each device adds what it heard to what is there when its write is stored; a write that lost against another device's is made again over
// that one. Easy to get wrong: replacing the field by what this device knows of it. Another device may have written meanwhile.

import { FieldName, type MessageId } from "../format/index";
import { Finish } from "../protocol/index";
import { roomField, type Room } from "./room";

/** How answers of a chat ended, by their ids, as its field says; whatever else is in there is left out. */
export function endingsOf(field: string | null): Map<string, Finish> {
  const found = new Map<string, Finish>();
  try {
    const all: unknown = JSON.parse(field ?? "{}");
    if (typeof all !== "object" || all === null) return found;
    for (const [reply, said] of Object.entries(all)) {
      const finish = Finish.words.find((word) => word === said);
      if (finish !== undefined) found.set(reply, finish);
    }
  } catch {
    // Another program's: nothing is known then.
  }
  return found;
}

/** The field, with one more; the oldest go. */
export function withEnding(field: string | null, reply: MessageId, finish: Finish): string {
  return JSON.stringify(Object.fromEntries([...endingsOf(field), [reply, finish] as const].slice(-MOST_ENDINGS)));
}

/** What noting it sets in a chat that has these fields. Nothing: it is noted already. */
export function endingFields(field: (name: FieldName) => string | null, reply: MessageId, finish: Finish): [FieldName, string][] {
  const before = field(ENDINGS);
  if (endingsOf(before).get(reply) === finish) return [];
  const fields: [FieldName, string][] = [[ENDINGS, withEnding(before, reply, finish)]];
  if (finish === "ended") fields.push([ENDED, "1"]);
  return fields;
}

/** The same, of a chat as it is stored. */
export function endingFieldsOf(room: Room, reply: MessageId, finish: Finish): [FieldName, string][] {
  // An answer that is not there any more needs none.
  return room.items.has(reply) ? endingFields((name) => roomField(room, name), reply, finish) : [];
}

/** The name is seen by the server, and says nothing about how. */
export const ENDINGS = FieldName.parse("endings");
/** The field of a chat that was ended for safety. */
export const ENDED = FieldName.parse("ended");
const MOST_ENDINGS = 200;
