// A core without a worker, a server or keys: it plays the part of the worker in tests of the page, so that every state can be drawn.
//
// `?state=NAME` chooses what it plays; see SCENES. Nothing here seals anything.
import type { Account, Approval, Catalogue, ChatLine, ChatPage, Connection, Core, CoreEvent, Found, MessageLine, SearchResult, SentNote, TurnLine, WishLine } from "../../src/client/core";
import { CommandError } from "../../src/ui/state/core";

export interface Scene {
  account: Account;
  connection: Connection;
  chats: ChatLine[];
  pages: Map<string, ChatPage>;
  waiting: number;
  copies: number;
  events: CoreEvent[];
}

const NOW = Date.now();
const SENT: SentNote = { isKept: true, off: [], names: 2, focus: null, asks: ["settings", "summary", "search"] };
const DAY = 86_400_000;

export function chatId(n: number): string {
  const digits = "abcdefghijklmnopqrstuvwxyz234567";
  return `chat_${"a".repeat(24)}${digits[(n >> 5) & 31] ?? "a"}${digits[n & 31] ?? "a"}`;
}

export function line(n: number, part: Partial<ChatLine> = {}): ChatLine {
  return {
    id: chatId(n), title: `Chat ${n}`, icon: null, category: null, summary: null, tags: [], pinned: false, unread: false, updatedAt: NOW - n * 3_600_000,
    isWaiting: false, isAwaited: false, hasDraft: false, isTemporary: false, isEnded: false, isCached: true, shares: [], ...part,
  };
}

export function message(id: string, role: MessageLine["role"], parent: string | null, body: string, part: Partial<MessageLine> = {}): MessageLine {
  return { id, role, parent, body, embeds: [], model: role === "assistant" ? "mistral-large" : null, reason: role === "assistant" ? "The request needs reasoning, which mistral-large is good at." : null, createdAt: NOW - 600_000, rev: 1, status: "sealed", alternatives: { at: 0, ids: [id] }, shared: [], copies: [], ...part };
}

const QUESTION = `I'm bringing a 2021 Golf from Berlin to Cork in March. It has 64 000 km. What will I have to pay, and by when? I paid 17 400 euros for it in 2023, and I have the papers of the first registration here, the German one and the certificate of conformity.

I also have a few questions about the insurance, since my German insurance ends with the German plates, and about the inspection, which I would like to book before I arrive.

Finally: is there anything that I must not forget before I leave, such as papers that only the German office can give me, and how long do those take? I leave on the third of March, and would like to have everything together a week before.

And another thing that makes this message longer than anybody wants to read twice: the winter tyres, the roof box and the bicycle rack come along as well.`;

const ANSWER = `Two taxes matter, and a date:

- **VRT** is due within 30 days of arrival; book the inspection in the first 7.
- **VAT** is not due again: the car is older than six months and has more than 6 000 km.

\`\`\`python
def vrt(omsp: float, rate: float = 0.1875, nox: float = 190) -> float:
    # An estimate: the office decides the price.
    return omsp * rate + nox

print(vrt(21_500))
\`\`\`

| What | Amount | When |
| --- | ---: | --- |
| VRT at 18.75 % | 4 031 € | within 30 days |
| NOx, 38 mg/km | 190 € | with it |

See [the office's page](https://www.revenue.ie/en/vrt/) and [revenue.ie](https://evil.example/phish). ![a map](https://tracker.example/map.png)`;

function carPage(): ChatPage {
  const chat = line(1, { title: "Importing a car from Germany", summary: "VRT and VAT when it is older than six months", tags: ["tax", "Ireland", "vehicles"], category: "tax questions", updatedAt: NOW - 60_000 });
  const heard = { finish: "whole" as const, tools: ["web.search"], focus: null, category: "tax questions", wanted: [], historySent: 4, sent: SENT };
  return {
    chat,
    messages: [
      message("msg_1", "user", null, QUESTION),
      message("msg_2", "assistant", "msg_1", ANSWER, { heard, alternatives: { at: 1, ids: ["msg_2b", "msg_2", "msg_2c"] } }),
      message("msg_3", "user", "msg_2", "Book the inspection for me, first week of March.", { alternatives: { at: 0, ids: ["msg_3", "msg_3b"] } }),
      message("msg_4", "assistant", "msg_3", "The inspection is booked for **3 March, 10:40**, in Cork. Bring the papers and your PPS number."),
    ],
    turns: [],
    draft: null,
    edits: [],
    followUps: ["What if I keep German plates for a month?", "Which papers do I need at the inspection?", "Compare with buying in Ireland"],
    asOf: { at: NOW - 60_000, device: "dev_a" },
  };
}

