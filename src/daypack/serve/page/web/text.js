// Text from histories is shown as text. Characters that could hide or reorder something are shown as symbols.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Problem } from "./pieces.js";
import { counted, number } from "./words.js";

// C0 without tab and line feed, DEL, C1; invisible and bidirectional controls; tags; lone surrogates.
const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

function symbol(character) {
  const code = character.codePointAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

export function visible(text) {
  return String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, symbol);
}

/** The beginning of a text as one line, for titles and cells. */
export function line(text, most = 300) {
  return visible(String(text ?? "").slice(0, most)).replace(/\s+/g, " ").trim();
}

/** The facts that are known, on one line. */
export function dots(...facts) {
  return facts.filter((fact) => fact != null && fact !== false && fact !== "").map((fact) => line(fact,
    2000)).join(" · ");
}

/** A text with its white space; `most` cuts what a closed row cannot show anyway. */
export function Shown({ text, most, ...rest }) {
  return html`<div dir="auto" ...${rest} class=${`shown ${rest.class ?? ""}`}>
    ${visible(most ? text?.slice(0, most) : text)}</div>`;
}

/** A text in a box that scrolls, which the keyboard reaches too. */
export function Boxed({ label, kind = "", ...rest }) {
  return html`<${Shown} ...${rest} class=${`box ${kind}`} tabindex="0" role="region" aria-label=${label} />`;
}

/** A text of which only the beginning is here; `load` fetches all of it. */
export function LongText({ text, chars, load }) {
  const [state, setState] = useState({});
  const { whole, error } = state;
  const more = whole == null && chars > Array.from(text).length;
  return html`<${Shown} text=${whole ?? text} />${error && html`<${Problem} error=${error} />`}
    ${more && html`<button class="more" onClick=${() => load().then((all) => setState({ whole: all.text }),
      (problem) => setState({ error: problem }))}>Show all ${counted(chars, "character")}</button>`}`;
}

const SIGNS = { "+": ["add", "+"], "-": ["del", "−"], "@": ["at", ""] };
const LINES = 400; // at first

/** Lines of a unified diff: coloured, and marked with + and −. */
export function DiffLines({ lines, label }) {
  const [most, setMost] = useState(LINES);
  const body = lines.filter((text, index) => index > 1 || !/^(---|\+\+\+)/.test(text));
  if (!body.length) return html`<p class="dim">No difference.</p>`;
  return html`<div class="difflines" role="group" aria-label=${label}>${body.slice(0, most).map((text) => {
    const [kind, sign] = SIGNS[text[0]] ?? ["", ""];
    return html`<div class=${`ln ${kind}`}><span class="sign">${sign}</span>
      <span class="shown" dir="auto">${visible(kind === "at" ? text : text.slice(1))}</span></div>`;
  })}${most < body.length && html`<button class="more"
    onClick=${() => setMost(Infinity)}>Show ${number(body.length - most)} more lines</button>`}</div>`;
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without a secure context or the permission, a selected field still copies.
    const field = document.body.appendChild(document.createElement("textarea"));
    field.value = text;
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

export function Copy({ text, words = "Copy" }) {
  const [state, setState] = useState(null);
  useEffect(() => {
    const timer = setTimeout(() => setState(null), 1600);
    return () => clearTimeout(timer);
  }, [state]);
  return html`<button class="small" aria-live="polite" onClick=${async () => setState((await toClipboard(text))
    ? "Copied" : "Not copied")}>${state ?? words}</button>`;
}
