// daypack for opencode: what goes to the model is packed by a daypack process on this machine, what opencode keeps is not.
//
// Whatever fails, opencode sends its own messages unchanged, and a line in hook.log says why. `daypack setup` installs
// this file and writes the command below; `daypack setup --remove` takes it back.

import { spawn } from "node:child_process"
import { accessSync, appendFileSync, constants, mkdirSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import { join } from "node:path"

const COMMAND = ["sh","-c","if command -v daypack >/dev/null 2>&1; then exec daypack hook opencode --serve; else exec uvx daypack hook opencode --serve; fi"]
const HOME = ""

const PATIENCE_MS = Number(process.env.DAYPACK_PATIENCE_MS) || 5_000
const PAUSE_MS = 60_000 // after an answer that did not come, or two processes that ended at once
const ENDING_MS = 1_500
const NEAR = 0.5 // of the limit: below it nothing is asked
const CHARS_PER_TOKEN = 3
const FILE_CHARS = 4_500 // counted for an image or a document, whose data says nothing about its cost
const OUTPUT_TOKENS = 32_000 // opencode lets no reply be longer, and keeps no more free for one
const COMPACTION_TOKENS = 20_000

// The process

export class Daypack {
  constructor(command = COMMAND, patience = PATIENCE_MS) {
    this.command = command
    this.patience = patience
    this.waiting = new Map()
    this.number = 0
    this.crashes = 0
    this.pausedUntil = 0
  }

  // Return the answer to a request; a process that was killed is started once more. An event is sent even if the
  // process is slow, and nothing waits long for it: without it the session would not be recorded.
  async ask(fields, again = true) {
    const isEvent = fields.do === "event"
    if (!isEvent && Date.now() < this.pausedUntil) throw new Skipped("daypack did not answer a moment ago")
    const child = this.child ?? this.start()
    const n = ++this.number
    let timer
    try {
      const answer = await new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(new Late(`no answer within ${this.patience} ms`)), this.patience)
        this.waiting.set(n, { resolve, reject, child })
        child.stdin.write(JSON.stringify({ n, ...fields }) + "\n", (error) => error && reject(new Ended(String(error))))
      })
      this.crashes = 0
      if (answer.error !== undefined) throw new Refused(answer.error)
      return answer.result
    } catch (error) {
      if (error instanceof Late && isEvent) return
      if (error instanceof Late) this.stop(child)
      else if (error instanceof Ended && again && this.crashes < 2) return await this.ask(fields, false)
      if (error instanceof Late || error instanceof Ended) this.pausedUntil = Date.now() + PAUSE_MS
      throw error
    } finally {
      clearTimeout(timer)
      this.waiting.delete(n)
    }
  }

  start() {
    const [program, ...words] = this.command
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"] })
    let pieces = [] // of a line that has not ended
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => {
      pieces.push(text)
      if (!text.includes("\n")) return
      const lines = pieces.join("").split("\n")
      pieces = [lines.pop()]
      for (const line of lines) this.take(line)
    })
    for (const stream of [child.stdin, child.stdout]) stream.on("error", () => {})
    const end = (problem) => this.lose(child, problem)
    child.on("error", (error) => end(String(error)))
    child.on("exit", (code, signal) => end(`daypack ended: ${signal ?? code}`))
    child.unref?.()
    this.child = child
    return child
  }

  take(line) {
    try {
      const answer = JSON.parse(line)
      this.waiting.get(answer.n)?.resolve(answer)
    } catch {
      // not an answer
    }
  }

  lose(child, problem) {
    if (this.child === child) {
      this.child = undefined
      this.crashes += 1
    }
    for (const request of this.waiting.values()) if (request.child === child) request.reject(new Ended(problem))
  }

  stop(child) {
    if (this.child === child) this.child = undefined
    child.kill("SIGKILL")
  }

  // End the process when it has answered all that it was asked; it ends by itself when opencode does.
  async close() {
    const child = this.child
    if (!child) return
    this.child = undefined
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, ENDING_MS)
      child.on("exit", () => resolve(clearTimeout(timer)))
      child.stdin.end()
    })
  }
}

class Late extends Error {}
class Ended extends Error {}
class Refused extends Error {} // it is in hook.log already
class Skipped extends Error {} // so is its reason

// The window

export class Window {
  constructor(daypack, client, cwd) {
    this.daypack = daypack
    this.client = client
    this.cwd = cwd
    this.sessions = new Map()
    this.compacting = new Set() // sessions whose next list is for a summary
    this.settings = {}
    this.limits = new Map() // PROVIDER/MODEL -> its limits
  }

