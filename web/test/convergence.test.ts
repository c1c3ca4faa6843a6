// Devices of one person, whatever happens between them: offline, lost requests, lost and half answers, kills between two writes of a
// file, credentials and the account key replaced, a clock that is a day behind. In the end all have the same chats, nothing waits, and
// every word is there, was replaced by somebody who saw it, or is a copy. In some cases the Rust client is the third device.
//
//   CONFIDANT_CONVERGENCE_CASES   how many runs there are      CONFIDANT_CONVERGENCE_SEED   which one is first
//
// Easy to get wrong: which recovery code is good after an answer was lost. The person tries both, as a person would. And time: the server's
// is real here, and keys stay frozen for ten minutes after a rotation that was cut off, so rotations are not.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { changeCredentials, logIn } from "../src/client/account";
import {
  type ChatView, branchOff, chat, chats, copies, data, deleteChat, deleteMessage, edit, newChat, rename, say, setData, setDraft, waiting,
} from "../src/client/chats";
import { type Device, disconnect } from "../src/client/device";
import { nameOf } from "../src/client/error";
import { listen } from "../src/client/live";
import { rotate } from "../src/client/rotate";
import { flush } from "../src/client/send";
import { sync } from "../src/client/sync";
import { RecoveryCode } from "../src/format/index";
import type { ChatId, MessageId } from "../src/format/index";
import { Dice } from "./world/dice";
import { Person, World } from "./world/index";
import { MortalFiles } from "./world/mortal";
import type { RustDevice } from "./world/server";
import { type Passes, Through } from "./world/ways";
import { Weather } from "./world/weather";

let world: World;
before(async () => {
  world = await World.start();
});
after(() => world?.stop());

/** One of the two devices of this client. */
class Hand {
  device: Device | null = null;
  readonly files = new MortalFiles();
  readonly weather = new Weather();
  isLoggedOut = false;

  /** Its clock is wrong by so many milliseconds. */
  constructor(private readonly skew = 0) {}

  get setup() {
    return { ...world.setup(this.files, new Through(world.transport(), this.weather)), clock: () => Date.now() + this.skew };
  }

  drop(): void {
    if (this.device !== null) disconnect(this.device);
    this.device = null;
  }
}

/** A word, what it is about (a message, a title, a draft, a piece of data), and who wrote it; 2 is the Rust client. */
interface Written {
  place: string;
  word: string;
  by: number;
}

class Case {
  readonly log: string[] = [];
  readonly #dice: Dice;
  readonly #hands: [Hand, Hand] = [new Hand(), new Hand(-86_400_000)];
  #codes: RecoveryCode[] = [];
  #words = 0;
  readonly #written: Written[] = [];
  readonly #replaced = new Set<string>();
  readonly #chats: ChatId[] = [];
  readonly #doomed = new Set<ChatId>();
  readonly #messages: [ChatId, MessageId][] = [];

  constructor(
    seed: number,
    private readonly rust: RustDevice | null,
    person: Person,
  ) {
    this.#dice = new Dice(seed);
    this.#codes = [person.code];
  }

  static async make(seed: number, hasRust: boolean): Promise<Case> {
    const first = new Hand();
    const { person, device } = await world.person(first.setup);
    const made = new Case(seed, hasRust ? world.rust(person) : null, person);
    made.#hands[0] = first;
    first.device = device;
    made.#hands[1].device = await world.device(person, made.#hands[1].setup);
    return made;
  }

  async run(): Promise<void> {
    const acts = 12 + this.#dice.below(48);
    for (let act = 0; act < acts; act++) await this.#act();
    await this.#settle();
    await this.#check();
  }

