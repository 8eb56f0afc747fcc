// Search in all sessions: each hit with its line, one press from the message in its history.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Waiting } from "./pieces.js";
import { address, go } from "./router.js";
import { age, counted, number } from "./words.js";
import { dots, line, visible } from "./text.js";
import { rowKeys } from "./list.js";
import { useAnswer } from "./data.js";
import { useKeys } from "./keys.js";

/** The line with its matches marked; marks count characters, not the UTF-16 units of a JavaScript string. */
function Marked({ text, marks = [] }) {
  const characters = Array.from(text);
  const piece = (start, stop) => visible(characters.slice(start, stop).join(""));
  return html`<span class="hitline" dir="auto">${marks.map(([start, stop],
    index) => html`${piece(marks[index - 1]?.[1] ?? 0, start)}<mark>${piece(start, stop)}</mark>`)}
    ${piece(marks.at(-1)?.[1] ?? 0)}</span>`;
}

export function FindPage({ query }) {
  const [selected, setSelected] = useState(0);
  const list = useRef();
  const answer = useAnswer(query && "find", { q: query });
  const { hits = [], sessions, messages, complete, absent = [], weak } = answer.value ?? {};
  const to = ({ agent, session, seq }) => address("s", agent, session, "history", seq);
  const pick = (index) => {
    setSelected(index);
    list.current.children[index].scrollIntoView({ block: "nearest" });
  };
  useKeys({ ...rowKeys(hits.length, selected, pick, (index) => go(to(hits[index]))), Escape: () => go("#/") });
  useEffect(() => setSelected(0), [query]);
  if (!answer.value || answer.error) return html`<${Waiting} answer=${answer} />`;
  const note = dots(absent.length > 0 && `Found nowhere: ${absent.join(", ")}`,
    weak && "No message contains all of it; these are the nearest",
    complete === false && "The index is not complete yet");
  return html`<div class=${answer.stale}><div class="line pagehead"><h1>“${line(query)}”</h1>
    <span class="dim">the best ${counted(hits.length, "hit")} in ${counted(messages, "message")} of ${counted(sessions,
    "session")}</span></div>${note && html`<p class="note">${note}</p>`}
    <ol ref=${list} class="hits">${hits.map((hit, index) => html`<li class=${index === selected ? "selected" : ""}>
      <a href=${to(hit)} onFocus=${() => setSelected(index)}><span class="line meta"><b>
      ${line(hit.project || hit.agent)}</b><span>${dots(hit.agent, hit.session,
      `message ${number(hit.seq)}`, hit.role)}</span><time class="last">${age(hit.ts)}</time></span>
      <${Marked} text=${hit.line} marks=${hit.marks} /><span class="why">
      ${dots(hit.more > 0 && `${number(hit.more)} more in this session`,
      hit.same > 0 && `the same in ${counted(hit.same, "other session")}`)}</span></a></li>`)}</ol>
      ${!hits.length && html`<p class="empty">Nothing found. Fewer or other words may help.</p>`}</div>`;
}
