// The figures of the page as Markdown: what was asked for, what was measured, on which machine.

export interface Figures {
  machine: string;
  browser: string;
  messages: number;
  /** Packed with brotli. */
  bytes: { page: number; worker: number; language: number };
  argon2: number[];
  unlock: number[];
  open: number[];
  streaming: { frames: number; mostTexts: number; mostOthers: number; allOthers: number };
  /** Through the chat, and through plain paragraphs. */
  scrolling: Scrolled;
  plain: Scrolled;
}

/** Frames of a scroll. */
interface Scrolled {
  seconds: number;
  drawn: number;
  /** Of those that were drawn: without what the page itself changed meanwhile. */
  partial: number;
  dropped: number;
}

const middle = (all: readonly number[]) => [...all].sort((one, two) => one - two)[Math.floor(all.length / 2)] ?? Number.NaN;
const ms = (value: number) => `${Math.round(value).toLocaleString("en")} ms`;
const kB = (value: number) => `${(value / 1_000).toFixed(1)} kB`;

/** What else is to be known of a run, in a sentence. */
const conditions = process.env["CONDITIONS"];

const scrolled = ({ seconds, drawn, partial, dropped }: Scrolled) => `${(drawn / seconds).toFixed(1)} drawn a second; ${dropped} of ${drawn + dropped} frames dropped, ${partial} drawn without the page's own changes`;

export function markdown({ machine, browser, messages, bytes, argon2, unlock, open, streaming, scrolling, plain }: Figures): string {
  const beyond = middle(unlock) - middle(argon2);
  const rows = [
    ["first load, English (brotli)", "60 kB", kB(bytes.page + bytes.worker)],
    ["first load, the largest language (brotli)", "60 kB", kB(bytes.page + bytes.worker + bytes.language)],
    [`unlock to the last chat visible, ${messages.toLocaleString("en")} messages, beyond Argon2id`, "1.5 s", ms(beyond)],
    [`a chat of ${messages.toLocaleString("en")} messages opens`, "1 s", `${ms(middle(open))} (worst ${ms(Math.max(...open))})`],
    ["text nodes that a streamed word changes", "1", `${streaming.mostTexts} at most, in ${streaming.frames} changes; ${streaming.allOthers} other changes`],
    ["scrolling through it", "60 frames a second", scrolled(scrolling)],
    ["scrolling through plain paragraphs, for comparison", "", scrolled(plain)],
  ];
  return [
    "# How fast the page is",
    "",
    `Made by \`bench/page.sh\` on ${new Date().toISOString().slice(0, 10)}: ${machine}; ${browser}. Times are medians of ${unlock.length}.${conditions === undefined ? "" : ` ${conditions}`}`,
    "",
    "| what | goal | measured |",
    "|---|---:|---|",
    ...rows.map((row) => `| ${row.join(" | ")} |`),
    "",
    `- Argon2id alone takes ${ms(middle(argon2))} in a worker of its own; the whole of unlocking takes ${ms(middle(unlock))}.`,
    `- First load: the page ${kB(bytes.page)} (index, styles, scripts with English words), the worker ${kB(bytes.worker)}. Everything else comes when something is typed.`,
    "- A chat counts as open when a frame with its newest message was drawn. Streaming is counted with a MutationObserver over the whole body.",
    "- Scrolling: 12,000 pixels up at 2,400 a second by a synthesized wheel, frames from the browser's own trace (`PipelineReporter`).",
    "",
  ].join("\n");
}