function base(): Scene {
  const car = carPage();
  const chats = [
    car.chat,
    line(2, { title: "Which database did we choose?", hasDraft: true, updatedAt: NOW - 2 * 60_000 }),
    line(3, { title: "Tomatoes that survive a late frost", summary: "Harden them off for ten days", updatedAt: NOW - 3 * DAY, pinned: true }),
    line(4, { title: "Proof by induction, step by step", summary: "2 follow-up questions", updatedAt: NOW - 4 * DAY, unread: true }),
    line(5, { title: "خطة السفر إلى لشبونة", summary: "الفندق والقطار", updatedAt: NOW - 5 * DAY }),
    line(6, { title: "A chat that was refused", refused: "rolled-back", updatedAt: NOW - 20 * DAY }),
  ];
  const pages = new Map<string, ChatPage>(chats.map((chat) => [chat.id, { chat, messages: [], turns: [], draft: null, edits: [], followUps: [], asOf: null }]));
  pages.set(car.chat.id, car);
  return {
    account: { state: "open", login: "alice", account: "acct_a", device: "dev_a", generation: 1, hasSession: true, staysUnlocked: false },
    connection: { state: "online" },
    chats, pages, waiting: 0, copies: 0, events: [],
  };
}

function turn(part: Partial<TurnLine>): TurnLine {
  return { chat: chatId(1), turn: "turn_1", message: "msg_3", reply: "msg_4", state: "running", words: "", progress: null, ahead: 0, approvals: [], historySent: 0, wishes: [], ...part };
}

function withTurn(part: Partial<TurnLine>): Scene {
  const scene = base();
  const page = scene.pages.get(chatId(1));
  if (page) {
    page.messages = page.messages.slice(0, 3);
    page.turns = [turn(part)];
    page.followUps = [];
  }
  return scene;
}

const APPROVAL: Approval = { chat: chatId(1), turn: "turn_1", id: "ap_1", tool: "ncts.book", input: '{"plate":"B-GX 4410","place":"Cork","from":"2027-03-01","to":"2027-03-05"}', why: "Booking costs nothing and can be cancelled.", expiresAt: Date.now() + 86_400_000 };

const CATALOGUE: Catalogue = {
  tools: [
    { name: "ncts.book", title: null, about: "Books a date for the inspection of a car." },
    { name: "ncts.dates", title: null, about: "Lists free dates for the inspection of a car, by place and week." },
    { name: "web.search", title: null, about: "" },
  ],
  focusModes: [
    { name: "web.research", title: "Research", about: "Reads several sources and cites them." },
    { name: "code.plan_project", title: "Plan a project", about: "Asks until the plan is clear, before anything is written." },
  ],
  isWhole: true,
};

const WISH: WishLine = {
  what: "search", names: [], query: "ferry in March", at: Date.now(),
  pieces: [{ name: "Tomatoes that survive a late frost", text: "… before the ferry leaves on the third, water them well and put them into the shade." }, { name: "Which database did we choose?", text: "We decided on the ferry." }],
};

function changed(change: (page: ChatPage, scene: Scene) => void): Scene {
  const scene = base();
  const page = scene.pages.get(chatId(1));
  if (page) change(page, scene);
  return scene;
}

/** The same text wherever somebody else's words are drawn. */
function hostile(text: string): Scene {
  return changed((page, scene) => {
    const short = text.slice(0, 400);
    const heard = { finish: "whole" as const, tools: [short], focus: short, category: short, wanted: [short], historySent: 0, kept: true };
    page.messages.push(message("msg_h", "assistant", "msg_4", text, { model: short, heard }), message("msg_i", "user", "msg_h", text), message("msg_j", "tool", "msg_i", text));
    Object.assign(page.chat, { title: short, summary: short, tags: [short], category: short, icon: short });
    page.followUps = [short];
    const call = { ...APPROVAL, tool: short, why: short, input: JSON.stringify({ to: text }) };
    page.turns = [turn({ message: "msg_j", reply: "msg_k", words: text, progress: { step: "working", text: short }, approvals: [call] })];
    scene.chats.push(line(9, { title: short, summary: short, tags: [short] }));
  });
}

