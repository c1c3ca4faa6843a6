// Shapes: what a message looks like, once, for reading, writing and comparing with docs/PROTOCOL.md.
//
//   object("Placed", () => ({ item: itemId, seq: u64 }))  ─▶  Shape<{ item: ItemId; seq: number }>
//                                                              read: strict, with the place of the first mistake
//                                                              write: snake_case names, nothing for what is left out
//
// Names are camelCase here and snake_case on the wire. An unknown field, a missing one, `null` for one that is left out, a text or list
// over its limit: `Malformed`, which says where and never what was sent. Easy to get wrong: a field twice. JSON.parse keeps the last one
// and does not say so; the frames around envelopes are not secret and every envelope is checked by what is inside it, so this is enough
// here, and not for sealed records (format/json.ts).

/** A message that is not one of the protocol: where, and why. */
export class Malformed extends Error {
  override readonly name = "Malformed";
  constructor(
    readonly path: string,
    readonly why: string,
  ) {
    super(`malformed: ${path === "" ? "the message" : path}: ${why}`);
  }
}

/** Where a reader is: made only when something is wrong. */
export class At {
  private constructor(
    private readonly above: At | null,
    private readonly step: string | number,
  ) {}

  static readonly root = new At(null, "");

  field(name: string): At {
    return new At(this, name);
  }

  item(number: number): At {
    return new At(this, number);
  }

  fail(why: string): never {
    throw new Malformed(this.path(), why);
  }

  private path(): string {
    if (this.above === null) return "";
    const above = this.above.path();
    if (typeof this.step === "number") return `${above}[${this.step}]`;
    return above === "" ? this.step : `${above}.${this.step}`;
  }
}

/** How a value is read from parsed JSON and written to it. Methods, so that a shape of texts is a shape of anything. */
export interface Shape<T> {
  read(json: unknown, at: At): T;
  write(value: T, at: At): unknown;
  /** As docs/PROTOCOL.md says it. */
  readonly what: string;
  readonly isOptional?: boolean;
}

export interface OptionalShape<T> extends Shape<T> {
  readonly isOptional: true;
}

/** The value of a shape. */
export type Value<S> = S extends Shape<infer T> ? T : never;

type FieldShapes = Record<string, Shape<unknown>>;
type OptionalKeys<F> = { [K in keyof F]: F[K] extends OptionalShape<unknown> ? K : never }[keyof F];
type Simplify<T> = { [K in keyof T]: T[K] };

/** The value of an object of these fields. */
export type ObjectOf<F> = Simplify<
  { [K in Exclude<keyof F, OptionalKeys<F>>]: Value<F[K]> } & { [K in OptionalKeys<F>]?: Value<F[K]> | undefined }
>;

/** A shape with fields: can be an event, and a body of its own. */
export interface ObjectShape<T extends object> extends Shape<T> {
  readonly title: string;
  readonly kind: "object" | "choice";
  /** How many bytes of JSON it may have as a whole message. */
  readonly limit: number;
  fields(): FieldShapes;
  /** Reads fields out of an object that may have `type` too. */
  readFields(json: unknown, at: At, isTagged: boolean): T;
}

/** One of several words. */
export interface WordsShape<W extends string> extends Shape<W> {
  readonly title: string;
  readonly kind: "words";
  readonly words: readonly W[];
}

export function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A field that may be left out. */
export function optional<T>(shape: Shape<T>): OptionalShape<T> {
  return { read: (json, at) => shape.read(json, at), write: (value, at) => shape.write(value, at), what: shape.what, isOptional: true };
}

interface Field {
  name: string;
  wire: string;
  shape: Shape<unknown>;
}

/**
 * An object with these fields and no others. They are named by a function, so that files may name each other's shapes. `check` says what
 * else has to hold; events are linked by their names in the page, other objects by their own.
 */
