// The difference between two calls: what was added, removed, changed. What is unchanged is one line.
import { html, useMemo, useState } from "./vendor/preact.js";
import { Problem, Source, Waiting } from "./pieces.js";
import { DiffLines, Shown, line } from "./text.js";
import { number, partClass, short, signed, spaced, tokens } from "./words.js";
import { useHere } from "./data.js";

const CHANGES = { added: "+", removed: "−", changed: "±", moved: "↕" };

function Changed({ row }) {
  const [open, setOpen] = useState(row.change === "changed");
  const flip = () => setOpen(!open);
  return html`<article class=${`item ${partClass(row.category)}`}><div class="head"><span class=${`sign ${CHANGES[row.change] && row.change}`} aria-hidden="true">${CHANGES[row.change]}</span><button class="name" aria-expanded=${open} onClick=${flip}>${spaced(row.change)}: ${line(row.id)}</button>
      <span class="push"></span><${Source} to=${row.ref} /><span class="num">${number(row.tokens)}</span></div><p class="why">${spaced(row.category ?? "unknown")} · ${line(row.kind)}</p>
    ${row.lines.length > 0 ? open && html`<${DiffLines} lines=${row.lines} label=${`Changes in ${line(row.id)}`} />` : html`<div class=${open ? "body" : "preview"} onClick=${open ? null : flip}><${Shown} text=${row.text} most=${open ? 0 : 700} /></div>`}</article>`;
}

/** The field that chooses the other call; its 2,000 options are made once. */
function Other({ calls, before, choose }) {
  const options = useMemo(() => calls.map((call, index) => html`<option key=${call.event} value=${call.event}>call ${index + 1}, ${short(call.tokens)} tokens</option>`), [calls]);
  return html`<label>Compare with <select value=${before} onChange=${(event) => choose(event.target.value)}>${options}</select></label>`;
}

export function Difference({ calls, before, after, choose }) {
  const answer = useHere("diff", { before, after });
  const found = answer.value;
  const [was, is] = found?.tokens ?? [];
  const kept = found && [found.prefix_kept != null && `prefix ${found.prefix_kept ? "unchanged" : "changed"}`, found.tail_kept && "tail continued", found.epoch_kept != null && (found.epoch_kept ? "same epoch" : "new epoch")].filter(Boolean).join(" · ");
  return html`<div class=${answer.stale}><div class="tools"><${Other} calls=${calls} before=${found?.before ?? before} choose=${choose} /><button class="small" aria-pressed=${!before} onClick=${() => choose("")}>The call before</button><span class="dim hint">or shift-click a bar</span></div>
    ${found && !answer.error ? html`<p class="line spaced"><b class="num">${number(was)} → ${tokens(is)}</b>${was != null && is != null && html`<span class="num">${signed(is - was)}</span>`}${Object.keys(CHANGES).map((change) => {
        const count = found.rows.filter((row) => row.change === change).length;
        return count > 0 && html`<span key=${change} class=${`sign ${change}`}>${CHANGES[change]} ${number(count)} ${change}</span>`;
      })}</p>${kept && html`<p class="kept">${kept}</p>`}
      ${found.rows.map((row, index) => html`<${Changed} key=${`${found.before} ${found.after} ${index}`} row=${row} />`)}
      ${!found.rows.length && html`<p class="empty">${found.kind === "observed" && found.prefix_kept == null ? "What changed is unknown." : "Nothing was added, removed or changed."}</p>`}` : html`<${Waiting} answer=${answer} />`}</div>`;
}
