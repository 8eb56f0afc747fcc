// Memories: the document with its versions, entries, and a search that shows how each score came about.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Confirm, DiffLines, Problem, Shown, Waiting, line, visible } from "./text.js";
import { act, ask, mayWrite, useAnswer } from "./data.js";
import { address, go } from "./router.js";
import { age, bytes, counted, moment, number, spaced } from "./words.js";
import { rowKeys } from "./list.js";
import { useKeys } from "./keys.js";

function Document({ id, memory }) {
  const [version, setVersion] = useState(null);
  const newest = memory.document?.version;
  const compare = useAnswer(version === null ? null : "document", { id, version });
  if (!memory.document) return html`<p class="dim">No document has been written yet.</p>`;
  return html`<div class="tools"><button class="small" aria-pressed=${version === null ? "true" : "false"} onClick=${() => setVersion(null)}>Version ${number(newest)}</button>
      <label class="inline">What changed in <select value=${version ?? ""} onChange=${(event) => setVersion(event.target.value || null)}><option value="">choose a version</option>${memory.versions.map((entry) => html`<option key=${entry.version} value=${String(entry.version)}>version ${entry.version}, ${age(entry.created_at)}</option>`)}</select></label></div>
    ${version === null ? html`<${Shown} class="document" text=${memory.document.content} tabindex="0" role="region" aria-label="Context document" />` : !compare.fresh || !compare.value ? html`<${Waiting} answer=${compare} />` : html`<p class="meta">${moment(compare.value.created_at)}, compared with ${compare.value.against == null ? "nothing" : `version ${compare.value.against}`}</p><${DiffLines} lines=${compare.value.lines} label=${`Version ${version}`} />`}`;
}

function EntryText({ entry, erase }) {
  return html`<div class="head"><b>${line(entry.author) || "unknown author"}</b><span class="dim">${moment(entry.at || entry.created_at)}${entry.session ? ` · ${line(entry.session)}` : ""}${entry.tags?.length ? ` · ${entry.tags.map((tag) => line(tag)).join(", ")}` : ""}</span><span class="push"></span>${erase && html`<button class="small quiet" aria-label=${`Erase entry ${line(entry.id)}`} onClick=${() => erase(entry)}>Erase …</button>`}</div>
    <${Shown} text=${entry.raw ?? entry.summary} />${entry.summary && entry.raw && entry.summary !== entry.raw && html`<p class="why">${visible(entry.summary)}</p>`}`;
}

function Entries({ id, version, erase }) {
  const [pages, setPages] = useState({ entries: [], next: undefined });
  const [error, setError] = useState(null);
  const load = (before, signal) => ask("entries", { id, ...(before != null && { before }) }, signal).then(
    (answer) => signal?.aborted || setPages((old) => ({ entries: before == null ? answer.entries : [...old.entries, ...answer.entries], next: answer.next })),
    (problem) => signal?.aborted || setError(problem),
  );
  useEffect(() => {
    const stop = new AbortController();
    load(null, stop.signal);
    return () => stop.abort();
  }, [id, version]);
  return html`${error && html`<${Problem} error=${error} />`}<ol class="entries">${pages.entries.map((entry) => html`<li key=${entry.id}><${EntryText} entry=${entry} erase=${erase} /></li>`)}</ol>
    ${pages.next != null && html`<button class="more" onClick=${() => load(pages.next)}>Show older entries</button>`}${pages.next === null && !pages.entries.length && html`<p class="dim">No entries.</p>`}`;
}

const SCORE_COLOURS = 6;

