// The history: up to 100,000 messages in a virtual list; blocks of 200 are loaded when they come near the viewport.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { List, rowKeys } from "./list.js";
import { LongText, Problem, Shown, line, visible } from "./text.js";
import { ask } from "./data.js";
import { counted, moment, number, short, spaced } from "./words.js";
import { replaceAddress } from "./router.js";
import { useKeys } from "./keys.js";

const BLOCK = 200;
const HEIGHT = 92;
const ROLES = new Set(["user", "assistant", "tool", "system"]);

/** Blocks by number, fetched once; the last block is fetched again when the session grows. */
function useBlocks(agent, session, total) {
  const blocks = useRef(new Map());
  const stop = useRef(null);
  const [state, setState] = useState({ times: 0, error: null });
  useEffect(() => {
    stop.current = new AbortController();
    blocks.current = new Map();
    return () => stop.current.abort();
  }, [agent, session]);
  const load = (block) => {
    const { signal } = stop.current ?? new AbortController();
    const entry = { messages: blocks.current.get(block)?.messages ?? [], through: total };
    blocks.current.set(block, entry);
    ask("messages", { agent, session, start: block * BLOCK + 1, count: BLOCK }, signal).then(
      (answer) => {
        if (signal.aborted) return;
        entry.messages = new Map(answer.messages.map((message) => [message.seq, message]));
        setState((old) => ({ times: old.times + 1, error: null }));
      },
      (error) => {
        if (signal.aborted) return;
        blocks.current.delete(block);
        setState((old) => ({ times: old.times + 1, error }));
      },
    );
  };
  const want = (first, last) => {
    for (let block = Math.floor(first / BLOCK); block <= Math.floor(Math.max(first, last) / BLOCK); block++) {
      const entry = blocks.current.get(block);
      const grew = entry && entry.through < total && entry.through < (block + 1) * BLOCK;
      if (!entry || grew) load(block);
    }
  };
  const message = (seq) => {
    const entry = blocks.current.get(Math.floor((seq - 1) / BLOCK));
    return entry?.messages instanceof Map ? entry.messages.get(seq) : undefined;
  };
  return { want, message, error: state.error };
}

function FoldedCalls({ calls }) {
  return calls.map((call) => html`<details key=${call.id} class="toolcall"><summary><b>${line(call.name)}</b> <span class="dim">${line(call.arguments, 160)}</span></summary><${Shown} text=${call.arguments} /></details>`);
}

function Message({ agent, session, message, open, toggle, index, chosen }) {
  const seq = index + 1;
  if (!message) return html`<article data-row=${index} class="message pending" aria-busy="true"><div class="gutter"><span class="seq num">${number(seq)}</span></div></article>`;
  const role = ROLES.has(message.role) ? message.role : "other";
  const calls = message.calls ?? [];
  const preview = message.text || (calls.length ? calls.map((call) => `${call.name}(${call.arguments})`).join("\n") : message.thinking ? message.thinking : message.media?.join(", "));
  return html`<article data-row=${index} class=${`message ${role} ${open ? "open" : ""} ${chosen ? "chosen" : ""}`} aria-current=${chosen ? "true" : null}>
    <div class="gutter"><span class="seq num">${number(seq)}</span><span class="role">${spaced(message.role)}</span><span class="dim num" title=${`${counted(message.tokens, "token")}, ${moment(message.ts)}`}>${short(message.tokens)}</span></div>
    <div class="content"><div class="head"><button class="name" aria-expanded=${open ? "true" : "false"} onClick=${toggle}><span class="twist" aria-hidden="true"></span>${message.name ? line(message.name) : `Message ${number(seq)}`}</button>
        ${message.answers && html`<span class="dim">answers ${line(message.answers)}</span>`}${calls.length > 0 && html`<span class="tag">${counted(calls.length, "tool call")}</span>`}${message.thinking && html`<span class="tag">thinking</span>`}${message.media?.length > 0 && html`<span class="tag">${counted(message.media.length, "medium", "media")}</span>`}${message.incomplete && html`<span class="tag warn" title=${visible(message.incomplete)}>incomplete</span>`}<span class="push"></span><time class="dim">${moment(message.ts)}</time></div>
      ${open
        ? html`<div class="body">${message.thinking && html`<details class="toolcall"><summary>Thinking</summary><${Shown} text=${message.thinking} /></details>`}<${LongText} text=${message.text} chars=${message.chars} load=${() => ask("message", { agent, session, seq }).then((whole) => (whole.messages?.[0] ?? whole).text)} /><${FoldedCalls} calls=${calls} />${message.incomplete && html`<p class="bad">Incomplete: ${visible(message.incomplete)}</p>`}${message.media?.map((media) => html`<p class="dim">${visible(media)}</p>`)}</div>`
        : html`<div class="preview" onClick=${toggle}><${Shown} text=${preview} most=${600} /></div>`}
    </div></article>`;
}

export function History({ agent, session, total, target, at }) {
  const blocks = useBlocks(agent, session, total);
  const [opened, setOpened] = useState(new Set());
  const control = useRef(null);
  const selected = target ? Math.max(0, Math.min(total, target) - 1) : -1;
  const wasTotal = useRef(total);
  const moved = useRef(false);
  const pick = (index) => {
    moved.current = true;
    replaceAddress(at("history", index + 1));
  };
  useEffect(() => {
    // At the end, follow new messages; a jump puts its message at the top, a step moves only as far as needed.
    const follow = total > wasTotal.current && selected === wasTotal.current - 1;
    wasTotal.current = total;
    if (follow) pick(total - 1);
    else if (selected >= 0) control.current?.show(selected, moved.current ? "near" : "start");
    moved.current = false;
  }, [selected, total]);
  const flip = (index) => setOpened((old) => {
    const next = new Set(old);
    next.delete(index) || next.add(index);
    return next;
  });
  useKeys({ ...rowKeys(total, selected, pick, flip), PageDown: () => pick(Math.min(total - 1, selected + 8)), PageUp: () => pick(Math.max(0, selected - 8)) });
  const jump = (event) => {
    event.preventDefault();
    const seq = Number(new FormData(event.target).get("seq"));
    if (seq >= 1) replaceAddress(at("history", Math.min(total, seq)));
  };
  const render = useMemo(() => (index) => html`<${Message} key=${index} agent=${agent} session=${session} index=${index} message=${blocks.message(index + 1)} open=${opened.has(index)} chosen=${index === selected} toggle=${() => flip(index)} />`);
  if (!total) return html`<p class="empty">This session has no messages yet.</p>`;
  return html`<section class="history" aria-label="History"><form class="tools sticks" onSubmit=${jump}><label class="inline">Message <input name="seq" type="number" min="1" max=${total} value=${target ?? ""} /> of ${number(total)}</label><button class="small">Go</button><span class="push"></span><button type="button" class="small" onClick=${() => replaceAddress(at("history", 1))}>First</button><button type="button" class="small" onClick=${() => replaceAddress(at("history", total))}>Newest</button></form>
    ${blocks.error && html`<${Problem} error=${blocks.error} />`}
    <${List} class="messages" count=${total} height=${HEIGHT} opened=${opened} control=${control} seen=${blocks.want} row=${render} /></section>`;
}
