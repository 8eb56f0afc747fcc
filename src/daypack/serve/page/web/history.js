// The history: up to 100,000 messages in a virtual list; blocks of 200 are loaded when they come near the viewport.
import { html, useContext, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { Folded, ToolCalls, saying } from "./call.js";
import { Here, ask } from "./data.js";
import { List, rowKeys, useToggled } from "./list.js";
import { LongText, Shown, dots, visible } from "./text.js";
import { Problem, Tag } from "./pieces.js";
import { counted, moment, number, spaced, tokens } from "./words.js";
import { replaceAddress } from "./router.js";
import { useKeys } from "./keys.js";

const BLOCK = 200;
const MESSAGE = 88; // pixels; height of a closed message in a long list
const ROLES = ["user", "assistant", "tool", "system"];

/** Messages by number. A block is fetched once, the last one again when the session has grown. */
function useBlocks(total) {
  const here = useContext(Here);
  const [error, setError] = useState(null);
  const blocks = useMemo(() => new Map(), []);
  const stop = useMemo(() => new AbortController(), []);
  useEffect(() => () => stop.abort(), []);
  const load = async (number) => {
    const block = { ...blocks.get(number), total };
    blocks.set(number, block);
    try {
      const { messages } = await ask("messages", { ...here, start: number * BLOCK + 1, count: BLOCK }, stop.signal);
      block.messages = new Map(messages.map((message) => [message.seq, message]));
      setError({}); // a new value, so that the list is rendered
    } catch (problem) {
      if (!stop.signal.aborted) setError(problem);
    }
  };
  const want = (first, last) => {
    for (let number = Math.floor(first / BLOCK); number <= last / BLOCK; number++) {
      if ((blocks.get(number)?.total ?? 0) < Math.min(total, (number + 1) * BLOCK)) load(number);
    }
  };
  return { want, error: error?.message && error,
    message: (seq) => blocks.get(Math.floor((seq - 1) / BLOCK))?.messages?.get(seq) };
}

function Message({ message, index, open, chosen, flip }) {
  const here = useContext(Here);
  const { seq, role, text, calls = [], thinking, media = [], incomplete } = message ?? {};
  const body = open
    ? html`<div class="body"><${Folded} title="Thinking" text=${thinking} />
      <${LongText} text=${text} chars=${message.chars} load=${() => ask("message", { ...here, seq })} />
      <${ToolCalls} calls=${calls} />${media.map((words) => html`<p class="dim">${visible(words)}</p>`)}
      ${incomplete && html`<p class="bad">Incomplete: ${visible(incomplete)}</p>`}</div>`
    : html`<div class="preview" onClick=${flip}>
      <${Shown} text=${message && (saying(message) || thinking || media.join(", "))} most=${600} /></div>`;
  return html`<article data-row=${index} class=${`message ${ROLES.includes(role) ? role : ""} ${open ? "open"
    : ""} ${chosen ? "chosen" : ""}`} aria-busy=${!message} aria-current=${chosen}><span class="num dim">
    ${number(index + 1)}</span>
    ${message && html`<div><div class="head"><button class="name" aria-expanded=${open} onClick=${flip}>
      ${dots(spaced(role), message.name)}</button><${Tag} words=${calls.length > 0 && counted(calls.length,
      "tool call")} /><${Tag} words=${thinking && "thinking"} /><${Tag} words=${media.length > 0 && "media"} />
      <${Tag} warn words=${incomplete && "incomplete"} /><span class="dim num last">
      ${message.tokens != null && tokens(message.tokens)}</span><time class="dim">${moment(message.ts)}</time></div>
      ${body}</div>`}</article>`;
}

export function History({ total, target, at }) {
  const blocks = useBlocks(total);
  const [opened, flip] = useToggled();
  const show = useRef();
  const last = useRef(total);
  const stepped = useRef();
  const field = useRef();
  const selected = target ? Math.min(total, target) - 1 : -1;
  const jump = (seq) => replaceAddress(at("history", Math.max(1, Math.min(total, seq))));
  const pick = (index) => {
    stepped.current = true;
    jump(index + 1);
  };
  useEffect(() => {
    // At the end, new messages are followed. A jump puts its message at the top, a step scrolls as little as possible.
    if (total > last.current && selected === last.current - 1) pick(total - 1);
    else if (selected >= 0) show.current?.(selected, !stepped.current);
    last.current = total;
    stepped.current = false;
  }, [selected, total]);
  useEffect(() => {
    if (field.current) field.current.value = target ?? ""; // not by rendering, which would undo what is being typed
  }, [target, !total]);
  useKeys(rowKeys(total, selected, pick, flip));
  if (!total) return html`<p class="empty">This session has no messages yet.</p>`;
  const submit = (event) => {
    event.preventDefault();
    jump(event.target.elements.seq.valueAsNumber || 1);
  };
  const row = (index) => html`<${Message} key=${index} ...${{ index, message: blocks.message(index + 1),
    open: opened.has(index), chosen: index === selected, flip: () => flip(index) }} />`;
  return html`<section aria-label="History"><form class="tools sticks" onSubmit=${submit}>
    <label>Message <input ref=${field} name="seq" type="number" min="1" max=${total} /> of ${number(total)}</label>
    <button class="small">Go</button><span class="push"></span>
    <button type="button" class="small" onClick=${() => jump(1)}>First</button>
    <button type="button" class="small" onClick=${() => jump(total)}>Newest</button></form>
    ${blocks.error && html`<${Problem} error=${blocks.error} />`}
    <${List} count=${total} height=${MESSAGE} opened=${opened} control=${show} seen=${blocks.want} row=${row} />
      </section>`;
}