/** The score as stacked parts, and the relevance with the floor below which an entry is not recalled. */
function Score({ hit, floor, most, names }) {
  let left = 0;
  const top = Math.max(2 * floor, hit.relevance || 0);
  const at = (value) => (100 * Math.max(0, value)) / top;
  const words = Object.entries(hit.parts ?? {}).map(([name, value]) => `${spaced(name)} ${value.toFixed(2)}`).join(", ");
  return html`<div class="score"><span class="ml">Score</span><span class="mn">${hit.score?.toFixed(2)}</span><svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=${`Score parts: ${words}`}><rect class="track" width="100" height="6" />${names.map((name, index) => {
      const wide = (100 * Math.max(0, Object.hasOwn(hit.parts, name) ? hit.parts[name] : 0)) / most;
      left += wide;
      return wide > 0 && html`<rect key=${name} class=${`s${index % SCORE_COLOURS}`} x=${left - wide} width=${Math.max(0.3, wide - 0.4)} height="6"><title>${spaced(name)}: ${hit.parts[name].toFixed(2)}</title></rect>`;
    })}</svg>
    <span class="ml">Relevance</span><span class="mn">${hit.relevance?.toFixed(2) ?? "–"}</span><svg viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label=${`Relevance ${hit.relevance?.toFixed(2)}, floor ${floor}`}><rect class="track" width="100" height="6" /><rect class=${hit.relevance >= floor ? "fill enough" : "fill"} width=${at(hit.relevance || 0)} height="6" /><line class="floor" x1=${at(floor)} x2=${at(floor)} y1="0" y2="6" /></svg></div>`;
}

function MemorySearch({ id }) {
  const [query, setQuery] = useState("");
  const [asked, setAsked] = useState("");
  const answer = useAnswer(asked ? "memory-search" : null, { id, q: asked });
  const result = asked ? answer.value : null;
  const all = result ? [...result.hits, ...result.below] : [];
  const names = [...new Set(all.flatMap((hit) => Object.keys(hit.parts ?? {})))];
  const most = Math.max(0.01, ...all.map((hit) => Object.values(hit.parts ?? {}).reduce((sum, value) => sum + Math.max(0, value), 0)));
  const row = (hit, below) => html`<li key=${hit.id} class=${below || hit.superseded_by ? "below" : ""}><${EntryText} entry=${hit} />${hit.superseded_by && html`<p class="why">Superseded by ${line(hit.superseded_by)}</p>`}<${Score} hit=${hit} floor=${result.floor} most=${most} names=${names} /></li>`;
  return html`<form class="tools" onSubmit=${(event) => (event.preventDefault(), setAsked(query.trim()))}><input type="search" class="grow" aria-label="Search this memory" placeholder="Search this memory" value=${query} onInput=${(event) => setQuery(event.target.value)} /><button class="small">Search</button></form>
    ${answer.error && html`<${Problem} error=${answer.error} />`}
    ${result && html`<div class=${answer.fresh ? "" : "stale"}><ul class="legend scorelegend">${names.map((name, index) => html`<li key=${name}><i class=${`swatch s${index % SCORE_COLOURS}`}></i>${spaced(name)}</li>`)}<li><i class="floorsign"></i>floor ${result.floor.toFixed(1)}</li></ul>
      ${result.notes.map((note, index) => html`<p key=${index} class="note">${visible(note)}</p>`)}
      <ol class="entries">${result.hits.map((hit) => row(hit, false))}</ol>${!result.hits.length && html`<p class="dim">No entry reaches the floor.</p>`}
      ${result.below.length > 0 && html`<h3>Below the floor <span class="dim">not recalled</span></h3><ol class="entries">${result.below.map((hit) => row(hit, true))}</ol>`}</div>`}`;
}

