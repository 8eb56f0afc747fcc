// Memories: the document with its versions, entries, and a search that shows how each score came about.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Boxed, DiffLines, Shown, line, visible } from "./text.js";
import { Confirm, Panel, Problem, Tag, Waiting } from "./pieces.js";
import { act, ask, mayWrite, useAnswer } from "./data.js";
import { address, go } from "./router.js";
import { age, bytes, counted, moment, number, spaced } from "./words.js";
import { rowKeys } from "./list.js";
import { useKeys } from "./keys.js";

function Document({ id, memory: { document, versions } }) {
  const [version, setVersion] = useState("");
  const answer = useAnswer(version && "document", { id, version });
  if (!document) return html`<p class="dim">There is no document, or the memory is hidden.</p>`;
  return html`<div class="tools"><label>Show <select value=${version} onChange=${(event) => setVersion(event.target.value)}><option value="">version ${document.version}, the newest</option>${versions.map((known) => html`<option key=${known.version} value=${known.version}>what changed in version ${known.version}, ${age(known.created_at)}</option>`)}</select></label></div>
    ${!version ? html`<${Boxed} text=${document.content} label="Document" />` : answer.fresh && answer.value ? html`<${DiffLines} lines=${answer.value.lines} label=${`Version ${version}, compared with version ${answer.value.against}`} />` : html`<${Waiting} answer=${answer} />`}`;
}

function EntryText({ entry, erase }) {
  const facts = [moment(entry.at || entry.created_at), entry.session, ...(entry.tags ?? [])].filter(Boolean).map((fact) => line(fact));
  return html`<div class="head"><b>${line(entry.author) || "unknown author"}</b><span class="dim">${facts.join(" · ")}</span>${erase && html`<button class="small quiet push" aria-label=${`Erase entry ${line(entry.id)}`} onClick=${() => erase(entry)}>Erase …</button>`}</div><${Shown} text=${entry.raw ?? entry.summary} />${entry.raw && entry.summary && html`<p class="why">${visible(entry.summary)}</p>`}`;
}

function Entries({ id, erase }) {
  const [state, setState] = useState({ entries: [] });
  const load = (before, signal) => ask("entries", { id, before }, signal).then(
    ({ entries, next }) => setState((old) => ({ entries: [...old.entries, ...entries], next })),
    (error) => signal?.aborted || setState((old) => ({ ...old, error })),
  );
  useEffect(() => {
    const stop = new AbortController();
    load(null, stop.signal);
    return () => stop.abort();
  }, []);
  return html`<ol>${state.entries.map((entry) => html`<li key=${entry.id} class="entry"><${EntryText} entry=${entry} erase=${erase} /></li>`)}</ol>${state.error && html`<${Problem} error=${state.error} />`}${state.next && html`<button class="more" onClick=${() => load(state.next)}>Show older entries</button>`}`;
}

/** The score as stacked parts, and the relevance with the floor below which an entry is not recalled. */
function Score({ hit, names, most, floor }) {
  const wide = names.map((name) => (100 * Math.max(0, hit.parts[name] ?? 0)) / most);
  const words = names.map((name) => `${spaced(name)} ${(hit.parts[name] ?? 0).toFixed(2)}`).join(", ");
  const scale = 50 / floor; // the floor is in the middle
  const bar = (label, rects) => html`<svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=${label}><title>${label}</title><rect class="track" width="100" height="6" />${rects}</svg>`;
  return html`<div class="meter score"><span>Score</span><span class="num">${hit.score?.toFixed(2)}</span>${bar(words, wide.map((width, index) => html`<rect key=${index} class=${`s${index % 6}`} x=${wide.slice(0, index).reduce((sum, value) => sum + value, 0)} width=${width} height="6" />`))}
    <span>Relevance</span><span class="num">${hit.relevance?.toFixed(2) ?? "unknown"}</span>${bar(`Relevance, floor ${floor}`, html`<rect class=${hit.relevance >= floor ? "s2" : "s5"} width=${Math.min(100, hit.relevance * scale)} height="6" /><path class="seam" d="M50 0v6" />`)}</div>`;
}

function MemorySearch({ id }) {
  const [query, setQuery] = useState("");
  const answer = useAnswer(query && "memory-search", { id, q: query });
  const found = query && answer.value;
  const all = found ? [...found.hits, ...found.below] : [];
  const names = [...new Set(all.flatMap((hit) => Object.keys(hit.parts)))];
  const most = Math.max(0.01, ...all.map((hit) => Object.values(hit.parts).reduce((sum, value) => sum + Math.max(0, value), 0)));
  const rows = (hits) => html`<ol>${hits.map((hit) => html`<li key=${hit.id} class="entry"><${EntryText} entry=${hit} />${hit.superseded_by && html`<p class="why">Superseded by ${line(hit.superseded_by)}</p>`}<${Score} hit=${hit} names=${names} most=${most} floor=${found.floor} /></li>`)}</ol>`;
  const submit = (event) => {
    event.preventDefault();
    setQuery(new FormData(event.target).get("q").trim());
  };
  return html`<form class="tools" onSubmit=${submit}><input class="push" type="search" name="q" aria-label="Search this memory" placeholder="Search this memory" /><button>Search</button></form>${answer.error && html`<${Problem} error=${answer.error} />`}
    ${found && html`<div class=${answer.stale}><ul class="legend">${names.map((name, index) => html`<li key=${name}><i class=${`swatch s${index % 6}`}></i>${spaced(name)}</li>`)}<li class="bad">│ floor ${found.floor.toFixed(1)}</li></ul>${found.notes.map((note) => html`<p key=${note} class="note">${visible(note)}</p>`)}
      ${found.hits.length ? rows(found.hits) : html`<p class="dim">No entry reaches the floor.</p>`}${found.below.length > 0 && html`<h4>Below the floor <span class="dim">not recalled</span></h4>${rows(found.below)}`}</div>`}`;
}

