// One call: the pack in the order sent, the raw request, and what the provider's cache did.
import { html, useMemo, useRef, useState } from "./vendor/preact.js";
import { ask, home, useAnswer } from "./data.js";
import { LeftOut, Missing } from "./leftout.js";
import { List } from "./list.js";
import { messageAddress } from "./router.js";
import { Copy, LongText, Meter, Problem, Shown, Split, Waiting, line, visible } from "./text.js";
import { WouldItFit } from "./fit.js";
import { counted, messageOf, moment, number, partClass, partName, percent, short, signed, spaced, tokens } from "./words.js";

const GROUPS = { prefix: ["Prefix", "stable, so the provider can cache it"], tail: ["Tail", "messages and what was recalled for them"], volatile: ["Volatile", "changes at every call, so it is last"] };
const ROW = 124; // height of a closed item where the list is virtual

function Facts({ item }) {
  const facts = [
    ["Id", item.id],
    ["Kind", item.context_kind && item.context_kind !== item.kind ? `${item.kind} (${item.context_kind})` : item.kind],
    ["Authority", item.authority],
    ["Visible to", item.visible_to?.join(", ")],
    ["Redacted", item.redacted?.join(", ")],
    ["Score", item.score == null ? null : item.score.toFixed(2)],
    ["Length", item.chars == null ? null : counted(item.chars, "character")],
  ];
  return html`<dl class="facts">${facts.map(([name, value]) => value && html`<div key=${name}><dt>${name}</dt><dd>${visible(value)}</dd></div>`)}</dl>`;
}

function ToolCalls({ calls }) {
  if (!calls?.length) return null;
  return html`<ul class="toolcalls">${calls.map((call, index) => html`<li key=${index}><b>${line(call.name)}</b><${Shown} text=${typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments, null, 1)} /></li>`)}</ul>`;
}

function itemTitle(item) {
  const title = line(item.title || spaced(item.kind));
  return item.role && title === item.role ? spaced(title) : title;
}

function PackItem({ agent, session, event, item, most, open, toggle, index }) {
  const seq = messageOf(item.ref);
  const preview = item.text || (item.calls?.length ? item.calls.map((call) => `${call.name}(${typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)})`).join("\n") : "");
  const source = seq == null ? item.source && html`<span class="source">${line(item.source)}</span>` : html`<a class="source" href=${messageAddress(agent, session, seq)} title="Open the history at this message">${line(item.source)} · ${number(seq)}</a>`;
  const wide = item.tokens == null ? 0 : Math.max(0.6, (100 * item.tokens) / (most || 1));
  return html`<article data-row=${index} class=${`item ${partClass(item.category)} ${open ? "open" : ""}`}>
    <div class="head">
      <button class="name" aria-expanded=${open ? "true" : "false"} onClick=${toggle}><span class="twist" aria-hidden="true"></span>${itemTitle(item)}</button>
      ${item.stub && html`<span class="tag">stub</span>`}${item.redacted?.length > 0 && html`<span class="tag warn">${item.redacted.length} redacted</span>`}
      ${source}
      <span class="num" title=${tokens(item.tokens)}>${number(item.tokens)}</span>
      <svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect width=${wide} height="6" class=${partClass(item.category)} /></svg>
    </div>
    <p class="why">${partName(item.category)}${item.why ? ` · ${visible(item.why)}` : ""}${item.visible_to?.length ? ` · for ${visible(item.visible_to.join(", "))}` : ""}</p>
    ${open
      ? html`<div class="body"><${LongText} text=${item.text} chars=${item.chars} load=${() => ask("item", { agent, session, event, item: item.id }).then((whole) => whole.text)} /><${ToolCalls} calls=${item.calls} /><${Facts} item=${item} /></div>`
      : preview && html`<div class="preview" onClick=${toggle}><${Shown} text=${preview} most=${700} /></div>`}
  </article>`;
}

function Pack({ agent, session, call }) {
  const [opened, setOpened] = useState(new Set());
  const box = useRef(null);
  const rows = useMemo(() => {
    const found = [];
    let part = null;
    for (const item of call.items) {
      if (item.part !== part) found.push({ part: item.part });
      part = item.part;
      found.push({ item });
    }
    return found;
  }, [call]);
  const most = useMemo(() => call.items.reduce((top, item) => Math.max(top, item.tokens || 0), 1), [call]);
  const sums = useMemo(() => {
    const found = new Map();
    for (const item of call.items) found.set(item.part, (found.get(item.part) ?? 0) + (item.tokens || 0));
    return found;
  }, [call]);
  if (call.content === "unknown") return html`<p class="empty">The content of this call is unknown. Its program recorded only how large it was.</p>`;
  const flip = (index) => setOpened((old) => {
    const next = new Set(old);
    next.delete(index) || next.add(index);
    return next;
  });
  // Up and down move between the titles while one of them has the focus.
  const walk = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(".item .name")) return;
    const names = [...box.current.querySelectorAll(".item .name")];
    const next = names[names.indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    next.focus();
  };
  return html`<div class="pack" ref=${box} onKeyDown=${walk}><${List} count=${rows.length} height=${ROW} opened=${opened} row=${(index) => {
    const { part, item } = rows[index];
    if (part) return html`<h3 key=${`part ${index}`} data-row=${index} class="grouphead">${GROUPS[part]?.[0] ?? spaced(part)} <span class="dim">${GROUPS[part]?.[1]}</span><span class="num">${number(sums.get(part))}</span></h3>`;
    return html`<${PackItem} key=${`${index} ${item.id}`} agent=${agent} session=${session} event=${call.event} item=${item} most=${most} index=${index} open=${opened.has(index)} toggle=${() => flip(index)} />`;
  }} /></div>`;
}

