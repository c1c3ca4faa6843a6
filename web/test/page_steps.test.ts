// What the server says in English about a turn, in the person's language.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { LANGUAGES, speak } from "../src/ui/i18n";
import { stepText, whyText } from "../src/ui/message/steps";

// Outside of a browser there is no document, and `speak` names its language.
Object.assign(globalThis, { document: { documentElement: {} } });

test("steps that the engine is known to say are said in the page's language, others as they came", async () => {
  await speak("de");
  assert.equal(stepText({ step: "preparing", text: "🔍 Analyzing..." }), "Sieht sich die Frage an…");
  assert.equal(stepText({ step: "preparing", text: "🧠 Thinking..." }), "Denkt nach…");
  assert.equal(stepText({ step: "working", text: "🔧 web.search" }), "Werkzeug: web.search");
  assert.equal(stepText({ step: "working", text: "" }), "Benutzt ein Werkzeug…");
  assert.equal(stepText({ step: "working", text: "🧭 Reading the chart" }), "Reading the chart");
  await speak("en");
  assert.equal(stepText({ step: "preparing", text: "🔍 Analyzing..." }), "Looking at the question…");
});

test("why a call needs a word is said in the page's language, from the tool's name", async () => {
  const why = "May I call mail.send with `{\"to\":\"x\"}`? Answer `approve k7qd` or `deny k7qd`.";
  for (const { code } of LANGUAGES) {
    await speak(code);
    const said = whyText({ why, tool: "mail.send" });
    assert.ok(said.includes("mail.send") && !said.includes("May I call") && !said.includes("approve"), said);
  }
  await speak("en");
  assert.equal(whyText({ why: "It deletes a file. Answer `approve a` or `deny a`.", tool: "rm" }), "It deletes a file.");
});

test("the engine says what this page knows", async () => {
  const engine = join(process.env["WEB_DIR"] ?? ".", "../crates/engine/src");
  const said = async (file: string) => readFile(join(engine, file), "utf8");
  assert.match(await said("turn/mod.rs"), /progress\("🔍 Analyzing\.\.\."\)/);
  assert.match(await said("turn/answer.rs"), /progress\("🧠 Thinking\.\.\."\)/);
  assert.match(await said("turn/outlet.rs"), /format!\("🔧 \{name\}"\)/);
  assert.match(await said("approval.rs"), /"May I call \{\} with/);
});
