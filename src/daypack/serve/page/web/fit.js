// Would it fit? A dry run of the next call with another budget; nothing is recorded.
import { html, useContext, useEffect, useRef, useState } from "./vendor/preact.js";
import { Facts, Panel, Problem, Split } from "./pieces.js";
import { Here, ask } from "./data.js";
import { line } from "./text.js";
import { number, partClass, percent, short, tokens } from "./words.js";

const STEPS = 1000;
const LEAST = 1000;
const PAUSE = 120; // milliseconds without a change before the server is asked
const SHOWN = 12;

/** The slider is logarithmic: from 1,000 tokens to four times the budget, at least to a window of 256k. */
function sliderFor(budget) {
  const ratio = Math.log(Math.max(256_000, 4 * budget) / LEAST) / STEPS;
  const value = (position) => Number((LEAST * Math.exp(ratio * position)).toPrecision(2));
  return { value, position: (tokens) => Math.round(Math.log(Math.max(LEAST, tokens) / LEAST) / ratio) };
}

function Moved({ title, items, sign, kind }) {
  const sum = items.reduce((total, item) => total + (item.tokens ?? 0), 0);
  return items.length > 0 && html`<h4>${title} <span class="dim">${number(items.length)} · ${tokens(sum)}</span></h4><ul>${items.slice(0, SHOWN).map((item) => html`<li key=${item.id} class="head"><span class=${kind}>${sign}</span><i class=${`swatch ${partClass(item.category)}`}></i><span class="cut">${line(item.title || item.id)}</span><span class="num push">${number(item.tokens)}</span></li>`)}
    ${items.length > SHOWN && html`<li class="dim">and ${number(items.length - SHOWN)} more</li>`}</ul>`;
}

function Outcome({ fit, call, split }) {
  if (fit.problem) return html`<${Problem} error=${fit.problem} />`;
  const whole = Math.max(fit.budget_tokens, call.tokens ?? 0);
  const now = new Set(call.items.map((item) => item.id));
  const then = new Set(fit.items.map((item) => item.id));
  const joining = fit.items.filter((item) => !now.has(item.id));
  const leaving = call.items.filter((item) => !then.has(item.id));
  return html`<div class="fitbars"><span>then</span><${Split} parts=${fit.parts} split=${fit.split} whole=${whole} budget=${fit.budget_tokens} label="With this budget" /><span>now</span><${Split} parts=${fit.parts} split=${split} whole=${whole} budget=${call.budget_tokens} label="This call" /></div>
    <${Facts} facts=${[["Would send", `${tokens(fit.tokens)} (${percent(fit.tokens, fit.budget_tokens)})`], ["Messages", `${number(fit.messages)} of ${number(fit.of_messages)}`], ["Left out", number(fit.omitted.length)], ["New epoch", fit.new_epoch]]} />
    <${Moved} title="Would be in" sign="+" kind="good" items=${joining} /><${Moved} title="Would be out" sign="−" kind="bad" items=${leaving} />
    ${!joining.length && !leaving.length && html`<p class="dim">The same items as in this call.</p>`}`;
}

/** `focus` counts the presses of "b"; `initial` is the budget in the address. */
export function WouldItFit({ call, split, initial, focus, usual }) {
  const here = useContext(Here);
  const budget = call.budget_tokens ?? usual ?? 32_000;
  const [chosen, setChosen] = useState(initial || null);
  const [answer, setAnswer] = useState({});
  const field = useRef();
  const slider = sliderFor(budget);
  const value = chosen ?? budget;
  useEffect(() => {
    if (!focus) return;
    field.current.focus();
    setChosen(value);
  }, [focus]);
  useEffect(() => {
    if (!chosen) return undefined;
    const stop = new AbortController();
    const set = (next) => stop.signal.aborted || setAnswer(next);
    const timer = setTimeout(() => ask("fit", { ...here, budget: chosen }, stop.signal).then((fit) => set({ fit }), (error) => set({ error })), PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [chosen]);
  const type = (event) => event.target.checkValidity() && setChosen(Number(event.target.value));
  return html`<${Panel} title="Would it fit?"><p class="dim">Dry run of the next call, nothing is recorded.</p>
    <div class="tools"><label for="budget">Budget</label><input ref=${field} id="budget" class="push" type="range" max=${STEPS} value=${slider.position(value)} aria-valuetext=${tokens(value)} onInput=${(event) => setChosen(slider.value(Number(event.target.value)))} /><input type="number" aria-label="Budget in tokens" required min=${LEAST} max="100000000" step="any" value=${value} onInput=${type} /></div>
    <div aria-live="polite" aria-label=${`Budget ${short(value)}`}>${answer.error && html`<${Problem} error=${answer.error} />`}${answer.fit && html`<${Outcome} fit=${answer.fit} call=${call} split=${split} />`}</div><//>`;
}
