// Answers: what a device says in clear so that a model can answer, and what comes back.
//
//   device                                            server
//   write: message, head with the pending reply ──▶               sealed; the server reads none of it
//   chat_message_added {words, claim}           ──▶
//                                ◀── request_chat_history         only if its cache is not what the claim says
//   chat_history {branch, proofs}               ──▶
//          ◀── ai_typing_started, ai_message_update 1, 2, …, ai_typing_ended, post_processing_completed
//   write: the reply, head without the pending  ──▶
//   ai_response_completed                       ──▶               the server forgets the answer
//
// Words go to the server only for a turn that this device began itself and that has no answer yet. Easy to get wrong: believing a reply.
// It counts for the turn and the reply id that the sealed head names, and for nothing else.

import { ErrorName } from "./errors";
import {
  MAX_ASKS,
  MAX_BESIDE,
  MAX_BESIDE_TEXT,
  MAX_CLIENT_DATA,
  MAX_DELTA,
  MAX_HISTORY,
  MAX_MESSAGE,
  MAX_OFF,
  MAX_PADDING,
  MAX_PIECES,
  MAX_QUERY,
  MAX_RECORD,
  MAX_REMEMBERS,
  MAX_SHORT,
  MAX_SUGGESTIONS,
  MAX_TAGS,
  MAX_TOOL_INPUT,
  MAX_WORDS,
} from "./limits";
import { Remembered } from "./remembered";
import { type At, type Value, list, object, optional, words } from "./shapes";
import { blob, chatId, digest, flag, messageId, text, turnId, u32, u64, utf8Length } from "./values";

/** How long the server may keep the words of a chat to answer the next message. */
export const Keep = words("Keep", [
  /** As the server's settings say: sealed, for a day, for the chats that were used last. */
  "cache",
  /** Only in memory, until the answer is stored. */
  "turn",
]);
export type Keep = Value<typeof Keep>;

/** Who said a message of the history. */
export const SaidBy = words("SaidBy", [
  /** The person. */
  "user",
  /** The model. */
  "assistant",
  /** A tool. */
  "tool",
  /** The model, about what came before. */
  "summary",
]);
export type SaidBy = Value<typeof SaidBy>;

/** Who said something beside an answer. */
export const BesideBy = words("BesideBy", [
  /** The model, about what came before. */
  "summary",
  /** A tool. */
  "tool",
]);
export type BesideBy = Value<typeof BesideBy>;

/** Why the history is asked for. */
export const HistoryReason = words("HistoryReason", [
  /** There is none here. */
  "cache_miss",
  /** There is one that cannot be opened. */
  "decryption_failed",
  /** There is one of another branch, or of another time. */
  "other_branch",
]);
export type HistoryReason = Value<typeof HistoryReason>;

/** What a turn is doing. */
export const Step = words("Step", [
  /** Its kind, its model and its tools are chosen. */
  "preparing",
  /** The model answers. */
  "answering",
  /** A tool works. */
  "working",
]);
export type Step = Value<typeof Step>;

/** What a person may need beside the answer. */
export const Care = words("Care", [
  /** Somebody to talk to: the answer, or what stands in its place, says where to find help. */
  "help",
]);
export type Care = Value<typeof Care>;

/** How an answer ended. */
export const Finish = words("Finish", [
  /** It is whole. */
  "whole",
  /** It was too long, and ends where a message does. */
  "cut",
  /** It was cancelled; what was said so far counts. */
  "cancelled",
  /** The request was refused, and the words say why. */
  "declined",
  /** The chat was ended for safety. Further turns are refused. */
  "ended",
  /** The person asked to be forgotten: a chat is forgotten by deleting it, which only a device can do. */
  "asked_to_forget",
]);
export type Finish = Value<typeof Finish>;

/** What a device gives with a message, by the person's consent. */
export const Given = words("Given", [
  /** A setting or a memory. */
  "settings",
  /** The summary of a past chat. */
  "summary",
  /** What a search on the device found. */
  "search",
]);
export type Given = Value<typeof Given>;

/**
 * Asks for an answer. The words are for this turn; the message itself is stored by a write, sealed.
 *
 * Answers: `ai_task_initiated` or `message_queued`, or `request_chat_history`, or `refused`. The same turn sent again is the same turn.
 */
