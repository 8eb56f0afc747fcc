// Compactions: what left the window, CONTEXT.md before and after, every record with its source, losses, undo.
import { html, useContext, useState } from "./vendor/preact.js";
import { Boxed, DiffLines, dots, line, visible } from "./text.js";
import { Choice, Confirm, Entry, Facts, Meter, Panel, Source, Tag, Waiting } from "./pieces.js";
import { Here, act, mayWrite, useHere } from "./data.js";
import { age, counted, moment, number, percent, spaced, tokens } from "./words.js";
import { go } from "./router.js";
import { rowKeys } from "./list.js";
import { useKeys } from "./keys.js";

function Documents({ compaction }) {
  const [shown, setShown] = useState("diff");
  const text = compaction[`document_${shown}`];
  return html`<${Panel} title="CONTEXT.md"><${Choice} label="Version"
    options=${[["diff", "Difference"], ["after", "After"], ["before", "Before"]]} chosen=${shown} choose=${setShown} />
    ${Array.isArray(text) ? html`<${DiffLines} lines=${text} label="CONTEXT.md before and after" />` : text
      ? html`<${Boxed} kind="code" text=${text} label=${`CONTEXT.md ${shown}`} />`
      : html`<p class="dim">There is none.</p>`}<//>`;
}

function RecordList({ task, ...groups }) {
  return Object.entries({ task: task && [task], ...groups }).map(([name,
    records]) => records?.length > 0 && html`<h3>${spaced(name)}</h3>
    <ul>${records.map((record) => html`<li class="record">${record.done != null && (record.done ? "☑ " : "☐ ")}
    <span dir="auto">${visible(record.text)}</span> <${Tag} good words=${record.new && "new"} /> <${Source}
    to=${record.source} /><p class="why">${dots(record.cause && `cause: ${record.cause}`,
    record.resolution && `resolution: ${record.resolution}`)}</p></li>`)}</ul>`);
}

function CompactionDetail({ id, changed }) {
  const here = useContext(Here);
  const [undone, setUndone] = useState(null);
  const [asking, setAsking] = useState(false);
  const answer = useHere("compaction", { id }, undone);
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { start, through, left, losses, before_tokens: before, after_tokens: after, coverage, ...found } = answer.value;
  const undo = async () => {
    setUndone(await act("undo", { ...here, compaction: id }));
    changed();
  };
  return html`<article class="detail"><div class="line"><h2>${line(id)}</h2>
    <${Tag} warn words=${found.undone && "undone"} /><${Tag} words=${!found.own && "observed"} />
    <span class="push"></span>${found.can_undo && mayWrite() && html`<button class="danger"
    onClick=${() => setAsking(true)}>Undo …</button>`}</div><p class="meta">
    ${dots(moment(found.at), found.trigger_words || found.trigger, spaced(found.method),
    found.own && (found.model === "none" ? "without a model" : found.model))}</p>
    ${undone && html`<p class="good" role="status">Undone. Recorded as event <code>${line(undone.event)}</code>.</p>`}
    ${asking && html`<${Confirm} title="Undo this compaction?" verb="Undo" run=${undo} close=${() => setAsking(false)}>
      <p>The next call contains the messages ${number(start)} to ${number(through)} again, as far as they fit. History is not changed; the undo is recorded as an event.</p>
      <//>`}
    <div class="columns"><div><${Documents} compaction=${found} />
      ${found.own && html`<${Panel} title="Records"><${RecordList} ...${found.records} /><//>`}</div>
      <aside aria-label="About this compaction"><${Panel} title="Size">
        <${Meter} label=${found.own ? "Left so far" : "Before"} value=${before} whole=${before} kind="expected" note="" />
        <${Meter} label=${found.own ? "Replaced by" : "After"} value=${after} whole=${before} />
        <${Facts} facts=${{ Messages: start != null && html`<${Source} to=${`msg-${start}`}
        words=${`${number(start)} – ${number(through)}`} />`, Coverage: coverage != null && percent(coverage, 1) }} />
        <//>
        <${Panel} title="What left" count=${left.length}><ul>${left.map((gone) => html`<${Entry}
          name=${gone.summary || gone.id} count=${gone.tokens}><p class="why">
          ${spaced(gone.kind)} ${gone.range && html`<${Source} to=${`messages:${gone.range.replace("messages:",
          "")}`} />`}</p><//>`)}</ul><//>
        <${Panel} title="Losses" count=${losses.length}><ul>${losses.map((loss) => html`<${Entry}
          name=${dots(spaced(loss.what), loss.detail)} why=${dots(loss.words || spaced(loss.reason), loss.sentences > 0 && counted(loss.sentences, "sentence"))} />`)}
          </ul><//></aside></div></article>`;
}

export function CompactionList({ at, chosen, folds }) {
  const [times, setTimes] = useState(0);
  const answer = useHere("compactions", {}, `${times} ${folds.length}`);
  const list = answer.value?.compactions ?? [];
  const current = chosen ?? list[0]?.id;
  useKeys(rowKeys(list.length, list.findIndex(({ id }) => id === current),
    (index) => go(at("compactions", list[index].id))));
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!list.length) return html`<p class="empty">No compaction yet. <code>daypack compact</code> makes one.</p>`;
  return html`<section aria-label="Compactions"><ol class="cards">
    ${list.map((row) => html`<li><a class=${`card ${row.undone ? "struck" : ""}`} href=${at("compactions", row.id)}
    aria-current=${row.id === current}><b>${line(row.id)}</b><span class="num">
    ${number(row.before_tokens)} → ${tokens(row.after_tokens)}</span>
    <span class="dim">${dots(row.undone ? "undone" : !row.own ? "observed"
    : counted(row.records, "record"), row.losses > 0 && counted(row.losses, "loss", "losses"), age(row.at))}</span></a>
    </li>`)}</ol><${CompactionDetail} key=${current} id=${current} changed=${() => setTimes(times + 1)} /></section>`;
}
