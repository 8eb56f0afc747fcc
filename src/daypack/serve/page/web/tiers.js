// The model's own memory after each round: core, working, ephemeral.
import { html } from "./vendor/preact.js";
import { Entry, Panel, Source, Tag, Waiting } from "./pieces.js";
import { Shown, dots, line } from "./text.js";
import { number, spaced } from "./words.js";
import { replaceAddress } from "./router.js";
import { useHere } from "./data.js";
import { useKeys } from "./keys.js";

const TIERS = { core: "always in the window", working: "for the task at hand",
  ephemeral: "ages out after a few rounds" };

function Block({ block }) {
  const { id, type, content, state, round, age, importance, confidence, tags } = block;
  return html`<li class=${state === "kept" ? "block" : "block news"}><div class="head"><b>${line(id)}</b>
    <span class="dim">${line(type)}</span><${Tag} good words=${state !== "kept" && state} /></div>
    <${Shown} text=${content} /><p class="why">${dots(`round ${round}`, age > 0 && `age ${age}`,
    `importance ${importance}`, confidence != null && `confidence ${confidence}`, ...tags)}</p></li>`;
}

export function Tiers({ at, chosen, facts }) {
  const answer = useHere("tiers", { round: chosen }, facts.events);
  const { rounds = [], round, omitted, violations, active_task: task, ...tiers } = answer.value ?? {};
  const place = rounds.findIndex((known) => known.round === (Number(chosen) || round)); // keys continue there, loaded or not
  const to = (index) => () => rounds[index] && replaceAddress(at("tiers", rounds[index].round));
  useKeys({ j: to(place + 1), ArrowRight: to(place + 1), k: to(place - 1), ArrowLeft: to(place - 1), Home: to(0),
    End: to(rounds.length - 1) });
  if (!answer.value || answer.error) return html`<${Waiting} answer=${answer} />`;
  if (!rounds.length) return html`<p class="empty">No reply with tiers of memory is recorded.
    ${" "}<code>daypack switch ${line(facts.session)} protocol on</code> asks the model for them.</p>`;
  const { message } = rounds[place] ?? {};
  return html`<section aria-label="Tiers"><div class="tools"><label
    for="round">Round ${number(round)} of ${number(rounds.at(-1).round)}</label>
    <input id="round" class="push" type="range" max=${rounds.length - 1} value=${place}
    aria-valuetext=${`round ${round}`} onInput=${(event) => to(Number(event.target.value))()} />
    ${message && html`<${Source} to=${`msg-${message}`} words=${`message ${number(message)}`} />`}</div>
    <p class="spaced">${dots(task && `Active task: ${task}`)}</p>
    <div class="tiers">${Object.entries(TIERS).map(([tier, hint]) => html`<${Panel} title=${spaced(tier)}
      count=${tiers[tier].length}><p class="dim">${hint}</p><ul>
      ${tiers[tier].map((block) => html`<${Block} block=${block} />`)}</ul><//>`)}</div>
    <${Panel} title="Left out" count=${omitted.length}><ul>${omitted.map(({ id, content, tier, words, reason,
      note }) => html`<${Entry} name=${`${id}: ${content}`} tag=${tier} why=${dots(words || spaced(reason), note)} />`)}
      </ul><//><${Panel} title="Violations" count=${violations.length}><ul>
      ${violations.map(({ rule, words, count }) => html`<${Entry} name=${words || rule} count=${count} why=${rule} />`)}
      </ul><//></section>`;
}