export const ChatMessageAdded = object("ChatMessageAdded", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn, an id that the device made. The chat's head waits for it. */
  turn: turnId,
  /** The message. */
  message: messageId,
  /** The id that the reply will have. */
  reply: messageId,
  /** Its words. */
  text: text(MAX_QUERY),
  /** How many messages the branch has before this one. */
  count: u32,
  /** The digest of the branch before this message. */
  before: digest,
  /** The digest with this message and its reply. */
  after: digest,
  /** How long words may be kept. */
  keep: Keep,
  /** Whether the history follows in `chat_history` without being asked for. */
  history: flag,
  /** Whether the chat has a title already. Then no title, icon and category are made. */
  titled: flag,
  /** The focus mode that the person chose, by name. */
  focus: optional(text(MAX_SHORT)),
  /**
   * What the person switched off: `tools`, `focus`, `settings`, `similar`, `search`, `suggestions`, a tool by its name, or a focus mode as
   * `focus:` and its name.
   */
  off: list(() => text(MAX_SHORT), MAX_OFF),
  /** Settings and memories that the device could give, by name. Those that would have helped are named with the answer. */
  available: list(() => text(MAX_SHORT), MAX_OFF),
  /** What the person lets the server have for this turn: at most 4 KiB together. */
  given: list(() => Piece, MAX_PIECES),
  /** What the server may ask this device for while it answers, with `request_client_data`: each once. Anything else gets nothing. */
  asks: list(() => Given, MAX_ASKS),
  /**
   * What the server may keep of this chat beyond its words, and use for its answers: what the person switched on for it. What is not in the
   * list is forgotten. Left out: nothing is kept or used in this turn, and nothing forgotten.
   */
  remembers: optional(list(() => Remembered, MAX_REMEMBERS)),
}), { link: "chat_message_added", check: (ask, at) => {
      if (ask.message === ask.reply) at.field("reply").fail("expected another id than the message's");
      checkSize(ask.given, at.field("given"));
    } });
export type ChatMessageAdded = Value<typeof ChatMessageAdded>;

/**
 * The history of a turn that was begun: the branch before its message, the oldest message first.
 *
 * In as many frames as it takes. Answer to the last: as to `chat_message_added`.
 */
export const ChatHistory = object("ChatHistory", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** Messages. */
  messages: list(() => Heard, MAX_HISTORY),
  /** Whether more follow. */
  more: flag,
}), { link: "chat_history" });
export type ChatHistory = Value<typeof ChatHistory>;

/** A message of the history. */
export const Heard = object("Heard", () => ({
  /** Its id. */
  id: messageId,
  /** Who said it. Without a good proof the model is shown it as a quotation. */
  by: SaidBy,
  /** The words. */
  text: text(MAX_QUERY),
  /** The server's proof, from when it was said. */
  proof: optional(digest),
  /** How many messages of the branch it stands for, if not one: none for what a tool said beside an answer, all that it sums up for a summary. */
  count: optional(u32),
  /** Of a summary: where the transcript stood behind the words that it sums up. They are not sent. */
  sumsUp: optional(digest),
}));
export type Heard = Value<typeof Heard>;

/**
 * Something that the chat has beside an answer: it is stored with the answer, sealed, and goes along when the history is asked for.
 *
 * Its id follows from the turn and from its place in the list ([FORMAT.md](FORMAT.md)). What a tool said belongs to the answer that it came with; a summary
 * to the last message that it sums up.
 */
export const Beside = object("Beside", () => ({
  /** Who said it. */
  by: BesideBy,
  /** The words. Of a tool its name, a line break, and what it said. */
  text: text(MAX_BESIDE_TEXT),
  /** The server's proof that it was said here; kept in the sealed message. */
  proof: digest,
  /** Of a summary: how many messages of the branch it stands for, counted from the first. */
  count: optional(u32),
  /** Of a summary: where the transcript stood behind them. A device that finds another does not keep the summary. */
  sumsUp: optional(digest),
}), { check: (beside, at) => {
  const isSummary = beside.by === "summary";
  if ((beside.count !== undefined) !== isSummary) at.field("count").fail("expected a number of a summary, and of nothing else");
  if ((beside.sumsUp !== undefined) !== isSummary) at.field("sums_up").fail("expected a digest of a summary, and of nothing else");
} });
export type Beside = Value<typeof Beside>;

/** Asks for the history of a turn. A device answers for a turn that it began on this socket, twice at most. */
export const RequestChatHistory = object("RequestChatHistory", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** Its message. */
  message: messageId,
  /** Why. */
  reason: HistoryReason,
  /** How many messages the server has of the chat; none of them may be of this branch. */
  have: u32,
}), { link: "request_chat_history" });
export type RequestChatHistory = Value<typeof RequestChatHistory>;

/**
 * Asks the device that began a turn for something that only devices can read. The turn goes on without it after a few seconds.
 *
 * A device answers for a turn that it began on this socket, that has no answer yet, and whose question allowed it (`asks`), once for each
 * kind; and only if the person says yes, or has switched it on for this chat.
 */
