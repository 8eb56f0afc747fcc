// Memories: the document with its versions, entries, and a search that shows how each score came about.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Bars, Confirm, Panel, Problem, Tag, Waiting } from "./pieces.js";
import { Boxed, DiffLines, Shown, dots, line, visible } from "./text.js";
import { act, ask, mayWrite, useAnswer } from "./data.js";
import { address, go } from "./router.js";
import { age, bytes, counted, moment, number, spaced } from "./words.js";
import { rowKeys } from "./list.js";
import { useKeys } from "./keys.js";

const SCORE_COLOURS = 6;

function Document({ id, document, versions }) {
  const [version, setVersion] = useState("");
  const answer = useAnswer(version && "document", { id, version });
  if (!document) return html`<p class="dim">No document was written yet.</p>`;
  return html`<label>Show <select value=${version} onChange=${(event) => setVersion(event.target.value)}>
    <option value="">version ${document.version}, the newest</option>
    ${versions.map((known) => html`<option
    value=${known.version}>what changed in version ${known.version}, ${age(known.created_at)}</option>`)}</select>
    </label>
    ${!version ? html`<${Boxed} text=${document.content} label="Text of the document" />` : answer.fresh && answer.value
      ? html`<${DiffLines} lines=${answer.value.lines}
      label=${`Version ${version}, compared with version ${answer.value.against}`} />`
      : html`<${Waiting} answer=${answer} />`}`;
}

function EntryText({ entry, erase, children }) {
  const { id, author, at, created_at: created, session, tags = [], raw, summary } = entry;
  return html`<li class="entry"><div class="head"><b>${line(author) || "unknown author"}</b>
    <span class="dim">${dots(moment(at || created), session, ...tags)}</span>
    ${erase && html`<button class="small quiet last" aria-label=${`Erase entry ${line(id)}`}
    onClick=${() => erase(entry)}>Erase …</button>`}</div><${Shown} text=${raw ?? summary} />
    <p class="why">${raw && visible(summary)}</p>${children}</li>`;
}

function Entries({ id, erase }) {
  const [{ entries = [], next, error }, setState] = useState({});
  const load = (before) => ask("entries", { id, before }).then((page) => setState({ next: page.next,
    entries: [...entries, ...page.entries] }), (problem) => setState({ entries, error: problem }));
  useEffect(() => {
    load();
  }, []);
  return html`<ol>${entries.map((entry) => html`<${EntryText} key=${entry.id} entry=${entry} erase=${erase} />`)}</ol>
    ${error && html`<${Problem} error=${error} />`}${next && html`<button class="more"
    onClick=${() => load(next)}>Show older entries</button>`}`;
}

/** The score as stacked parts, and the relevance with the floor below which an entry is not recalled. */
function Score({ hit: { parts, score, relevance }, names, most, floor, top }) {
  const wide = names.map((name) => (100 * Math.max(0, parts[name] ?? 0)) / most);
  const words = names.map((name) => `${spaced(name)} ${(parts[name] ?? 0).toFixed(2)}`).join(", ");
  return html`<div class="meter score"><span>Score</span><span class="num">${score?.toFixed(2)}</span>
    <${Bars} label=${words}>${wide.map((width, index) => html`<rect class=${`s${index % SCORE_COLOURS}`}
    x=${wide.slice(0, index).reduce((sum, value) => sum + value, 0)} width=${width} height="6" />`)}<//>
    <span>Relevance</span><span class="num">${relevance?.toFixed(2) ?? "unknown"}</span>
      <${Bars} label=${`Relevance, floor ${floor}`}><rect class=${relevance >= floor ? "s2" : "s5"}
      width=${(100 * (relevance ?? 0)) / top} height="6" /><path class="seam" d=${`M${(100 * floor) / top} 0v6`} /><//>
      </div>`;
}

function MemorySearch({ id }) {
  const [query, setQuery] = useState("");
  const answer = useAnswer(query && "memory-search", { id, q: query });
  const { hits = [], below = [], notes = [], floor } = answer.value ?? {};
  const all = [...hits, ...below];
  const names = [...new Set(all.flatMap((hit) => Object.keys(hit.parts)))];
  const most = Math.max(0.01, ...all.map((hit) => Object.values(hit.parts).reduce((sum, value) => sum + Math.max(0,
    value), 0)));
  const top = Math.max(2 * floor, ...all.map((hit) => hit.relevance ?? 0));
  const rows = (list) => html`<ol>${list.map((hit) => html`<${EntryText} entry=${hit}><p class="why">
    ${hit.superseded_by && `Superseded by ${line(hit.superseded_by)}`}</p>
    <${Score} ...${{ hit, names, most, floor, top }} /><//>`)}</ol>`;
  const submit = (event) => {
    event.preventDefault();
    setQuery(event.target.elements.q.value.trim());
  };
  return html`<form class="tools" onSubmit=${submit}><input class="push" type="search" name="q"
    aria-label="Search this memory" placeholder="Search this memory" /><button>Search</button></form>
    ${answer.error && html`<${Problem} error=${answer.error} />`}
    ${query && answer.value && html`<div class=${answer.stale}><ul class="legend">
      ${names.map((name, index) => html`<li><i class=${`swatch s${index % SCORE_COLOURS}`}></i>${spaced(name)}</li>`)}
      <li class="bad">│ floor ${floor.toFixed(1)}</li></ul><p class="meta">${dots(...notes)}</p>
      ${hits.length ? rows(hits) : html`<p class="dim">No entry reaches the floor.</p>`}
      ${below.length > 0 && html`<h3>Below the floor <span class="dim">not recalled</span></h3>${rows(below)}`}
      </div>`}`;
}

