// Chats and memories from an export, brought in: one new chat for each, as far as it can be sealed.
//
// What is too large, or cannot be kept for another reason of its own, is left out and counted; everything else goes on. Easy to get wrong:
// consent. What may be sent without asking (`shares`) is never brought in: it is chosen here.

import { type ChatId, EmbedId, FieldName } from "../format/index";
import { MAX_ITEMS } from "../protocol/index";
import * as chats from "./chats";
import type * as core from "./core";
import { type Device, save } from "./device";
import { isOwn } from "./error";
import { TO_END, noteOf } from "./queue";
import { MEMORY } from "./wishes";

/** Brings it in; what was left out is counted. */
export async function bringIn(device: Device, { chats: all, memories }: core.Import): Promise<core.Imported> {
  const done: core.Imported = { chats: [], messages: 0, memories: 0, skipped: 0 };
  for (const one of all) await bringChat(device, one, done);
  for (const { name, body } of memories) {
    const there = FieldName.is(name) ? chats.data(device, MEMORY, name) : null;
    if (there === body) continue;
    // One with this name says something else: it stays.
    const isKept = FieldName.is(name) && there === null && (await unlessTooLarge(() => chats.setData(device, MEMORY, name, body)));
    if (isKept) done.memories += 1;
    else done.skipped += 1;
  }
  return done;
}

async function bringChat(device: Device, { title, fields, messages, embeds }: core.ImportedChat, done: core.Imported): Promise<void> {
  const id = await chats.newChat(device, title);
  done.chats.push(id);
  for (const name of FIELDS) {
    const body = fields?.[name];
    if (body !== undefined && !(await unlessTooLarge(() => chats.setField(device, id, name, body)))) done.skipped += 1;
  }
  const shown = await bringEmbeds(device, id, embeds ?? {}, done);
  const now = device.now();
  for (const [at, { role, body, model, createdAt, refs }] of messages.entries()) {
    const isDate = createdAt !== undefined && Number.isSafeInteger(createdAt) && createdAt > 0 && createdAt <= now + DAY;
    const here = (refs ?? []).flatMap((ref) => shown.get(ref) ?? []);
    const note = { ...noteOf(role, body, isDate ? createdAt : now), model: model ?? null, refs: here };
    const isKept = at < MOST && (await unlessTooLarge(async () => void chats.putNote(device, id, note, TO_END)));
    if (isKept) done.messages += 1;
    else done.skipped += 1;
  }
  await save(device);
}

/** What the messages show, under new ids. */
async function bringEmbeds(device: Device, id: ChatId, embeds: Record<string, string>, done: core.Imported): Promise<Map<string, EmbedId>> {
  const found = new Map<string, EmbedId>();
  for (const [old, body] of Object.entries(embeds).slice(0, MOST_EMBEDS)) {
    const isKept = await unlessTooLarge(async () => void found.set(old, await chats.addEmbed(device, id, body)));
    if (!isKept) done.skipped += 1;
  }
  return found;
}

async function unlessTooLarge(act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (isOwn(error, "too-large")) return false;
    throw error;
  }
}

/** Fields of a chat that are brought in, besides its title. */
const FIELDS = ["icon", "category", "summary", "tags", "pinned"] as const;
/** A chat holds so many things: its fields and what its messages show come first. */
const MOST_EMBEDS = 1_000;
const MOST = MAX_ITEMS - MOST_EMBEDS - 100;
const DAY = 86_400_000;
