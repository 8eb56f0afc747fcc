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
  assert.throws(() => arrange([user("m1")], user("m1"), { head: [], messages: [{ id: "m9" }] }, {}), /no message m9/)
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
