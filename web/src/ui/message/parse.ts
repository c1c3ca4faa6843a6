// parse_message: a message as a list of small nodes. Text between, and embeds: code blocks, tables, links that stand alone, long pastes.
//
//   body ──▶ [text] [code] [text] [table] …      each {id, type, status, contentRef, contentHash, meta}
//                      └ what it stands for is in the content store
//
// Easy to get wrong: identity. A node's id comes from its place, so that a stream that grows keeps the nodes before its end, and
// only a hash that changed makes a node draw again.
import type { MarkedToken } from "marked";
import { lex, Stream, type Block } from "../markdown/lex";
import { safeLink } from "../markdown/links";
import { contentHash, contentRef, type ContentStore } from "./content";

export type NodeType = "text" | "code" | "table" | "link" | "paste";

/** A part of a message. Small, whatever it stands for. */
export interface MessageNode {
  id: string;
  type: NodeType;
  /** processing: words still come. */
  status: "processing" | "finished";
  contentRef: string;
  contentHash: string;
  meta: NodeMeta;
}

export interface NodeMeta {
  /** Lines that it takes, roughly. */
  lines: number;
  words: number;
  /** The language of code. */
  lang?: string;
  rows?: number;
  columns?: number;
  host?: string;
}

export interface ParseOptions {
  isStreaming?: boolean;
  /** Keeps what was read of a stream. */
  stream?: Stream;
}

/** A text without a blank line that is longer than this is a paste. */
const PASTE_CHARACTERS = 4_000;
const PASTE_LINES = 60;

/** The nodes of a message. What they stand for goes into the store. */
export function parseMessage(message: string, body: string, store: ContentStore, options: ParseOptions = {}): MessageNode[] {
  const blocks = options.stream ? options.stream.update(body) : lex(body);
  const nodes: MessageNode[] = [];
  let at = 0;
  for (const [index, block] of blocks.entries()) {
    const from = at;
    at += block.raw.length;
    if (block.token.type === "space" || block.token.type === "def") continue;
    const ref = contentRef(message, from, at);
    const isLast = index === blocks.length - 1;
    const known = store.get(ref);
    if (known?.raw !== block.raw) store.put(ref, block);
    const type = typeOf(block);
    nodes.push({
      id: `${nodes.length}`,
      type,
      status: options.isStreaming === true && isLast ? "processing" : "finished",
      contentRef: ref,
      contentHash: contentHash(block.raw),
      meta: metaOf(type, block),
    });
  }
  return nodes;
}

function typeOf(block: Block): NodeType {
  const token = block.token;
  if (token.type === "code") return "code";
  if (token.type === "table") return "table";
  if (loneLink(token) !== null) return "link";
  const isProse = token.type === "paragraph" || token.type === "html";
  if (isProse && (block.raw.length > PASTE_CHARACTERS || lineCount(block.raw) > PASTE_LINES)) return "paste";
  return "text";
}

function metaOf(type: NodeType, block: Block): NodeMeta {
  const meta: NodeMeta = { lines: lineCount(block.raw.trimEnd()), words: wordCount(block.raw) };
  const token = block.token;
  if (type === "code" && token.type === "code" && token.lang) meta.lang = token.lang.slice(0, 24);
  if (type === "table" && token.type === "table") {
    meta.rows = token.rows.length;
    meta.columns = token.header.length;
  }
  const host = loneLink(token);
  if (type === "link" && host !== null) meta.host = host;
  return meta;
}

/** The host of a paragraph that is nothing but a link. */
function loneLink(token: MarkedToken): string | null {
  if (token.type !== "paragraph" || token.tokens.length !== 1) return null;
  const only = token.tokens[0] as MarkedToken;
  return only.type === "link" ? (safeLink(only.href, only.text)?.host ?? null) : null;
}

function lineCount(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** Words; a line without spaces counts by its length, so that scripts without spaces are counted too. */
export function wordCount(text: string): number {
  let words = 0;
  let run = 0;
  for (let at = 0; at <= text.length; at += 1) {
    const unit = at < text.length ? text.charCodeAt(at) : 32;
    if (unit <= 32) {
      if (run > 0) words += Math.ceil(run / 24);
      run = 0;
    } else run += 1;
  }
  return words;
}
