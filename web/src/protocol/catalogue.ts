// What answers may use here, so that a person can switch some of it off: tools and focus modes, by name.
//
// Nothing of a person or a chat is in it. What is off is sealed account data of the person, and in each question (`off`): a tool by its name, a
// focus mode as `focus:` and its name.

import { MAX_CATALOGUE, MAX_FRAME, MAX_SHORT } from "./limits";
import { type Value, list, object, optional } from "./shapes";
import { flag, text } from "./values";

/** Asks what answers may use. */
export const RequestCatalogue = object("RequestCatalogue", () => ({
}));
export type RequestCatalogue = Value<typeof RequestCatalogue>;

/** What answers in this account's chats may use now. */
export const Catalogue = object("Catalogue", () => ({
  /** Tools, without those of the program itself, which have words of their own in `off`. */
  tools: list(() => CatalogueEntry, MAX_CATALOGUE),
  /** Focus modes. */
  focusModes: list(() => CatalogueEntry, MAX_CATALOGUE),
  /** Whether there are no others: a gateway does not know the tools of its workers. */
  whole: flag,
}), { limit: MAX_FRAME });
export type Catalogue = Value<typeof Catalogue>;

/** A tool or a focus mode. */
export const CatalogueEntry = object("CatalogueEntry", () => ({
  /** Its name. */
  name: text(MAX_SHORT),
  /** What people call it, if that is something else. */
  title: optional(text(MAX_SHORT)),
  /** What it is for, in a line; empty if nobody said so. For a tool, that is its server's word. */
  about: text(MAX_SHORT),
}));
export type CatalogueEntry = Value<typeof CatalogueEntry>;
