// Tokens to elements. There is no HTML string anywhere on the way, so nothing has to be cleaned: what is not named here becomes text.
//
//   token ──▶ a fixed set of elements, with no attributes but class, href (links.ts), start, dir
//
// One more word of a stream changes one text node: neighbours that are text become one string, and Preact writes its data.
// Easy to get wrong: recursion. Depth is counted, and what is deeper than MAX_DEPTH is shown as it was written.
import type { ComponentChildren, VNode } from "preact";
import type { MarkedToken, Token, Tokens } from "marked";
import { t } from "../i18n";
import { Icon } from "../icons";
import { readable, safeLink } from "./links";
import { MAX_DEPTH } from "./lex";
import { CodeBlock } from "./code";
import { TableBlock } from "./table";

/** What a block needs to know of the message around it. */
export interface RenderContext {
  /** Whether words still come: nothing is highlighted or folded meanwhile. */
  isStreaming: boolean;
  /** Whether the message was shortened: what is cut is not copied. */
  isPart?: boolean;
}

/** A block of Markdown as an element. */
export function renderBlock(token: MarkedToken, context: RenderContext, depth = 0): ComponentChildren {
  if (depth > MAX_DEPTH) return <p class="raw" dir="auto">{readable(token.raw)}</p>;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return heading(token, depth);
    case "paragraph":
      return <p dir="auto">{inline(token.tokens, depth)}</p>;
    case "text":
      return token.tokens ? <span>{inline(token.tokens, depth)}</span> : readable(decoded(token.text));
    case "code":
      return <CodeBlock text={token.text} lang={token.lang ?? ""} isStreaming={context.isStreaming} isPart={context.isPart === true} />;
    case "blockquote":
      return <blockquote dir="auto">{blocks(token.tokens, context, depth + 1)}</blockquote>;
    case "list":
      return list(token, context, depth);
    case "table":
      return <TableBlock table={token} cell={(tokens) => inline(tokens, depth + 1)} isStreaming={context.isStreaming} isPart={context.isPart === true} />;
    case "hr":
      return <hr />;
    case "checkbox":
      return checkbox(token.checked);
    case "html":
      return <p class="raw" dir="auto">{readable(token.text.replace(/\n+$/, ""))}</p>;
    default:
      return <p dir="auto">{inline([token], depth)}</p>;
  }
}

function blocks(tokens: Token[], context: RenderContext, depth: number): ComponentChildren[] {
  return tokens.map((token) => renderBlock(token as MarkedToken, context, depth));
}

function heading(token: Tokens.Heading, depth: number): VNode {
  const children = inline(token.tokens, depth);
  // The page has an h1 and the message is inside it.
  if (token.depth <= 1) return <h3 dir="auto">{children}</h3>;
  if (token.depth === 2) return <h4 dir="auto">{children}</h4>;
  return <h5 dir="auto">{children}</h5>;
}

function list(token: Tokens.List, context: RenderContext, depth: number): VNode {
  const items = token.items.map((item, index) => (
    <li key={index} class={item.task ? "task" : undefined} dir="auto">
      {token.loose || item.loose ? blocks(item.tokens, context, depth + 1) : tight(item.tokens, context, depth)}
    </li>
  ));
  if (!token.ordered) return <ul>{items}</ul>;
  return typeof token.start === "number" && token.start !== 1 ? <ol start={token.start}>{items}</ol> : <ol>{items}</ol>;
}

function tight(tokens: Token[], context: RenderContext, depth: number): ComponentChildren[] {
  return tokens.map((token) =>
    token.type === "text" && "tokens" in token && token.tokens ? inline(token.tokens, depth) : renderBlock(token as MarkedToken, context, depth + 1),
  );
}

function checkbox(checked: boolean): VNode {
  return <span class={checked ? "box on" : "box"} role="img" aria-label={t(checked ? "done" : "notDone")}>{checked ? <Icon name="check" /> : null}</span>;
}

/** Inline tokens as children; neighbours that are text are one string, so that a word more changes one text node. */
export function inline(tokens: Token[], depth: number): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  const text = (words: string) => {
    const last = out.length - 1;
    const before = out[last];
    if (typeof before === "string") out[last] = before + words;
    else out.push(words);
  };
  for (const token of tokens) {
    const one = depth > MAX_DEPTH ? readable(token.raw) : inlineOne(token as MarkedToken, depth);
    if (typeof one === "string") text(one);
    else if (one !== null) out.push(one);
  }
  return out;
}

function inlineOne(token: MarkedToken, depth: number): string | VNode | null {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens, depth + 1)}</strong>;
    case "em":
      return <em>{inline(token.tokens, depth + 1)}</em>;
    case "del":
      return <del>{inline(token.tokens, depth + 1)}</del>;
    case "codespan":
      return <code dir="ltr">{readable(token.text)}</code>;
    case "br":
      return <br />;
    case "link":
      return link(token, depth);
    case "image":
      return image(token);
    case "checkbox":
      return checkbox(token.checked);
    case "html":
      return /^<br\s*\/?>$/i.test(token.raw) ? <br /> : readable(token.raw);
    case "escape":
      return readable(token.text);
    case "text":
      return token.tokens ? <span>{inline(token.tokens, depth + 1)}</span> : readable(decoded(token.text));
    default:
      return readable(token.raw);
  }
}

/** A link: its words, behind them where it leads, and a mark that nobody checked it. The mark has words for a finger and a keyboard, too. */
function link(token: Tokens.Link, depth: number): string | VNode {
  const words = inline(token.tokens, depth + 1);
  const safe = safeLink(token.autolink ? token.href : decoded(token.href), token.text);
  if (safe === null) return <span class="dead" title={t("linkDead")}>{words.length > 0 ? words : readable(token.raw)}</span>;
  const isNamed = token.text.includes(safe.host);
  return (
    <a class={safe.disguised ? "link disguised" : "link"} href={safe.href} target="_blank" rel="noopener noreferrer nofollow" title={t("linkUnchecked", { host: safe.host })}>
      {words.length > 0 ? words : safe.host}
      {isNamed && !safe.disguised ? null : <span class="host"> {safe.host}</span>}
      {unchecked()}
    </a>
  );
}

/** A function and not a component: what is drawn of a message is plain elements. */
function unchecked(): VNode {
  return <span class="unchecked">{" "}<Icon name="unchecked" size={12} /><span>{t("linkMark")}</span></span>;
}

/** An image never loads by itself: fetching it would tell its server what was answered. */
function image(token: Tokens.Image): string | VNode {
  const words = readable(decoded(token.text)) || t("image");
  const safe = safeLink(decoded(token.href), token.text);
  if (safe === null) return words;
  return (
    <a class="link image" href={safe.href} target="_blank" rel="noopener noreferrer nofollow" title={t("imageNotLoaded", { host: safe.host })}>
      <Icon name="image" />
      {words}
      <span class="host"> {safe.host}</span>
      {unchecked()}
    </a>
  );
}

/** Character references as characters: the few that people write, and numbers. */
export function decoded(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return NAMED.get(name) ?? whole;
    const point = decimal !== undefined ? Number.parseInt(decimal, 10) : Number.parseInt(hex ?? "", 16);
    return point > 0 && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff) ? String.fromCodePoint(point) : whole;
  });
}

const NAMED = new Map([
  ["amp", "&"], ["lt", "<"], ["gt", ">"], ["quot", '"'], ["apos", "'"], ["nbsp", "\u00a0"], ["copy", "©"], ["hellip", "…"], ["mdash", "—"], ["ndash", "–"], ["times", "×"], ["euro", "€"],
]);
