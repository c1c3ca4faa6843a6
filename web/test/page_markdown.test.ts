// Markdown becomes elements and text, and nothing else: a hostile corpus is inert, and what is huge or deep is shown without hanging.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComponentChildren, VNode } from "preact";
import { lex, Stream } from "../src/ui/markdown/lex";
import { readable, safeLink } from "../src/ui/markdown/links";
import { decoded, renderBlock } from "../src/ui/markdown/render";
import { HOSTILE } from "./world/hostile";

interface Seen {
  tags: string[];
  props: { tag: string; name: string; value: unknown }[];
  text: string;
}

/** Every element, attribute and text that a text becomes. Components are looked at by what is in their props. */
function seen(markdown: string): Seen {
  const out: Seen = { tags: [], props: [], text: "" };
  const walk = (node: ComponentChildren): void => {
    if (node === null || node === undefined || typeof node === "boolean") return;
    if (typeof node === "string" || typeof node === "number") {
      out.text += String(node);
      return;
    }
    if (Array.isArray(node)) return node.forEach(walk);
    const { type, props } = node as VNode<Record<string, unknown>>;
    if (typeof type === "function") return component(type.name, props);
    if (typeof type === "string") out.tags.push(type);
    for (const [name, value] of Object.entries(props)) {
      if (name === "children") walk(value as ComponentChildren);
      else out.props.push({ tag: String(type), name, value });
    }
  };
  const component = (name: string, props: Record<string, unknown>): void => {
    if (name === "CodeBlock") out.text += String(props["text"]);
    else if (name === "TableBlock") {
      const { header, rows } = props["table"] as { header: { tokens: never[] }[]; rows: { tokens: never[] }[][] };
      const cell = props["cell"] as (tokens: never[]) => ComponentChildren;
      for (const one of [...header, ...rows.flat()]) walk(cell(one.tokens));
    } else if (name === "Icon") out.tags.push("svg");
    else if (name !== "Fragment" && name !== "k") assert.fail(`an unknown component: ${name}`);
  };
  for (const block of lex(markdown)) walk(renderBlock(block.token, { isStreaming: false }));
  return out;
}

const ALLOWED = new Set(["p", "h3", "h4", "h5", "ul", "ol", "li", "blockquote", "hr", "strong", "em", "del", "code", "br", "a", "span", "svg"]);
const ATTRIBUTES = new Set(["class", "dir", "href", "target", "rel", "title", "start", "role", "aria-label", "key"]);

function assertInert(markdown: string): Seen {
  const { tags, props, text } = seen(markdown);
  for (const tag of tags) assert.ok(ALLOWED.has(tag), `<${tag}> from ${JSON.stringify(markdown.slice(0, 80))}`);
  for (const { name, value } of props) {
    if (value === undefined) continue;
    assert.ok(ATTRIBUTES.has(name), `attribute ${name} from ${JSON.stringify(markdown.slice(0, 80))}`);
    if (name === "href") assert.match(String(value), /^(?:https?:\/\/|mailto:)/);
  }
  return { tags, props, text };
}

test("a hostile corpus becomes text and plain elements", () => {
  for (const one of HOSTILE) assertInert(one);
});

test("HTML is shown as it was written", () => {
  assert.equal(assertInert("<script>alert(1)</script>").text, "<script>alert(1)</script>");
  assert.match(assertInert("a <b onclick=x>b</b> c").text, /<b onclick=x>b<\/b>/);
});

test("script addresses lose their link and keep their words", () => {
  const { props, text } = assertInert("[press me](javascript:alert(1))");
  assert.equal(text, "press me");
  assert.equal(props.some(({ name }) => name === "href"), false);
});

test("an image is a link with its host, and loads nothing", () => {
  const { tags, props, text } = assertInert("![a map](https://tracker.example/x.png?d=1)");
  assert.equal(tags.includes("img"), false);
  assert.ok(props.some(({ name, value }) => name === "href" && value === "https://tracker.example/x.png?d=1"));
  assert.match(text, /tracker\.example/);
});

