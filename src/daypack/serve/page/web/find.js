// Search in all sessions: each hit with its line, and one press to the message in its history.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Waiting, line, visible } from "./text.js";
import { age, counted, moment, number, spaced } from "./words.js";
import { go, messageAddress } from "./router.js";
import { rowKeys } from "./list.js";
import { useAnswer } from "./data.js";
import { useKeys } from "./keys.js";

/** The line with its matches marked. Places count characters, not the UTF-16 units of a JavaScript string. */
function Marked({ text, marks }) {
  const characters = Array.from(text);
  const pieces = [];
  let place = 0;
  for (const [start, stop] of marks ?? []) {
    if (start < place || stop > characters.length) continue;
    pieces.push(visible(characters.slice(place, start).join("")));
    pieces.push(html`<mark key=${start}>${visible(characters.slice(start, stop).join(""))}</mark>`);
    place = stop;
  }
  pieces.push(visible(characters.slice(place).join("")));
  return html`<span dir="auto">${pieces}</span>`;
}

export function FindPage({ query }) {
  const [selected, setSelected] = useState(0);
  const list = useRef(null);
  const answer = useAnswer(query ? "find" : null, { q: query });
  const hits = answer.value?.hits ?? [];
  const open = (index) => hits[index] && go(messageAddress(hits[index].agent, hits[index].session, hits[index].seq));
  const pick = (index) => {
    setSelected(index);
    list.current?.children[index]?.scrollIntoView({ block: "nearest" });
  };
  useKeys({ ...rowKeys(hits.length, selected, pick, open), Escape: () => go("#/") });
  useEffect(() => {
    document.title = `${line(query, 60) || "Search"} · daypack`;
    setSelected(0);
  }, [query]);
  if (!query) return html`<p class="empty">Enter words above to search in all sessions.</p>`;
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { sessions, messages, complete, absent, weak } = answer.value;
  return html`<div class=${answer.fresh ? "" : "stale"}><div class="pagehead"><h1>“${line(query)}”</h1><span class="dim">${counted(hits.length, "hit")}${messages != null ? ` in ${counted(messages, "message")} of ${counted(sessions, "session")}` : ""}</span></div>
    ${absent?.length > 0 && html`<p class="note">Nowhere: ${absent.map((word) => line(word)).join(", ")}</p>`}${weak && html`<p class="note">No message contains all of it; these are the nearest.</p>`}${complete === false && html`<p class="note">The index is not complete yet; newer messages may be absent.</p>`}
    <ol class="hits" ref=${list}>${hits.map((hit, index) => html`<li key=${`${hit.agent} ${hit.session} ${hit.seq}`} class=${index === selected ? "selected" : ""}><a href=${messageAddress(hit.agent, hit.session, hit.seq)} onFocus=${() => setSelected(index)}>
      <span class="meta"><b>${line(hit.project || hit.agent)}</b> <span>${line(hit.agent)} · ${line(hit.short || hit.session)}</span> <span>message ${number(hit.seq)} · ${spaced(hit.role).toLowerCase()}</span><span class="push"></span><time title=${moment(hit.ts)}>${age(hit.ts)}</time></span>
      <span class="hitline"><${Marked} text=${hit.line} marks=${hit.marks} /></span>${(hit.more > 0 || hit.same > 0) && html`<span class="why">${[hit.more > 0 && `${number(hit.more)} more in this session`, hit.same > 0 && `the same in ${counted(hit.same, "other session")}`].filter(Boolean).join(" · ")}</span>`}</a></li>`)}</ol>
    ${!hits.length && html`<p class="empty">Nothing found. Fewer or other words may help.</p>`}</div>`;
}
