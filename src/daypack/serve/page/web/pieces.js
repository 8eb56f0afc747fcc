// Small pieces that several views are made of.
import { html, useContext, useEffect, useRef, useState } from "./vendor/preact.js";
import { Here } from "./data.js";
import { address } from "./router.js";
import { line, visible } from "./text.js";
import { messageOf, number, partClass, percent, spaced } from "./words.js";

export function Panel({ title, count, children, ...rest }) {
  return html`<section class="panel" aria-label=${title}><h3 ...${rest}>${title}${count != null && html` <span class="dim">${count}</span>`}</h3>${children}</section>`;
}

/** Names and values; those without a value are left out. */
export function Facts({ facts, ...rest }) {
  return html`<dl ...${rest} class=${`facts ${rest.class ?? ""}`}>${facts.map(([name, value]) => value != null && value !== "" && value !== false && html`<div key=${name}><dt>${name}</dt><dd>${typeof value === "string" ? visible(value) : value}</dd></div>`)}</dl>`;
}

/** A row of a list: what it is, its tokens, the reason below. */
export function Entry({ name, tag, warn, count, why, children }) {
  return html`<li class="entry"><div class="head"><span class="name" dir="auto">${line(name)}</span>${tag && html`<${Tag} warn=${warn}>${tag}<//>`}${count !== undefined && html`<span class="num push">${number(count)}</span>`}</div>${why && html`<p class="why">${typeof why === "string" ? visible(why) : why}</p>`}${children}</li>`;
}

export function Tag({ warn, good, children }) {
  return html`<span class=${`tag ${warn ? "warn" : good ? "good" : ""}`}>${children}</span>`;
}

/** Buttons of which one is pressed: options are [value, words, key]. */
export function Choice({ label, options, chosen, choose, children }) {
  return html`<div class="tools" role="group" aria-label=${label}>${options.map(([value, words, key]) => html`<button key=${value} class="small" aria-pressed=${value === chosen} aria-keyshortcuts=${key} onClick=${() => choose(value)}>${words}${key && html`<kbd aria-hidden="true">${key}</kbd>`}</button>`)}${children}</div>`;
}

/** A reference; one to a message opens the history there. */
export function Source({ to, words = to }) {
  const { agent, session } = useContext(Here);
  const seq = typeof to === "number" ? to : messageOf(to);
  return seq == null ? html`<span class="source dim">${line(words)}</span>` : html`<a class="source" href=${address("s", agent, session, "history", seq)}>${typeof words === "number" ? `message ${number(seq)}` : line(words)}</a>`;
}

/** A request as one bar, its parts in the order sent; `whole` is the number of tokens of the full width. */
export function Split({ parts, split, whole, budget, label }) {
  if (!split) return html`<div class="split hatched" role="img" aria-label=${`${label}: unknown`}></div>`;
  const words = parts.map((part, index) => split[index] > 0 && `${spaced(part)} ${number(split[index])}`).filter(Boolean);
  let left = 0;
  return html`<svg class="split" role="img" aria-label=${`${label}: ${words.join(", ")}`} viewBox="0 0 1000 10" preserveAspectRatio="none"><rect class="track" width="1000" height="10" />${parts.map((part, index) => {
    const wide = (1000 * (split[index] || 0)) / (whole || 1);
    left += wide;
    return wide > 0 && html`<rect key=${part} class=${partClass(part)} x=${left - wide} width=${wide > 4 ? wide - 2 : wide} height="10" />`;
  })}${budget < whole && html`<path class="budgetline" d=${`M${(1000 * budget) / whole} 0v10`} />`}</svg>`;
}

/** A number with a bar. */
export function Meter({ label, value, whole, note = percent(value, whole), kind = "" }) {
  const wide = value && whole ? Math.max(0.6, Math.min(100, (100 * value) / whole)) : 0;
  return html`<div class=${`meter ${kind}`}><span>${label}</span><span class="num">${value == null ? "unknown" : number(value)}</span><svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6" /><rect class="fill" width=${wide} height="6" /></svg><span class="dim num">${note}</span></div>`;
}

export function Problem({ error }) {
  return html`<div class="problem" role="alert"><p>${visible(error.message)}</p>${error.hint && html`<p class="dim">${visible(error.hint)}</p>`}</div>`;
}

/** What a view shows before its first answer. */
export function Waiting({ answer }) {
  return answer.error ? html`<${Problem} error=${answer.error} />` : html`<p class="waiting dim" role="status">Loading …</p>`;
}

/** A question before something is written; `typed` is a text that must be entered first. */
export function Confirm({ title, verb, typed, run, close, danger, children }) {
  const dialog = useRef();
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  useEffect(() => dialog.current.showModal(), []);
  const submit = async (event) => {
    event.preventDefault();
    try {
      await run();
      dialog.current.close();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<dialog ref=${dialog} aria-label=${title} onClose=${close}><form onSubmit=${submit}><h2>${title}</h2>${children}
    ${typed != null && html`<label class="stack">Type the title to confirm: <b>${line(typed)}</b><input value=${text} autocomplete="off" onInput=${(event) => setText(event.target.value)} /></label>`}
    ${error && html`<${Problem} error=${error} />`}
    <p class="buttons"><button type="button" onClick=${() => dialog.current.close()}>Cancel</button><button class=${danger ? "danger" : "primary"} disabled=${typed != null && text.trim() !== typed.trim()}>${verb}</button></p></form></dialog>`;
}
