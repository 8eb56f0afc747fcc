// Small pieces that several views are made of.
import { html, useContext, useEffect, useRef, useState } from "./vendor/preact.js";
import { Here } from "./data.js";
import { address } from "./router.js";
import { line, visible } from "./text.js";
import { messageOf, number, partClass, percent, spaced } from "./words.js";

export function Panel({ title, count, children }) {
  return html`<section class="panel" aria-label=${title}><h2>${title} <span class="dim">${count}</span></h2>${children}
    </section>`;
}

/** Names and values; those without a value are left out. */
export function Facts({ facts, row }) {
  return html`<dl class=${row ? "facts row" : "facts"}>${Object.entries(facts).map(([name,
    value]) => value != null && value !== "" && value !== false && html`<div><dt>${name}</dt>
    <dd>${value.type ? value : visible(value)}</dd></div>`)}</dl>`;
}

/** A row of a list: what it is, its tokens, the reason below. */
export function Entry({ name, tag, warn, count, why, children }) {
  return html`<li class="entry"><div class="head"><span class="name" dir="auto">${line(name)}</span>
    <${Tag} words=${tag} warn=${warn} />${count !== undefined && html`<span class="num last">${number(count)}</span>`}
    </div>${why && html`<p class="why">${visible(why)}</p>`}${children}</li>`;
}

export function Tag({ words, warn, good }) {
  return words && html`<span class=${`tag ${warn ? "warn" : good ? "good" : ""}`}>${line(words)}</span>`;
}

/** Buttons of which one is pressed; options are [value, words, key]. */
export function Choice({ label, options, chosen, choose, children }) {
  return html`<div class="tools" role="group" aria-label=${label}>
    ${options.map(([value, words, key]) => html`<button class="small" aria-pressed=${value === chosen}
    aria-keyshortcuts=${key} onClick=${() => choose(value)}>${words}${key && html`<kbd aria-hidden="true">${key}</kbd>`}
    </button>`)}${children}</div>`;
}

/** A reference; one to a message opens the history there. */
export function Source({ to, words = to }) {
  const { agent, session } = useContext(Here);
  const seq = messageOf(to);
  return seq ? html`<a class="source" href=${address("s", agent, session, "history", seq)}>${line(words)}</a>`
    : html`<span class="source dim">${line(words)}</span>`;
}

/** A request as one bar, its parts in the order sent; `whole` is the number of tokens of the full width. */
export function Split({ parts, split, whole, budget, label }) {
  if (!split) return html`<div class="split hatched" role="img" aria-label=${`${label}: unknown`}></div>`;
  const words = parts.map((part,
    index) => split[index] > 0 && `${spaced(part)} ${number(split[index])}`).filter(Boolean);
  const scale = 1000 / (whole || 1);
  let left = 0;
  return html`<svg class="split" role="img" aria-label=${`${label}: ${words.join(", ")}`} viewBox="0 0 1000 10"
    preserveAspectRatio="none"><rect class="track" width="1000" height="10" />${parts.map((part, index) => {
    const wide = (split[index] ?? 0) * scale;
    left += wide;
    return wide > 0 && html`<rect class=${partClass(part)} x=${left - wide} width=${wide > 4 ? wide - 2 : wide}
      height="10" />`;
  })}${budget < whole && html`<path class="budgetline" d=${`M${budget * scale} 0v10`} />`}</svg>`;
}

/** Bars in a drawing of 100 × 6 units. */
export function Bars({ label, children }) {
  return html`<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=${label}><title>
    ${label}</title><rect class="track" width="100" height="6" />${children}</svg>`;
}

export function Meter({ label, value, whole, note = percent(value, whole), kind = "" }) {
  const words = value == null ? "unknown" : number(value);
  return html`<div class=${`meter ${kind}`}><span>${label}</span><span class="num">${words}</span>
    <${Bars} label=${`${label}: ${words}`}><rect class="fill" width=${(100 * (value ?? 0)) / (whole || 1)} height="6" />
    <//><span class="dim num">${note}</span></div>`;
}

export function Problem({ error }) {
  return html`<div class="problem" role="alert"><p>${visible(error.message)}</p><p class="dim">${visible(error.hint)}
    </p></div>`;
}

/** What a view shows before its first answer. */
export function Waiting({ answer }) {
  return answer.error ? html`<${Problem} error=${answer.error} />`
    : html`<p class="waiting dim" role="status">Loading …</p>`;
}

/** A question before something is written; `typed` is a text that must be entered first. */
export function Confirm({ title, verb, typed, run, close, children }) {
  const dialog = useRef();
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  useEffect(() => dialog.current.showModal(), []);
  const submit = (event) => {
    event.preventDefault();
    run().then(() => dialog.current?.close(), setError);
  };
  return html`<dialog ref=${dialog} aria-label=${title} onClose=${close}><form onSubmit=${submit}><h2>${title}</h2>
    ${children}
    ${typed != null && html`<label>Type the title to confirm: <b>${line(typed)}</b>
      <input value=${text} autocomplete="off" onInput=${(event) => setText(event.target.value)} /></label>`}
      ${error && html`<${Problem} error=${error} />`}
    <p class="buttons"><button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
      <button class="danger" disabled=${typed != null && text.trim() !== typed.trim()}>${verb}</button></p></form>
      </dialog>`;
}
