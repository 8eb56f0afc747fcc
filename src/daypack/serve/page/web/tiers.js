// The model's own memory after each round: core, working, ephemeral.
import { html, useEffect } from "./vendor/preact.js";
import { Shown, Waiting, line, visible } from "./text.js";
import { age, messageOf, number, spaced } from "./words.js";
import { messageAddress, replaceAddress } from "./router.js";
import { useAnswer } from "./data.js";
import { useKeys } from "./keys.js";

const TIERS = [["core", "Core", "always in the window"], ["working", "Working", "for the task at hand"], ["ephemeral", "Ephemeral", "ages out after a few rounds"]];

function Block({ block }) {
  return html`<li class=${`block ${block.state}`}><div class="head"><b>${line(block.id)}</b><span class="dim">${line(block.type)}</span>${block.state !== "kept" && html`<span class="tag good">${line(block.state)}</span>`}<span class="push"></span><span class="dim num" title="Importance">${block.importance ?? ""}</span></div>
    <${Shown} text=${block.content} /><p class="why">Round ${number(block.round)}${block.age != null ? ` · age ${number(block.age)}` : ""}${block.confidence != null ? ` · confidence ${block.confidence}` : ""}${block.tags?.length ? ` · ${block.tags.map((tag) => line(tag)).join(", ")}` : ""}</p></li>`;
}

export function Tiers({ agent, session, at, chosen, facts }) {
  const answer = useAnswer("tiers", { agent, session, ...(chosen && { round: chosen }) }, facts.events);
  const tiers = answer.value;
  const rounds = tiers?.rounds ?? [];
  const place = rounds.findIndex(({ round }) => round === tiers.round);
  const to = (index) => {
    const wanted = rounds[Math.max(0, Math.min(rounds.length - 1, index))];
    if (wanted) replaceAddress(at("tiers", wanted.round));
  };
  useKeys({ ArrowRight: () => to(place + 1), ArrowLeft: () => to(place - 1), j: () => to(place + 1), k: () => to(place - 1), Home: () => to(0), End: () => to(rounds.length - 1) });
  useEffect(() => {}, [place]);
  if (!tiers) return html`<${Waiting} answer=${answer} />`;
  if (!tiers.protocol || !rounds.length) return html`<p class="empty">This session does not use the tiers of the hybrid protocol, or no round has ended yet.</p>`;
  const round = rounds[place];
  return html`<section aria-label="Tiers" class=${answer.fresh ? "" : "stale"}><div class="tools"><label class="inline grow" for="round">Round ${number(tiers.round)} of ${number(rounds.length)} <input id="round" type="range" min="0" max=${Math.max(0, rounds.length - 1)} value=${Math.max(0, place)} aria-valuetext=${`round ${tiers.round}`} onInput=${(event) => to(Number(event.target.value))} /></label>${round && html`<span class="dim">${age(round.at)}</span>${round.message != null && html`<a class="source" href=${messageAddress(agent, session, round.message)}>message ${number(round.message)}</a>`}`}</div>
    ${tiers.active_task && html`<p class="headline">Active task: ${visible(tiers.active_task)}</p>`}
    <div class="tiers">${TIERS.map(([id, name, hint]) => html`<section key=${id} class="tier" aria-label=${name}><h3>${name} <span class="dim">${number(tiers[id].length)}</span></h3><p class="dim">${hint}</p><ul>${tiers[id].map((block) => html`<${Block} key=${block.id} block=${block} />`)}</ul>${!tiers[id].length && html`<p class="dim">Empty.</p>`}</section>`)}</div>
    ${tiers.omitted.length > 0 && html`<section class="panel"><h3>Left out <span class="dim">${number(tiers.omitted.length)}</span></h3><ul class="omissions">${tiers.omitted.map((block, index) => html`<li key=${index} class="omission"><div class="head"><span class="name wraps">${line(block.id)}: ${line(block.content)}</span><span class="tag">${line(block.tier)}</span></div><p class="why">${visible(block.words || spaced(block.reason))}</p></li>`)}</ul></section>`}
    ${tiers.violations.length > 0 && html`<section class="panel"><h3>Violations <span class="dim">${number(tiers.violations.length)}</span></h3><ul class="omissions">${tiers.violations.map((violation) => html`<li key=${violation.rule} class="omission"><div class="head"><span class="name wraps">${visible(violation.words || spaced(violation.rule))}</span><span class="num">${number(violation.count)}</span></div><p class="why"><code>${line(violation.rule)}</code></p></li>`)}</ul></section>`}</section>`;
}
