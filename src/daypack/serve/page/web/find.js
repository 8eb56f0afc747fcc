// Search in all sessions: each hit with its line, one press from the message in its history.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Waiting } from "./pieces.js";
import { address, go } from "./router.js";
import { age, counted, number } from "./words.js";
import { line, visible } from "./text.js";
import { rowKeys } from "./list.js";
import { useAnswer } from "./data.js";
import { useKeys } from "./keys.js";

/** The line with its matches marked; marks count characters, not the UTF-16 units of a JavaScript string. */
function Marked({ text, marks }) {
  const characters = Array.from(text);
  const piece = (start, stop) => visible(characters.slice(start, stop).join(""));
  return html`<span class="hitline" dir="auto">${marks.map(([start, stop], index) => html`${piece(marks[index - 1]?.[1] ?? 0, start)}<mark>${piece(start, stop)}</mark>`)}${piece(marks.at(-1)?.[1] ?? 0)}</span>`;
}

export function FindPage({ query }) {
  const [selected, setSelected] = useState(0);
  const list = useRef();
  const answer = useAnswer(query && "find", { q: query });
  const hits = answer.value?.hits ?? [];
  const open = (index) => go(address("s", hits[index].agent, hits[index].session, "history", hits[index].seq));
  const pick = (index) => {
    setSelected(index);
    list.current.children[index].scrollIntoView({ block: "nearest" });
  };
  useKeys({ ...rowKeys(hits.length, selected, pick, open), Escape: () => go("#/") });
  useEffect(() => setSelected(0), [query]);
  if (!answer.value || answer.error) return html`<${Waiting} answer=${answer} />`;
  const { sessions, messages, complete, absent, weak } = answer.value;
  const notes = [absent?.length > 0 && `Found nowhere: ${absent.join(", ")}.`, weak && "No message contains all of it; these are the nearest.", complete === false && "The index is not complete yet; newer messages may be absent."].filter(Boolean);
  return html`<div class=${answer.stale}><div class="line pagehead"><h1>“${line(query)}”</h1><span class="dim">${counted(hits.length, "hit")} in ${counted(messages, "message")} of ${counted(sessions, "session")}</span></div>${notes.map((note) => html`<p key=${note} class="note">${visible(note)}</p>`)}
    <ol ref=${list} class="hits">${hits.map((hit, index) => html`<li key=${index} class=${index === selected ? "selected" : ""}><a href=${address("s", hit.agent, hit.session, "history", hit.seq)} onFocus=${() => setSelected(index)}>
      <span class="line meta"><b>${line(hit.project || hit.agent)}</b><span>${line(hit.agent)} · ${line(hit.short || hit.session)}</span><span>${line(hit.role)} · message ${number(hit.seq)}</span><time class="push">${age(hit.ts)}</time></span><${Marked} text=${hit.line} marks=${hit.marks ?? []} />
      <span class="why">${[hit.more > 0 && `${number(hit.more)} more in this session`, hit.same > 0 && `the same in ${counted(hit.same, "other session")}`].filter(Boolean).join(" · ")}</span></a></li>`)}</ol>${!hits.length && html`<p class="empty">Nothing found. Fewer or other words may help.</p>`}</div>`;
}