function last(page: ChatPage): MessageLine {
  const found = page.messages.at(-1);
  if (found === undefined) throw new Error("a page without messages");
  return found;
}

/** Every state that is drawn, by name. */
export const SCENES: Record<string, () => Scene> = {
  chat: base,
  none: () => ({ ...base(), account: { state: "none" }, connection: { state: "offline" } }),
  locked: () => ({ ...base(), account: { state: "locked", login: "alice" } }),
  empty: () => ({ ...base(), chats: [], pages: new Map() }),
  thinking: () => withTurn({ progress: { step: "working", text: "Looking for an inspection date" } }),
  streaming: () => withTurn({ words: "The office in Cork has **three** dates left:\n\n1. 1 March, 09:20\n2. 3 March, 10:", historySent: 3 }),
  approval: () => withTurn({ approvals: [APPROVAL] }),
  approvalsoon: () => withTurn({ approvals: [{ ...APPROVAL, expiresAt: Date.now() + 1_500_000 }] }),
  approvalover: () => withTurn({ approvals: [{ ...APPROVAL, expiresAt: Date.now() - 1 }] }),
  wish: () => withTurn({ words: "Let me look what you said about ferries.", wishes: [WISH, { what: "settings", names: ["home_town"], query: null, pieces: [{ name: "home_town", text: "Cork, since 2027." }], at: Date.now() }] }),
  wishnothing: () => withTurn({ wishes: [{ ...WISH, pieces: [] }] }),
  unsent: () => ({ ...withTurn({ state: "unsent" }), connection: { state: "offline" }, waiting: 2 }),
  unanswered: () => withTurn({ state: "unanswered", error: "unavailable" }),
  queued: () => withTurn({ ahead: 2 }),
  declined: () => changed((page) => { last(page).body = "I will not help with this."; last(page).heard = { finish: "declined", tools: [], focus: null, category: null, wanted: [], historySent: 0, sent: SENT }; page.followUps = []; }),
  crisis: () => changed((page) => { last(page).body = "I will not help you to hurt yourself.\n\nYou don't have to carry this alone. findahelpline.com lists helplines in your country."; last(page).heard = { finish: "declined", tools: [], focus: null, category: null, wanted: [], historySent: 0, sent: SENT }; page.followUps = []; }),
  ended: () => changed((page) => { last(page).body = "This conversation ends here."; last(page).heard = { finish: "ended", tools: [], focus: null, category: null, wanted: [], historySent: 0, sent: { ...SENT, isKept: false } }; page.followUps = []; }),
  wanted: () => changed((page) => { last(page).heard = { finish: "whole", tools: [], focus: null, category: null, wanted: ["profile-learning-style", "home_town"], historySent: 0, sent: SENT }; page.followUps = []; }),
  conflicted: () => changed((page, scene) => { const third = page.messages[2]; if (third) { third.status = "conflicted"; third.copies = [1]; } scene.copies = 1; }),
  compressed: () => changed((page) => { page.messages.splice(2, 0, message("msg_s", "summary", "msg_2", "The person imports a car; VRT is due, VAT is not.")); }),
  refused: () => ({ ...base(), connection: { state: "refused", error: { name: "rolled-back" } } }),
  sessionended: () => ({ ...base(), connection: { state: "ended", error: { name: "logged-out", reason: "expired" } } }),
  quota: () => ({ ...base(), events: [{ type: "quota", isFull: true }] }),
  stale: () => ({ ...base(), connection: { state: "offline", error: { name: "stale-client" } }, events: [{ type: "connection", connection: { state: "offline", error: { name: "stale-client" } } }] }),
  long: () => changed((page) => {
    const words = "Some words of a long chat, *with* emphasis and `code`.\n\n- one\n- two\n\n";
    page.messages = Array.from({ length: 2000 }, (_, n) => message(`msg_l${n}`, n % 2 === 0 ? "user" : "assistant", n === 0 ? null : `msg_l${n - 1}`, `${n}. ${words}`));
  }),
  hostile: () => hostile((globalThis as { HOSTILE?: string }).HOSTILE ?? "A <b>bold</b> claim"),
};

