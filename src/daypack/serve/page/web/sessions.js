// All sessions of all agents and projects, newest first.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { List, rowKeys } from "./list.js";
import { Waiting, line } from "./text.js";
import { address, go, sessionAddress } from "./router.js";
import { age, counted, moment, number, short } from "./words.js";
import { home, useAnswer, useLive } from "./data.js";
import { useKeys } from "./keys.js";

const SESSION_ROW = 44;
const NARROW_ROW = 84;
const keyOf = (row) => JSON.stringify([row.agent, row.session]);

/** Children follow their parent, marked; a child whose parent is not listed keeps its own place. */
function withChildren(rows) {
  const children = new Map();
  const names = new Set(rows.map(keyOf));
  const roots = [];
  for (const row of rows) {
    const parent = row.parent && row.parent !== row.session && JSON.stringify([row.agent, row.parent]);
    if (!parent || !names.has(parent)) roots.push(row);
    else if (children.has(parent)) children.get(parent).push(row);
    else children.set(parent, [row]);
  }
  const ordered = [];
  const add = (row, depth) => {
    ordered.push({ row, depth });
    const found = children.get(keyOf(row)) ?? [];
    children.delete(keyOf(row)); // a circle of parents ends here
    for (const child of found) add(child, depth + 1);
  };
  roots.forEach((row) => add(row, 0));
  for (const rest of [...children.values()]) rest.forEach((row) => ordered.some((placed) => placed.row === row) || add(row, 0));
  return ordered;
}

function searchable(row) {
  return [row.title, row.agent, row.program, row.project, row.cwd, row.model, row.session, row.state].filter(Boolean).join("\n").toLowerCase();
}

function SessionRow({ row, depth, index, selected }) {
  const title = line(row.title) || line(row.session);
  const cell = (name, value, numeric) => html`<span role="cell" class=${`c-${name}${numeric ? " num" : ""}`} data-label=${name}>${value}</span>`;
  return html`<div role="row" data-row=${index} id=${`row-${index}`} aria-rowindex=${index + 2} aria-selected=${selected ? "true" : null} class=${`srow ${selected ? "selected" : ""}`} onClick=${(event) => event.target.closest("a") || go(sessionAddress(row.agent, row.session))}>
    <span role="cell" class="c-title" data-depth=${Math.min(depth, 4)}>${depth > 0 && html`<span class="dim" aria-label="child">↳ </span>`}<a href=${sessionAddress(row.agent, row.session)} tabindex=${selected ? 0 : -1} dir="auto">${title}</a>${row.error && html` <span class="tag warn" title=${line(row.error)}>damaged</span>`}</span>
    ${cell("agent", line(row.program || row.agent))}${cell("project", line(row.project) || "–")}${cell("model", line(row.model) || "–")}
    ${cell("messages", number(row.messages), true)}${cell("tokens", short(row.tokens), true)}${cell("calls", number(row.calls), true)}${cell("compactions", number(row.compactions), true)}
    <span role="cell" class="c-age num"><time title=${moment(row.updated_at)}>${age(row.updated_at)}</time></span></div>`;
}

function Empty() {
  return html`<div class="empty welcome"><h2>No sessions yet</h2><p>Connect the coding agents on this machine, or import what they already wrote:</p><pre>daypack setup
daypack import --all</pre><p>Sessions appear here by themselves.</p></div>`;
}

const COLUMNS = [["title", "Session"], ["agent", "Agent"], ["project", "Project"], ["model", "Model"], ["messages", "Messages"], ["tokens", "Tokens"], ["calls", "Calls"], ["compactions", "Compactions"], ["age", "Age"]];

export function SessionsPage() {
  const [times, setTimes] = useState(0);
  const [filter, setFilter] = useState("");
  const [chosen, setChosen] = useState(null);
  const [narrow, setNarrow] = useState(() => matchMedia("(max-width: 700px)").matches);
  const control = useRef(null);
  const field = useRef(null);
  const answer = useAnswer("sessions", {}, times);
  useLive({}, () => setTimes((before) => before + 1));
  useEffect(() => {
    document.title = "Sessions · daypack";
    const query = matchMedia("(max-width: 700px)");
    const read = () => setNarrow(query.matches);
    query.addEventListener("change", read);
    return () => query.removeEventListener("change", read);
  }, []);
  // While calls are being counted in the background the list is read again, at first soon, then less often.
  const counting = useRef(0);
  useEffect(() => {
    if (!answer.value?.counting) return undefined;
    const timer = setTimeout(() => setTimes((before) => before + 1), Math.min(10_000, 700 * 1.5 ** counting.current++));
    return () => clearTimeout(timer);
  }, [answer.value]);
  const all = useMemo(() => withChildren(answer.value?.sessions ?? []), [answer.value]);
  const texts = useMemo(() => all.map(({ row }) => searchable(row)), [all]);
  const shown = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length ? all.filter((_, index) => words.every((word) => texts[index].includes(word))) : all;
  }, [all, texts, filter]);
  const found = shown.findIndex(({ row }) => keyOf(row) === chosen);
  const selected = found < 0 ? 0 : found;
  const pick = (index) => {
    setChosen(keyOf(shown[index].row));
    control.current?.show(index);
  };
  const open = (index) => shown[index] && go(sessionAddress(shown[index].row.agent, shown[index].row.session));
  useKeys({ ...rowKeys(shown.length, selected, pick, open), f: () => field.current?.focus() });
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!all.length) return html`<h1 class="offscreen">Sessions</h1><${Empty} />`;
  const fieldKeys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && shown.length) pick(Math.max(0, Math.min(shown.length - 1, selected + step)));
    else if (event.key === "Enter") open(selected);
    else if (event.key === "Escape" && filter) setFilter("");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="pagehead"><h1>Sessions</h1><span class="dim">${shown.length < all.length ? `${number(shown.length)} of ${counted(all.length, "session")}` : counted(all.length, "session")}${answer.value.counting ? " · counting calls …" : ""}</span><span class="push"></span>
      <input ref=${field} type="search" class="filter" placeholder="Filter" aria-label="Filter sessions" value=${filter} onInput=${(event) => setFilter(event.target.value)} onKeyDown=${fieldKeys} /></div>
    <div role="table" aria-label="Sessions" aria-rowcount=${shown.length + 1} class="sessions">
      <div role="row" class="srow shead sticks" aria-rowindex="1">${COLUMNS.map(([id, name]) => html`<span key=${id} role="columnheader" class=${`c-${id} ${["messages", "tokens", "calls", "compactions", "age"].includes(id) ? "num" : ""}`}>${name}</span>`)}</div>
      <${List} role="rowgroup" count=${shown.length} height=${narrow ? NARROW_ROW : SESSION_ROW} control=${control} row=${(index) => html`<${SessionRow} key=${keyOf(shown[index].row)} ...${shown[index]} index=${index} selected=${index === selected} />`} /></div>
    ${!shown.length && html`<p class="empty">No session matches. <a href=${address("find", filter)}>Search in all messages</a></p>`}
    ${home.exported && html`<p class="note">Exported${home.start.exported_at ? ` on ${moment(home.start.exported_at)}` : ""}.</p>`}`;
}
