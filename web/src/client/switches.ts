// What a person switched off, by the names that a question says it with (`off`). The page reads them as the worker does.

/** What a focus mode's name has before it. */
export const FOCUS_MODE = "focus:";

/** What switches this off, if anything does: its own name, or one that ends in a star and begins like it. */
export function offBy(off: readonly string[], name: string): string | null {
  return off.find((one) => one === name || (one.endsWith("*") && name.startsWith(one.slice(0, -1)))) ?? null;
}

/** Whether a focus mode is off: all are, or it is. */
export function isFocusOff(off: readonly string[], mode: string): boolean {
  const modes = off.filter((one) => one.startsWith(FOCUS_MODE));
  return off.includes("focus") || offBy(modes, FOCUS_MODE + mode) !== null;
}
