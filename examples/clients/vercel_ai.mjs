// Vercel AI SDK: text that Confidant remembers, per person. Node.js 22 or newer.
//
//   npm install ai @ai-sdk/openai-compatible
import { readFileSync } from "node:fs";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

const url = process.env.MEMORY_URL ?? "http://127.0.0.1:7367";
const apiKey = readFileSync(process.env.MEMORY_TOKEN_FILE ?? "confidant-data/admin.token", "utf8").trim();

const confidant = createOpenAICompatible({ name: "confidant", baseURL: `${url}/v1`, apiKey });
const model = confidant("any");
// Whose memory a request uses.
const of = (user) => ({ confidant: { user } });

await generateText({ model, prompt: "Hello, I'm Alice and I prefer Rust", providerOptions: of("alice") });
// Each request sends only what is new.
const { text } = await generateText({ model, prompt: "What do I prefer?", providerOptions: of("alice") });
console.log(text);
console.log((await generateText({ model, prompt: "What do I prefer?", providerOptions: of("bob") })).text);

const { textStream } = streamText({ model, prompt: "What is my name?", providerOptions: of("alice") });
for await (const piece of textStream) process.stdout.write(piece);
console.log();
