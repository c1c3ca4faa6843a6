// JSON that is nearly a record: what the two strict readers must take or refuse alike.

import { ChatId, DeviceId, Digest, EmbedId, MessageId, random, Shelf, TurnId } from "../../src/format/index";
import type { Dice } from "./state";

/** A kind of record (for a floor, the digit of its shelf) and some JSON for it, as bytes. */
export async function nearlyJson(dice: Dice): Promise<[record: string, json: Uint8Array<ArrayBuffer>]> {
  const chat = ChatId.random();
  const kinds: [string, () => Value][] = [
    ["message", () => message(dice)],
    ["text", () => fields([["v", 1], ["body", dice.text()]])],
    ["head", () => head(dice)],
    ["manifest", () => manifest(dice)],
    [Shelf.digit(await Shelf.of(chat)), () => fields([["v", 1], ["chats", floor(dice, chat)]])],
  ];
  const [record, make] = dice.pick(kinds);
  const value = make();
  for (let left = dice.roll(3); left > 0; left--) change(dice, value);
  return [record, spoilBytes(dice, new TextEncoder().encode(print(dice, value)))];
}

/** An object is a list of pairs, so that a field can be there twice. A raw piece is printed as it is. */
type Value = null | number | boolean | string | Value[] | Pairs | Raw;
interface Pairs {
  pairs: [string, Value][];
}
interface Raw {
  raw: string;
}

function fields(pairs: [string, Value][]): Pairs {
  return { pairs };
}

const digest = (): string => Digest.fromBytes(random(32));

function message(dice: Dice): Value {
  const pairs: [string, Value][] = [
    ["v", 1],
    ["role", dice.pick(["user", "assistant", "tool", "summary"])],
    ["parent", dice.chance(2) ? null : MessageId.random()],
    ["created_at", 1_700_000_000_000],
    ["body", dice.text()],
  ];
  if (dice.chance(2)) pairs.push(["model", dice.text()]);
  if (dice.chance(4)) pairs.push(["reason", dice.text()]);
  pairs.push(["refs", Array.from({ length: dice.roll(3) }, () => EmbedId.random())]);
  if (dice.chance(2)) pairs.push(["proof", digest()]);
  if (dice.chance(2)) pairs.push(["shared", [fields([["what", "search"], ["bytes", dice.roll(4096)]])]]);
  return fields(pairs);
}

function head(dice: Dice): Value {
  const pending = (): Value => fields([["turn", TurnId.random()], ["parent", MessageId.random()], ["reply", MessageId.random()]]);
  const waits = Array.from({ length: dice.roll(3) }, pending);
  return fields([
    ["v", 1], ["key", 1], ["kid", "00112233445566ff"], ["count", 1], ["live", digest()], ["chain", digest()],
    ["leaf", dice.chance(2) ? null : MessageId.random()], ["pending", dice.chance(6) ? [...waits, ...waits] : waits],
    ["at", 7], ["device", DeviceId.random()],
  ]);
}

function manifest(dice: Dice): Value {
  return fields([
    ["v", 1], ["g", 1], ["uk", 1], ["box", 1], ["box_pub", digest()], ["floors", Array.from({ length: dice.chance(8) ? 15 : 16 }, digest)],
    ["chain", digest()], ["at", 7], ["device", DeviceId.random()],
  ]);
}

function floor(dice: Dice, chat: string): Value {
  const mark = (): Value => fields([["rev", dice.roll(9)], ["envelope", digest()]]);
  const pairs: [string, Value][] = [[chat, mark()]];
  if (dice.chance(6)) pairs.push([ChatId.random(), mark()]);
  if (dice.chance(8)) pairs.push([chat, mark()]);
  return fields(pairs);
}

/** Somewhere in the value, does something that a writer never does, or that a reader does not mind. */
function change(dice: Dice, value: Value): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    if (value.length > 0 && dice.chance(2)) value[dice.roll(value.length)] = dice.pick(ODD);
    else value.push(dice.pick(ODD));
    return;
  }
  if (!("pairs" in value) || value.pairs.length === 0) return;
  const at = dice.roll(value.pairs.length);
  const one = value.pairs[at];
  if (!one) return;
  const acts: (() => unknown)[] = [
    () => value.pairs.splice(at, 1),
    () => value.pairs.push([one[0], one[1]]),
    () => value.pairs.reverse(),
    () => value.pairs.push([dice.pick(["w", "__proto__", "V", "", "toString"]), dice.pick(ODD)]),
    () => (one[1] = dice.pick(ODD)),
    () => (one[0] = one[0].toUpperCase()),
    () => change(dice, one[1]),
    () => {
      if (typeof one[1] === "string") one[1] = spoilText(dice, one[1]);
    },
  ];
  dice.pick(acts)();
}

const ODD: readonly Value[] = [
  null, true, false, 0, 1, 2, "", "x", [], fields([]), { raw: "1.0" }, { raw: "1e0" }, { raw: "-0" }, { raw: "-1" }, { raw: "01" },
  { raw: "4294967295" }, { raw: "4294967296" }, { raw: "1E400" }, { raw: '"\\ud83d"' }, { raw: '"\\udc4b\\ud83d"' }, { raw: '"\\ud83d\\udc4b"' },
  { raw: '"\\u0061"' }, { raw: '"\\/"' }, { raw: "NaN" }, { raw: "'x'" }, { raw: "[1,]" }, { raw: "[,]" }, { raw: '{"v":1,}' }, { raw: "// x" },
  { raw: '"\t"' }, { raw: '"\\x41"' }, { raw: "" }, { raw: "+1" }, { raw: ".5" }, { raw: "9007199254740991" }, { raw: "nul" },
];

function spoilText(dice: Dice, text: string): string {
  return dice.pick([text.toUpperCase(), `${text}=`, `${text}a`, text.slice(1), text.replace(/.$/, "9"), text.replace(/_/, "-"), ` ${text}`]);
}

function print(dice: Dice, value: Value): string {
  const space = (): string => (dice.chance(12) ? dice.pick([" ", "\n", "\t\r", "\u00a0", "\f"]) : "");
  if (Array.isArray(value)) return `[${value.map((one) => space() + print(dice, one)).join(",")}${space()}]`;
  if (typeof value === "object" && value !== null) {
    if ("raw" in value) return value.raw;
    return `{${value.pairs.map(([name, one]) => `${space()}${word(dice, name)}${space()}:${print(dice, one)}${space()}`).join(",")}}`;
  }
  return typeof value === "string" ? word(dice, value) : JSON.stringify(value);
}

/** A text, sometimes in another spelling of the same. */
function word(dice: Dice, text: string): string {
  if (!dice.chance(12)) return JSON.stringify(text);
  return `"${[...text].flatMap((c) => c.split("")).map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`;
}

function spoilBytes(dice: Dice, json: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (!dice.chance(12)) return json;
  const at = dice.roll(json.length);
  const acts: (() => Uint8Array<ArrayBuffer>)[] = [
    () => json.subarray(0, at),
    () => json.with(at, dice.roll(256)),
    () => Uint8Array.from([0xef, 0xbb, 0xbf, ...json]),
    () => Uint8Array.from([...json, 0x20]),
    () => Uint8Array.from([...json, 0x00]),
    () => Uint8Array.from([...json, ...json]),
    () => Uint8Array.from([...json.subarray(0, at), 0xed, 0xa0, 0xbd, ...json.subarray(at)]),
  ];
  return dice.pick(acts)();
}
