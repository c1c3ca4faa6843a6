// A way to the server that loses things.

import type { Posted } from "../../src/client/transport";
import { TransportError } from "../../src/client/transport";
import type { Between, Passes } from "./ways";

export class Weather implements Between {
  isOff = false;
  /** What becomes of the next frames, the last of these first. */
  next: Passes[] = [];
  /** The same for the next POSTs and sockets. */
  posts: Passes[] = [];
  /** How many frames of the server arrive before the connection is gone; null: all. */
  heard: number | null = null;
  #isUnanswered = false;

  clear(): void {
    this.isOff = false;
    [this.next, this.posts, this.heard] = [[], [], null];
  }

  sends(): Passes {
    return this.isOff ? "lost" : (this.next.pop() ?? "on");
  }

  reaches(): boolean {
    const passes = this.posts.pop() ?? "on";
    this.#isUnanswered = passes === "unanswered";
    return passes !== "lost" && !this.isOff;
  }

  posted(_: string, posted: Posted): Posted {
    const isUnanswered = this.#isUnanswered;
    this.#isUnanswered = false;
    if (isUnanswered) throw TransportError.offline();
    return posted;
  }

  hears(): boolean {
    if (this.heard === null) return true;
    this.heard -= 1;
    if (this.heard >= 0) return true;
    this.heard = null;
    return false;
  }
}
