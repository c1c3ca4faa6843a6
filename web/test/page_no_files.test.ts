// Files that are dropped or pasted: not taken, never silently, and never opened in place of the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { refuseFiles } from "../src/ui/screens/no_files";

const data = (files: number, text = "") => ({ files: { length: files }, types: [...(files > 0 ? ["Files"] : []), ...(text === "" ? [] : ["text/plain"])], getData: () => text });
/** While it is dragged, browsers do not say which files there are. */
const dragged = { files: { length: 0 }, types: ["Files"], getData: () => "" };

function happens(name: string, about: object, isTaken = false): { said: string[]; isStopped: boolean } {
  const on = new EventTarget();
  const said: string[] = [];
  if (isTaken) on.addEventListener(name, (event) => event.preventDefault());
  const stop = refuseFiles(on, (what) => said.push(what));
  const send = () => {
    const event = Object.assign(new Event(name, { cancelable: true }), about);
    on.dispatchEvent(event);
    return event.defaultPrevented;
  };
  const isStopped = send();
  const before = said.length;
  stop();
  send();
  assert.equal(said.length, before, "nothing is heard afterwards");
  return { said, isStopped };
}

test("a file that is dropped anywhere is not opened, and that is said", () => {
  assert.deepEqual(happens("dragover", { dataTransfer: dragged }), { said: [], isStopped: true });
  assert.deepEqual(happens("drop", { dataTransfer: data(2) }), { said: ["all"], isStopped: true });
  assert.deepEqual(happens("drop", { dataTransfer: data(1, "/home/a/picture.png") }), { said: ["all"], isStopped: true });
});

test("words that are dragged or pasted are none of its business", () => {
  for (const name of ["dragover", "drop"]) assert.deepEqual(happens(name, { dataTransfer: data(0, "words") }), { said: [], isStopped: false });
  assert.deepEqual(happens("paste", { clipboardData: data(0, "words") }), { said: [], isStopped: false });
  assert.deepEqual(happens("paste", { clipboardData: null }), { said: [], isStopped: false });
});

test("of files with a text the text is taken, and it is said that the files were not", () => {
  assert.deepEqual(happens("paste", { clipboardData: data(1) }), { said: ["all"], isStopped: true });
  assert.deepEqual(happens("paste", { clipboardData: data(1, "picture.png") }), { said: ["files"], isStopped: false });
  assert.deepEqual(happens("paste", { clipboardData: data(1, "picture.png") }, true), { said: [], isStopped: true }, "somebody has taken it");
});

test("where a file is chosen for import, files may be dropped", () => {
  const on = new EventTarget();
  Object.assign(on, { type: "file" });
  const stop = refuseFiles(on, () => assert.fail("not refused there"));
  for (const name of ["dragover", "drop"]) {
    const event = Object.assign(new Event(name, { cancelable: true }), { dataTransfer: data(1) });
    on.dispatchEvent(event);
    assert.equal(event.defaultPrevented, false, name);
  }
  stop();
});