/** A core that plays a scene. */
export function double(scene: Scene): { core: Core; emit: (event: CoreEvent) => void } {
  const hears = new Set<(event: CoreEvent) => void>();
  const emit = (event: CoreEvent) => hears.forEach((hear) => hear(event));
  const setAccount = (account: Account) => {
    scene.account = account;
    emit({ type: "account", account });
  };
  const open = (): Account => ({ state: "open", login: "alice", account: "acct_a", device: "dev_a", generation: 1, hasSession: true, staysUnlocked: false });
  const data = new Map([["memory/profile-learning-style", "Short steps, with an example."], ["memory/home_town", "Cork, since 2027."]]);
  const off = new Set<string>();
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const pageOf = (chat: string) => {
    const page = scene.pages.get(chat);
    if (page === undefined) throw new CommandError({ name: "no-such-chat" });
    return page;
  };
  const code = { recoveryCode: "k7qd-2m4x-9tza-r3vb-8n2c-w5ye-h6fg-4s7j" };
  const commands: Partial<Record<keyof Core, (...args: never[]) => unknown>> = {
    account: () => scene.account,
    connection: () => scene.connection,
    register: async () => { await wait(400); setAccount(open()); return code; },
    logIn: async (_: string, proof: { password?: string }) => { await wait(400); if (proof.password === "wrong password") throw new CommandError({ name: "login-refused" }); setAccount(open()); },
    unlock: async (proof: { password?: string }) => { await wait(300); if (proof.password === "wrong password") throw new CommandError({ name: "login-refused" }); setAccount(open()); },
    lock: () => setAccount({ state: "locked", login: "alice" }),
    forget: () => setAccount({ state: "none" }),
    logOut: () => setAccount({ state: "none" }),
    erase: () => { setAccount({ state: "none" }); return '{"erased":"acct_a","at":1800000000000}'; },
    stayUnlocked: (isOn: boolean) => setAccount({ ...open(), staysUnlocked: isOn } as Account),
    chats: () => scene.chats,
    hasOlder: () => false,
    loadOlder: () => false,
    newChat: (options?: { temporary?: boolean }) => {
      const chat = line(40 + scene.chats.length, { title: null, updatedAt: Date.now(), isTemporary: options?.temporary === true });
      scene.chats = [chat, ...scene.chats];
      scene.pages.set(chat.id, { chat, messages: [], turns: [], draft: null, edits: [], followUps: [], asOf: null });
      emit({ type: "chats", changed: [chat], gone: [] });
      return chat.id;
    },
    open: (chat: string) => { const page = pageOf(chat); return { ...page, messages: page.messages.map((one) => (one.heard === undefined ? one : { ...one, finish: one.heard.finish })), turns: page.turns.map((one) => ({ ...one })) }; },
    ask: (chat: string, body: string) => {
      const page = pageOf(chat);
      const id = `msg_n${page.messages.length}`;
      page.messages.push(message(id, "user", page.messages.at(-1)?.id ?? null, body));
      page.followUps = [];
      page.turns = [{ chat, turn: `turn_${id}`, message: id, reply: `${id}r`, state: "running", words: "", progress: null, ahead: 0, approvals: [], historySent: 0, wishes: [] }];
      return { chat, turn: `turn_${id}`, message: id, reply: `${id}r` };
    },
    cancel: (chat: string, id: string) => emit({ type: "ended", chat, turn: id, reply: "msg_4", finish: "cancelled", wanted: [], tools: [] }),
    decide: () => undefined,
    hearAgain: () => undefined,
    catalogue: () => CATALOGUE,
    give: (chat: string, id: string, what: string) => { const one = pageOf(chat).turns.find((turn) => turn.turn === id); if (one) { one.wishes = one.wishes.filter((wish) => wish.what !== what); emit({ type: "wishes", chat, turn: id, wishes: one.wishes }); } },
    share: (chat: string, what: ChatLine["shares"][number], isOn: boolean) => { const line = pageOf(chat).chat; line.shares = isOn ? [...line.shares, what] : line.shares.filter((one) => one !== what); emit({ type: "chat", chat }); },
    setCached: (chat: string, isOn: boolean) => { pageOf(chat).chat.isCached = isOn; emit({ type: "chat", chat }); },
    similar: () => [{ name: "Tomatoes that survive a late frost", text: "Harden them off for ten days" }],
    rename: (chat: string, title: string) => { pageOf(chat).chat.title = title; emit({ type: "chats", changed: [{ ...pageOf(chat).chat }], gone: [] }); emit({ type: "chat", chat }); },
    setPinned: (chat: string, pinned: boolean) => { pageOf(chat).chat.pinned = pinned; emit({ type: "chats", changed: [{ ...pageOf(chat).chat }], gone: [] }); emit({ type: "chat", chat }); },
    search: (words: string) => searched(scene.chats.flatMap((chat) => found(chat, scene.pages.get(chat.id), words.toLowerCase()))),
    waiting: () => Array.from({ length: scene.waiting }, (_, number) => ({ number, chat: chatId(1), what: "message", about: null, text: "Is the ferry in March calm?", isSent: number === 0 })),
    copies: () => Array.from({ length: scene.copies }, (_, n) => ({ number: n + 1, chat: chatId(1), what: "edit", about: "msg_3", text: "Book it for the second week.", why: "changed" })),
    awaited: () => [],
    devices: () => [
      { device: "dev_a", label: "Laptop", createdAt: NOW, lastSeenDay: Math.floor(NOW / DAY), sessions: ["a"], isThis: true },
      { device: "dev_b", label: null, createdAt: NOW, lastSeenDay: Math.floor(NOW / DAY) - 3, sessions: ["b"], isThis: false },
    ],
    pairOffer: () => ({ text: "mfrggzdfmztwq2lkmrsxg5dfon", expiresAt: Date.now() + 120_000 }),
    pairFetch: () => "waiting",
    totpSecret: () => ({ secret: "JBSWY3DPEHPK3PXP", uri: "otpauth://totp/x" }),
    switchedOff: () => [...off],
    setSwitch: (name: string, isOn: boolean) => { if (isOn) off.delete(name); else off.add(name); },
    data: (kind: string, name: string) => data.get(`${kind}/${name}`) ?? null,
    dataOf: (kind: string) => [...data].filter(([key]) => key.startsWith(`${kind}/`)).map(([key, body]) => ({ kind, name: key.slice(kind.length + 1), body })),
    setData: (kind: string, name: string, body: string | null) => { if (body === null) data.delete(`${kind}/${name}`); else data.set(`${kind}/${name}`, body); },
    suggestions: () => ["Plan a weekend in Galway", "Explain Padmé padding", "What is due for the garden in November?"],
    exportChat: () => "# Importing a car\n",
    setDraft: () => undefined,
    firstDraft: () => null,
    setFirstDraft: () => undefined,
    setEdit: () => undefined,
    waysIn: () => ({ ways: [{ kind: "password", id: null, name: null }], hasTotp: false }),
    deleteChat: () => undefined,
    undoDelete: () => undefined,
  };
  return { core: overCommands(commands, hears), emit };
}