function MemoryDetail({ id, changed }) {
  const [times, setTimes] = useState(0);
  const [question, setQuestion] = useState(null);
  const [done, setDone] = useState("");
  const answer = useAnswer("memory", { id }, times);
  const memory = answer.value;
  if (!memory) return html`<${Waiting} answer=${answer} />`;
  const contents = `${counted(memory.entries, "entry", "entries")} and ${counted(memory.documents, "version")} of the document`;
  const questions = {
    hide: { title: "Hide this memory?", text: "No agent reads it until it is restored. Nothing is deleted.", action: "hide-memory" },
    restore: { title: "Restore this memory?", text: "Agents that are bound to it read it again.", action: "restore-memory" },
    erase: { title: "Erase this memory for good?", text: `${contents} are deleted. This cannot be undone.`, action: "erase-memory", typed: memory.title, args: { confirm: memory.title } },
    entry: { title: "Erase this entry for good?", text: `${question?.entry?.raw?.slice(0, 500)}\n\nThis cannot be undone.`, action: "erase-entry", args: { entry: question?.entry?.id, confirm: "erase" } },
  };
  const asked = questions[question?.entry ? "entry" : question];
  const run = async () => {
    setDone((await act(asked.action, { id, ...asked.args })).done);
    changed();
    if (question === "erase") go(address("memory"));
    else setTimes(times + 1);
  };
  const button = (name) => html`<button class=${name === "erase" ? "danger" : ""} onClick=${() => setQuestion(name)}>${spaced(name)} …</button>`;
  return html`<article class="detail"><div class="line"><h2 dir="auto">${line(memory.title)}</h2>${memory.hidden_at && html`<${Tag} warn>hidden<//>`}<span class="push"></span>${mayWrite() && html`${button(memory.hidden_at ? "restore" : "hide")}${button("erase")}`}</div>
    <p class="meta">${[memory.description, memory.type, counted(memory.entries, "entry", "entries"), bytes(memory.bytes), `created ${moment(memory.created_at)}`].filter(Boolean).map((fact) => line(fact)).join(" · ")}</p>${done && html`<p class="good" role="status">${visible(done)}</p>`}
    ${asked && html`<${Confirm} title=${asked.title} verb=${spaced(asked.action.split("-")[0])} danger=${asked.args} typed=${asked.typed} run=${run} close=${() => setQuestion(null)}><${Shown} text=${asked.text} /><//>`}
    <${Panel} title="Search"><${MemorySearch} id=${id} /><//><${Panel} title="Document" count=${counted(memory.documents, "version")}><${Document} key=${times} id=${id} memory=${memory} /><//><${Panel} title="Entries" count=${number(memory.entries)}><${Entries} key=${times} id=${id} erase=${mayWrite() && ((entry) => setQuestion({ entry }))} /><//></article>`;
}

export function MemoryPage({ id }) {
  const [times, setTimes] = useState(0);
  const answer = useAnswer("memories", {}, times);
  const memories = answer.value?.memories ?? [];
  useKeys({ ...rowKeys(memories.length, memories.findIndex((memory) => memory.id === id), (index) => go(address("memory", memories[index].id))), Escape: () => go(id ? address("memory") : "#/") });
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!memories.length && !id) return html`<div class="empty"><h1>No memories yet</h1><p>Create one, or import what other agents remember:</p><pre>daypack memory create "Title"\ndaypack import --all</pre></div>`;
  return html`<div class="line pagehead"><h1>Memory</h1><span class="dim">${counted(memories.length, "memory", "memories")}</span></div>
    <div class=${`masterdetail ${id ? "chosen" : ""}`}><nav aria-label="Memories"><ul class="cards">${memories.map((memory) => html`<li key=${memory.id}><a class=${`card ${memory.hidden_at ? "dim" : ""}`} href=${address("memory", memory.id)} aria-current=${memory.id === id ? "true" : null}><b dir="auto">${line(memory.title)}</b><span class="dim">${memory.hidden_at ? "hidden · " : ""}${counted(memory.entries, "entry", "entries")} · ${age(memory.created_at)}</span></a></li>`)}</ul></nav>
      ${id ? html`<${MemoryDetail} key=${id} id=${id} changed=${() => setTimes(times + 1)} />` : html`<p class="empty">Choose a memory.</p>`}</div>`;
}
