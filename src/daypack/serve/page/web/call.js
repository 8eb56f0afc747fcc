// One call: the pack in the order sent, the raw request, and what the provider's cache did.
import { html, useContext, useMemo, useRef, useState } from "./vendor/preact.js";
import { Bars, Choice, Facts, Meter, Panel, Problem, Source, Split, Tag, Waiting } from "./pieces.js";
import { Boxed, Copy, LongText, Shown, dots, line, visible } from "./text.js";
import { Here, ask, home, useHere } from "./data.js";
import { LeftOut, Missing } from "./leftout.js";
import { List, useToggled } from "./list.js";
import { WouldItFit } from "./fit.js";
import { counted, messageOf, moment, number, partClass, percent, signed, spaced, tokens } from "./words.js";

const GROUPS = { prefix: "stable, so the provider can cache it", tail: "messages, and what was recalled for them",
  volatile: "changes at every call, so it is last" };
const ITEM = 124; // pixels; height of a closed item in a long list

/** A title with the beginning of a text, which opens to all of it. */
export function Folded({ title, text }) {
  return text && html`<details class="folded"><summary><b>${line(title)}</b> <span class="dim">${line(text, 160)}</span>
    </summary><${Shown} text=${text} /></details>`;
}

export function ToolCalls({ calls }) {
  return calls?.map((call) => html`<${Folded} title=${call.name} text=${call.arguments || "{}"} />`);
}

/** What a message says, or else what it calls. */
export function saying({ text, calls = [] }) {
  return text || calls.map((call) => `${call.name} ${call.arguments}`).join("\n");
}

function PackItem({ event, item, most, index, open, flip }) {
  const here = useContext(Here);
  const { ref, source, text, chars, redacted = [], visible_to: readers = [] } = item;
  const seq = messageOf(ref);
  return html`<article data-row=${index} class=${`item ${partClass(item.category)} ${open ? "open" : ""}`}>
    <div class="head"><button class="name" aria-expanded=${open} onClick=${flip}>
      ${item.title && item.title !== item.role ? line(item.title) : spaced(item.role ?? item.kind)}</button>
      <${Tag} words=${item.stub && "stub"} />
      <${Tag} warn words=${redacted.length > 0 && `${redacted.length} redacted`} /><span class="push"></span>
      <${Source} to=${ref} words=${seq ? `${source} · ${number(seq)}` : source} />
      <span class="num">${number(item.tokens)}</span><span class="share"><${Bars} label=${tokens(item.tokens)}>
      <rect class=${partClass(item.category)} width=${(100 * (item.tokens ?? 0)) / most} height="6" /><//></span></div>
    <p class="why">${dots(spaced(item.category), item.why, readers.length > 0 && `for ${readers.join(", ")}`)}</p>
    ${open
      ? html`<div class="body"><${LongText} text=${text} chars=${chars}
        load=${() => ask("item", { ...here, event, item: item.id })} /><${ToolCalls} calls=${item.calls} />
        <${Facts} facts=${{ Id: item.id, Kind: dots(item.kind, item.context_kind !== item.kind && item.context_kind),
        Authority: item.authority, Redacted: redacted.join(", "), Score: item.score?.toFixed(2) }} /></div>`
      : html`<div class="preview" onClick=${flip}><${Shown} text=${saying(item)} most=${700} /></div>`}</article>`;
}

function Pack({ call }) {
  const [opened, flip] = useToggled();
  const box = useRef();
  const rows = useMemo(() => {
    const found = [];
    for (const item of call.items) {
      const head = item.part !== found.at(-1)?.item.part && call.items.filter(({ part }) => part === item.part);
      if (head) found.push({ head, item });
      found.push({ item });
    }
    return found;
  }, [call]);
  const most = useMemo(() => Math.max(1, ...call.items.map((item) => item.tokens ?? 0)), [call]);
  if (call.content === "unknown") return html`<p
    class="empty">The content of this call is unknown: the program recorded its size only. Claude Code records whole
    requests since version 2.1.300. Difference and History show what was said.</p>`;
  // The arrow keys move between the titles while one of them has the focus.
  const walk = (event) => {
    const names = [...box.current.querySelectorAll(".item .name")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !names.includes(event.target)) return;
    event.preventDefault();
    names[names.indexOf(event.target) + step]?.focus();
  };
  const row = (index) => {
    const { head, item } = rows[index];
    if (!head) return html`<${PackItem} key=${index} ...${{ index, item, most, event: call.event,
      open: opened.has(index), flip: () => flip(index) }} />`;
    return html`<h3 key=${index} class="grouphead head">${spaced(item.part)} <span class="dim">${GROUPS[item.part]}
      </span><span class="num last">${number(head.reduce((sum, { tokens }) => sum + (tokens ?? 0), 0))}</span></h3>`;
  };
  return html`<div ref=${box} onKeyDown=${walk}><${List} count=${rows.length} height=${ITEM} opened=${opened}
    row=${row} /></div>`;
}