function MemoryDetail({ id, changed }) {
  const [times, setTimes] = useState(0);
  const [question, setQuestion] = useState(null);
  const [done, setDone] = useState("");
  const answer = useAnswer("memory", { id }, times);
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { title, entries, documents, hidden_at: hidden, ...memory } = answer.value;
  const size = counted(entries, "entry", "entries");
  const run = async () => {
    setDone((await act(question.action, { id, ...question.args })).done);
    changed();
    if (question.typed) go(address("memory"));
    else setTimes(times + 1);
  };
  const hide = { action: "hide-memory", title: "Hide this memory?",
    text: "No agent reads it until it is restored. Nothing is deleted." };
  const restore = { action: "restore-memory", title: "Restore this memory?",
    text: "Agents that are bound to it read it again." };
  const erase = { action: "erase-memory", title: "Erase this memory for good?",
    text: `${size} and ${counted(documents, "version")} of the document are deleted. This cannot be undone.`,
    typed: title, args: { confirm: title } };
  const eraseEntry = (entry) => setQuestion({ action: "erase-entry", title: "Erase this entry for good?",
    text: `${line(entry.raw)}\n\nThis cannot be undone.`, args: { entry: entry.id, confirm: "erase" } });
  const verb = ({ action }) => spaced(action.split("-")[0]);
  const button = (asked) => html`<button class=${asked.typed ? "danger" : ""} onClick=${() => setQuestion(asked)}>
    ${verb(asked)} …</button>`;
  return html`<article class="detail"><div class="line"><h2 dir="auto">${line(title)}</h2>
    <${Tag} warn words=${hidden && "hidden"} /><span class="push"></span>
    ${mayWrite() && html`${button(hidden ? restore : hide)}${button(erase)}`}</div>
    <p class="meta">${dots(memory.description, memory.type, size, bytes(memory.bytes),
    `created ${moment(memory.created_at)}`)}</p><p class="good" role="status">${visible(done)}</p>
    ${question && html`<${Confirm} title=${question.title} verb=${verb(question)} typed=${question.typed} run=${run}
      close=${() => setQuestion(null)}><${Shown} text=${question.text} /><//>`}
    ${hidden ? html`<p class="empty">What a hidden memory holds is not shown.</p>`
      : html`<${Panel} title="Search"><${MemorySearch} id=${id} /><//>
      <${Panel} title="Document" count=${counted(documents, "version")}>
      <${Document} id=${id} document=${memory.document} versions=${memory.versions} /><//>
      <${Panel} title="Entries" count=${number(entries)}><${Entries} key=${entries} id=${id}
      erase=${mayWrite() && eraseEntry} /><//>`}</article>`;
}

export function MemoryPage({ id }) {
  const [times, setTimes] = useState(0);
  const answer = useAnswer("memories", {}, times);
  const memories = answer.value?.memories ?? [];
  useKeys({ ...rowKeys(memories.length, memories.findIndex((memory) => memory.id === id),
    (index) => go(address("memory", memories[index].id))), Escape: () => go(id ? address("memory") : "#/") });
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!memories.length && !id) return html`<div class="empty"><h1>No memories yet</h1>
    <p>Create one, or import what other agents remember:</p>
    <pre>daypack memory new "Title"\ndaypack import --all</pre></div>`;
  return html`<div class="line pagehead"><h1>Memory</h1><span class="dim">
    ${counted(memories.length, "memory", "memories")}</span></div>
    <div class=${`masterdetail ${id ? "chosen" : ""}`}><nav aria-label="Memories"><ul class="cards">
    ${memories.map((memory) => html`<li><a class=${`card ${memory.hidden_at ? "dim" : ""}`}
    href=${address("memory", memory.id)} aria-current=${memory.id === id}><b dir="auto">${line(memory.title)}</b>
    <span class="dim">${dots(memory.hidden_at && "hidden", counted(memory.entries, "entry", "entries"),
    age(memory.created_at))}</span></a></li>`)}</ul></nav>
    ${id ? html`<${MemoryDetail} key=${id} id=${id} changed=${() => setTimes(times + 1)} />`
      : html`<p class="empty">Choose a memory.</p>`}</div>`;
}