/** Every other command is not there. */
function overCommands(commands: Partial<Record<keyof Core, (...args: never[]) => unknown>>, hears: Set<(event: CoreEvent) => void>): Core {
  return new Proxy({} as Core, {
    get: (_, name) => {
      if (name === "on") {
        return (hear: (event: CoreEvent) => void) => {
          hears.add(hear);
          return () => hears.delete(hear);
        };
      }
      if (typeof name !== "string" || name === "then") return undefined;
      return async (...args: unknown[]) => {
        const run = commands[name as keyof Core] as ((...args: unknown[]) => unknown) | undefined;
        if (run === undefined) throw new CommandError({ name: "unavailable" });
        return run(...args);
      };
    },
  });
}

/** Where a chat has the words: in its title or summary, or in its first message that has them. */
function found(chat: ChatLine, page: ChatPage | undefined, words: string): Found[] {
  const rest = { chat: chat.id, title: chat.title, at: 0, length: Math.min(words.length, 3) };
  if (`${chat.title} ${chat.summary}`.toLowerCase().includes(words)) return [{ ...rest, message: null, excerpt: chat.summary ?? "" }];
  const one = page?.messages.find(({ body }) => body.toLowerCase().includes(words));
  return one === undefined ? [] : [{ ...rest, message: one.id, excerpt: one.body.slice(0, 60) }];
}

/** A search that found these. */
function searched(hits: Found[]): SearchResult {
  return { hits, all: hits.length, unsearched: 0, index: { done: 1, all: 1 } };
}