export const RequestClientData = object("RequestClientData", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** What. */
  what: Given,
  /** For `settings` their names, of those that the question listed as available; for `summary` what the question is about, as tags. */
  names: list(() => text(MAX_SHORT), MAX_OFF),
  /** For `search`: the words to look for. */
  query: optional(text(MAX_WORDS)),
}), { link: "request_client_data" });
export type RequestClientData = Value<typeof RequestClientData>;

/**
 * What a device gives, because the person said yes, now or by a switch of this chat; without pieces: nothing. With what was given before, at
 * most three pieces and 4 KiB a turn.
 *
 * It has no answer. Data that nobody waits for is `refused` with `not-found`.
 */
export const ClientData = object("ClientData", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** What was asked for. */
  what: Given,
  /** The pieces. */
  pieces: list(() => Piece, MAX_PIECES),
}), { link: "client_data", check: (data, at) => {
      if (data.pieces.some((piece) => piece.what !== data.what)) at.field("pieces").fail("expected pieces of what was asked for");
      checkSize(data.pieces, at.field("pieces"));
    } });
export type ClientData = Value<typeof ClientData>;

function checkSize(pieces: readonly { text: string }[], at: At): void {
  const bytes = pieces.reduce((sum, piece) => sum + utf8Length(piece.text), 0);
  if (bytes > MAX_CLIENT_DATA) at.fail(`has more than ${MAX_CLIENT_DATA} bytes`);
}

/** The turn runs. */
export const AiTaskInitiated = object("AiTaskInitiated", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
}), { link: "ai_task_initiated" });
export type AiTaskInitiated = Value<typeof AiTaskInitiated>;

/** The turn waits for the one before it in its chat. */
export const MessageQueued = object("MessageQueued", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** How many are before it. */
  ahead: u32,
}), { link: "message_queued" });
export type MessageQueued = Value<typeof MessageQueued>;

/**
 * Asks for the answer of a turn: what of it there is, and the rest as it comes. For every reply that a chat's head waits for.
 *
 * Answers: `ai_task_initiated`, then what the turn sent from `from` on; `pending_ai_response`; or `refused` with `not-found`: then there is no
 * answer, and the message may be sent again as another turn.
 */
export const ResumeAiTask = object("ResumeAiTask", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** The digest with the message and its reply. A device that cannot make it gets no words. */
  after: digest,
  /** How many bytes of the answer the device has. */
  from: u64,
  /** The message and its reply: where another gateway was asked, this one learns them here, proves the answer and leaves a letter. */
  message: optional(messageId),
  /** The id that the reply will have. */
  reply: optional(messageId),
}), { link: "resume_ai_task" });
export type ResumeAiTask = Value<typeof ResumeAiTask>;

/** Stops a turn. What was said so far is its answer. */
export const CancelAiTask = object("CancelAiTask", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
}), { link: "cancel_ai_task" });
export type CancelAiTask = Value<typeof CancelAiTask>;

/** The answer is stored: the server may forget it. Answer: `ai_response_storage_confirmed`. */
export const AiResponseCompleted = object("AiResponseCompleted", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
}), { link: "ai_response_completed" });
export type AiResponseCompleted = Value<typeof AiResponseCompleted>;

/** The answer is forgotten. */
export const AiResponseStorageConfirmed = object("AiResponseStorageConfirmed", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
}), { link: "ai_response_storage_confirmed" });
export type AiResponseStorageConfirmed = Value<typeof AiResponseStorageConfirmed>;

/** What a turn is doing. */
export const PreprocessingStep = object("PreprocessingStep", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** What. */
  step: Step,
  /** In a few words. */
  text: text(MAX_SHORT),
}), { link: "preprocessing_step" });
export type PreprocessingStep = Value<typeof PreprocessingStep>;

/** The answer begins. */
export const AiTypingStarted = object("AiTypingStarted", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
}), { link: "ai_typing_started" });
export type AiTypingStarted = Value<typeof AiTypingStarted>;

/** The next words of the answer. A device that lacks words before them asks with `resume_ai_task`. */
export const AiMessageUpdate = object("AiMessageUpdate", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** How many bytes the answer has before these words. */
  at: u64,
  /** The words. */
  text: text(MAX_DELTA),
  /** As many characters as it takes that lengths tell little. */
  pad: text(MAX_PADDING),
}), { link: "ai_message_update" });
export type AiMessageUpdate = Value<typeof AiMessageUpdate>;

