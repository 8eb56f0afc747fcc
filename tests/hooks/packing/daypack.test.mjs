// The plug-in of opencode by itself, with scripted processes in place of daypack.
import assert from "node:assert/strict"
import test from "node:test"

const { Daypack, Window, arrange } = await import(process.env.PLUGIN)

const script = (code) => [process.execPath, "-e", code]
const ECHO = script(`require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const {n, ...rest} = JSON.parse(line); console.log("noise"); console.log(JSON.stringify({n, result: rest})) })`)
const user = (id, text = "Hello") => ({ info: { id, role: "user", sessionID: "ses_1" }, parts: [{ type: "text", text }] })
const reply = (id, output) => ({
  info: { id, role: "assistant", sessionID: "ses_1" },
  parts: [
    { type: "reasoning", text: "…", metadata: { anthropic: { signature: "s=" } } },
    { type: "tool", callID: "c1", tool: "bash", state: { status: "completed", input: {}, output, time: {} } },
  ],
})

test("answers are matched to their requests, and noise is skipped", async () => {
  const daypack = new Daypack(ECHO, 20_000)
  const answers = await Promise.all([1, 2, 3].map((value) => daypack.ask({ value })))
  assert.deepEqual(answers, [{ value: 1 }, { value: 2 }, { value: 3 }])
  await daypack.close()
})

test("a process that was killed is started again", async () => {
  const daypack = new Daypack(ECHO, 20_000)
  await daypack.ask({ value: 1 })
  daypack.child.kill("SIGKILL")
  assert.deepEqual(await daypack.ask({ value: 2 }), { value: 2 })
  await daypack.close()
})

test("after a process that ends at once, or hangs, nothing is asked for a while", async () => {
  for (const [code, patience] of [["process.exit(1)", 20_000], ["setInterval(() => {}, 1000)", 50]]) {
    const daypack = new Daypack(script(code), patience)
    await assert.rejects(daypack.ask({}))
    assert.equal(daypack.child, undefined)
    await assert.rejects(daypack.ask({}), /a moment ago/)
  }
})

test("an event is told to a process that is slow, and after one that hangs", async () => {
  const { existsSync, readFileSync } = await import("node:fs")
  const told = `${process.env.DAYPACK_HOME}/told`
  const slow = script(`require("readline").createInterface({input: process.stdin}).on("line", (line) => {
    if (JSON.parse(line).do === "texts") return setInterval(() => {}, 1000)
    setTimeout(() => require("fs").appendFileSync(${JSON.stringify(told)}, line + ";"), 300) })`)
  const daypack = new Daypack(slow, 50)
  await assert.rejects(daypack.ask({ do: "texts" }), /no answer/)
  assert.equal(await daypack.ask({ do: "event", event: "Stop" }), undefined)
  assert.ok(!existsSync(told))
  await assert.rejects(daypack.ask({ do: "texts" }), /a moment ago/)
  await daypack.ask({ do: "event", event: "SessionEnd" })
  const ended = new Promise((resolve) => daypack.child.on("exit", resolve))
  await daypack.close()
  await ended
  assert.deepEqual(readFileSync(told, "utf8").match(/Stop|SessionEnd/g), ["Stop", "SessionEnd"])
})

test("messages that are kept are opencode's own objects", () => {
  const messages = [user("m1"), reply("m2", "long"), user("m3")]
  const packed = { head: ["summary"], messages: [{ id: "m2" }, { id: "m3", after: ["found"] }] }
  const sent = arrange(messages, messages[2], packed, { m3: "note" })
  assert.deepEqual(sent.map((message) => message.info.role), ["user", "assistant", "user"])
  assert.equal(sent[1], messages[1])
  assert.deepEqual(sent[2].parts.map((part) => part.text), ["Hello", "note", "found"])
  assert.equal(messages[2].parts.length, 1)
})

test("of an output that is replaced, only the output changes", () => {
  const messages = [user("m1"), reply("m2", "long")]
  const packed = { head: [], messages: [{ id: "m1" }, { id: "m2", outputs: { c1: "short" } }] }
  const [, sent] = arrange(messages, messages[0], packed, {})
  assert.equal(sent.parts[0], messages[1].parts[0])
  assert.equal(sent.parts[1].state.output, "short")
  assert.equal(messages[1].parts[1].state.output, "long")
})

test("a pack that names an unknown message is refused", () => {
  const refuse = (kept, problem) => assert.throws(() => arrange([user("m1")], user("m1"), { head: [], messages: kept }, {}), problem)
  refuse([{ id: "m9" }, { id: "m1" }], /no message m9/)
  refuse([], /newest message is not in the pack/)
})

