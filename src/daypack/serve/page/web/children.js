// Child agents as a tree, each with its own strip.
import { html } from "./vendor/preact.js";
import { MiniStrip } from "./strip.js";
import { Shown, Waiting, line } from "./text.js";
import { counted } from "./words.js";
import { sessionAddress } from "./router.js";
import { useAnswer } from "./data.js";

const STATUS = new Map([["done", "good"], ["failed", "warn"], ["error", "warn"], ["running", "live"]]);

function Folded({ title, text }) {
  if (!text) return null;
  return html`<details class="toolcall"><summary><b>${title}</b> <span class="dim">${line(text, 180)}</span></summary><${Shown} text=${text} /></details>`;
}

function Child({ child, agent }) {
  const name = line(child.name);
  return html`<li><article class="child"><div class="line"><h3>${child.session ? html`<a href=${sessionAddress(child.agent || agent, child.session)}>${name}</a>` : name}</h3>${child.status && html`<span class=${`tag ${STATUS.get(child.status) ?? ""}`}>${line(child.status)}</span>`}<span class="push"></span><span class="dim num">${child.messages == null ? "" : counted(child.messages, "message")}${child.calls == null ? "" : ` · ${counted(child.calls, "call")}`}${child.refs ? ` · ${counted(child.refs, "reference")}` : ""}</span></div>
    ${child.strip?.splits?.length ? html`<${MiniStrip} strip=${child.strip} label=${`Calls of ${name}: ${counted(child.strip.splits.length, "bar")}`} />` : html`<p class="dim">Its calls are unknown.</p>`}
    <${Folded} title="Handoff" text=${child.handoff} /><${Folded} title="Result" text=${child.result} />${child.artifacts?.length > 0 && html`<p class="why">Artifacts: ${child.artifacts.map((artifact) => line(artifact)).join(", ")}</p>`}</article>
    ${child.children?.length > 0 && html`<ul class="tree">${child.children.map((grandchild, index) => html`<${Child} key=${`${index} ${grandchild.name}`} child=${grandchild} agent=${agent} />`)}</ul>`}</li>`;
}

export function ChildTree({ agent, session, facts }) {
  const answer = useAnswer("children", { agent, session }, facts.events);
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { children } = answer.value;
  if (!children.length) return html`<p class="empty">This session has no child agents.</p>`;
  return html`<ul class="tree" aria-label="Child agents">${children.map((child, index) => html`<${Child} key=${`${index} ${child.name}`} child=${child} agent=${agent} />`)}</ul>`;
}
