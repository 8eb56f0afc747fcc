// Would it fit? A dry run of the next call with another budget; nothing is recorded.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Facts, Panel, Problem, Split } from "./pieces.js";
import { line } from "./text.js";
import { messageOf, number, partClass, percent, short, signed, tokens } from "./words.js";
import { useHere, useSettled } from "./data.js";

const STEPS = 1000; // of the slider
const LEAST = 1000; // tokens
const PAUSE = 120; // milliseconds without a change before the server is asked
const SHOWN = 12;

/** Items that join, leave or change; `tokens` of a changed one is the difference. */
function Moved({ title, items, sign, kind, show = number }) {
  const sum = items.reduce((total, item) => total + (item.tokens ?? 0), 0);
  return items.length > 0 && html`<h3>${title} <span class="dim">${number(items.length)} · ${show(sum)} tokens</span></h3>
    <ul>${items.slice(0, SHOWN).map((item) => html`<li class="head"><span class=${kind}>${sign}</span>
    <i class=${`swatch ${partClass(item.category)}`}></i><span class="cut">
    ${line(item.title || item.id)}${messageOf(item.id) ? ` · message ${number(messageOf(item.id))}` : ""}</span>
    <span class="num last">${show(item.tokens)}</span></li>`)}</ul>
    ${items.length > SHOWN && html`<p class="dim">and ${number(items.length - SHOWN)} more</p>`}`;
}

function Outcome({ fit, call, split }) {
  if (fit.problem) return html`<${Problem} error=${fit.problem} />`;
  const { parts, budget_tokens: budget } = fit;
  const whole = Math.max(budget, call.tokens ?? 0);
  const without = (items, others) => {
    const ids = new Set(others.map((item) => item.id));
    return items.filter((item) => !ids.has(item.id));
  };
  const joining = without(fit.items, call.items);
  const leaving = without(call.items, fit.items);
  const sizes = new Map(call.items.map((item) => [item.id, item.tokens ?? 0]));
  const changed = fit.items.filter((item) => sizes.has(item.id) && sizes.get(item.id) !== (item.tokens ?? 0))
    .map((item) => ({ ...item, tokens: (item.tokens ?? 0) - sizes.get(item.id) }));
  return html`<div class="fitbars"><span>${short(budget)}</span><${Split} ...${{ parts, whole, budget, split: fit.split,
    label: "With this budget" }} /><span>this call</span><${Split} ...${{ parts, whole, split, budget: call.budget_tokens,
    label: "This call" }} /></div>
    <${Facts} facts=${{ "Would send": `${tokens(fit.tokens)} (${percent(fit.tokens, budget)})`,
      Messages: `${number(fit.messages)} of ${number(fit.of_messages)}`, "Left out": number(fit.omitted.length),
      "New epoch": fit.new_epoch }} />
    <${Moved} title="Would be in" sign="+" kind="good" items=${joining} />
      <${Moved} title="Would be out" sign="−" kind="bad" items=${leaving} />
      <${Moved} title="Would be shown at another length" sign="±" items=${changed} show=${signed} />
      ${!joining.length && !leaving.length && !changed.length && html`<p class="dim">The same items as in this call.</p>`}`;
}

/** `focus` counts the presses of "b"; `initial` is the budget in the address. */
export function WouldItFit({ call, split, initial, focus, usual }) {
  const budget = call.budget_tokens ?? usual ?? 32_000;
  const [chosen, setChosen] = useState(initial);
  const settled = useSettled(chosen, PAUSE);
  const answer = useHere(settled && "fit", { budget: settled });
  const field = useRef();
  const value = chosen || budget;
  // The slider is logarithmic: to four times the budget, at least to a window of 256k.
  const ratio = Math.log(Math.max(256_000, 4 * budget) / LEAST) / STEPS;
  useEffect(() => {
    if (!focus) return;
    field.current.focus();
    setChosen(value);
  }, [focus]);
  useEffect(() => initial && setChosen(initial), [initial]);
  const slide = (event) => setChosen(Number((LEAST * Math.exp(ratio * event.target.value)).toPrecision(2)));
  const type = (event) => event.target.checkValidity() && setChosen(Number(event.target.value));
  return html`<${Panel} title="Would it fit?"><p class="dim">Dry run of the next call, compared with this one; nothing is recorded.</p>
    <div class="tools"><label for="budget">Budget</label><input ref=${field} id="budget" class="push" type="range"
    max=${STEPS} value=${Math.round(Math.log(Math.max(LEAST, value) / LEAST) / ratio)} aria-valuetext=${tokens(value)}
    onInput=${slide} /><input type="number" aria-label="Budget in tokens" required min=${LEAST} max="100000000"
    value=${value} onInput=${type} /></div>
    <div aria-live="polite" class=${answer.stale}>${answer.error && html`<${Problem} error=${answer.error} />`}
      ${answer.value && html`<${Outcome} fit=${answer.value} call=${call} split=${split} />`}</div><//>`;
}
