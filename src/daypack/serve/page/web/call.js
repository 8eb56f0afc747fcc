// One call: the pack in the order sent, the raw request, and what the provider's cache did.
import { html, useContext, useMemo, useRef, useState } from "./vendor/preact.js";
import { Boxed, Copy, LongText, Shown, line, visible } from "./text.js";
import { Choice, Facts, Meter, Panel, Problem, Source, Split, Tag, Waiting } from "./pieces.js";
import { Here, ask, home, useHere } from "./data.js";
import { LeftOut, Missing } from "./leftout.js";
import { List, useOpened } from "./list.js";
import { WouldItFit } from "./fit.js";
import { counted, messageOf, moment, number, partClass, percent, signed, spaced, tokens } from "./words.js";

const GROUPS = { prefix: "stable, so the provider can cache it", tail: "messages, and what was recalled for them", volatile: "changes at every call, so it is last" };
const ITEM = 124; // pixels; height of a closed item in a long list

export function ToolCalls({ calls }) {
  return calls?.map((call, index) => html`<details key=${index} class="folded"><summary><b>${line(call.name)}</b> <span class="dim">${line(call.arguments, 160)}</span></summary><${Shown} text=${call.arguments} /></details>`);
}

/** What a message says, or else what it calls. */
export function saying({ text, calls = [] }) {
  return text || calls.map((call) => `${call.name} ${call.arguments}`).join("\n");
}

function PackItem({ event, item, most, index, open, flip }) {
  const here = useContext(Here);
  const load = () => ask("item", { ...here, event, item: item.id }).then((whole) => whole.text);
  const seq = messageOf(item.ref);
  const kind = item.context_kind && item.context_kind !== item.kind ? `${item.kind}, ${item.context_kind}` : item.kind;
  return html`<article data-row=${index} class=${`item ${partClass(item.category)} ${open ? "open" : ""}`}>
    <div class="head"><button class="name" aria-expanded=${open} onClick=${flip}>${spaced(line(item.title || item.kind))}</button>${item.stub && html`<${Tag}>stub<//>`}${item.redacted?.length > 0 && html`<${Tag} warn>${item.redacted.length} redacted<//>`}
      <span class="push"></span><${Source} to=${item.ref ?? item.source} words=${seq == null ? item.source : `${item.source} · ${number(seq)}`} /><span class="num">${number(item.tokens)}</span><svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class=${partClass(item.category)} width=${(100 * (item.tokens ?? 0)) / most} height="6" /></svg></div>
    <p class="why">${[spaced(item.category), item.why, item.visible_to?.length > 0 && `for ${item.visible_to.join(", ")}`].filter(Boolean).map(visible).join(" · ")}</p>
    ${open
      ? html`<div class="body"><${LongText} text=${item.text} chars=${item.chars} load=${load} /><${ToolCalls} calls=${item.calls} /><${Facts} facts=${[["Id", item.id], ["Kind", kind], ["Authority", item.authority], ["Redacted", item.redacted?.join(", ")], ["Score", item.score?.toFixed(2)]]} /></div>`
      : html`<div class="preview" onClick=${flip}><${Shown} text=${saying(item)} most=${700} /></div>`}</article>`;
}

function Pack({ call }) {
  const [opened, flip] = useOpened();
  const box = useRef();
  const { rows, most } = useMemo(() => {
    const rows = [];
    call.items.forEach((item, index) => {
      if (item.part !== call.items[index - 1]?.part) rows.push({ part: item.part, sum: 0 });
      rows.findLast((row) => row.part).sum += item.tokens ?? 0;
      rows.push({ item });
    });
    return { rows, most: Math.max(1, ...call.items.map((item) => item.tokens ?? 0)) };
  }, [call]);
  if (call.content === "unknown") return html`<p class="empty">The content of this call is unknown. Only its size was recorded.</p>`;
  // The arrow keys move between the titles while one of them has the focus.
  const walk = (event) => {
    const names = [...box.current.querySelectorAll(".item .name")];
    const next = names[names.indexOf(event.target) + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? NaN)];
    if (!next || !names.includes(event.target)) return;
    event.preventDefault();
    next.focus();
  };
  const row = (index) => {
    const { part, sum, item } = rows[index];
    if (item) return html`<${PackItem} key=${index} index=${index} event=${call.event} item=${item} most=${most} open=${opened.has(index)} flip=${() => flip(index)} />`;
    return html`<h3 key=${index} class="grouphead head">${spaced(part)} <span class="dim">${GROUPS[part]}</span><span class="push num">${number(sum)}</span></h3>`;
  };
  return html`<div ref=${box} onKeyDown=${walk}><${List} count=${rows.length} height=${ITEM} opened=${opened} row=${row} /></div>`;
}

const DIALECTS = { openai: "OpenAI chat", responses: "OpenAI responses", anthropic: "Anthropic messages" };

function RawRequest({ call }) {
  const [dialect, setDialect] = useState(call.dialects[0]);
  const answer = useHere(dialect && "request", { event: call.event, dialect });
  if (!dialect) return html`<p class="empty">The request of this call is unknown.</p>`;
  const text = answer.fresh && answer.value?.text;
  return html`<${Choice} label="Dialect" options=${call.dialects.map((name) => [name, DIALECTS[name] ?? name])} chosen=${dialect} choose=${setDialect}><span class="push"></span>${text && html`<span class="dim">${counted(text.length, "character")}</span><${Copy} text=${text} words="Copy request" />`}<//>
    ${text ? html`<${Boxed} class="box code tall" text=${text} label="Raw request" />` : html`<${Waiting} answer=${answer} />`}`;
}

function Cache({ call: { cache, tokens: size, added_tokens: added } }) {
  const whole = Math.max(cache.input ?? 0, cache.expected ?? 0, size ?? 0);
  return html`<${Panel} title="Prompt cache"><${Meter} label="Expected" value=${cache.expected} whole=${whole} kind="expected" /><${Meter} label="Reported" value=${cache.cached} whole=${whole} />
    ${cache.break && html`<p class="bad">◆ Break: ${visible(cache.break)}${cache.lost ? ` (${tokens(cache.lost)} read again)` : ""}</p>`}
    <${Facts} facts=${[["Input", tokens(cache.input)], ["Written", cache.written != null && tokens(cache.written)], ["Output", tokens(cache.output)], ["Added by daypack", added != null && tokens(added)]]} /><//>`;
}

