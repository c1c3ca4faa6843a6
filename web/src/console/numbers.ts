// What is made of counts: how long turns took in the middle and at the slow end, how many there are a minute, and the last minutes as a line.
import type { Times, Told } from "./told";

export interface Point {
  at: number;
  value: number;
}

/** What is kept of one look. */
export interface Sample {
  at: number;
  running: number;
  answered: number;
  failed: number;
  backlog: number;
  counts: number[];
}

/** How far back the lines go. */
export const SPAN_MS = 10 * 60_000;

/** One more look. A server that was started anew counts from zero, so the lines begin again. */
export function remember(samples: readonly Sample[], told: Told, before: Told | null): Sample[] {
  const isSame = before === null || before.startedAt === told.startedAt;
  const sample: Sample = {
    at: told.at, running: told.turns?.running ?? 0, answered: told.turns?.answered ?? 0, failed: told.turns?.failed ?? 0,
    backlog: told.channels.reduce((sum, channel) => sum + channel.backlog, 0), counts: told.times?.counts ?? [],
  };
  const kept = isSame ? samples.filter(({ at }) => at > told.at - SPAN_MS && at < told.at) : [];
  return [...kept, sample];
}

/** How many a minute, between each look and the one before. */
export function perMinute(samples: readonly Sample[], of: (sample: Sample) => number): Point[] {
  return samples.slice(1).map((sample, index) => {
    const before = samples[index] as Sample;
    const minutes = (sample.at - before.at) / 60_000;
    return { at: sample.at, value: minutes > 0 ? Math.max(0, of(sample) - of(before)) / minutes : 0 };
  });
}

/** How many of each time there were since the first look that is kept; `null` where there was none. */
export function lately(samples: readonly Sample[], times: Times): Times | null {
  const first = samples[0];
  if (first === undefined || first.counts.length !== times.counts.length) return null;
  const counts = times.counts.map((count, index) => Math.max(0, count - (first.counts[index] ?? 0)));
  return counts.some((count) => count > 0) ? { bounds: times.bounds, counts, total: 0 } : null;
}

/** The time that this part of turns did not pass, taken as spread evenly between two bounds; `isOver`: longer than the last bound. */
export function quantile({ bounds, counts }: Times, part: number): { ms: number; isOver: boolean } | null {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const wanted = part * all;
  let before = 0;
  for (const [index, count] of counts.entries()) {
    const upper = bounds[index];
    if (count > 0 && before + count >= wanted) {
      if (upper === undefined) return { ms: bounds.at(-1) ?? 0, isOver: true };
      const lower = bounds[index - 1] ?? 0;
      return { ms: lower + ((upper - lower) * (wanted - before)) / count, isOver: false };
    }
    before += count;
  }
  return { ms: bounds.at(-1) ?? 0, isOver: true };
}

/** The share of the first; `null` where there is nothing to share. */
export function share(hits: number, misses: number): number | null {
  return hits + misses === 0 ? null : hits / (hits + misses);
}

/** The end of a scale that is easy to read: 1, 2 or 5 and noughts. */
export function ceiling(value: number): number {
  if (value <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power;
}