  session(id) {
    if (!this.sessions.has(id)) this.sessions.set(id, { texts: {}, asked: new Set(), systemChars: 0 })
    return this.sessions.get(id)
  }

  // Return the messages to send, or undefined for those that opencode has.
  async transform(messages) {
    const user = messages.findLast((message) => message.info.role === "user")
    if (!user) return void this.compacting.clear()
    const id = user.info.sessionID
    if (this.compacting.delete(id)) return
    const session = this.session(id)
    session.used = true
    const texts = await this.attempt("texts", id, () => this.textsOf(id, session, user, messages))
    const packed = await this.attempt("pack", id, () => this.pack(id, session, user, messages))
    return packed || texts ? arrange(messages, user, packed, session.texts) : undefined
  }

  async attempt(what, session, work) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof Skipped)) log(what, session, error)
    }
  }

  // Ask for what belongs to the newest prompt, once; return whether the session has such texts.
  async textsOf(id, session, user, messages) {
    if (await this.isChild(id, session)) return false
    const message = user.info.id
    if (!session.asked.has(message)) {
      session.asked.add(message)
      const resumed = messages.some((each) => each.info.role === "assistant")
      const source = session.compacted ? "compact" : session.known ? "" : resumed ? "resume" : "startup"
      const prompt = user.parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      const texts = await this.daypack.ask({
        ...{ do: "texts", session: id, cwd: this.cwd, message, source },
        prompt: prompt.map((part) => part.text).join("\n"),
      })
      session.texts = texts ?? {}
      session.known = true
      session.compacted = false
    }
    return Object.keys(session.texts).length > 0
  }

  async isChild(id, session) {
    if (session.parent === undefined) {
      const found = await this.client.session.get({ path: { id } }).catch(() => undefined)
      session.parent = found?.data?.parentID ?? ""
    }
    return session.parent !== ""
  }

  async pack(id, session, user, messages) {
    const model = user.info.model
    const limit = model && (await this.limitOf(model))
    if (!limit) return
    const used = usedTokens(messages)
    const chars = messages.reduce((sum, message) => sum + message.parts.reduce((all, part) => all + charsOf(part), 0), 0)
    const overhead = Math.round(session.systemChars / CHARS_PER_TOKEN)
    if (Math.max(used?.tokens ?? 0, overhead + chars / CHARS_PER_TOKEN) < NEAR * limit) return
    const request = { session: id, visible: messages.map((message) => message.info.id), user: user.info.id }
    return await this.daypack.ask({
      ...{ do: "pack", session: id, cwd: this.cwd },
      request: { ...request, model: model.modelID, limit, overhead, used: used ?? null },
    })
  }

  // Return the tokens of a request at which opencode would compact; 0 if they are not known.
  async limitOf(model) {
    const wanted = `${model.providerID}/${model.modelID}`
    if (!this.limits.has(wanted)) {
      const found = await this.client.config.providers()
      const { providers } = found.data
      this.limits.set(wanted, undefined) // an unknown model is not asked for again
      for (const { id, models } of providers)
        for (const [name, each] of Object.entries(models)) this.limits.set(`${id}/${name}`, each.limit)
    }
    const limit = this.limits.get(wanted)
    if (!limit?.context) return 0
    const output = Math.min(limit.output || OUTPUT_TOKENS, OUTPUT_TOKENS)
    const reserved = this.settings.compaction?.reserved ?? Math.min(COMPACTION_TOKENS, output)
    return Math.max(0, limit.input ? limit.input - reserved : limit.context - output)
  }
}

// Return what is sent: opencode's own messages, texts beside them, and texts in place of those that are left out.
export function arrange(messages, user, packed, texts) {
  const found = new Map(messages.map((message) => [message.info.id, message]))
  const kept = packed ? packed.messages : messages.map((message) => ({ id: message.info.id }))
  if (!kept.some(({ id }) => id === user.info.id)) throw new Error("the newest message is not in the pack")
  const sent = packed?.head.length ? [textMessage(user, "head", packed.head)] : []
  for (const { id, outputs = {}, after = [] } of kept) {
    const message = found.get(id)
    if (!message) throw new Error(`no message ${id}`)
    const shown = withOutputs(message, outputs)
    const added = [...(texts[id] ? [texts[id]] : []), ...(message.info.role === "user" ? after : [])]
    sent.push(added.length ? { ...shown, parts: [...shown.parts, ...textParts(message.info, id, added)] } : shown)
    if (message.info.role !== "user" && after.length) sent.push(textMessage(user, id, after))
  }
  return sent
}

