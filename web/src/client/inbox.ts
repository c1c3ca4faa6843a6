// What came from a server and was not taken yet, in order, and why nothing more comes. One waits at a time.
import type { TransportError } from "./transport";

export class Inbox<T> {
  readonly #waiting: T[] = [];
  /** Why it ended, once everything that came before was taken. */
  #ended: TransportError | null = null;
  #wake: (() => void) | null = null;

  get ended(): TransportError | null {
    return this.#ended;
  }

  put(...came: T[]): void {
    this.#waiting.push(...came);
    this.ring();
  }

  end(why: TransportError): void {
    this.#ended ??= why;
    this.ring();
  }

  /** The next one; null if it was stopped before: then none is lost, and whoever asks next gets it. */
  async take(stop?: AbortSignal): Promise<T | null> {
    for (;;) {
      if (stop?.aborted === true) return null;
      const one = this.#waiting.shift();
      if (one !== undefined) return one;
      if (this.#ended !== null) throw this.#ended;
      await this.rings(stop);
    }
  }

  ring(): void {
    this.#wake?.();
    this.#wake = null;
  }

  /** Until something happens. */
  async rings(stop?: AbortSignal): Promise<void> {
    const rung = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const ring = () => this.ring();
    stop?.addEventListener("abort", ring);
    try {
      await rung;
    } finally {
      stop?.removeEventListener("abort", ring);
    }
  }
}
