// All sessions of all agents and projects, newest first.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { List, rowKeys } from "./list.js";
import { Tag, Waiting } from "./pieces.js";
import { address, go } from "./router.js";
import { age, counted, number, short, spaced } from "./words.js";
import { line } from "./text.js";
import { useAnswer, useLive } from "./data.js";
import { useKeys } from "./keys.js";

const NARROW = matchMedia("(max-width: 700px)");
const COLUMNS = ["session", "agent", "project", "model", "messages", "tokens", "calls", "compactions", "age"];
const NUMBERS = COLUMNS.slice(4);

/** Children follow their parents; the set of seen ones ends a circle of parents. */
function withChildren(sessions) {
  const keyed = new Map(sessions.map((row) => [JSON.stringify([row.agent, row.session]), row]));
  const parentOf = (row) => row.parent && JSON.stringify([row.agent, row.parent]);
  const children = Map.groupBy(keyed.keys(), (key) => parentOf(keyed.get(key)));
  const rows = new Map();
  const add = (key, depth) => {
    const row = keyed.get(key);
    if (rows.has(key)) return;
    rows.set(key, { key, row, depth, text: [row.title, row.agent, row.program, row.project, row.cwd, row.model,
      row.session].join("\n").toLowerCase() });
    children.get(key)?.forEach((child) => add(child, depth + 1));
  };
  for (const [key, row] of keyed) if (!keyed.has(parentOf(row))) add(key, 0);
  for (const key of keyed.keys()) add(key, 0);
  return [...rows.values()];
}

function Cell({ name, role = "cell", children }) {
  return html`<span role=${role} class=${`c-${name} ${NUMBERS.includes(name) ? "num" : ""}`}>${children}</span>`;
}

function SessionRow({ row, depth, index, selected }) {
  const to = address("s", row.agent, row.session);
  const cells = { agent: line(row.program || row.agent), project: line(row.project) || "–",
    model: line(row.model) || "–", messages: number(row.messages), tokens: short(row.tokens), calls: number(row.calls),
    compactions: number(row.compactions), age: age(row.updated_at) };
  return html`<div role="row" data-row=${index} aria-rowindex=${index + 2} class=${`srow ${selected ? "selected" : ""}`}
    onClick=${(event) => event.target.closest("a") || go(to)}><${Cell} name="session">
    ${depth > 0 && html`<span class="dim" role="img" aria-label="child of the session above">
    ${" ".repeat(4 * depth - 3)}↳ </span>`}<a href=${to} dir="auto">${line(row.title) || line(row.session)}
    </a> <${Tag} warn words=${row.error && "damaged"} /><//>${Object.entries(cells).map(([name,
    value]) => html`<${Cell} name=${name}>${value}<//>`)}</div>`;
}

export function SessionsPage() {
  const [times, setTimes] = useState(0);
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState(null);
  const [narrow, setNarrow] = useState(NARROW.matches);
  const show = useRef();
  const field = useRef();
  const answer = useAnswer("sessions", {}, times);
  const again = () => setTimes((before) => before + 1);
  useLive({}, again);
  useEffect(() => {
    NARROW.onchange = () => setNarrow(NARROW.matches);
  }, []);
  useEffect(() => { // calls are counted in the background, for a few seconds
    const timer = answer.value?.counting && setTimeout(again, 1000 + 500 * times);
    return () => clearTimeout(timer);
  }, [answer.value]);
  const all = useMemo(() => withChildren(answer.value?.sessions ?? []), [answer.value]);
  const words = filter.toLowerCase().split(/\s+/);
  const rows = useMemo(() => all.filter(({ text }) => words.every((word) => text.includes(word))), [all, filter]);
  const selected = Math.max(0, rows.findIndex(({ key }) => key === chosen));
  const pick = (index) => {
    setChosen(rows[index].key);
    show.current(index);
  };
  const keys = rowKeys(rows.length, selected, pick, (index) => go(address("s", rows[index].row.agent,
    rows[index].row.session)));
  useKeys({ ...keys, f: () => field.current.focus() });
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!all.length) return html`<div class="empty"><h1>No sessions yet</h1>
    <p>Connect the coding agents on this machine, or import what they already wrote:</p>
    <pre>daypack setup\ndaypack import --all</pre><p>Sessions appear here by themselves.</p></div>`;
  const type = (event) => {
    if (!["ArrowDown", "ArrowUp", "Enter"].includes(event.key)) return;
    event.preventDefault();
    keys[event.key]();
  };
  return html`<div class="line pagehead"><h1>Sessions</h1><span class="dim">
    ${rows.length < all.length && `${number(rows.length)} of `}${counted(all.length, "session")}
    ${answer.value.counting && ", counting calls …"}</span><span class="push"></span>
    <input ref=${field} type="search" placeholder="Filter" aria-label="Filter sessions"
    onInput=${(event) => setFilter(event.target.value)} onKeyDown=${type} /></div>
    <div role="table" aria-label="Sessions" aria-rowcount=${rows.length + 1}>
      <div role="row" class="srow shead sticks" aria-rowindex="1">
      ${COLUMNS.map((name) => html`<${Cell} role="columnheader" name=${name}>${spaced(name)}<//>`)}</div>
      <${List} role="rowgroup" count=${rows.length} height=${narrow ? 84 : 44} control=${show}
      row=${(index) => html`<${SessionRow} key=${rows[index].key} ...${rows[index]} index=${index}
      selected=${index === selected} />`} /></div>
    ${!rows.length && html`<p class="empty">No session matches. <a
      href=${address("find", filter)}>Search in all messages</a></p>`}`;
}
