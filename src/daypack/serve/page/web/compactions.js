// Compactions: what left the window, CONTEXT.md before and after, every record with its source, losses, undo.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Confirm, DiffLines, Meter, Problem, Shown, Waiting, line, visible } from "./text.js";
import { act, mayWrite, useAnswer, wordsFor } from "./data.js";
import { age, counted, messageOf, moment, number, percent, spaced, tokens } from "./words.js";
import { go, messageAddress } from "./router.js";
import { rowKeys } from "./list.js";
import { useKeys } from "./keys.js";

function Sources({ agent, session, source }) {
  const seq = messageOf(source);
  return seq == null ? html`<span class="dim">${line(source)}</span>` : html`<a class="source" href=${messageAddress(agent, session, seq)}>${line(source)}</a>`;
}

function RecordGroup({ agent, session, title, records }) {
  if (!records?.length) return null;
  return html`<h4>${title} <span class="dim">${number(records.length)}</span></h4><ul class="records">${records.map((record, index) => html`<li key=${`${index} ${record.id}`}>
    ${record.done !== undefined && html`<span class="dim" aria-label=${record.done ? "done" : "open"}>${record.done ? "☑ " : "☐ "}</span>`}<span dir="auto">${visible(record.text)}</span>${record.new && html` <span class="tag good">new</span>`} <${Sources} agent=${agent} session=${session} source=${record.source} />
    ${record.cause && html`<p class="why">Cause: ${visible(record.cause)}</p>`}${record.resolution && html`<p class="why">Resolution: ${visible(record.resolution)}</p>`}</li>`)}</ul>`;
}

function Documents({ compaction }) {
  const [shown, setShown] = useState("diff");
  const views = [["diff", "Difference"], ["after", "After"], ["before", "Before"]];
  const text = shown === "after" ? compaction.document_after : compaction.document_before;
  return html`<section class="panel" aria-labelledby="document"><h3 id="document">CONTEXT.md</h3><div class="tools" role="group" aria-label="Version">${views.map(([id, name]) => html`<button key=${id} class="small" aria-pressed=${shown === id ? "true" : "false"} onClick=${() => setShown(id)}>${name}</button>`)}</div>
    ${shown === "diff" ? html`<${DiffLines} lines=${compaction.document_diff ?? []} label="CONTEXT.md before and after" />` : text == null ? html`<p class="dim">Unknown.</p>` : text ? html`<${Shown} text=${text} class="code" tabindex="0" role="region" aria-label=${`CONTEXT.md ${shown}`} />` : html`<p class="dim">Empty.</p>`}</section>`;
}

function Losses({ losses }) {
  if (!losses.length) return html`<p class="dim">No losses were found.</p>`;
  return html`<ul class="omissions">${losses.map((loss, index) => html`<li key=${index} class="omission"><div class="head"><span class="name wraps">${spaced(loss.what)}${loss.detail ? `: ${line(loss.detail)}` : ""}</span></div>
    <p class="why">${visible(loss.words || wordsFor("loss", loss.reason) || spaced(loss.reason))}</p>${[].concat(loss.sentences ?? []).map((sentence, place) => html`<${Shown} key=${place} class="quote" text=${String(sentence)} />`)}</li>`)}</ul>`;
}

