// The difference between two calls: what was added, removed, changed. The unchanged prefix is one line.
import { html, useMemo, useState } from "./vendor/preact.js";
import { useAnswer } from "./data.js";
import { messageAddress } from "./router.js";
import { DiffLines, Problem, Shown, Waiting, line, visible } from "./text.js";
import { messageOf, number, partClass, partName, short, signed, spaced, tokens } from "./words.js";

const SIGN = { added: "+", removed: "−", changed: "±", moved: "↕" };

function Row({ agent, session, row }) {
  const [open, setOpen] = useState(row.change === "changed");
  const seq = messageOf(row.ref);
  const body = row.lines?.length ? html`<${DiffLines} lines=${row.lines} label=${`Changes in ${line(row.id)}`} />` : row.text ? html`<${Shown} text=${row.text} most=${open ? 0 : 700} />` : null;
  return html`<article class=${`item ${partClass(row.category)} ${row.change} ${open ? "open" : ""}`}><div class="head"><span class=${`sign ${row.change}`} aria-hidden="true">${SIGN[row.change]}</span>
      <button class="name" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}><span class="twist" aria-hidden="true"></span>${spaced(row.change)}: ${line(row.id)}</button>
      ${seq == null ? "" : html`<a class="source" href=${messageAddress(agent, session, seq)}>message ${number(seq)}</a>`}<span class="num">${row.change === "changed" ? signed(row.tokens) : number(row.tokens)}</span></div>
    <p class="why">${partName(row.category)} · ${spaced(row.kind).toLowerCase()}</p>
    ${body && html`<div class=${open ? "body" : "preview"}>${body}</div>`}</article>`;
}

function kept(difference) {
  const facts = [];
  if (difference.prefix_kept) facts.push("prefix unchanged");
  if (difference.prefix_kept === false) facts.push("prefix changed");
  if (difference.tail_kept) facts.push("tail continued");
  if (difference.epoch_kept) facts.push("same epoch");
  if (difference.epoch_kept === false) facts.push("new epoch");
  return facts.join(" · ");
}

/** The field that chooses the other call; 2,000 options are made once for a session. */
function Other({ calls, before, after, choose }) {
  const options = useMemo(() => calls.map((call, index) => html`<option key=${call.event} value=${call.event}>call ${index + 1}, ${short(call.tokens)} tokens</option>`), [calls]);
  return html`<label class="inline">Compare with <select value=${before} onChange=${(event) => choose(event.target.value)}>${options}</select></label>${before === after && html`<span class="dim">the same call</span>`}`;
}

export function Difference({ agent, session, calls, before, after, choose }) {
  const answer = useAnswer(after ? "diff" : null, { agent, session, before, after });
  const difference = answer.value;
  if (!difference) return html`<${Waiting} answer=${answer} />`;
  const [was, is] = difference.tokens ?? [];
  const counts = ["added", "removed", "changed", "moved"].map((change) => [change, difference.rows.filter((row) => row.change === change).length]).filter(([, count]) => count);
  return html`<div class=${`difference ${answer.fresh ? "" : "stale"}`}>
    <div class="tools"><${Other} calls=${calls} before=${difference.before} after=${after} choose=${choose} /><button class="small" aria-pressed=${before ? "false" : "true"} onClick=${() => choose("")}>The call before</button><span class="dim hint">or shift-click a bar</span></div>
    ${answer.error && html`<${Problem} error=${answer.error} />`}
    <p class="summary"><b class="num">${number(was)} → ${tokens(is)}</b>${was != null && is != null && html` <span class="num">(${signed(is - was)})</span>`}${counts.map(([change, count]) => html` <span key=${change} class=${`count ${change}`}>${SIGN[change]} ${number(count)} ${change}</span>`)}</p>
    ${kept(difference) && html`<p class="keptline">${kept(difference)}</p>`}
    ${difference.rows.map((row, index) => html`<${Row} key=${`${difference.before} ${difference.after} ${index}`} agent=${agent} session=${session} row=${row} />`)}
    ${!difference.rows.length && html`<p class="empty">${visible(difference.kind) === "observed" ? "What changed is unknown." : "Nothing was added, removed or changed."}</p>`}
  </div>`;
}
