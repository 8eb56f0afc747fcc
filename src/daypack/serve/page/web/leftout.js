// What a call does not contain, with the reason and a button that reads it; and what is known to be missing.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Boxed, Copy, dots, line } from "./text.js";
import { Entry, Panel, Source, Waiting } from "./pieces.js";
import { counted, number, spaced, tokens } from "./words.js";
import { useHere, wordsFor } from "./data.js";

const FIRST = 40; // omissions shown at first

/** A text that left the window, recalled by its id. */
function Recalled({ id }) {
  const [part, setPart] = useState(id);
  const answer = useHere("recall", { id: part });
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { text, chars, source, more } = answer.value;
  return html`<p class="meta"><${Source} to=${source} /> · ${(chars ?? Infinity) > text.length
    ? `the first ${number(text.length)} of ` : ""}${counted(chars, "character")} <${Copy} text=${text} /></p>
    <${Boxed} text=${text} label="Recalled text" />
    ${more && html`<button class="small" onClick=${() => setPart(more)}>Continue with ${line(more)}</button>`}`;
}

function Omission({ item, reason, words, note, swap, read, high_impact: high, tokens: stated, counted: found }) {
  const [reading, setReading] = useState(false);
  return html`<${Entry} name=${item} tag=${high && "high impact"} warn count=${stated ?? found}
    why=${dots(words || wordsFor("omission", reason) || spaced(reason), note, swap && `replaced by ${swap}`)}>
    ${read && html`<button class="small" aria-expanded=${reading} aria-label=${`Read ${line(item)}`}
      onClick=${() => setReading(!reading)}>${reading ? "Close" : "Read"}</button>`}
      ${reading && html`<${Recalled} id=${read} />`}<//>`;
}

/** The omissions of a call in the order of `daypack explain`; `everything` counts the requests to show all of them. */
export function LeftOut({ call: { omitted, kind, content }, everything }) {
  const [most, setMost] = useState(FIRST);
  const box = useRef();
  useEffect(() => {
    if (!everything) return;
    setMost(Infinity);
    box.current.focus();
  }, [everything]);
  const sum = omitted.reduce((total, omission) => total + (omission.tokens ?? omission.counted ?? 0), 0); // 0: unknown
  return html`<div ref=${box} tabindex="-1"><${Panel} title="Left out"
    count=${omitted.length > 0 && dots(number(omitted.length), sum > 0 && tokens(sum))}>
    ${!omitted.length && html`<p class="dim">${kind === "prepared" ? "Nothing: everything is in."
    : content === "recorded" ? "Nothing is known to have left its window." : "Unknown: another program packed this call."}</p>`}
    <ul>${omitted.slice(0, most).map((omission) => html`<${Omission} ...${omission} />`)}</ul>
      ${most < omitted.length && html`<button class="more"
      onClick=${() => setMost(Infinity)}>Show ${number(omitted.length - most)} more</button>`}<//></div>`;
}

export function Missing({ missing }) {
  return missing.length > 0 && html`<${Panel} title="Missing context" count=${missing.length}><ul>
    ${missing.map(({ question, severity }) => html`<${Entry} name=${question} tag=${severity}
    warn=${severity === "high"} />`)}</ul><//>`;
}
