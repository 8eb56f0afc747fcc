// Text from histories is shown as text. Characters that could hide or reorder something are shown as symbols.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { counted, number, partClass, partName, percent } from "./words.js";

// C0 without tab and line feed, DEL, C1; invisible and bidirectional controls; tags; lone surrogates.
const HIDDEN =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Surrogate}/gu;

function symbol(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "␡";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

export function visible(text) {
  return String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, symbol);
}

/** One line for a title or a table cell. */
export function line(text, most = 300) {
  return visible(String(text ?? "").slice(0, most)).replace(/\s+/g, " ").trim();
}

/** A block of text from data, with its white space; `most` cuts what a closed row cannot show anyway. */
export function Shown({ text, most, ...rest }) {
  const cut = most && text && text.length > most ? text.slice(0, most) : text;
  return html`<div dir="auto" ...${rest} class=${`shown ${rest.class ?? ""}`}>${visible(cut)}</div>`;
}

const SIGNS = { "+": "add", "-": "del", "@": "at" };
const LINES_AT_FIRST = 400;

/** Lines of a unified diff: coloured, and marked with + and −. */
export function DiffLines({ lines, label }) {
  const [all, setAll] = useState(false);
  const body = lines.filter((text, index) => !(index < 2 && /^(---|\+\+\+)/.test(text)));
  if (!body.length) return html`<p class="dim">No difference.</p>`;
  const shown = all ? body : body.slice(0, LINES_AT_FIRST);
  return html`<div class="difflines" role="group" aria-label=${label || "Difference"}>
    ${shown.map((text, index) => html`<div key=${index} class=${`ln ${SIGNS[text[0]] ?? ""}`}><span class="sign">${{ "+": "+", "-": "−" }[text[0]] ?? " "}</span><span class="lt" dir="auto">${visible(text[0] === "@" ? text : text.slice(1)) || " "}</span></div>`)}
    ${shown.length < body.length && html`<button class="more" onClick=${() => setAll(true)}>Show ${number(body.length - shown.length)} more lines</button>`}
  </div>`;
}

/** A request as one bar: its parts in the order sent. `whole` is the number of tokens of the full width. */
export function Split({ parts, split, whole, budget, label }) {
  if (!split) return html`<div class="split unknown" role="img" aria-label=${`${label}: unknown`}></div>`;
  const words = parts.map((part, index) => split[index] && `${partName(part)} ${number(split[index])}`).filter(Boolean).join(", ");
  let left = 0;
  return html`<svg class="split" role="img" aria-label=${`${label}: ${words || "nothing"}`} viewBox="0 0 1000 10" preserveAspectRatio="none">
    <rect class="track" width="1000" height="10" />
    ${parts.map((part, index) => {
      const wide = (1000 * (split[index] || 0)) / (whole || 1);
      left += wide;
      return wide > 0 && html`<rect key=${part} class=${partClass(part)} x=${left - wide} width=${wide > 4 ? wide - 2 : wide} height="10"><title>${partName(part)}: ${number(split[index])}</title></rect>`;
    })}
    ${budget && budget <= whole && html`<line class="budgetline" x1=${(1000 * budget) / whole} x2=${(1000 * budget) / whole} y1="0" y2="10" />`}
  </svg>`;
}

/** A small horizontal bar with its number. */
export function Meter({ label, value, whole, kind = "", note }) {
  const wide = value == null || !whole ? 0 : Math.min(100, (100 * value) / whole);
  return html`<div class="meter"><span class="ml">${label}</span><span class="mn">${number(value)}</span>
    <svg class=${`mb ${kind}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6" />${wide > 0 && html`<rect class="fill" width=${Math.max(0.6, wide)} height="6" />`}</svg>
    <span class="mp">${value == null ? "unknown" : (note ?? percent(value, whole))}</span></div>`;
}

export function Problem({ error }) {
  return html`<div class="problem" role="alert"><p>${visible(error.message)}</p>${error.hint && html`<p class="dim">${visible(error.hint)}</p>`}</div>`;
}

/** What a view shows before its first answer; quick answers show nothing in between. */
export function Waiting({ answer }) {
  if (answer?.error) return html`<${Problem} error=${answer.error} />`;
  return html`<p class="waiting dim" role="status">Loading …</p>`;
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without a secure context or permission there is no clipboard API; a selected field still copies.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "offscreen";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

export function Copy({ text, words = "Copy" }) {
  const [state, setState] = useState("");
  useEffect(() => {
    const timer = state ? setTimeout(() => setState(""), 1600) : 0;
    return () => clearTimeout(timer);
  }, [state]);
  return html`<button class="small" onClick=${async () => setState((await toClipboard(text)) ? "Copied" : "Not copied")}><span aria-live="polite">${state || words}</span></button>`;
}

/** A text of which only the beginning is here: `load` fetches the whole. */
export function LongText({ text, chars, load, ...rest }) {
  const [whole, setWhole] = useState(null);
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const fetchWhole = () => {
    setBusy(true);
    load().then(setWhole, setError).finally(() => setBusy(false));
  };
  return html`<${Shown} text=${whole ?? text} ...${rest} />
    ${whole === null && chars > (text ?? "").length && html`<button class="more" disabled=${busy} onClick=${fetchWhole}>Show all ${counted(chars, "character")}</button>`}
    ${error && html`<${Problem} error=${error} />`}`;
}

/** A question before something is written. `typed`: the text that must be entered first. */
export function Confirm({ title, children, verb, typed, run, close, danger = true }) {
  const dialog = useRef(null);
  const [text, setText] = useState("");
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current.showModal(), []);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await run();
      dialog.current.close();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<dialog ref=${dialog} aria-labelledby="confirm-title" onClose=${close}>
    <form onSubmit=${submit}><h2 id="confirm-title">${title}</h2>${children}
      ${typed !== undefined && html`<label class="stack">Type the title to confirm: <b class="typed">${line(typed)}</b><input value=${text} onInput=${(event) => setText(event.target.value)} autocomplete="off" /></label>`}
      ${error && html`<${Problem} error=${error} />`}
      <p class="buttons"><button type="button" onClick=${() => dialog.current.close()}>Cancel</button><button class=${danger ? "danger" : "primary"} disabled=${busy || (typed !== undefined && text.trim() !== typed.trim())}>${verb}</button></p>
    </form></dialog>`;
}