export function object<F extends FieldShapes>(
  title: string,
  fields: () => F,
  options: { limit?: number; link?: string; check?: (value: ObjectOf<F>, at: At) => void } = {},
): ObjectShape<ObjectOf<F>> {
  let known: { list: Field[]; byWire: Map<string, Field> } | undefined;
  const table = () => {
    if (known === undefined) {
      const list = Object.entries(fields()).map(([name, shape]) => ({ name, wire: snake(name), shape }));
      known = { list, byWire: new Map(list.map((field) => [field.wire, field])) };
    }
    return known;
  };
  const readFields = (json: unknown, at: At, isTagged: boolean): ObjectOf<F> => {
    if (typeof json !== "object" || json === null || Array.isArray(json)) return at.fail("expected an object");
    const { list, byWire } = table();
    const value: Record<string, unknown> = {};
    for (const [wire, part] of Object.entries(json)) {
      const field = byWire.get(wire);
      if (field === undefined) {
        if (isTagged && wire === TYPE) continue;
        return at.fail("has a field that is not known");
      }
      value[field.name] = field.shape.read(part, at.field(wire));
    }
    for (const { name, wire, shape } of list) {
      if (shape.isOptional !== true && !Object.hasOwn(value, name)) return at.field(wire).fail("is missing");
    }
    // Every field was read by its own shape, and none is missing: this is what ObjectOf says.
    const whole = value as ObjectOf<F>;
    options.check?.(whole, at);
    return whole;
  };
  return {
    title,
    kind: "object",
    limit: options.limit ?? MAX_BODY,
    what: `[${title}](#${options.link ?? title.toLowerCase()})`,
    fields: () => Object.fromEntries(table().list.map(({ name, shape }) => [name, shape])),
    read: (json, at) => readFields(json, at, false),
    readFields,
    write: (value, at) => {
      options.check?.(value, at);
      const written: Record<string, unknown> = {};
      const parts: Record<string, unknown> = value;
      for (const { name, wire, shape } of table().list) {
        const part = parts[name];
        if (part === undefined && shape.isOptional === true) continue;
        written[wire] = shape.write(part, at.field(wire));
      }
      return written;
    },
  };
}

/** One of several: an object with exactly one field, whose name says which. */
export type ChoiceOf<F> = { [K in keyof F]: Simplify<Record<K, Value<F[K]>>> }[keyof F];

export function choice<F extends FieldShapes>(title: string, cases: () => F): ObjectShape<ChoiceOf<F> & object> {
  const read = (json: unknown, at: At): ChoiceOf<F> & object => {
    if (typeof json !== "object" || json === null || Array.isArray(json)) return at.fail("expected an object");
    const entries = Object.entries(json);
    const entry = entries[0];
    if (entry === undefined || entries.length !== 1) return at.fail("expected exactly one field");
    for (const [name, shape] of Object.entries(cases())) {
      if (snake(name) !== entry[0]) continue;
      // Read by the shape of its only field.
      return { [name]: shape.read(entry[1], at.field(entry[0])) } as ChoiceOf<F> & object;
    }
    return at.fail("has a field that is not known");
  };
  return {
    title,
    kind: "choice",
    limit: MAX_BODY,
    what: `[${title}](#${title.toLowerCase()})`,
    fields: cases,
    read,
    readFields: read,
    write: (value, at) => {
      const [name, part] = Object.entries(value)[0] ?? at.fail("expected exactly one field");
      const shape = cases()[name] ?? at.fail("has a field that is not known");
      return { [snake(name)]: shape.write(part, at.field(snake(name))) };
    },
  };
}

export function words<const W extends string>(title: string, all: readonly W[]): WordsShape<W> {
  const known = new Set<string>(all);
  const is = (json: unknown): json is W => typeof json === "string" && known.has(json);
  return {
    title,
    kind: "words",
    words: all,
    what: `[${title}](#${title.toLowerCase()})`,
    read: (json, at) => (is(json) ? json : at.fail("is no word of this list")),
    write: (value) => value,
  };
}

