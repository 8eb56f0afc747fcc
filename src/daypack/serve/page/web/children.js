// Child agents as a tree, each with its own strip.
import { html, useContext } from "./vendor/preact.js";
import { Folded } from "./call.js";
import { Here, home, useHere } from "./data.js";
import { MiniStrip } from "./strip.js";
import { Tag, Waiting } from "./pieces.js";
import { address } from "./router.js";
import { counted } from "./words.js";
import { dots, line } from "./text.js";

function Child({ child }) {
  const { name, session, status, messages, calls, refs, artifacts, strip } = child;
  const agent = child.agent || useContext(Here).agent;
  return html`<li><article class="child"><div class="line"><h2>
    ${session && !home.exported ? html`<a href=${address("s", agent, session)}>${line(name)}</a>` : line(name)}</h2>
    <${Tag} words=${status} warn=${/fail|error/.test(status)} good=${/done|complete/.test(status)} />
    <span class="dim num last">${dots(messages != null && counted(messages, "message"),
    calls != null && counted(calls, "call"), refs > 0 && counted(refs, "reference"))}</span></div>
    ${strip?.splits.length > 0 ? html`<${MiniStrip} ...${strip} label=${`Calls of ${line(name)}`} />`
      : html`<p class="dim">Its calls are unknown.</p>`}<${Folded} title="Handoff" text=${child.handoff} />
      <${Folded} title="Result" text=${child.result} /><p class="why">
      ${artifacts?.length > 0 && `Artifacts: ${dots(...artifacts)}`}</p></article><${Tree} list=${child.children} />
      </li>`;
}

function Tree({ list }) {
  return list.length > 0 && html`<ul class="tree">${list.map((child) => html`<${Child} child=${child} />`)}</ul>`;
}

export function ChildTree({ facts }) {
  const answer = useHere("children", {}, facts.events);
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  return answer.value.children.length ? html`<${Tree} list=${answer.value.children} />`
    : html`<p class="empty">This session has no child agents.</p>`;
}