/** Where a call is, how large it is, whether replaying it gives the same bytes. */
export function CallHead({ row, index, total, before, call, parts, children }) {
  const facts = [moment(row.at), row.model, row.budget == null ? "budget unknown" : `budget ${number(row.budget)}, ${percent(row.tokens, row.budget)} used`, call?.counted_by && `counted by ${call.counted_by}`].filter(Boolean);
  return html`<div class="callhead"><div class="line"><h2>Call ${number(index + 1)} <span class="dim">of ${number(total)}</span></h2><span class="big num">${row.tokens == null ? "size unknown" : tokens(row.tokens)}</span>${before?.tokens != null && row.tokens != null && html`<span class="dim num" title="Change from the call before">${signed(row.tokens - before.tokens)}</span>`}<span class="push"></span>${children}</div>
    <${Split} parts=${parts} split=${row.split} whole=${Math.max(row.tokens ?? 0, row.budget ?? 0)} budget=${row.budget} label="Tokens by part" />
    <p class="meta">${facts.map(visible).join(" · ")}${row.reply != null && html` · answered by <${Source} to=${row.reply} />`}${call?.verified && html` · <span class="good">✓ replays to the same bytes</span>`}</p>
    ${call?.problem && html`<p class="bad">${visible(call.problem)}</p>`}${call?.headline && html`<p>${visible(call.headline)}</p>`}</div>`;
}

export function CallBody({ answer, row, raw, everything, focus, budget, facts }) {
  const call = answer.value;
  if (!call) return html`<${Waiting} answer=${answer} />`;
  return html`<div class=${`columns ${answer.stale}`}><div>${answer.error && html`<${Problem} error=${answer.error} />`}${raw ? html`<${RawRequest} key=${call.event} call=${call} />` : html`<${Pack} key=${call.event} call=${call} />`}</div>
    <aside aria-label="About this call"><${LeftOut} key=${call.event} call=${call} everything=${everything} /><${Missing} missing=${call.missing} /><${Cache} call=${call} />
      ${facts.own && !home.exported && html`<${WouldItFit} call=${call} split=${row.split} initial=${budget} focus=${focus} usual=${facts.budget_tokens} />`}</aside></div>`;
}
