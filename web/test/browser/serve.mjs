// Serves web/dist for tests of the page, with the headers that the program sets, and passes everything else on to a running program.
//
//   node test/browser/serve.mjs --port 7400 [--program http://127.0.0.1:7367]
//
//   /demo/           the page over a double, without a server
//   anything else    the program, with the browser's own Host and Origin: name them in `web.origins`; without a program, web/dist
//
// In tests only: the program serves the page itself.
import { build } from "esbuild";
import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { languages } from "../../languages.mjs";
import { Frames } from "./frames.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const web = join(here, "../..");

export const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types app",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), microphone=(), geolocation=()",
  "cache-control": "no-cache",
};
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };

/** The page over the double, in memory: name to bytes. It has one more language, from right to left. */
async function buildDemo() {
  const result = await build({
    absWorkingDir: web, entryPoints: { app: "test/browser/demo.ts" }, bundle: true, splitting: true, format: "esm", target: "es2023", jsx: "automatic", jsxImportSource: "preact",
    charset: "utf8", outdir: join(web, "demo"), write: false, logLevel: "warning", plugins: [languages(undefined, [join(here, "../world/mirrored/xr.ts")])],
  });
  const files = new Map(result.outputFiles.map((file) => [file.path.slice(join(web, "demo").length + 1), file.contents]));
  const html = await readFile(join(web, "src/index.html"), "utf8");
  files.set("index.html", Buffer.from(html.replaceAll('"/app.', '"/demo/app.')));
  return files;
}

/**
 * Starts it; gives the port and how to stop it. With `tls` ({ key, cert }) it is the proxy that an operator has before the program; `between`
 * changes what the program says on sockets; without `sockets`, none passes, as with some proxies.
 */
export async function serve({ port = 0, program = null, dist = join(web, "dist"), tls = null, between = null, sockets: passes = true } = {}) {
  const demo = await buildDemo();
  // Whether the program can be reached; sockets that are open go when it cannot.
  let isReachable = true;
  const sockets = new Set();
  /** What was asked for, as `METHOD /path?query`. */
  const log = [];
  const send = (answer, path, body) => {
    answer.writeHead(200, { ...HEADERS, "content-type": TYPES[extname(path)] ?? "application/octet-stream" });
    answer.end(body);
  };
  const answers = async (asked, answer) => {
    const path = new URL(asked.url ?? "/", "http://x").pathname;
    log.push(`${asked.method} ${asked.url}`);
    if (path.startsWith("/demo/")) {
      const name = path === "/demo/" ? "index.html" : path.slice("/demo/".length);
      const body = demo.get(name);
      return body ? send(answer, name, body) : answer.writeHead(404, HEADERS).end();
    }
    const name = normalize(path === "/" ? "/index.html" : path);
    // A program has the page inside, with its headers.
    const body = program === null && (asked.method === "GET" || asked.method === "HEAD") ? await readFile(join(dist, name)).catch(() => null) : null;
    if (body !== null) return send(answer, name, body);
    if (program === null) return answer.writeHead(404, HEADERS).end();
    if (!isReachable) return asked.socket.destroy();
    const to = new URL(program);
    const passed = request({ host: to.hostname, port: to.port, path: asked.url, method: asked.method, headers: asked.headers }, (back) => {
      answer.writeHead(back.statusCode ?? 502, back.headers);
      back.pipe(answer);
    });
    passed.on("error", () => answer.writeHead(502).end());
    return asked.pipe(passed);
  };
  const server = tls === null ? createServer(answers) : createTlsServer(tls, answers);
  server.on("upgrade", (asked, socket, head) => {
    if (program === null || !isReachable || !passes) return socket.destroy();
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    const to = new URL(program);
    const through = connect(Number(to.port), to.hostname, () => {
      const headers = asked.rawHeaders.reduce((text, part, at) => text + (at % 2 === 0 ? `${part}: ` : `${part}\r\n`), "");
      through.write(`${asked.method} ${asked.url} HTTP/1.1\r\n${headers}\r\n`);
      if (head.length > 0) through.write(head);
      (between === null ? through : through.pipe(new Frames(between))).pipe(socket).pipe(through);
    });
    through.on("error", () => socket.destroy());
    socket.on("error", () => through.destroy());
    return undefined;
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  const reach = (isOn) => {
    isReachable = isOn;
    // Streams that are open go, too.
    if (!isOn && !passes) server.closeAllConnections();
    if (!isOn) for (const socket of sockets) socket.destroy();
  };
  return { port: server.address().port, reach, log, stop: () => { server.closeAllConnections(); server.close(); } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name) => (process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : undefined);
  const { port } = await serve({ port: Number(option("--port") ?? 7400), program: option("--program") ?? null });
  console.log(`http://localhost:${port}`);
}