/** The answer is there. */
export const AiTypingEnded = object("AiTypingEnded", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** How many bytes it has. A device that has others asks for the whole with `resume_ai_task`. */
  bytes: u64,
  /** The hash of its words. */
  hash: digest,
  /** How it ended. */
  finish: Finish,
  /** The server's proof that its model said this here; kept in the sealed message. */
  proof: optional(digest),
  /** Which model answered. */
  model: optional(text(MAX_SHORT)),
  /** What was found out before the answer. */
  about: About,
  /** What the chat keeps beside the answer, if there is anything. */
  beside: optional(list(() => Beside, MAX_BESIDE)),
}), { link: "ai_typing_ended" });
export type AiTypingEnded = Value<typeof AiTypingEnded>;

/** What was found out about a message. */
export const About = object("About", () => ({
  /** A title for the chat, if it had none. */
  title: optional(text(MAX_SHORT)),
  /** Icons that fit, if it had no title. */
  icons: list(() => text(MAX_SHORT), MAX_TAGS),
  /** What kind of request it is. */
  category: optional(text(MAX_SHORT)),
  /** Why the model that answers was chosen, in a sentence; kept in the sealed message, beside the model's name. */
  reason: optional(text(MAX_WORDS)),
  /** The focus mode that is on now. */
  focus: optional(text(MAX_SHORT)),
  /** Tools that were used. */
  tools: list(() => text(MAX_SHORT), MAX_OFF),
  /** Settings and memories that would have helped, by name. */
  wanted: list(() => text(MAX_SHORT), MAX_OFF),
  /** What the person may need besides, if anything. */
  care: optional(Care),
}));
export type About = Value<typeof About>;

/** There is no answer. */
export const AiTaskFailed = object("AiTaskFailed", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** Why. */
  error: ErrorName,
  /** What happened. */
  what: text(MAX_WORDS),
  /** What to do. */
  hint: text(MAX_WORDS),
}), { link: "ai_task_failed" });
export type AiTaskFailed = Value<typeof AiTaskFailed>;

/** What was made of the message and its answer. */
export const PostProcessingCompleted = object("PostProcessingCompleted", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** What could be asked next. */
  followUps: list(() => text(MAX_WORDS), MAX_SUGGESTIONS),
  /** What another chat could begin with. */
  newChats: list(() => text(MAX_WORDS), MAX_SUGGESTIONS),
  /** The chat in few words. */
  summary: optional(text(MAX_WORDS)),
  /** What the chat is about. */
  tags: list(() => text(MAX_SHORT), MAX_TAGS),
}), { link: "post_processing_completed" });
export type PostProcessingCompleted = Value<typeof PostProcessingCompleted>;

/**
 * The answer came while no device took it: a letter, sealed to the account's mailbox. Stored, it is acknowledged with
 * `ai_response_completed`; after 30 days it is gone.
 */
export const PendingAiResponse = object("PendingAiResponse", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** The id that the reply was given. */
  reply: messageId,
  /** The letter. */
  letter: blob(MAX_MESSAGE),
  /** What was made of it, sealed likewise. */
  more: optional(blob(MAX_RECORD)),
}), { link: "pending_ai_response" });
export type PendingAiResponse = Value<typeof PendingAiResponse>;

/** A tool may only work if the person allows it. The turn goes on with `decide_ai_task`, also later. */
export const AiApprovalRequested = object("AiApprovalRequested", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** Which question. */
  approval: text(MAX_SHORT),
  /** The tool. */
  tool: text(MAX_SHORT),
  /** What it would be called with, in JSON. */
  input: text(MAX_TOOL_INPUT),
  /** Why it is asked. */
  why: text(MAX_WORDS),
  /** How long it can still be decided, in milliseconds. Then the call is not made. */
  expiresMs: u64,
}), { link: "ai_approval_requested" });
export type AiApprovalRequested = Value<typeof AiApprovalRequested>;

/** The person's word on a tool. Answer: as to `chat_message_added`. */
export const DecideAiTask = object("DecideAiTask", () => ({
  /** The chat. */
  chat: chatId,
  /** The turn. */
  turn: turnId,
  /** Which question. */
  approval: text(MAX_SHORT),
  /** Whether it may. */
  allow: flag,
}), { link: "decide_ai_task" });
export type DecideAiTask = Value<typeof DecideAiTask>;

/**
 * Something that only devices can read, given for this turn because the person said yes, now or by a switch of this chat. A note of it is kept in
 * the sealed message.
 */
export const Piece = object("Piece", () => ({
  /** What it is. */
  what: Given,
  /** Its name or title. */
  name: text(MAX_SHORT),
  /** What it says. */
  text: text(MAX_CLIENT_DATA),
}));
export type Piece = Value<typeof Piece>;