const DIALECTS = { openai: "OpenAI chat", responses: "OpenAI responses", anthropic: "Anthropic messages" };

function RawRequest({ agent, session, call }) {
  const [dialect, setDialect] = useState(null);
  const chosen = call.dialects.includes(dialect) ? dialect : call.dialects.includes(call.target) ? call.target : call.dialects[0];
  const answer = useAnswer(chosen ? "request" : null, { agent, session, event: call.event, dialect: chosen });
  if (!chosen) return html`<p class="empty">The request of this call is unknown.</p>`;
  const text = answer.fresh && answer.value?.text;
  return html`<div class="raw"><div class="tools" role="group" aria-label="Dialect">
      ${call.dialects.map((name) => html`<button key=${name} class="small" aria-pressed=${name === chosen ? "true" : "false"} onClick=${() => setDialect(name)}>${DIALECTS[name] ?? name}</button>`)}
      <span class="push"></span>${text && html`<span class="dim">${counted(text.length, "character")}</span><${Copy} text=${text} words="Copy request" />`}</div>
    ${text ? html`<${Shown} text=${text} class="code" tabindex="0" role="region" aria-label="Raw request" />` : html`<${Waiting} answer=${answer} />`}</div>`;
}

function Cache({ call }) {
  const { cache } = call;
  const whole = Math.max(cache.input || 0, cache.expected || 0, call.tokens || 0, 1);
  return html`<section class="panel" aria-labelledby="cache"><h3 id="cache">Prompt cache</h3>
    <${Meter} label="Expected" value=${cache.expected} whole=${whole} kind="expected" /><${Meter} label="Reported" value=${cache.cached} whole=${whole} kind="reported" />
    ${cache.break && html`<p class="bad">⬥ Break: ${visible(cache.break)}${cache.lost ? ` (${tokens(cache.lost)} read again)` : ""}</p>`}
    <dl class="facts"><div><dt>Input</dt><dd>${tokens(cache.input)}</dd></div>${cache.written != null && html`<div><dt>Written</dt><dd>${tokens(cache.written)}</dd></div>`}<div><dt>Output</dt><dd>${tokens(cache.output)}</dd></div>
      ${call.added_tokens != null && html`<div><dt>Added by daypack</dt><dd>${tokens(call.added_tokens)}</dd></div>`}</dl></section>`;
}

/** The head of a call: where it is, how large it is, whether replaying it gave the same bytes. */
export function CallHead({ row, index, total, call, parts, tools, agent, session, before }) {
  const free = call?.budget_tokens != null && call.tokens != null ? call.budget_tokens - call.tokens - (call.reserved_tokens || 0) : null;
  return html`<div class="callhead"><div class="line">
      <h2>Call ${number(index + 1)} <span class="dim">of ${number(total)}</span></h2>
      <span class="big num">${row.tokens == null ? "size unknown" : tokens(row.tokens)}</span>${before?.tokens != null && row.tokens != null && html`<span class="dim num" title="Change to the call before">${signed(row.tokens - before.tokens)}</span>`}
      <span class="push"></span>${tools}</div>
    <${Split} parts=${parts} split=${row.split} whole=${Math.max(row.tokens || 0, row.budget || 0)} budget=${row.budget} label="Tokens by part" />
    <p class="meta">${moment(row.at)}${row.model ? ` · ${visible(row.model)}` : ""}${row.budget != null ? ` · budget ${number(row.budget)} (${percent(row.tokens, row.budget)} used${free != null ? `, ${short(Math.max(0, free))} free` : ""})` : " · budget unknown"}${call?.counted_by ? ` · counted by ${visible(call.counted_by)}` : ""}${row.reply != null ? html` · <a href=${messageAddress(agent, session, row.reply)}>answered by message ${number(row.reply)}</a>` : ""}${call?.verified ? html` · <span class="good">✓ replays to the same bytes</span>` : ""}</p>
    ${call?.problem && html`<p class="bad">${visible(call.problem)}</p>`}${call?.headline && html`<p class="headline">${visible(call.headline)}</p>`}</div>`;
}

export function CallBody({ agent, session, answer, row, parts, raw, everything, focusFit, budget, usual, fits }) {
  const call = answer.value;
  if (!call) return html`<${Waiting} answer=${answer} />`;
  return html`<div class=${`columns ${answer.fresh ? "" : "stale"}`}>
    <div class="main">${answer.error && html`<${Problem} error=${answer.error} />`}${raw ? html`<${RawRequest} key=${call.event} agent=${agent} session=${session} call=${call} />` : html`<${Pack} key=${call.event} agent=${agent} session=${session} call=${call} />`}</div>
    <aside class="side" aria-label="About this call">
      <${LeftOut} key=${`out ${call.event}`} agent=${agent} session=${session} omitted=${call.omitted} known=${call.kind === "prepared"} all=${everything} />
      <${Missing} missing=${call.missing} /><${Cache} call=${call} />
      ${fits && !home.exported && html`<${WouldItFit} agent=${agent} session=${session} call=${call} parts=${parts} callSplit=${row.split} initial=${budget} focus=${focusFit} usual=${usual} />`}
    </aside></div>`;
}