function withOutputs(message, outputs) {
  if (!Object.keys(outputs).length) return message
  const parts = message.parts.map((part) => {
    if (part.type !== "tool" || part.state?.status !== "completed" || !(part.callID in outputs)) return part
    const { attachments: _, ...state } = part.state
    return { ...part, state: { ...state, output: outputs[part.callID] } }
  })
  return { ...message, parts }
}

function textMessage(user, name, texts) {
  const { sessionID, agent, model, time } = user.info
  const info = { id: `msg_daypack_${name}`, sessionID, role: "user", time, agent, model }
  return { info, parts: textParts(info, name, texts) }
}

function textParts(info, name, texts) {
  return texts.map((text, at) => ({
    ...{ id: `prt_daypack_${name}_${at}`, sessionID: info.sessionID, messageID: info.id },
    ...{ type: "text", text, synthetic: true },
  }))
}

// Return the input tokens of the newest call whose window is still the one that grows, and the last message in it.
function usedTokens(messages) {
  const at = messages.findLastIndex(({ info }) => info.role === "assistant" && info.finish && !info.error && !info.summary)
  const info = messages[at]?.info
  const compacted = messages.some((each) => each.info.summary === true && each.info.time.created > info?.time.created)
  if (at < 1 || compacted || !info.tokens) return
  const { input = 0, cache = {} } = info.tokens
  const tokens = input + (cache.read ?? 0) + (cache.write ?? 0)
  return tokens > 0 ? { tokens, last: messages[at - 1].info.id } : undefined
}

function charsOf(part) {
  if (part.type === "text" || part.type === "reasoning") return part.text?.length ?? 0
  if (part.type === "file") return FILE_CHARS
  if (part.type !== "tool") return 0
  const { input, output, error, attachments = [] } = part.state ?? {}
  return JSON.stringify(input ?? {}).length + (output ?? error ?? "").length + FILE_CHARS * attachments.length
}

// Failures

function log(event, session, error) {
  const text = `${error?.name ?? "Error"}: ${error?.message ?? error}`.replace(/[\s\p{C}]+/gu, " ").slice(0, 500)
  const line = `${new Date().toISOString().slice(0, 19)}Z opencode ${event} ${session || "?"} ${text}\n`
  const uid = process.env.DAYPACK_UID || String(process.getuid?.() ?? 0)
  try {
    const folder = join(homeFolder(), "home", uid)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    appendFileSync(join(folder, "hook.log"), line, { mode: 0o600 })
  } catch {
    try {
      appendFileSync(join(tmpdir(), `daypack-hook-${uid}.log`), line, { mode: 0o600 })
    } catch {
      // there is nowhere to write
    }
  }
}

function homeFolder() {
  const chosen = process.env.DAYPACK_HOME || HOME
  if (chosen) return chosen
  try {
    accessSync("/ctx", constants.W_OK)
    return "/ctx"
  } catch {
    return join(homedir(), ".daypack")
  }
}

// The plug-in

export default {
  id: "daypack",
  server: async ({ client, directory }) => {
    const daypack = new Daypack()
    const window = new Window(daypack, client, directory)
    const tell = (event, session) =>
      window.attempt(event, session, () => daypack.ask({ do: "event", event, session, cwd: directory }))
    return {
      config: async (settings) => {
        window.settings = settings ?? {}
      },
      event: async ({ event }) => {
        const { sessionID, info } = event.properties ?? {}
        if (!sessionID) return
        const session = window.session(sessionID)
        if (info?.id === sessionID && "slug" in info) session.parent ??= info.parentID ?? ""
        if (event.type === "session.compacted") session.compacted = true
        if (event.type !== "session.idle") return
        window.compacting.delete(sessionID)
        if (session.used && session.parent === "") await tell("Stop", sessionID)
      },
      "experimental.chat.messages.transform": async (_, output) => {
        const sent = await window.attempt("transform", "", () => window.transform(output.messages))
        if (sent) output.messages.splice(0, output.messages.length, ...sent)
      },
      "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
        if (!sessionID) return
        const session = window.session(sessionID)
        session.systemChars = Math.max(session.systemChars, system.join("").length)
      },
      "experimental.session.compacting": async ({ sessionID }, output) => {
        window.compacting.add(sessionID)
        const request = { do: "compact", session: sessionID, cwd: directory }
        const text = await window.attempt("compact", sessionID, () => daypack.ask(request))
        if (text) output.context.push(text)
      },
      dispose: async () => {
        const ended = [...window.sessions].filter(([, session]) => session.used && session.parent === "")
        for (const [id] of ended) void tell("SessionEnd", id)
        await daypack.close()
      },
    }
  },
}
