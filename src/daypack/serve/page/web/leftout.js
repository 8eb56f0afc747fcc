// What a call does not contain, with the reason and a button that reads it; and what is known to be missing.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { ask, wordsFor } from "./data.js";
import { messageAddress } from "./router.js";
import { Copy, Problem, Shown, line, visible } from "./text.js";
import { counted, messageOf, number, spaced } from "./words.js";

const AT_FIRST = 40;

/** An omitted text, recalled by its id. */
function Recalled({ agent, session, id }) {
  const [answer, setAnswer] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    ask("recall", { agent, session, id }, stop.signal).then(
      (value) => stop.signal.aborted || setAnswer({ value }),
      (error) => stop.signal.aborted || setAnswer({ error }),
    );
    return () => stop.abort();
  }, [id]);
  if (!answer) return html`<p class="dim" role="status">Loading …</p>`;
  if (answer.error) return html`<${Problem} error=${answer.error} />`;
  const { text, chars, source } = answer.value;
  const seq = messageOf(source);
  return html`<div class="recalled">
    <p class="meta">${seq == null ? visible(source) : html`<a href=${messageAddress(agent, session, seq)}>message ${number(seq)}</a>`} · ${counted(chars, "character")} <${Copy} text=${text} /></p>
    <${Shown} text=${text} class="scrolls" tabindex="0" role="region" aria-label="Recalled text" />
    ${chars > text.length && html`<p class="dim">The first ${counted(text.length, "character")} are shown.</p>`}
  </div>`;
}

function Omission({ agent, session, omission }) {
  const [reading, setReading] = useState(false);
  return html`<li class=${omission.high_impact ? "omission high" : "omission"}>
    <div class="head"><span class="name">${line(omission.item)}</span>${omission.high_impact && html`<span class="tag warn">high impact</span>`}<span class="num">${number(omission.tokens)}</span></div>
    <p class="why">${visible(omission.words || wordsFor("omission", omission.reason) || spaced(omission.reason))}${omission.note ? ` · ${visible(omission.note)}` : ""}${omission.swap ? ` · replaced by ${visible(omission.swap)}` : ""}</p>
    ${omission.read && html`<button class="small" aria-expanded=${reading ? "true" : "false"} aria-label=${`Read ${line(omission.item)}`} onClick=${() => setReading(!reading)}>${reading ? "Close" : "Read"}</button>`}
    ${reading && html`<${Recalled} agent=${agent} session=${session} id=${omission.read} />`}
  </li>`;
}

/** The omissions of a call in the order in which `daypack explain` lists them. `all`: show every one at once. */
export function LeftOut({ agent, session, omitted, known, all }) {
  const [more, setMore] = useState(false);
  const heading = useRef(null);
  useEffect(() => {
    if (all) heading.current?.scrollIntoView({ block: "center" });
    if (all) heading.current?.focus({ preventScroll: true });
  }, [all]);
  const shown = more || all ? omitted : omitted.slice(0, AT_FIRST);
  const sum = omitted.reduce((total, { tokens }) => total + (tokens || 0), 0);
  return html`<section class="panel" aria-labelledby="leftout">
    <h3 id="leftout" ref=${heading} tabindex="-1">Left out${omitted.length > 0 && html` <span class="dim">${number(omitted.length)} · ${counted(sum, "token")}</span>`}</h3>
    ${!known ? html`<p class="dim">Unknown: this call was observed, not packed by daypack.</p>` : omitted.length === 0 && html`<p class="dim">Nothing: everything is in.</p>`}
    <ul class="omissions">${shown.map((omission, index) => html`<${Omission} key=${`${index} ${omission.item}`} agent=${agent} session=${session} omission=${omission} />`)}</ul>
    ${shown.length < omitted.length && html`<button class="more" onClick=${() => setMore(true)}>Show ${number(omitted.length - shown.length)} more</button>`}
  </section>`;
}

export function Missing({ missing }) {
  if (!missing.length) return null;
  return html`<section class="panel" aria-labelledby="missing"><h3 id="missing">Missing context <span class="dim">${number(missing.length)}</span></h3>
    <ul class="omissions">${missing.map((gap) => html`<li key=${gap.id} class="omission"><div class="head"><span class="name wraps">${visible(gap.question)}</span><span class=${`tag ${gap.severity === "high" ? "warn" : ""}`}>${visible(gap.severity)}</span></div></li>`)}</ul></section>`;
}