  #hand(at: number): Hand {
    return at === 0 ? this.#hands[0] : this.#hands[1];
  }

  #note(what: string): void {
    this.log.push(what);
  }

  #word(): string {
    this.#words += 1;
    return `w${this.#words}`;
  }

  /** The device, started again if it was killed. */
  async #device(at: number): Promise<Device> {
    const hand = this.#hand(at);
    if (hand.device === null) {
      hand.files.revive();
      hand.device = await world.opened(hand.setup);
    }
    return hand.device;
  }

  /** What came of it; null if it was not done. A kill ends the device. */
  async #done<T>(at: number, doing: Promise<T>): Promise<T | null> {
    const hand = this.#hand(at);
    try {
      return await doing;
    } catch (error) {
      switch (nameOf(error)) {
        case "offline":
          break;
        case "files":
          this.#note(`${at}: killed`);
          hand.drop();
          break;
        case "logged-out":
        case "not-logged-in":
        case "unauthorised":
          this.#note(`${at}: logged out`);
          hand.isLoggedOut = true;
          break;
        case "no-such-chat":
        case "no-such-message":
          break;
        default:
          throw error;
      }
      return null;
    }
  }

  /** Logs a device in again whose session ended, if it can. */
  async #logIn(at: number): Promise<void> {
    const hand = this.#hand(at);
    const device = await this.#device(at);
    if (!hand.isLoggedOut) return;
    const code = await this.#code();
    this.#note(`${at}: logs in`);
    disconnect(device);
    const again = await this.#done(at, logIn(hand.setup, { kind: "recovery", code }));
    if (again === null) return;
    [hand.device, hand.isLoggedOut] = [again, false];
  }

  /** The recovery code that the server has. */
  async #code(): Promise<RecoveryCode> {
    if (this.#codes.length > 1) {
      const good: RecoveryCode[] = [];
      for (const code of this.#codes) {
        try {
          await logIn(world.setup(), { kind: "recovery", code });
          good.push(code);
        } catch (error) {
          assert.equal(nameOf(error), "login-refused");
        }
      }
      this.#codes = good;
    }
    const [code] = this.#codes;
    assert.ok(code !== undefined && this.#codes.length === 1, "one code is good");
    return code;
  }

  /** Replaces the recovery code, and the account key with it or not. */
  async #renew(at: number, isRotation: boolean): Promise<void> {
    if (this.#hand(at).weather.isOff) return;
    await this.#logIn(at);
    const [old, code] = [await this.#code(), RecoveryCode.random()];
    if (isRotation) {
      this.#hand(at).weather.clear();
      this.#hand(at).files.revive();
    } else {
      await this.#trouble(at);
    }
    this.#note(`${at}: renews, with the key: ${isRotation}`);
    const by = { kind: "recovery", code: old } as const;
    const next = [{ kind: "recovery", code }] as const;
    const device = await this.#device(at);
    const renewing = isRotation ? rotate(device, by, next) : changeCredentials(device, by, next, null);
    const renewed = await this.#done(at, renewing.then(() => true));
    // Whatever came back, the server may have either.
    this.#codes = renewed === null ? [old, code] : [code];
  }

  #write(by: number, place: string, saw: string | null, word: string | null): void {
    if (saw !== null) this.#replaced.add(`${place} ${saw}`);
    if (word !== null) this.#written.push({ place, word, by });
  }

  async #act(): Promise<void> {
    const at = this.#dice.below(2);
    const what = this.#dice.below(this.rust === null ? 32 : 35);
    if (what === 0) await this.#newChat(at);
    else if (what <= 6) await this.#say(at);
    else if (what <= 10) await this.#edit(at);
    else if (what <= 12) await this.#delete(at);
    else if (what === 13) await this.#setTitle(at);
    else if (what <= 15) await this.#setDraft(at);
    else if (what === 16) await this.#setData(at);
    else if (what === 17 && this.#dice.oneIn(3)) await this.#deleteChat(at);
    else if (what <= 22) await this.#flush(at);
    else if (what <= 25) await this.#sync(at);
    else if (what <= 27) await this.#listen(at);
    else if (what === 28) await this.#turnOff(at);
    else if (what === 29) this.#hand(at).drop();
    else if (what === 30 && this.rust === null && this.#dice.oneIn(2)) await this.#renew(at, true);
    else if (what === 31 && this.rust === null && this.#dice.oneIn(3)) await this.#renew(at, false);
    else if (what >= 32 && this.rust !== null) await this.#useRust(this.rust);
    else await this.#logIn(at);
  }

  /** Something goes wrong soon, perhaps. */
  async #trouble(at: number): Promise<void> {
    await this.#device(at);
    const { weather, files } = this.#hand(at);
    if (this.#dice.oneIn(3)) {
      const what: Passes = this.#dice.oneIn(2) ? "lost" : "unanswered";
      const next: Passes[] = [what, ...Array.from({ length: this.#dice.below(6) }, (): Passes => "on")];
      this.#note(`${at}: loses ${next.length} ${what}`);
      const where = this.#dice.below(3);
      if (where === 0) weather.posts = next;
      else if (where === 1) weather.heard = next.length;
      else weather.next = next;
    } else if (this.#dice.oneIn(3)) {
      const writes = this.#dice.below(8);
      this.#note(`${at}: dies after ${writes}`);
      files.killAfter(writes);
    }
  }

  async #flush(at: number): Promise<void> {
    await this.#trouble(at);
    this.#note(`${at}: flush`);
    await this.#done(at, flush(await this.#device(at)));
  }

  async #sync(at: number): Promise<void> {
    await this.#trouble(at);
    this.#note(`${at}: sync`);
    await this.#done(at, sync(await this.#device(at), "all"));
  }

  async #listen(at: number): Promise<void> {
    this.#note(`${at}: listen`);
    for (;;) {
      const device = await this.#device(at);
      if (!device.isConnected) return;
      if ((await this.#done(at, listen(device, AbortSignal.timeout(20)))) === null) return;
    }
  }

  async #turnOff(at: number): Promise<void> {
    const { weather } = this.#hand(at);
    weather.isOff = !weather.isOff;
    this.#note(`${at}: off ${weather.isOff}`);
    disconnect(await this.#device(at));
  }

  /** Some chat, as this device has it. */
  async #chat(at: number): Promise<ChatView | null> {
    const id = this.#dice.pick(this.#chats);
    const device = await this.#device(at);
    return id === undefined ? null : this.#done(at, (async () => chat(device, id))());
  }

  async #message(at: number): Promise<[ChatId, MessageId, string] | null> {
    const picked = this.#dice.pick(this.#messages);
    if (picked === undefined) return null;
    const [id, message] = picked;
    const device = await this.#device(at);
    const view = await this.#done(at, (async () => chat(device, id))());
    const body = view?.messages.get(message)?.body;
    return body === undefined ? null : [id, message, body];
  }

  async #newChat(at: number): Promise<void> {
    const title = this.#dice.oneIn(2) ? this.#word() : null;
    this.#note(`${at}: new chat ${title}`);
    const id = await this.#done(at, newChat(await this.#device(at), title));
    if (id === null) return;
    this.#write(at, `${id} title`, null, title);
    this.#chats.push(id);
  }

  async #say(at: number): Promise<void> {
    const view = await this.#chat(at);
    if (view === null) return;
    const [word, branches] = [this.#word(), this.#dice.oneIn(4)];
    this.#note(`${at}: says ${word} ${branches}`);
    const device = await this.#device(at);
    const saying = branches ? branchOff(device, view.id, view.branch[0]?.id ?? null, word) : say(device, view.id, word);
    const id = await this.#done(at, saying);
    if (id === null) return;
    this.#write(at, `${view.id} ${id}`, null, word);
    this.#messages.push([view.id, id]);
  }

  async #edit(at: number): Promise<void> {
    const found = await this.#message(at);
    if (found === null) return;
    const [[id, message, saw], word] = [found, this.#word()];
    this.#note(`${at}: edits ${saw} to ${word}`);
    const done = await this.#done(at, edit(await this.#device(at), id, message, word).then(() => true));
    if (done !== null) this.#write(at, `${id} ${message}`, saw, word);
  }

  async #delete(at: number): Promise<void> {
    const found = await this.#message(at);
    if (found === null) return;
    const [id, message, saw] = found;
    this.#note(`${at}: deletes ${saw}`);
    const done = await this.#done(at, deleteMessage(await this.#device(at), id, message).then(() => true));
    if (done !== null) this.#write(at, `${id} ${message}`, saw, null);
  }

  async #setTitle(at: number): Promise<void> {
    const view = await this.#chat(at);
    if (view === null) return;
    const word = this.#word();
    this.#note(`${at}: renames to ${word}`);
    const done = await this.#done(at, rename(await this.#device(at), view.id, word).then(() => true));
    if (done !== null) this.#write(at, `${view.id} title`, view.fields.get("title") ?? null, word);
  }

  async #setDraft(at: number): Promise<void> {
    const view = await this.#chat(at);
    if (view === null) return;
    const word = this.#dice.oneIn(3) ? null : this.#word();
    this.#note(`${at}: drafts ${word}`);
    const done = await this.#done(at, setDraft(await this.#device(at), view.id, word).then(() => true));
    if (done !== null) this.#write(at, `${view.id} draft`, view.draft, word);
  }

  async #setData(at: number): Promise<void> {
    const device = await this.#device(at);
    const [saw, word] = [data(device, "settings", "theme"), this.#dice.oneIn(3) ? null : this.#word()];
    this.#note(`${at}: sets data ${word}`);
    const done = await this.#done(at, setData(device, "settings", "theme", word).then(() => true));
    if (done !== null) this.#write(at, "data", saw, word);
  }

  async #deleteChat(at: number): Promise<void> {
    const view = await this.#chat(at);
    if (view === null) return;
    this.#note(`${at}: deletes a chat`);
    const done = await this.#done(at, deleteChat(await this.#device(at), view.id).then(() => true));
    if (done !== null) this.#doomed.add(view.id);
  }

  /** The Rust client syncs, does something, and sends it: nobody is faster, so that nothing of it is lost. */
  async #useRust(rust: RustDevice): Promise<void> {
    const lines = await rust.do("/list");
    const line = this.#dice.pick(lines);
    const word = this.#word();
    if (line === undefined || this.#dice.oneIn(6)) {
      const made = await rust.do(`/new ${word}`);
      const id = String(made[0]?.["chat"]) as ChatId;
      this.#note(`2: new chat ${word}`);
      this.#write(2, `${id} title`, null, word);
      this.#chats.push(id);
      return;
    }
    const id = String(line["chat"]) as ChatId;
    const message = this.#dice.pick(await rust.do(`/open ${id}`));
    const what = this.#dice.below(5);
    this.#note(`2: act ${what} with ${word}`);
    if (what === 0 || message === undefined) {
      const said = (await rust.do(`/open ${id}`, word)).at(-1);
      const mine = String(said?.["message"]) as MessageId;
      this.#write(2, `${id} ${mine}`, null, word);
      this.#messages.push([id, mine]);
    } else if (what === 1) {
      await rust.do(`/open ${id}`, `/edit ${String(message["message"])} ${word}`);
      this.#write(2, `${id} ${String(message["message"])}`, String(message["body"]), word);
    } else if (what === 2) {
      await rust.do(`/open ${id}`, `/delete ${String(message["message"])}`);
      this.#write(2, `${id} ${String(message["message"])}`, String(message["body"]), null);
    } else if (what === 3) {
      await rust.do(`/open ${id}`, `/rename ${word}`);
      this.#write(2, `${id} title`, text(line["title"]), word);
    } else {
      await rust.do(`/open ${id}`, `/draft ${word}`);
      this.#write(2, `${id} draft`, text(line["draft"]), word);
    }
  }

  /** The weather clears, and both devices send and load until nothing is left to do. */
  async #settle(): Promise<void> {
    for (const hand of this.#hands) {
      hand.weather.clear();
      hand.files.revive();
    }
    for (let round = 0; round < 3; round++) {
      for (const at of [0, 1]) {
        this.#note(`${at}: settles, round ${round}`);
        // A connection that ended while nobody looked, and then a session that did: twice in vain at most.
        for (let tries = 0; (await this.#done(at, sync(await this.#device(at), "all"))) === null; tries++) {
          assert.ok(tries < 3, "there is no way back");
          await this.#logIn(at);
        }
        await flush(await this.#device(at));
      }
      const left = await Promise.all([0, 1].map(async (at) => waiting(await this.#device(at)).length));
      if (left.every((count) => count === 0)) break;
    }
    for (const at of [0, 1]) {
      const device = await this.#device(at);
      await sync(device, "all");
      assert.deepEqual(waiting(device), [], "something waits for ever");
    }
  }

  async #check(): Promise<void> {
    const [one, two] = [await this.#device(0), await this.#device(1)];
    const views = viewsOf(one);
    assert.deepEqual(viewsOf(two), views, "the devices differ");
    // Somebody who remembers nothing sees the same, from the floors up.
    const fresh = await logIn(world.setup(), { kind: "recovery", code: await this.#code() });
    await sync(fresh, "all");
    assert.deepEqual(viewsOf(fresh), views, "a new device sees something else");
    assert.deepEqual([one.generation, two.generation], [fresh.generation, fresh.generation], "an old account key is in use");
    disconnect(fresh);
    for (const [id, view] of views) {
      assert.ok(!this.#doomed.has(id), "a deleted chat is there");
      const said = [...view.messages.values()].map((message) => message.body);
      assert.equal(new Set(said).size, said.length, "something was written twice");
    }
    for (const id of this.#chats) assert.ok(this.#doomed.has(id) || views.has(id), "a chat is lost");
    const theme = data(one, "settings", "theme");
    assert.equal(data(two, "settings", "theme"), theme);
    for (const written of this.#written) this.#checkWord(written, views, theme);
    if (this.rust !== null) await checkRust(this.rust, views);
    for (const hand of this.#hands) hand.drop();
  }

  #checkWord({ place, word, by }: Written, views: Map<ChatId, ChatView>, theme: string | null): void {
    const [id, what] = place.split(" ") as [ChatId, string | undefined];
    if (this.#doomed.has(id)) return;
    const view = views.get(id);
    let now = what === undefined ? theme : (view?.messages.get(what as MessageId)?.body ?? null);
    if (what === "title") now = view?.fields.get("title") ?? null;
    if (what === "draft") now = view?.draft ?? null;
    const mine = by < 2 ? this.#hand(by).device : null;
    const isKept = mine !== null && copies(mine).some((copy) => copy.text === word);
    assert.ok(now === word || this.#replaced.has(`${place} ${word}`) || isKept, `${word} by ${by} is lost`);
  }
}

function viewsOf(device: Device): Map<ChatId, ChatView> {
  const ids = [...chats(device)].sort();
  return new Map(ids.map((id) => [id, chat(device, id)]));
}

async function checkRust(rust: RustDevice, views: Map<ChatId, ChatView>): Promise<void> {
  const lines = await rust.do("/sync", "/list");
  const listed = new Map(lines.map((line) => [String(line["chat"]), [text(line["title"]), text(line["draft"])]]));
  const expected = new Map([...views].map(([id, view]) => [String(id), [view.fields.get("title") ?? null, view.draft]]));
  assert.deepEqual(listed, expected, "the Rust client sees other chats");
  for (const [id, view] of views) {
    assert.deepEqual(await rust.read(id), view.branch.map((message) => message.body), "the Rust client reads something else");
  }
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function number(name: string, otherwise: number): number {
  return Number.parseInt(process.env[name] ?? "", 10) || otherwise;
}

async function converge(seed: number, hasRust: boolean): Promise<void> {
  const made = await Case.make(seed, hasRust);
  try {
    await made.run();
  } catch (error) {
    const hint = `CONFIDANT_CONVERGENCE_SEED=${seed} CONFIDANT_CONVERGENCE_CASES=1`;
    const why = error instanceof Error ? error.stack : error;
    throw new Error(`${made.log.join("\n")}\nseed ${seed}, with the Rust client: ${hasRust}; hint: ${hint}\n${why}`);
  }
}

const cases = number("CONFIDANT_CONVERGENCE_CASES", 10);
const first = number("CONFIDANT_CONVERGENCE_SEED", 1);

test("two devices converge and no word is lost", async () => {
  for (let seed = first; seed < first + cases; seed++) await converge(seed, false);
});

test("two devices and the Rust client converge and no word is lost", async () => {
  for (let seed = first; seed < first + Math.ceil(cases / 5); seed++) await converge(seed, true);
});
