// The difference between two calls: what was added, removed, changed. What is unchanged is one line.
import { html, useMemo, useState } from "./vendor/preact.js";
import { DiffLines, Shown, dots, line } from "./text.js";
import { Source, Waiting } from "./pieces.js";
import { number, partClass, short, signed, spaced, tokens } from "./words.js";
import { useHere } from "./data.js";

const CHANGES = { added: "+", removed: "−", changed: "±", moved: "↕" };

function Changed({ row }) {
  const { change, id, category, lines } = row;
  const [open, setOpen] = useState(change === "changed");
  const flip = () => setOpen(!open);
  return html`<article class=${`item ${partClass(category)}`}><div class="head">
    <span class=${change in CHANGES ? change : ""} aria-hidden="true">${CHANGES[change]}</span>
    <button class="name" aria-expanded=${open} onClick=${flip}>${spaced(change)}: ${line(id)}</button>
    <span class="push"></span><${Source} to=${row.ref} /><span class="num">${number(row.tokens)}</span></div>
    <p class="why">${dots(spaced(category ?? "unknown"), row.kind)}</p>
    ${lines.length > 0 ? open && html`<${DiffLines} lines=${lines} label=${`Changes in ${line(id)}`} />`
      : html`<div class=${open ? "body" : "preview"} onClick=${open ? null : flip}>
      <${Shown} text=${row.text} most=${open ? 0 : 700} /></div>`}</article>`;
}

/** The field that chooses the other call; its 2,000 options are made once. */
function Other({ calls, before, choose }) {
  const options = useMemo(() => calls.map((call, index) => html`<option
    value=${call.event}>call ${index + 1}, ${short(call.tokens)} tokens</option>`), [calls]);
  return html`<label>Compare with <select value=${before} onChange=${(event) => choose(event.target.value)}>${options}
    </select></label>`;
}

export function Difference({ calls, before, after, choose }) {
  const answer = useHere("diff", { before, after });
  const found = !answer.error && answer.value;
  const [was, is] = found?.tokens ?? [];
  const counts = Object.keys(CHANGES).map((change) => [change,
    found && found.rows.filter((row) => row.change === change).length]);
  const kept = (value, yes, no) => (value == null ? "" : value ? yes : no);
  return html`<div class=${answer.stale}><div class="tools"><${Other} calls=${calls} before=${found?.before ?? before}
    choose=${choose} /><button class="small" aria-pressed=${!before}
    onClick=${() => choose("")}>The call before</button><span class="dim hint">or shift-click a bar</span></div>
    ${!found ? html`<${Waiting} answer=${answer} />` : html`<p class="line spaced"><b class="num">
      ${number(was)} → ${tokens(is)}</b>${was != null && is != null && html`<span class="num">${signed(is - was)}
      </span>`}${counts.map(([change, count]) => count > 0 && html`<span class=${change}>
      ${CHANGES[change]} ${number(count)} ${change}</span>`)}</p>
      <p class="kept">${dots(kept(found.prefix_kept, "prefix unchanged", "prefix changed"),
        kept(found.tail_kept, "tail continued"), kept(found.epoch_kept, "same epoch", "new epoch"))}</p>
      ${found.rows.map((row, index) => html`<${Changed} key=${`${found.before} ${found.after} ${index}`}
        row=${row} />`)}
      ${!found.rows.length && html`<p class="empty">${found.prefix_kept == null ? "What changed is unknown."
        : "Nothing was added, removed or changed."}</p>`}`}</div>`;
}
