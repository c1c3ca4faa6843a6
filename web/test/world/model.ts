// A model for tests: speaks the API that servers of models speak, keeps every prompt, and says what it is told to, piece by piece.
//
//   model.answers.set("question", ["pie", "ces"])    else it says "noted: " and the question
//   "call NAME" "call NAME {…}"                      it calls the tool that it is offered with this name, then says what that gave
//   model.forms.set("prepare_turn", (material) => …) it fills in this form; the server asks it to with `model.filling`
//   model.hold()                                     nothing more is said until it is let go

import { type Server as HttpServer, type ServerResponse, createServer } from "node:http";

interface Asked {
  role: string;
  content: unknown;
}

interface Request {
  messages: Asked[];
  tools?: { function: { name: string } }[];
  tool_choice?: string | { function: { name: string } };
}

export class Model {
  readonly prompts: Asked[][] = [];
  readonly answers = new Map<string, string[]>();
  /** Forms that a small model fills in before and after an answer: what it finds in the material. */
  readonly forms = new Map<string, (material: string) => object>();
  #held: Promise<void> | null = null;
  #letGo: (() => void) | null = null;

  private constructor(
    private readonly server: HttpServer,
    readonly settings: Record<string, string>,
  ) {}

  static async start(): Promise<Model> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const model = new Model(server, {
      CONFIDANT_MODEL__PROVIDER: "openai",
      CONFIDANT_MODEL__MODEL: "recorder",
      CONFIDANT_MODEL__BASE_URL: `http://127.0.0.1:${address.port}/v1`,
      OPENAI_API_KEY: "none",
    });
    server.on("request", (request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => void model.#answer(Buffer.concat(pieces).toString("utf8"), response));
    });
    return model;
  }

  /** The settings, with this model for forms too. */
  get filling(): Record<string, string> {
    return { ...this.settings, CONFIDANT_PROCESSING__MODEL: "default" };
  }

  async stop(): Promise<void> {
    this.letGo();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** After its first piece, it says nothing more until `letGo`. */
  hold(): void {
    this.#held = new Promise((resolve) => {
      this.#letGo = resolve;
    });
  }

  letGo(): void {
    this.#letGo?.();
    [this.#held, this.#letGo] = [null, null];
  }

  /** The words of the last prompt, one line per message. */
  get last(): string {
    return (this.prompts.at(-1) ?? []).map(({ role, content }) => `${role}: ${String(content)}`).join("\n");
  }

  async #answer(body: string, response: ServerResponse): Promise<void> {
    if (body === "") return void response.end();
    const { messages, tools, tool_choice: choice } = JSON.parse(body) as Request;
    const asked = String(messages.findLast(({ role }) => role === "user")?.content ?? "");
    const query = asked.split("\n").at(-1) ?? "";
    const form = typeof choice === "object" ? choice.function.name : undefined;
    if (form === undefined) this.prompts.push(messages);
    response.writeHead(200, { "content-type": "text/event-stream", connection: "close" });
    const send = (delta: object, finish: string | null = null) => {
      const choices = [{ index: 0, delta, finish_reason: finish }];
      response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 0, model: "recorder", choices })}\n\n`);
    };
    const calls = (name: string, input: string) => {
      send({ tool_calls: [{ index: 0, id: "call-0", type: "function", function: { name, arguments: input } }] });
      send({}, "tool_calls");
      response.end("data: [DONE]\n\n");
    };
    if (form !== undefined) return calls(form, JSON.stringify(this.forms.get(form)?.(asked) ?? {}));
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
    const [, wanted, input = '{"name":"everything"}'] = /^call (\w+)(?: (\{.*\}))?$/.exec(query) ?? [];
    const tool = tools?.find(({ function: { name } }) => wanted !== undefined && name.endsWith(wanted))?.function.name;
    if (tool !== undefined && results.length === 0) return calls(tool, input);
    if (results.length > 0) this.answers.set(query, [results.join(", ")]);
    for (const [at, piece] of (this.answers.get(query) ?? ["noted: ", query]).entries()) {
      if (at > 0 && this.#held !== null) await this.#held;
      if (response.destroyed) return;
      send({ content: piece });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    send({}, "stop");
    response.end("data: [DONE]\n\n");
  }
}
