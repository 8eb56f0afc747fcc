// Compactions: what left the window, CONTEXT.md before and after, every record with its source, losses, undo.
import { html, useContext, useState } from "./vendor/preact.js";
import { Boxed, DiffLines, Shown, line, visible } from "./text.js";
import { Choice, Confirm, Entry, Facts, Meter, Panel, Source, Tag, Waiting } from "./pieces.js";
import { Here, act, mayWrite, useHere } from "./data.js";
import { age, counted, moment, number, percent, spaced, tokens } from "./words.js";
import { go } from "./router.js";
import { rowKeys } from "./list.js";
import { useKeys } from "./keys.js";

function Documents({ compaction }) {
  const [shown, setShown] = useState("diff");
  const text = compaction[`document_${shown}`];
  return html`<${Panel} title="CONTEXT.md"><${Choice} label="Version" options=${[["diff", "Difference"], ["after", "After"], ["before", "Before"]]} chosen=${shown} choose=${setShown} />
    ${Array.isArray(text) ? html`<${DiffLines} lines=${text} label="CONTEXT.md before and after" />` : text ? html`<${Boxed} class="box code" text=${text} label=${`CONTEXT.md ${shown}`} />` : html`<p class="dim">There is none.</p>`}<//>`;
}

function RecordList({ records }) {
  const groups = { Task: records.task && [records.task], Decisions: records.decisions, Facts: records.facts, Todos: records.todos, Errors: records.errors };
  return Object.entries(groups).map(([title, group]) => group?.length > 0 && html`<div key=${title}><h4>${title}</h4><ul>${group.map((record, index) => html`<li key=${index} class="record">${record.done != null && html`<span class="dim">${record.done ? "☑" : "☐"} </span>`}<span dir="auto">${visible(record.text)}</span>${record.new && html` <${Tag} good>new<//>`} <${Source} to=${record.source} />
    ${record.cause && html`<p class="why">Cause: ${visible(record.cause)}</p>`}${record.resolution && html`<p class="why">Resolution: ${visible(record.resolution)}</p>`}</li>`)}</ul></div>`);
}

function CompactionDetail({ id, changed }) {
  const here = useContext(Here);
  const [undone, setUndone] = useState(null);
  const [asking, setAsking] = useState(false);
  const answer = useHere("compaction", { id }, undone);
  const found = answer.value;
  if (!found) return html`<${Waiting} answer=${answer} />`;
  const undo = async () => {
    setUndone(await act("undo", { ...here, compaction: id }));
    changed();
  };
  const range = `messages:${found.start}`;
  return html`<article class="detail"><div class="line"><h2>${line(found.id)}</h2>${found.undone && html`<${Tag} warn>undone<//>`}${!found.own && html`<${Tag}>observed<//>`}<span class="push"></span>${found.can_undo && mayWrite() && html`<button class="danger" onClick=${() => setAsking(true)}>Undo …</button>`}</div>
    <p class="meta">${[moment(found.at), found.trigger_words || found.trigger, found.method, found.model].filter(Boolean).map(visible).join(" · ")}</p>
    ${undone && html`<p class="good" role="status">Undone. Recorded as event <code>${line(undone.event)}</code>.</p>`}
    ${asking && html`<${Confirm} title="Undo this compaction?" verb="Undo" danger run=${undo} close=${() => setAsking(false)}><p>The next call contains the messages ${number(found.start)} to ${number(found.through)} again, as far as they fit. History is not changed; the undo is recorded as an event.</p><//>`}
    <div class="columns"><div><${Documents} compaction=${found} /><${Panel} title="Records"><${RecordList} records=${found.records ?? {}} /><//></div>
      <aside aria-label="About this compaction"><${Panel} title="Size"><${Meter} label="Before" value=${found.before_tokens} whole=${found.before_tokens} kind="expected" note="" /><${Meter} label="After" value=${found.after_tokens} whole=${found.before_tokens} />
          <${Facts} facts=${[["Messages", found.start != null && html`<${Source} to=${range} words=${`${number(found.start)} – ${number(found.through)}`} />`], ["Coverage", found.coverage != null && percent(found.coverage, 1)]]} /><//>
        <${Panel} title="What left" count=${found.left.length}><ul>${found.left.map((gone, index) => html`<${Entry} key=${index} name=${gone.summary || gone.id} count=${gone.tokens} why=${html`${spaced(gone.kind)} ${gone.range && html`<${Source} to=${`messages:${gone.range.replace(/^messages:/, "")}`} />`}`} />`)}</ul><//>
        <${Panel} title="Losses" count=${found.losses.length}>${!found.losses.length && html`<p class="dim">None were found.</p>`}<ul>${found.losses.map((loss, index) => html`<${Entry} key=${index} name=${[spaced(loss.what), loss.detail].filter(Boolean).join(": ")} why=${loss.words || spaced(loss.reason)}>${[loss.sentences ?? []].flat().map((sentence, place) => html`<${Shown} key=${place} class="quote" text=${String(sentence)} />`)}<//>`)}</ul><//></aside></div></article>`;
}

export function CompactionList({ at, chosen, folds }) {
  const [times, setTimes] = useState(0);
  const answer = useHere("compactions", {}, `${times} ${folds.length}`);
  const list = answer.value?.compactions ?? [];
  const current = chosen ?? list[0]?.id;
  useKeys(rowKeys(list.length, list.findIndex(({ id }) => id === current), (index) => go(at("compactions", list[index].id))));
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!list.length) return html`<p class="empty">No compaction yet. <code>daypack compact</code> makes one.</p>`;
  return html`<section aria-label="Compactions"><ol class="cards">${list.map((row) => html`<li key=${row.id}><a class=${`card ${row.undone ? "struck" : ""}`} href=${at("compactions", row.id)} aria-current=${row.id === current ? "true" : null}><b>${line(row.id)}</b><span class="num">${number(row.before_tokens)} → ${tokens(row.after_tokens)}</span><span class="dim">${[row.undone ? "undone" : !row.own ? "observed" : counted(row.records, "record"), row.losses > 0 && counted(row.losses, "loss", "losses"), age(row.at)].filter(Boolean).join(" · ")}</span></a></li>`)}</ol>
    <${CompactionDetail} key=${current} id=${current} changed=${() => setTimes(times + 1)} /></section>`;
}
