// The model's own memory after each round: core, working, ephemeral.
import { html } from "./vendor/preact.js";
import { Entry, Panel, Source, Tag, Waiting } from "./pieces.js";
import { Shown, line, visible } from "./text.js";
import { number, spaced } from "./words.js";
import { replaceAddress } from "./router.js";
import { useHere } from "./data.js";
import { useKeys } from "./keys.js";

const TIERS = { core: "always in the window", working: "for the task at hand", ephemeral: "ages out after a few rounds" };

function Block({ block }) {
  const facts = [`round ${number(block.round)}`, block.age != null && `age ${number(block.age)}`, `importance ${block.importance}`, block.confidence != null && `confidence ${block.confidence}`, ...(block.tags ?? [])];
  return html`<li class=${`block ${block.state === "kept" ? "" : "news"}`}><div class="head"><b>${line(block.id)}</b><span class="dim">${line(block.type)}</span>${block.state !== "kept" && html`<${Tag} good>${line(block.state)}<//>`}</div><${Shown} text=${block.content} /><p class="why">${facts.filter(Boolean).map((fact) => line(fact)).join(" · ")}</p></li>`;
}

export function Tiers({ at, chosen, facts }) {
  const answer = useHere("tiers", { round: chosen }, facts.events);
  const tiers = answer.value;
  const rounds = tiers?.rounds ?? [];
  const place = rounds.findIndex(({ round }) => round === tiers.round);
  const to = (index) => () => rounds[index] && replaceAddress(at("tiers", rounds[index].round));
  useKeys({ j: to(place + 1), ArrowRight: to(place + 1), k: to(place - 1), ArrowLeft: to(place - 1), Home: to(0), End: to(rounds.length - 1) });
  if (!tiers || answer.error) return html`<${Waiting} answer=${answer} />`;
  if (!rounds.length) return html`<p class="empty">No reply with tiers of memory is recorded.</p>`;
  const { message } = rounds[place] ?? {};
  return html`<section aria-label="Tiers"><div class="tools"><label for="round">Round ${number(tiers.round)} of ${number(rounds.at(-1).round)}</label><input id="round" class="push" type="range" max=${rounds.length - 1} value=${place} aria-valuetext=${`round ${tiers.round}`} onInput=${(event) => to(Number(event.target.value))()} />${message != null && html`<${Source} to=${message} />`}</div>
    ${tiers.active_task && html`<p class="spaced">Active task: ${visible(tiers.active_task)}</p>`}
    <div class="tiers">${Object.entries(TIERS).map(([tier, hint]) => html`<${Panel} key=${tier} title=${spaced(tier)} count=${tiers[tier].length}><p class="dim">${hint}</p><ul>${tiers[tier].map((block) => html`<${Block} key=${block.id} block=${block} />`)}</ul><//>`)}</div>
    ${tiers.omitted.length > 0 && html`<${Panel} title="Left out" count=${tiers.omitted.length}><ul>${tiers.omitted.map((block, index) => html`<${Entry} key=${index} name=${`${block.id}: ${block.content}`} tag=${line(block.tier)} why=${[block.words || spaced(block.reason), block.note].filter(Boolean).join(" · ")} />`)}</ul><//>`}
    ${tiers.violations.length > 0 && html`<${Panel} title="Violations" count=${tiers.violations.length}><ul>${tiers.violations.map((violation) => html`<${Entry} key=${violation.rule} name=${violation.words || violation.rule} count=${violation.count} why=${violation.rule} />`)}</ul><//>`}</section>`;
}
