// What a call does not contain, with the reason and a button that reads it; and what is known to be missing.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Boxed, Copy, line } from "./text.js";
import { Entry, Panel, Source, Waiting } from "./pieces.js";
import { counted, number, spaced, tokens } from "./words.js";
import { useHere, wordsFor } from "./data.js";

const FIRST = 40; // omissions shown at first

/** A text that left the window, recalled by its id. */
function Recalled({ id }) {
  const answer = useHere("recall", { id });
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { text, chars, source } = answer.value;
  return html`<p class="meta"><${Source} to=${source} /> · ${counted(chars, "character")} <${Copy} text=${text} /></p><${Boxed} text=${text} label="Recalled text" />
    ${(chars ?? Infinity) > text.length && html`<p class="dim">These are the first ${counted(text.length, "character")}.</p>`}`;
}

function Omission({ omission }) {
  const [reading, setReading] = useState(false);
  const { item, reason, words, note, swap, read } = omission;
  const why = [words || wordsFor("omission", reason) || spaced(reason), note, swap && `replaced by ${swap}`].filter(Boolean).join(" · ");
  return html`<${Entry} name=${item} tag=${omission.high_impact && "high impact"} warn count=${omission.tokens} why=${why}>
    ${read && html`<button class="small" aria-expanded=${reading} aria-label=${`Read ${line(item)}`} onClick=${() => setReading(!reading)}>${reading ? "Close" : "Read"}</button>`}${reading && html`<${Recalled} id=${read} />`}<//>`;
}

/** The omissions of a call in the order of `daypack explain`; `everything` counts the requests to show all of them. */
export function LeftOut({ call, everything }) {
  const [all, setAll] = useState(false);
  const heading = useRef();
  useEffect(() => {
    if (!everything) return;
    setAll(true);
    heading.current.querySelector("h3").focus({ preventScroll: true });
    heading.current.scrollIntoView({ block: "start" });
  }, [everything]);
  const { omitted } = call;
  const shown = all ? omitted : omitted.slice(0, FIRST);
  const sum = omitted.reduce((total, omission) => total + (omission.tokens ?? 0), 0);
  return html`<div ref=${heading}><${Panel} title="Left out" count=${omitted.length ? `${number(omitted.length)} · ${tokens(sum)}` : ""} tabindex="-1">
    ${!omitted.length && html`<p class="dim">${call.kind === "prepared" ? "Nothing: everything is in." : "Unknown: another program packed this call."}</p>`}
    <ul>${shown.map((omission, index) => html`<${Omission} key=${index} omission=${omission} />`)}</ul>
    ${shown.length < omitted.length && html`<button class="more" onClick=${() => setAll(true)}>Show ${number(omitted.length - shown.length)} more</button>`}<//></div>`;
}

export function Missing({ missing }) {
  return missing.length > 0 && html`<${Panel} title="Missing context" count=${missing.length}><ul>${missing.map((gap) => html`<${Entry} key=${gap.id} name=${gap.question} tag=${line(gap.severity)} warn=${gap.severity === "high"} />`)}</ul><//>`;
}
