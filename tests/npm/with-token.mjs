// Sends a bearer token and a person with every request of this process: the conformance suite has no option for headers.
//
//   CONFIDANT_TOKEN=… CONFIDANT_USER=… node --import ./with-token.mjs <program>
import http from "node:http";
import { createRequire, syncBuiltinESMExports } from "node:module";

const ours = { authorization: `Bearer ${process.env.CONFIDANT_TOKEN}`, "x-confidant-user": process.env.CONFIDANT_USER };

// fetch, and undici's own functions.
function added(headers) {
  if (Array.isArray(headers)) return [...headers, ...Object.entries(ours).flat()];
  const given = headers && Symbol.iterator in headers ? Object.fromEntries(headers) : headers;
  return { ...given, ...ours };
}
const { Agent, setGlobalDispatcher } = createRequire(process.argv[1])("undici");
setGlobalDispatcher(
  new Agent().compose((dispatch) => (options, handler) => dispatch({ ...options, headers: added(options.headers) }, handler)),
);

// Node's own client.
const request = http.request;
http.request = (...parameters) => {
  const made = request(...parameters);
  for (const [name, value] of Object.entries(ours)) made.setHeader(name, value);
  return made;
};
syncBuiltinESMExports();