const DIALECTS = { openai: "OpenAI chat", responses: "OpenAI responses", anthropic: "Anthropic messages" };

function RawRequest({ call: { event, dialects } }) {
  const [dialect, setDialect] = useState(dialects[0]);
  const answer = useHere(dialect && "request", { event, dialect });
  if (!dialect) return html`<p class="empty">The request of this call is unknown.</p>`;
  const text = answer.fresh && answer.value?.text;
  return html`<${Choice} label="Dialect" options=${dialects.map((name) => [name, DIALECTS[name] ?? name])}
    chosen=${dialect} choose=${setDialect}><span class="push"></span>
    ${text && html`<span class="dim">${counted(text.length, "character")}</span>
    <${Copy} text=${text} words="Copy request" />`}<//>${text ? html`<${Boxed} kind="code tall" text=${text}
    label="Raw request" />` : html`<${Waiting} answer=${answer} />`}`;
}

function Cache({ cache, size, added }) {
  const whole = Math.max(cache.input ?? 0, cache.expected ?? 0, size ?? 0);
  return html`<${Panel} title="Prompt cache"><${Meter} label="Expected" value=${cache.expected} whole=${whole}
    kind="expected" /><${Meter} label="Reported" value=${cache.cached} whole=${whole} />
    ${cache.break && html`<p class="bad">◆ Break: ${visible(cache.break)}
      ${cache.lost ? ` (${tokens(cache.lost)} read again)` : ""}</p>`}
      <${Facts} facts=${{ Input: tokens(cache.input), Written: cache.written != null && tokens(cache.written),
      Output: tokens(cache.output), "Added by daypack": added != null && tokens(added) }} /><//>`;
}

/** Where a call is, how large it is, whether replaying it gives the same bytes. */
export function CallHead({ row, index, total, before, call, parts, children }) {
  const { at, model, tokens: size, budget, split, reply } = row;
  return html`<div class="callhead"><div class="line"><h2>Call ${number(index + 1)} <span
    class="dim">of ${number(total)}</span></h2><span class="big num">${size == null ? "size unknown" : tokens(size)}
    </span>${before?.tokens != null && size != null && html`<span class="dim num" title="Change from the call before">
    ${signed(size - before.tokens)}</span>`}<span class="push"></span>${children}</div>
    <${Split} ...${{ parts, split, budget, whole: Math.max(size ?? 0, budget ?? 0), label: "Tokens by part" }} />
    <p class="meta">${dots(moment(at), model, budget == null ? "budget unknown"
      : `budget ${number(budget)}, ${percent(size, budget)} used`, call?.counted_by && `counted by ${call.counted_by}`)}
      ${reply != null && html` · answered by <${Source} to=${`msg-${reply}`} words=${`message ${number(reply)}`} />`}
      ${call?.verified && html` · <span class="good">✓ replays to the same bytes</span>`}</p>
    ${call?.problem && html`<p class="bad">${visible(call.problem)}</p>`}<p>${visible(call?.headline)}</p></div>`;
}

export function CallBody({ answer, row, raw, everything, focus, budget, facts }) {
  const call = answer.value;
  if (!call || answer.error) return html`<${Waiting} answer=${answer} />`;
  const Shape = raw ? RawRequest : Pack;
  return html`<div class=${`columns ${answer.stale}`}><div><${Shape} key=${call.event} call=${call} /></div>
    <aside aria-label="About this call"><${LeftOut} key=${call.event} call=${call} everything=${everything} />
    <${Missing} missing=${call.missing} /><${Cache} cache=${call.cache} size=${call.tokens}
    added=${call.added_tokens} />
    ${facts.own && !home.exported && html`<${WouldItFit} ...${{ call, focus, split: row.split, initial: budget,
      usual: facts.budget_tokens }} />`}</aside></div>`;
}
