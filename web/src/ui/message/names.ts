// Names of memories, which the server sees. `[a-z][a-z0-9_-]*`, at most 64.
import { t } from "../i18n";

/** What the page itself asks for, with the names that the server knows them by. */
export const PROFILE = { learningStyle: "profile-learning-style", interests: "profile-interests" } as const;

/** What a memory is called to the person. */
export function memoryLabel(name: string): string {
  if (name === PROFILE.learningStyle) return t("memory.learning_style");
  return name === PROFILE.interests ? t("memory.interests") : name;
}

/** A name as the format spells it: small letters, digits, `_` and `-`. Null if nothing is left. */
export function memoryName(text: string): string | null {
  const name = text.trim().toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "").replace(/[^a-z0-9]+/g, "_").replace(/^[^a-z]+|_+$/g, "").slice(0, 64);
  return /^[a-z][a-z0-9_-]*$/.test(name) ? name : null;
}
