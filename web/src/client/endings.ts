// How answers of a chat ended, in a field of the chat: sealed, on every device, for answers that ended other than whole, and for those of which
// the server said that the person may need help.
//
//   {"msg_…": "declined", "msg_…": "ended", "msg_…": "whole help"}
//
// Each device adds what it heard to what is there when its write is stored; a write that lost against another device's is made again over
// that one. Easy to get wrong: replacing the field by what this device knows of it. Another device may have written meanwhile. And a field of
// its own for help: the server sees which fields a chat has.

import { FieldName, type MessageId } from "../format/index";
import { Finish } from "../protocol/index";
import { roomField, type Room } from "./room";

/** How answers of a chat ended, by their ids, as its field says; whatever else is in there is left out. */
export function endingsOf(field: string | null): Map<string, Finish> {
  return new Map([...notesOf(field)].map(([reply, { finish }]) => [reply, finish]));
}

/** Answers whose person may need help, by their ids. */
export function helpOf(field: string | null): Set<string> {
  return new Set([...notesOf(field)].flatMap(([reply, { isHelp }]) => (isHelp ? [reply] : [])));
}

interface Ending {
  finish: Finish;
  isHelp: boolean;
}

function notesOf(field: string | null): Map<string, Ending> {
  const found = new Map<string, Ending>();
  try {
    const all: unknown = JSON.parse(field ?? "{}");
    if (typeof all !== "object" || all === null) return found;
    for (const [reply, said] of Object.entries(all)) {
      const isHelp = typeof said === "string" && said.endsWith(HELP);
      const finish = Finish.words.find((word) => word === (isHelp ? said.slice(0, -HELP.length) : said));
      if (finish !== undefined) found.set(reply, { finish, isHelp });
    }
  } catch {
    // Another program's: nothing is known then.
  }
  return found;
}

/** The field, with one more; the oldest go. */
export function withEnding(field: string | null, reply: MessageId, finish: Finish, isHelp = false): string {
  const all = [...notesOf(field).set(reply, { finish, isHelp })].slice(-MOST_ENDINGS);
  return JSON.stringify(Object.fromEntries(all.map(([id, one]) => [id, one.isHelp ? `${one.finish}${HELP}` : one.finish])));
}

/** What noting it sets in a chat that has these fields. Nothing: it is noted already. */
export function endingFields(field: (name: FieldName) => string | null, reply: MessageId, finish: Finish, isHelp: boolean): [FieldName, string][] {
  const before = field(ENDINGS);
  const there = notesOf(before).get(reply);
  if (there?.finish === finish && there.isHelp === isHelp) return [];
  const fields: [FieldName, string][] = [[ENDINGS, withEnding(before, reply, finish, isHelp)]];
  if (finish === "ended") fields.push([ENDED, "1"]);
  return fields;
}

/** The same, of a chat as it is stored. */
export function endingFieldsOf(room: Room, reply: MessageId, finish: Finish, isHelp: boolean): [FieldName, string][] {
  // An answer that is not there any more needs none.
  return room.items.has(reply) ? endingFields((name) => roomField(room, name), reply, finish, isHelp) : [];
}

/** The name is seen by the server, and says nothing about how. */
export const ENDINGS = FieldName.parse("endings");
/** The field of a chat that was ended for safety. */
export const ENDED = FieldName.parse("ended");
const MOST_ENDINGS = 200;
const HELP = " help";