test("the list for a summary of opencode is left alone, once", async () => {
  const asked = []
  const daypack = { ask: async (fields) => (asked.push(fields.do), { m1: "note" }) }
  const client = { session: { get: async () => ({ data: {} }) }, config: { providers: async () => ({ data: { providers: [] } }) } }
  const window = new Window(daypack, client, "/work")
  window.compacting.add("ses_1")
  assert.equal(await window.transform([{ ...user("m1"), info: { ...user("m1").info, model: {} } }]), undefined)
  assert.deepEqual(asked, [])
  const sent = await window.transform([{ ...user("m1"), info: { ...user("m1").info, model: {} } }])
  assert.deepEqual(sent[0].parts.map((part) => part.text), ["Hello", "note"])
})

const NEWEST = { ...user("m1", "x".repeat(9_000)), info: { ...user("m1").info, model: { providerID: "p", modelID: "m" } } }
const known = { data: { providers: [{ id: "p", models: { m: { limit: { context: 5_000, output: 1_000 } } } }] } }
const clientWith = (providers) => ({ session: { get: async () => ({ data: {} }) }, config: { providers } })
const recording = (asked, result = null) => ({ ask: async (fields) => (asked.push(fields.do), fields.do === "pack" ? result : {}) })

test("without a limit that is known nothing is packed, and the limits are asked for once", async () => {
  const asked = []
  let questions = 0
  const client = clientWith(async () => (++questions, { data: { providers: [] } }))
  const window = new Window(recording(asked), client, "/work")
  for (let call = 0; call < 3; call++) assert.equal(await window.transform([NEWEST]), undefined)
  assert.deepEqual(asked, ["texts"])
  assert.equal(questions, 1)
})

test("limits that could not be had are asked for again", async () => {
  for (const failing of [async () => ({ error: {} }), async () => Promise.reject(new Error("gone"))]) {
    const asked = []
    let questions = 0
    const client = clientWith(() => (questions++ ? Promise.resolve(known) : failing()))
    const window = new Window(recording(asked), client, "/work")
    await window.transform([NEWEST])
    await window.transform([NEWEST])
    assert.deepEqual(asked, ["texts", "pack"])
  }
})

test("whatever daypack answers, opencode has its newest message or its own list", async () => {
  const answers = [0, 5, "x", [], {}, { head: [], messages: [] }, { head: 1, messages: 2 }, { messages: [null] }]
  for (const answer of answers) {
    const window = new Window({ ask: async () => answer }, clientWith(async () => known), "/work")
    const sent = await window.attempt("transform", "ses_1", () => window.transform([NEWEST]))
    assert.ok(sent === undefined || sent.some((message) => message.info.id === "m1"), JSON.stringify(answer))
  }
})

test("a process that ends in the middle of an answer is started once more, then left alone", async () => {
  const daypack = new Daypack(script(`process.stdin.once("data", () => process.stdout.write('{"n":1,"resu', () => process.exit(3)))`), 20_000)
  await assert.rejects(daypack.ask({}), /ended/)
  assert.equal(daypack.number, 2)
  await assert.rejects(daypack.ask({}), /a moment ago/)
})

test("an answer of any size is read, one that comes late is not", async () => {
  const large = new Daypack(script(`process.stdin.once("data", () => console.log(JSON.stringify({n: 1, result: "y".repeat(2e7)})))`), 60_000)
  assert.equal((await large.ask({})).length, 2e7)
  await large.close()
  const late = new Daypack(script(`process.stdin.once("data", () => setTimeout(() => console.log('{"n":1,"result":1}'), 200))`), 20)
  await assert.rejects(late.ask({}), /no answer within 20 ms/)
})

test("nothing is printed into the terminal of opencode", async () => {
  const { readFileSync } = await import("node:fs")
  assert.doesNotMatch(readFileSync(process.env.PLUGIN, "utf8"), /console\.|process\.(stdout|stderr)/)
})

test("a session whose texts failed is taken in all the same", async () => {
  const { readFileSync, writeFileSync } = await import("node:fs")
  const [plugin, asked] = [`${process.env.DAYPACK_HOME}/refusing.mjs`, `${process.env.DAYPACK_HOME}/asked`]
  const refusing = script(`require("readline").createInterface({input: process.stdin}).on("line", (line) => {
    const {n, ...rest} = JSON.parse(line)
    require("fs").appendFileSync(${JSON.stringify(asked)}, [rest.do, rest.event].join(" ").trim() + ";")
    console.log(JSON.stringify(rest.do === "event" ? {n, result: null} : {n, error: "no"})) })`)
  const source = readFileSync(process.env.PLUGIN, "utf8")
  writeFileSync(plugin, source.replace(/^const COMMAND = .*$/m, () => `const COMMAND = ${JSON.stringify(refusing)}`))
  const client = clientWith(async () => known)
  const hooks = await (await import(plugin)).default.server({ client, directory: "/work" })
  const output = { messages: [NEWEST] }
  await hooks["experimental.chat.messages.transform"]({}, output)
  assert.deepEqual(output.messages, [NEWEST])
  await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
  await hooks.dispose()
  assert.equal(readFileSync(asked, "utf8"), "texts;pack;event Stop;event SessionEnd;")
})
