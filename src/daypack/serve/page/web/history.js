// The history: up to 100,000 messages in a virtual list; blocks of 200 are loaded when they come near the viewport.
import { html, useContext, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { Here, ask } from "./data.js";
import { List, rowKeys, useOpened } from "./list.js";
import { LongText, Shown, line, visible } from "./text.js";
import { Problem, Tag } from "./pieces.js";
import { ToolCalls, saying } from "./call.js";
import { counted, moment, number, spaced, tokens } from "./words.js";
import { replaceAddress } from "./router.js";
import { useKeys } from "./keys.js";

const BLOCK = 200;
const MESSAGE = 88; // pixels; height of a closed message in a long list
const ROLES = ["user", "assistant", "tool", "system"];

/** Messages by number. A block is fetched once, the last one again when the session has grown. */
function useBlocks(total) {
  const here = useContext(Here);
  const blocks = useRef(new Map());
  const stop = useMemo(() => new AbortController(), []);
  const [state, setState] = useState({});
  useEffect(() => () => stop.abort(), []);
  const load = async (block) => {
    const entry = { messages: blocks.current.get(block)?.messages ?? new Map(), total };
    blocks.current.set(block, entry);
    try {
      const answer = await ask("messages", { ...here, start: block * BLOCK + 1, count: BLOCK }, stop.signal);
      entry.messages = new Map(answer.messages.map((message) => [message.seq, message]));
      setState({});
    } catch (error) {
      if (!stop.signal.aborted) setState({ error });
    }
  };
  const want = (first, last) => {
    for (let block = Math.floor(first / BLOCK); block <= last / BLOCK; block++) {
      const known = blocks.current.get(block)?.total ?? -1;
      if (known < Math.min(total, (block + 1) * BLOCK)) load(block);
    }
  };
  return { want, error: state.error, message: (seq) => blocks.current.get(Math.floor((seq - 1) / BLOCK))?.messages.get(seq) };
}

function Message({ message, index, open, chosen, flip }) {
  const here = useContext(Here);
  if (!message) return html`<article data-row=${index} class="message" aria-busy="true"><span class="num dim">${number(index + 1)}</span></article>`;
  const { seq, role, name, calls, thinking, media, incomplete } = message;
  const load = () => ask("message", { ...here, seq }).then((whole) => whole.text);
  return html`<article data-row=${index} class=${`message ${ROLES.includes(role) ? role : ""} ${open ? "open" : ""} ${chosen ? "chosen" : ""}`} aria-current=${chosen ? "true" : null}>
    <span class="num dim">${number(seq)}</span><div><div class="head"><button class="name" aria-expanded=${open} onClick=${flip}>${spaced(role)}${name ? ` · ${line(name)}` : ""}</button>
        ${calls.length > 0 && html`<${Tag}>${counted(calls.length, "tool call")}<//>`}${thinking && html`<${Tag}>thinking<//>`}${media.length > 0 && html`<${Tag}>media<//>`}${incomplete && html`<${Tag} warn>incomplete<//>`}<span class="push dim num">${message.tokens == null ? "" : tokens(message.tokens)}</span><time class="dim">${moment(message.ts)}</time></div>
      ${open
        ? html`<div class="body">${thinking && html`<details class="folded"><summary>Thinking</summary><${Shown} text=${thinking} /></details>`}<${LongText} text=${message.text} chars=${message.chars} load=${load} /><${ToolCalls} calls=${calls} />${media.map((words) => html`<p class="dim">${visible(words)}</p>`)}${incomplete && html`<p class="bad">Incomplete: ${visible(incomplete)}</p>`}</div>`
        : html`<div class="preview" onClick=${flip}><${Shown} text=${saying(message) || thinking || media.join(", ")} most=${600} /></div>`}</div></article>`;
}

export function History({ total, target, at }) {
  const blocks = useBlocks(total);
  const [opened, flip] = useOpened();
  const show = useRef();
  const selected = target ? Math.min(total, target) - 1 : -1;
  const last = useRef(total);
  const stepped = useRef(false);
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
  useKeys(rowKeys(total, selected, pick, flip));
  if (!total) return html`<p class="empty">This session has no messages yet.</p>`;
  const submit = (event) => {
    event.preventDefault();
    jump(Number(new FormData(event.target).get("seq")) || 1);
  };
  return html`<section aria-label="History"><form class="tools sticks" onSubmit=${submit}><label>Message <input name="seq" type="number" min="1" max=${total} value=${target ?? ""} /> of ${number(total)}</label><button class="small">Go</button><span class="push"></span><button type="button" class="small" onClick=${() => jump(1)}>First</button><button type="button" class="small" onClick=${() => jump(total)}>Newest</button></form>
    ${blocks.error && html`<${Problem} error=${blocks.error} />`}
    <${List} count=${total} height=${MESSAGE} opened=${opened} control=${show} seen=${blocks.want} row=${(index) => html`<${Message} key=${index} index=${index} message=${blocks.message(index + 1)} open=${opened.has(index)} chosen=${index === selected} flip=${() => flip(index)} />`} /></section>`;
}
