// Releases of the page that are made for a test: the sources, with one file changed, built as `scripts/page` builds them. A program serves one
// with `CONFIDANT_WEB__PAGE_FOLDER`.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cp, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

const WEB = process.env["WEB_DIR"] ?? ".";

/** Builds the page into a new folder `into`, with this file of `src` changed. Gives the folder to serve. */
export async function releaseOf(into: string, file: string, change: (source: string) => string): Promise<string> {
  for (const name of ["src", "build.mjs", "languages.mjs", "load.mjs", "package.json", "package-lock.json"]) await cp(join(WEB, name), join(into, name), { recursive: true });
  await symlink(join(WEB, "node_modules"), join(into, "node_modules"));
  const path = join(into, "src", file);
  const before = await readFile(path, "utf8");
  const after = change(before);
  assert.notEqual(after, before, `${file} is changed`);
  await writeFile(path, after);
  const built = spawnSync(process.execPath, ["build.mjs", "--plain"], { cwd: into, encoding: "utf8" });
  assert.equal(built.status, 0, built.stderr);
  return join(into, "dist");
}