test("a link shows where it leads, and one that names another host is marked", () => {
  assert.deepEqual(safeLink("https://bank.example@evil.example/x", "my bank"), { href: "https://evil.example/x", host: "evil.example", disguised: false });
  assert.equal(safeLink("https://evil.example/", "https://bank.example/login")?.disguised, true);
  assert.equal(safeLink("https://www.bank.example/", "bank.example")?.disguised, false);
  assert.equal(safeLink("https://bank.example.evil.example/", "bank.example")?.disguised, true);
  assert.equal(safeLink("https://xn--80ak6aa92e.com/", "аррӏе.com")?.disguised, false, "the same name, spelled as it is asked for");
  assert.equal(safeLink("https://аррӏе.com/", "x")?.host, "xn--80ak6aa92e.com", "shown as it is asked for");
  assert.match(assertInert("[bank.example](https://evil.example/)").text, /evil\.example/);
});

test("what hides or turns text round becomes visible", () => {
  assert.equal(readable("abc\u202ecba\u200b"), "abc⟨U+202E⟩cba⟨U+200B⟩");
  assert.equal(readable("mi\u200dx \u{1f468}\u200d\u{1f469}"), "mi\u200dx \u{1f468}\u200d\u{1f469}", "joiners are needed to write");
  assert.match(assertInert("pay\u202etxt.exe `a\u2066b`").text, /⟨U\+202E⟩.*⟨U\+2066⟩/);
  assert.equal(safeLink("https://a.example/\u202ecba"), null);
});

test("deep nesting is shown as it was written, without a stack overflow", () => {
  for (const deep of [">".repeat(50_000), "> ".repeat(3_000) + "x", "- ".repeat(2_000) + "x", `${"*".repeat(20_000)}x`, "[".repeat(20_000), "**a ".repeat(5_000), Array.from({ length: 300 }, (_, n) => `${"  ".repeat(n)}- x`).join("\n")]) {
    const { text } = assertInert(deep);
    assert.ok(text.length > 0);
  }
});

test("huge texts are bounded in time and lose nothing", () => {
  const huge = {
    words: "word ".repeat(200_000),
    lines: "- item\n".repeat(150_000),
    table: `|a|b|\n|-|-|\n${"|x|y|\n".repeat(150_000)}`,
    brackets: "[".repeat(1_000_000),
    stars: "*a ".repeat(350_000),
    ticks: "`".repeat(1_000_000),
    urls: "http://".repeat(140_000),
  };
  for (const [name, text] of Object.entries(huge)) {
    const before = performance.now();
    const blocks = lex(text);
    const took = performance.now() - before;
    assert.ok(took < 20_000, `${name} took ${took.toFixed(0)} ms`);
    assert.equal(blocks.map((block) => block.raw).join("").length, text.length, name);
  }
});

test("a stream gives the same blocks as the whole, and keeps those that are done", () => {
  const text = "# Head\n\nSome *words* here.\n\n- one\n- two\n\n  more\n\n```js\nlet a = 1;\n\nlet b;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd.\n\nOf it.";
  const stream = new Stream();
  let before = stream.update("");
  for (let end = 1; end <= text.length; end += 1) {
    const now = stream.update(text.slice(0, end));
    if (now.length > 8 && before.length > 8) assert.equal(now[0], before[0], "the same object: it is not drawn again");
    before = now;
  }
  assert.deepEqual(before.map((block) => block.raw), lex(text).map((block) => block.raw));
  assert.equal(stream.update("another text")[0]?.raw, "another text", "words that were replaced");
});

test("character references are characters, once", () => {
  assert.equal(decoded("&lt;b&gt; &amp;lt; &#8364; &#x41; &nope; &#0; &#xD800;"), "<b> &lt; € A &nope; &#0; &#xD800;");
  assert.equal(assertInert("a &lt;b&gt; c").text, "a <b> c");
});
