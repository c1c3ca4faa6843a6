// What scripts/page says on machines that cannot build the page: it goes on without it, and with --strict it fails.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

let root = "";
let bin = "";

before(async () => {
  root = await mkdtemp(join(tmpdir(), "confidant-script-"));
  bin = join(root, "bin");
  for (const folder of ["bin", "scripts", "web"]) await mkdir(join(root, folder));
  await copyFile(join(process.env["WEB_DIR"] ?? ".", "../scripts/page"), join(root, "scripts/page"));
  // Only these: neither a real npm nor a package manager.
  for (const name of ["bash", "dirname", "find", "sort", "head", "cmp", "cp"]) await symlink(spawnSync("which", [name], { encoding: "utf8" }).stdout.trim(), join(bin, name));
  await writeFile(join(root, "web/package-lock.json"), "{}");
});

after(() => rm(root, { recursive: true, force: true }));

async function program(name: string, does: string): Promise<void> {
  await writeFile(join(bin, name), `#!${join(bin, "bash")}\n${does}\n`);
  await chmod(join(bin, name), 0o755);
}

function run(...args: string[]): { status: number | null; said: string } {
  const { status, stderr } = spawnSync(join(bin, "bash"), [join(root, "scripts/page"), ...args], { encoding: "utf8", env: { PATH: bin } });
  return { status, said: stderr };
}

/** It goes on without the page; with --strict it does not. Both say why, and what to do. */
function isRefused(why: RegExp): void {
  const [kind, strict] = [run(), run("--strict")];
  assert.deepEqual([kind.status, strict.status], [0, 2], kind.said);
  assert.match(kind.said, /^page: going on without the page; everything else works$/m);
  for (const { said } of [kind, strict]) {
    assert.match(said, why);
    assert.match(said, /^hint: install /m);
  }
}

test("without npm, or with one or a Node.js that is too old, it says so, and what is needed", async () => {
  isRefused(/^page: Node\.js and npm are not installed/m);
  await program("npm", 'echo "npm was run: $*" >&2; [[ $1 == --version ]] && echo 10.9.0');
  await program("node", "echo v16.20.2");
  isRefused(/^page: Node\.js v16\.20\.2 is too old/m);
  await program("node", "echo v18.16.1");
  isRefused(/^page: Node\.js v18\.16\.1 is too old/m);
  await program("node", "exit 1");
  isRefused(/^page: Node\.js without a version is too old/m);
  await program("node", "echo v18.17.0");
  await program("npm", '[[ $1 == --version ]] && echo 6.14.4 || echo "npm was run" >&2');
  isRefused(/^page: npm 6\.14\.4 is too old/m);
  assert.doesNotMatch(run().said, /npm was run/, "nothing was installed with it");
});

test("with both it builds", async () => {
  for (const version of ["v18.17.0", "v20.20.2", "v100.0.0"]) {
    await program("node", `[[ $1 == --version ]] && echo ${version} || echo "built: $*" >&2`);
    await program("npm", '[[ $1 == --version ]] && echo 9.2.0 || /bin/mkdir -p node_modules');
    const { status, said } = run("--strict");
    assert.equal(status, 0, said);
    assert.match(said, /^built: build\.mjs$/m, version);
  }
});