/** A list of `min` to `max` values. */
export function list<T>(of: () => Shape<T>, max: number, min = 0): Shape<readonly T[]> {
  return {
    get what() {
      const many = min === max ? `exactly ${thousands(max)}` : `at most ${thousands(max)}`;
      return `list of ${many}: ${of().what}`;
    },
    read: (json, at) => {
      if (!Array.isArray(json)) return at.fail("expected a list");
      if (json.length > max) return at.fail(`has more than ${max}`);
      if (json.length < min) return at.fail(`has fewer than ${min}`);
      const shape = of();
      return json.map((item: unknown, number) => shape.read(item, at.item(number)));
    },
    write: (value, at) => {
      if (value.length > max) return at.fail(`has more than ${max}`);
      if (value.length < min) return at.fail(`has fewer than ${min}`);
      const shape = of();
      return value.map((item, number) => shape.write(item, at.item(number)));
    },
  };
}

/** At most `max` values by key. */
export function map<K extends string, V>(key: Shape<K>, of: () => Shape<V>, max: number): Shape<Map<K, V>> {
  return {
    get what() {
      return `object with at most ${thousands(max)} entries, ${key.what} to ${of().what}`;
    },
    read: (json, at) => {
      if (typeof json !== "object" || json === null || Array.isArray(json)) return at.fail("expected an object");
      const entries = Object.entries(json);
      if (entries.length > max) return at.fail(`has more than ${max}`);
      const shape = of();
      return new Map(entries.map(([name, item], number) => [key.read(name, at.item(number)), shape.read(item, at.item(number))]));
    },
    write: (value, at) => {
      if (value.size > max) return at.fail(`has more than ${max}`);
      const shape = of();
      return Object.fromEntries([...value].map(([name, item], number) => [name, shape.write(item, at.item(number))]));
    },
  };
}

type EventShapes = Record<string, ObjectShape<object>>;

/** Events by name: the fields of one, and `type`. */
export type EventOf<E> = { [K in keyof E]: Simplify<{ type: K } & Value<E[K]>> }[keyof E];

export interface EventsShape<E extends EventShapes> extends Shape<EventOf<E>> {
  readonly kind: "events";
  all(): E;
}

export function events<E extends EventShapes>(all: () => E): EventsShape<E> {
  let known: Map<string, ObjectShape<object>> | undefined;
  const find = (name: unknown, at: At): ObjectShape<object> => {
    known ??= new Map(Object.entries(all()));
    const shape = typeof name === "string" ? known.get(name) : undefined;
    return shape ?? at.field(TYPE).fail("is no event that this client knows");
  };
  return {
    kind: "events",
    what: "event",
    all,
    read: (json, at) => {
      if (typeof json !== "object" || json === null || Array.isArray(json)) return at.fail("expected an object");
      const type: unknown = Object.hasOwn(json, TYPE) ? Reflect.get(json, TYPE) : undefined;
      const shape = find(type, at);
      // The shape of this very name read the fields.
      return { type, ...shape.readFields(json, at, true) } as EventOf<E>;
    },
    write: (value, at) => {
      const { type, ...fields } = value as { type: string } & Record<string, unknown>;
      return { type, ...(find(type, at).write(fields, at) as object) };
    },
  };
}

/** Reads a whole message of at most its limit. */
export function readBody<T extends object>(shape: ObjectShape<T>, json: Uint8Array | string): T {
  const size = typeof json === "string" ? json.length : json.byteLength;
  if (size > shape.limit) return At.root.fail(`has more than ${shape.limit} bytes`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(typeof json === "string" ? json : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(json));
  } catch {
    return At.root.fail("is not JSON");
  }
  return shape.read(parsed, At.root);
}

/** Writes a whole message. Refuses to write more bytes than a reader takes. */
export function writeBody<T extends object>(shape: ObjectShape<T>, value: T): string {
  const text = JSON.stringify(shape.write(value, At.root));
  // A text has at most three bytes for each of its units: most need no look.
  if (text.length * 3 > shape.limit && new TextEncoder().encode(text).length > shape.limit) {
    return At.root.fail(`has more than ${shape.limit} bytes`);
  }
  return text;
}

export function thousands(number: number): string {
  return number.toLocaleString("en-US");
}

/** The field that has an event's name. */
export const TYPE = "type";
/** A body of a request or answer that has no list of chats or keys, in bytes of JSON. */
const MAX_BODY = 64 * 1024;
