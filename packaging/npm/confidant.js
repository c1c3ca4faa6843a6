#!/usr/bin/env node
// Starts the program: the one in this package, or the one in the package for this platform.
"use strict";

const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const { constants } = require("node:os");
const { join } = require("node:path");
const { name, version, optionalDependencies = {} } = require("./package.json");

function program() {
  const own = join(__dirname, "bin", "confidant");
  if (existsSync(own)) return own;
  const wanted = `${name}-${process.platform}-${process.arch}`;
  if (!(wanted in optionalDependencies)) {
    fail(
      `there is no program for ${process.platform} on ${process.arch} in this version`,
      "build it from source: https://rustup.rs, then cargo install --path crates/confidant --locked",
    );
  }
  try {
    return require.resolve(`${wanted}/bin/confidant`);
  } catch {
    fail(
      `the package ${wanted}, which has the program for this machine, is not installed`,
      `npm skips a package that it cannot get without a word. Install it: npm install ${wanted}@${version}\n` +
        "      without a registry: npm install ./" + `${name}-${version}-${process.platform}-${process.arch}-offline.tgz`,
    );
  }
}

function fail(what, hint) {
  console.error(`error: ${what}\nhint: ${hint}`);
  process.exit(2);
}

const child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  fail(`the program cannot be started (${error.code})`, `install it again: npm install ${name}@${version}`);
});
// Whoever stops this process means the program. A terminal's Ctrl-C reaches it by itself.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => signal === "SIGINT" && process.stdin.isTTY || child.kill(signal));
}
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
