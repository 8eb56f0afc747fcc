// Would it fit? A dry run of the next call with another budget. Nothing is recorded.
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { ask } from "./data.js";
import { Problem, Split, line, visible } from "./text.js";
import { number, partClass, percent, short, tokens } from "./words.js";

const STEPS = 1000;
const LEAST = 1000;
const PAUSE = 120; // milliseconds without a change before the server is asked
const SHOWN = 12;

/** The slider is logarithmic: from 1,000 tokens to four times the budget, at least a window of 256k. */
function scaleFor(budget) {
  const most = Math.max(256_000, 4 * (budget || 0));
  const ratio = Math.log(most / LEAST);
  return {
    most,
    position: (value) => Math.round((STEPS * Math.log(Math.max(LEAST, Math.min(most, value)) / LEAST)) / ratio),
    value: (position) => {
      const exact = LEAST * Math.exp((ratio * position) / STEPS);
      const unit = 10 ** Math.max(2, Math.floor(Math.log10(exact)) - 1);
      return Math.round(exact / unit) * unit;
    },
  };
}

function Moved({ title, items, sign }) {
  if (!items.length) return null;
  const sum = items.reduce((total, item) => total + (item.tokens || 0), 0);
  return html`<h4>${title} <span class="dim">${number(items.length)} · ${tokens(sum)}</span></h4>
    <ul class="moved">${items.slice(0, SHOWN).map((item) => html`<li key=${item.id}><span class=${sign === "+" ? "sign good" : "sign bad"}>${sign}</span><i class=${`swatch ${partClass(item.category)}`}></i><span class="name">${line(item.title || item.id)}</span><span class="num">${number(item.tokens)}</span></li>`)}
    ${items.length > SHOWN && html`<li class="dim">and ${number(items.length - SHOWN)} more</li>`}</ul>`;
}

function Result({ fit, call, parts, callSplit }) {
  if (fit.problem) return html`<div class="problem"><p>${visible(fit.problem.message)}</p><p class="dim">${visible(fit.problem.hint)}</p></div>`;
  const whole = Math.max(fit.budget_tokens, call.tokens || 0);
  const now = new Set(call.items.map((item) => item.id));
  const then = new Set(fit.items.map((item) => item.id));
  const joins = fit.items.filter((item) => !now.has(item.id));
  const leaves = call.items.filter((item) => !then.has(item.id));
  return html`<div class="fitbars"><span>${short(fit.budget_tokens)}</span><${Split} parts=${parts} split=${fit.split} whole=${whole} budget=${fit.budget_tokens} label="With this budget" />
      <span>this call</span><${Split} parts=${parts} split=${callSplit} whole=${whole} budget=${call.budget_tokens} label="This call" /></div>
    <dl class="facts"><div><dt>Would send</dt><dd>${tokens(fit.tokens)} (${percent(fit.tokens, fit.budget_tokens)})</dd></div>
      <div><dt>Messages</dt><dd>${number(fit.messages)} of ${number(fit.of_messages)}</dd></div><div><dt>Left out</dt><dd>${number(fit.omitted.length)}</dd></div>
      ${fit.new_epoch && html`<div><dt>New epoch</dt><dd>${visible(fit.new_epoch)}</dd></div>`}</dl>
    <${Moved} title="Would be in" sign="+" items=${joins} /><${Moved} title="Would be out" sign="−" items=${leaves} />
    ${!joins.length && !leaves.length && html`<p class="dim">The same items as in this call.</p>`}`;
}

/** `focus` counts presses of "b"; `initial` is the budget of the address. */
export function WouldItFit({ agent, session, call, parts, callSplit, initial, focus, usual }) {
  const budget = call.budget_tokens ?? usual ?? 32_000;
  const scale = scaleFor(budget);
  const [chosen, setChosen] = useState(initial || null);
  const [answer, setAnswer] = useState(null);
  const slider = useRef(null);
  useEffect(() => {
    if (!focus) return;
    slider.current.scrollIntoView({ block: "center" });
    slider.current.focus({ preventScroll: true });
    setChosen((old) => old ?? budget);
  }, [focus]);
  useEffect(() => {
    if (!chosen) return undefined;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      ask("fit", { agent, session, budget: chosen }, stop.signal).then(
        (value) => stop.signal.aborted || setAnswer({ value }),
        (error) => stop.signal.aborted || setAnswer({ error }),
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [chosen, agent, session]);
  const value = chosen ?? budget;
  return html`<section class="panel fit" aria-labelledby="fit"><h3 id="fit">Would it fit?</h3>
    <p class="dim">Dry run of the next call, nothing is recorded.</p>
    <div class="budgetfield"><label for="budget-slider">Budget</label>
      <input ref=${slider} id="budget-slider" type="range" min="0" max=${STEPS} step="1" value=${scale.position(value)} aria-valuetext=${tokens(value)} onInput=${(event) => setChosen(scale.value(Number(event.target.value)))} />
      <input type="number" aria-label="Budget in tokens" min=${LEAST} max="10000000" step="100" value=${value} onInput=${(event) => event.target.validity.valid && event.target.value && setChosen(Number(event.target.value))} /></div>
    <div aria-live="polite">${answer?.error && html`<${Problem} error=${answer.error} />`}${answer?.value && html`<${Result} fit=${answer.value} call=${call} parts=${parts} callSplit=${callSplit} />`}</div>
  </section>`;
}
