// Made by `confidant memory hooks install opencode`; `confidant memory hooks remove opencode` takes it away.
import { spawn } from "node:child_process"

const COMMAND = [] // filled in

/** Calls Confidant; gives what it printed, or nothing after so many milliseconds. */
function call(event, input, patience) {
  return new Promise((resolve) => {
    let said = ""
    let child
    const timer = setTimeout(() => {
      child?.kill()
      resolve("")
    }, patience)
    const end = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    try {
      child = spawn(COMMAND[0], [...COMMAND.slice(1), event], { stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", () => end(""))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (chunk) => (said += chunk))
      child.on("close", () => end(said))
      child.stdin.end(JSON.stringify(input))
    } catch {
      end("")
    }
  })
}

/** What is remembered of this folder, or nothing. */
async function recall(session_id, cwd) {
  try {
    return JSON.parse(await call("session-start", { session_id, cwd }, 2000)).hookSpecificOutput.additionalContext
  } catch {
    return ""
  }
}

export const ConfidantMemory = async ({ directory }) => {
  const recalled = new Map()
  return {
    event: async ({ event }) => {
      const session = event?.properties?.sessionID
      if (event?.type === "session.idle" && session) {
        void call("turn-end", { session_id: session, cwd: directory }, 5000)
      }
    },
    "experimental.chat.system.transform": async (input, output) => {
      const session = input?.sessionID
      if (!session) return
      if (!recalled.has(session)) recalled.set(session, recall(session, directory))
      const text = await recalled.get(session)
      if (text) output.system.push(text)
    },
  }
}
