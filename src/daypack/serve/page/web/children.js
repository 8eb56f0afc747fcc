// Child agents as a tree, each with its own strip.
import { html, useContext } from "./vendor/preact.js";
import { Here, useHere } from "./data.js";
import { MiniStrip } from "./strip.js";
import { Shown, line } from "./text.js";
import { Tag, Waiting } from "./pieces.js";
import { address } from "./router.js";
import { counted } from "./words.js";

function Folded({ title, text }) {
  return text && html`<details class="folded"><summary><b>${title}</b> <span class="dim">${line(text, 180)}</span></summary><${Shown} text=${text} /></details>`;
}

function Child({ child }) {
  const { agent } = useContext(Here);
  const { name, session, status, messages, calls, refs, artifacts, strip } = child;
  const facts = [messages != null && counted(messages, "message"), calls != null && counted(calls, "call"), refs > 0 && counted(refs, "reference")].filter(Boolean);
  return html`<li><article class="child"><div class="line"><h3>${session ? html`<a href=${address("s", child.agent || agent, session)}>${line(name)}</a>` : line(name)}</h3>${status && html`<${Tag} warn=${["failed", "error"].includes(status)} good=${["done", "completed"].includes(status)}>${line(status)}<//>`}<span class="push dim num">${facts.join(" · ")}</span></div>
    ${strip?.splits.length > 0 ? html`<${MiniStrip} strip=${strip} label=${`Calls of ${line(name)}`} />` : html`<p class="dim">Its calls are unknown.</p>`}<${Folded} title="Handoff" text=${child.handoff} /><${Folded} title="Result" text=${child.result} />${artifacts?.length > 0 && html`<p class="why">Artifacts: ${line(artifacts.join(", "), 2000)}</p>`}</article>
    <${Children} list=${child.children} /></li>`;
}

function Children({ list }) {
  return list?.length > 0 && html`<ul class="tree">${list.map((child, index) => html`<${Child} key=${index} child=${child} />`)}</ul>`;
}

export function ChildTree({ facts }) {
  const answer = useHere("children", {}, facts.events);
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  return answer.value.children.length ? html`<${Children} list=${answer.value.children} />` : html`<p class="empty">This session has no child agents.</p>`;
}