function MemoryDetail({ id, changed }) {
  const [times, setTimes] = useState(0);
  const [question, setQuestion] = useState(null);
  const [done, setDone] = useState("");
  const answer = useAnswer("memory", { id }, times);
  const memory = answer.value;
  if (!memory || !answer.fresh) return html`<${Waiting} answer=${answer} />`;
  const write = async (action, args = {}) => {
    const result = await act(action, { id, ...args });
    setDone(result.done);
    changed();
    if (action === "erase-memory") go(address("memory"));
    else setTimes(times + 1);
  };
  const buttons = mayWrite() && html`${memory.hidden_at ? html`<button onClick=${() => setQuestion("restore")}>Restore …</button>` : html`<button onClick=${() => setQuestion("hide")}>Hide …</button>`}<button class="danger" onClick=${() => setQuestion("erase")}>Erase …</button>`;
  return html`<article class="detail" aria-labelledby="memory-title"><div class="line"><h2 id="memory-title" dir="auto">${line(memory.title)}</h2>${memory.hidden_at && html`<span class="tag warn">hidden</span>`}<span class="push"></span>${buttons}</div>
    <p class="meta">${memory.description ? `${line(memory.description)} · ` : ""}${line(memory.type)} · ${counted(memory.entries, "entry", "entries")} · ${counted(memory.documents, "version")} · ${bytes(memory.bytes)} · created ${moment(memory.created_at)}${memory.hidden_at ? ` · hidden ${moment(memory.hidden_at)}` : ""}</p>
    ${done && html`<p class="done" role="status">${visible(done)}</p>`}
    ${question === "hide" && html`<${Confirm} title="Hide this memory?" verb="Hide" danger=${false} run=${() => write("hide-memory")} close=${() => setQuestion(null)}><p>No agent reads it until it is restored. Nothing is deleted.</p></${Confirm}>`}
    ${question === "restore" && html`<${Confirm} title="Restore this memory?" verb="Restore" danger=${false} run=${() => write("restore-memory")} close=${() => setQuestion(null)}><p>Agents that are bound to it read it again.</p></${Confirm}>`}
    ${question === "erase" && html`<${Confirm} title="Erase this memory for good?" verb="Erase" typed=${memory.title} run=${() => write("erase-memory", { confirm: memory.title })} close=${() => setQuestion(null)}><p>All ${counted(memory.entries, "entry", "entries")} and ${counted(memory.documents, "version")} of its document are deleted. This cannot be undone.</p></${Confirm}>`}
    ${question?.entry && html`<${Confirm} title="Erase this entry for good?" verb="Erase" run=${() => write("erase-entry", { entry: question.entry.id, confirm: "erase" })} close=${() => setQuestion(null)}><${Shown} class="quote" text=${question.entry.raw ?? question.entry.summary} most=${600} /><p>This cannot be undone.</p></${Confirm}>`}
    <section class="panel"><h3>Search</h3><${MemorySearch} key=${id} id=${id} /></section>
    <section class="panel"><h3>Document</h3><${Document} key=${`${id} ${times}`} id=${id} memory=${memory} /></section>
    <section class="panel"><h3>Entries <span class="dim">${number(memory.entries)}</span></h3><${Entries} id=${id} version=${times} erase=${mayWrite() ? (entry) => setQuestion({ entry }) : null} /></section></article>`;
}

export function MemoryPage({ id }) {
  const [times, setTimes] = useState(0);
  const nav = useRef(null);
  const answer = useAnswer("memories", {}, times);
  const memories = answer.value?.memories ?? [];
  const selected = memories.findIndex((memory) => memory.id === id);
  const pick = (index) => memories[index] && go(address("memory", memories[index].id));
  useKeys({ ...rowKeys(memories.length, selected, pick), Escape: () => go(id ? address("memory") : "#/") });
  useEffect(() => {
    document.title = "Memory · daypack";
  }, []);
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!memories.length && !id) return html`<div class="empty welcome"><h1>No memories yet</h1><p>Create one, or import what other agents remember:</p><pre>daypack memory create "Title"
daypack import --all</pre></div>`;
  return html`<div class="pagehead"><h1>Memory</h1><span class="dim">${counted(memories.length, "memory", "memories")}</span></div>
    <div class=${`masterdetail ${id ? "chosen" : ""}`}><nav ref=${nav} aria-label="Memories"><ul class="cards column">${memories.map((memory) => html`<li key=${memory.id}><a class=${`card ${memory.hidden_at ? "hiddenmemory" : ""}`} href=${address("memory", memory.id)} aria-current=${memory.id === id ? "true" : null}><b dir="auto">${line(memory.title)}</b><span class="dim">${memory.hidden_at ? "hidden · " : ""}${counted(memory.entries, "entry", "entries")} · ${age(memory.created_at)}</span></a></li>`)}</ul></nav>
    ${id ? html`<${MemoryDetail} key=${id} id=${id} changed=${() => setTimes(times + 1)} />` : html`<p class="empty">Choose a memory.</p>`}</div>`;
}