function Detail({ agent, session, id, changed }) {
  const [times, setTimes] = useState(0);
  const [asking, setAsking] = useState(false);
  const [undone, setUndone] = useState(null);
  const answer = useAnswer("compaction", { agent, session, id }, times);
  const compaction = answer.value;
  if (!compaction || !answer.fresh) return html`<${Waiting} answer=${answer} />`;
  const undo = async () => {
    setUndone(await act("undo", { agent, session, compaction: id }));
    setTimes(times + 1);
    changed();
  };
  const records = compaction.records ?? {};
  return html`<article class="detail" aria-labelledby="compaction"><div class="line"><h2 id="compaction" class=${compaction.undone ? "struck" : ""}>${line(compaction.id)}</h2>${compaction.undone && html`<span class="tag warn">undone</span>`}${!compaction.own && html`<span class="tag">observed</span>`}<span class="push"></span>
      ${compaction.can_undo && mayWrite() && html`<button class="danger" onClick=${() => setAsking(true)}>Undo …</button>`}</div>
    <p class="meta">${moment(compaction.at)} · ${visible(compaction.trigger_words || compaction.trigger)}${compaction.method ? ` · ${line(compaction.method)}` : ""}${compaction.model ? ` · ${line(compaction.model)}` : ""}</p>
    ${undone && html`<p class="done" role="status">Undone. Recorded as event <code>${line(undone.event)}</code>.</p>`}
    ${asking && html`<${Confirm} title="Undo this compaction?" verb="Undo" run=${undo} close=${() => setAsking(false)}><p>The next call contains the original messages ${number(compaction.start)} to ${number(compaction.through)} again. History is not changed; the undo is recorded as an event.</p></${Confirm}>`}
    <div class="columns"><div class="main"><${Documents} compaction=${compaction} />
      <section class="panel" aria-labelledby="records"><h3 id="records">Records <span class="dim">${number(compaction.records_count ?? Object.values(records).reduce((sum, group) => sum + (Array.isArray(group) ? group.length : group ? 1 : 0), 0))}</span></h3>
        ${[["Task", records.task ? [records.task] : []], ["Decisions", records.decisions], ["Facts", records.facts], ["Todos", records.todos], ["Errors", records.errors]].map(([title, group]) => html`<${RecordGroup} key=${title} agent=${agent} session=${session} title=${title} records=${group} />`)}</section></div>
      <aside class="side" aria-label="About this compaction"><section class="panel"><h3>Size</h3>
          <${Meter} label="Before" value=${compaction.before_tokens} whole=${compaction.before_tokens} note="" kind="expected" /><${Meter} label="After" value=${compaction.after_tokens} whole=${compaction.before_tokens} kind="reported" />
          <dl class="facts"><div><dt>Messages</dt><dd><a href=${messageAddress(agent, session, compaction.start ?? 1)}>${number(compaction.start)} – ${number(compaction.through)}</a></dd></div>${compaction.coverage != null && html`<div><dt>Coverage</dt><dd>${percent(compaction.coverage, 1)}</dd></div>`}</dl></section>
        <section class="panel"><h3>What left <span class="dim">${number(compaction.left?.length)}</span></h3><ul class="omissions">${(compaction.left ?? []).map((gone, index) => html`<li key=${index} class="omission"><div class="head"><span class="name wraps">${visible(gone.summary || gone.id)}</span><span class="num">${number(gone.tokens)}</span></div><p class="why">${spaced(gone.kind)}${gone.range ? html` · <${Sources} agent=${agent} session=${session} source=${/^\d/.test(gone.range) ? `messages:${gone.range}` : gone.range} />` : ""}</p></li>`)}</ul></section>
        <section class="panel"><h3>Losses <span class="dim">${number(Array.isArray(compaction.losses) ? compaction.losses.length : compaction.losses)}</span></h3><${Losses} losses=${Array.isArray(compaction.losses) ? compaction.losses : []} /></section></aside></div></article>`;
}

export function CompactionList({ agent, session, at, chosen, folds }) {
  const [times, setTimes] = useState(0);
  const answer = useAnswer("compactions", { agent, session }, `${times} ${folds.length}`);
  const list = answer.value?.compactions ?? [];
  // The strip names a compaction by its event.
  const selected = list.findIndex(({ id, event }) => String(id) === chosen || (event != null && String(event) === chosen));
  const pick = (index) => list[index] && go(at("compactions", list[index].id));
  useKeys(rowKeys(list.length, selected, pick));
  useEffect(() => {
    if (!chosen && list.length === 1) pick(0);
  }, [list.length]);
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  if (!list.length) return html`<p class="empty">No compaction yet. <code>daypack compact</code> makes one; the next call that would pass the limit makes it by itself.</p>`;
  return html`<section aria-label="Compactions">${answer.error && html`<${Problem} error=${answer.error} />`}
    <ol class="cards">${list.map((compaction, index) => html`<li key=${compaction.id}><a class=${`card ${compaction.undone ? "struck" : ""}`} href=${at("compactions", compaction.id)} aria-current=${index === selected ? "true" : null}>
      <b>${line(compaction.id)}</b><span class="num">${number(compaction.before_tokens)} → ${tokens(compaction.after_tokens)}</span><span class="dim">${compaction.undone ? "undone" : compaction.losses ? counted(compaction.losses, "loss", "losses") : compaction.own ? counted(compaction.records, "record") : "observed"} · ${age(compaction.at)}</span></a></li>`)}</ol>
    ${chosen && html`<${Detail} key=${chosen} agent=${agent} session=${session} id=${selected >= 0 ? list[selected].id : chosen} changed=${() => setTimes(times + 1)} />`}</section>`;
}
