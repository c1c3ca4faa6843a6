// The device of this browser, whole: loaded when somebody comes in, or when the files stay open. See worker.ts.
import { address } from "../build";
import { Origin } from "../format/ids";
import type { Bytes } from "../format/bytes";
import { type AccountCommands, Door, accountCommands } from "./account_commands";
import { type ChatCommands, chatCommands } from "./commands";
import type * as core from "./core";
import { stretchWith } from "./credential";
import { DatabaseFiles } from "./files";
import { DATABASE } from "./glimpse";
import { Http, browser } from "./http";
import { Keeper, errorOf } from "./keeper";
import { ownName } from "./name";
import { part } from "./part";
import type { Stretching } from "./kdf.worker";

export { errorOf };

/** What of a worker's surroundings is used. */
export interface Surroundings {
  location: { origin: string };
  navigator: { onLine: boolean };
  addEventListener(type: "online" | "offline", hear: () => void): void;
}

/** A device that is here. */
export interface Here {
  commands: AccountCommands & ChatCommands;
  /** Another tab has the files from now on: keys are forgotten. It ends when nothing is written any more. */
  drop(): Promise<void>;
}

/** Opens this browser's device, or finds that there is none. */
export async function open(scope: Surroundings, emit: (event: core.CoreEvent) => void): Promise<Here> {
  // Where the page does not come from its server, proofs and files are that server's, and not this origin's.
  const { server } = ownName();
  const place = await DatabaseFiles.open(server === null ? DATABASE.name : `${DATABASE.name}-${server}`);
  const http = server === null ? new Http(Origin.parse(scope.location.origin)) : new Http(Origin.parse(server), { ...browser(), through: scope.location.origin });
  const around = { emit, clock: () => Date.now(), isOnline: () => scope.navigator.onLine };
  const keeper = new Keeper(around);
  const door = new Door(keeper, place, http, around);
  scope.addEventListener("online", () => keeper.tryNow());
  scope.addEventListener("offline", () => {
    if (!keeper.device?.isConnected) keeper.setConnection({ state: "offline" });
  });
  stretchWith(stretched);
  await door.start();
  return {
    commands: { ...accountCommands(door), ...chatCommands(keeper) },
    drop: async () => {
      const ended = keeper.stop();
      place.close();
      await ended;
    },
  };
}

/** Argon2id in a worker of its own; here, if there cannot be one. */
async function stretched(password: Bytes, salt: Bytes): Promise<Bytes> {
  const derived = await inWorker({ password, salt }).catch(() => null);
  if (derived !== null) return derived;
  const { argon2id } = await part(() => import("../format/kdf"));
  return argon2id(password, salt);
}

function inWorker(stretching: Stretching): Promise<Bytes | null> {
  return new Promise((resolve, reject) => {
    // The constructor takes what the policy made; its type is not known to TypeScript.
    const worker = new Worker(kdfAddress() as string, { type: "module" });
    const end = (act: () => void) => {
      worker.terminate();
      act();
    };
    worker.onmessage = ({ data }: MessageEvent<Bytes | null>) => end(() => resolve(data));
    worker.onerror = () => end(() => reject(new TypeError("the worker did not start")));
    worker.postMessage(stretching);
  });
}

interface PolicyFactory {
  createPolicy(name: string, rules: { createScriptURL: (input: string) => string }): { createScriptURL(input: string): unknown };
}

let trusted: unknown;

/** The script of the other worker, as Trusted Types want it: one policy that knows this address and no other. */
function kdfAddress(): unknown {
  const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;
  const policy = { createScriptURL: (input: string) => input };
  const only = {
    createScriptURL: (input: string) => {
      if (input !== KDF) throw new TypeError("not a script of this page");
      return input;
    },
  };
  trusted ??= (factory?.createPolicy("app", only) ?? policy).createScriptURL(KDF);
  return trusted;
}

const KDF = address("kdf.worker.js");
