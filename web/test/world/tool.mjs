// Tools for tests: one says that it destroys something, so that a person has to allow it; the other only looks. Speaks MCP over its standard
// streams.
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const inputSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const tools = [
  { name: "act", description: "Removes something.", inputSchema, annotations: { destructiveHint: true, readOnlyHint: false } },
  { name: "look", description: "Looks something up.", inputSchema, annotations: { readOnlyHint: true } },
];

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  if (method === "initialize") {
    const { protocolVersion } = params;
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "tool", version: "1" } } });
  } else if (method === "tools/list") send({ id, result: { tools } });
  else if (method === "tools/call") {
    const did = params.name === "look" ? "found" : "removed";
    send({ id, result: { content: [{ type: "text", text: `${did} ${params.arguments.name}` }] } });
  } else if (method === "ping") send({ id, result: {} });
  else send({ id, error: { code: -32601, message: "method not found" } });
}
