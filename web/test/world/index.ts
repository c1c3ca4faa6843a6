// People and devices at a real server.

import { logIn, register } from "../../src/client/account";
import { chat } from "../../src/client/chats";
import type { Credential } from "../../src/client/credential";
import type { Device, Setup } from "../../src/client/device";
import { disconnect, openDevice } from "../../src/client/device";
import { type Files, MemoryFiles } from "../../src/client/files";
import { sync } from "../../src/client/sync";
import type { Transport } from "../../src/client/transport";
import { Login, RecoveryCode } from "../../src/format/index";
import type { ChatId } from "../../src/format/index";
import { type RustDevice, Server } from "./server";
import { program } from "./ways";

export { program } from "./ways";

/** What a person holds. A recovery code only: nothing has to be stretched. */
export class Person {
  readonly code = RecoveryCode.random();

  constructor(readonly login: string) {}

  get recovery(): Credential {
    return { kind: "recovery", code: this.code };
  }
}

/** A server, and everybody who uses it. */
export class World {
  #people = 0;
  readonly #devices: Device[] = [];

  private constructor(readonly server: Server) {}

  static async start(settings: Record<string, string> = {}): Promise<World> {
    return new World(await Server.start(settings));
  }

  async stop(): Promise<void> {
    for (const device of this.#devices) disconnect(device);
    await this.server.stop();
  }

  transport(): Transport {
    return program(this.server.origin);
  }

  setup(files: Files = new MemoryFiles(), transport: Transport = this.transport()): Setup {
    return { transport, files, key: null, clock: () => Date.now() };
  }

  /** Somebody new, with their first device. */
  async person(setup: Setup = this.setup()): Promise<{ person: Person; device: Device }> {
    this.#people += 1;
    const person = new Person(`person-${this.#people}@example.org`);
    const code = this.#people === 1 ? this.server.firstCode : null;
    const device = await register(setup, { login: Login.parse(person.login), credentials: [person.recovery], code });
    return { person, device: this.#mine(device) };
  }

  /** Another device of somebody, which remembers nothing. */
  async device(person: Person, setup: Setup = this.setup()): Promise<Device> {
    return this.#mine(await logIn(setup, person.recovery));
  }

  /** The same, synced. */
  async synced(person: Person, setup: Setup = this.setup()): Promise<Device> {
    const device = await this.device(person, setup);
    await sync(device, "all");
    return device;
  }

  /** A device of before, from its files. */
  async opened(setup: Setup): Promise<Device> {
    const device = await openDevice(setup);
    if (device === null) throw new Error("there is no device in these files");
    return this.#mine(device);
  }

  /** The Rust client as another device of somebody. */
  rust(person: Person): RustDevice {
    return this.server.rust(person.login, person.code.dangerouslyToText());
  }

  #mine(device: Device): Device {
    this.#devices.push(device);
    return device;
  }
}

/** The words of a chat, in the order in which they are shown. */
export function bodies(device: Device, id: ChatId): string[] {
  return chat(device, id).branch.map((message) => message.body);
}
