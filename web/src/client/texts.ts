// Lists of texts, as fields and pieces of account data have them.

/** The texts; none if it is something else. */
export function textsOf(body: string | null): string[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body ?? "[]");
  } catch {
    return [];
  }
  return Array.isArray(parsed) && parsed.every((one) => typeof one === "string") ? parsed : [];
}
