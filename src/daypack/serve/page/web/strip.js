// The strip: every call of a session as a stacked bar. One path for each part, so that 2,000 calls are a dozen nodes;
// hover and selection are overlays whose place is computed, so that moving over the strip draws nothing again.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { DASH, age, markWords, moment, number, partClass, partHint, partName, short } from "./words.js";
import { visible } from "./text.js";

const TOP = 20; // room for the heads of cache breaks
const PLOT = 168;
const LANE = 26; // marks and call numbers
const FOLD = 14; // width of a compaction between two calls
const NARROWEST = 5;
const WIDEST = 22;
const UNKNOWN_HEIGHT = 30; // a call of unknown size

/** The calls as objects by column name, with what the strip needs of each. */
export function readCalls(answer) {
  const { columns } = answer;
  return answer.calls.map((values) => {
    const call = {};
    for (let index = 0; index < columns.length; index++) call[columns[index]] = values[index];
    return call;
  });
}

/** Where each bar is; compactions take room of their own between bars. */
function placeBars(count, folds, width, wholeSession) {
  const room = Math.max(0, width - 12 - folds.length * FOLD);
  const pitch = wholeSession ? room / Math.max(1, count) : Math.max(NARROWEST, Math.min(WIDEST, room / Math.max(1, count)));
  const at = new Float64Array(count + 1);
  const foldAt = [];
  let next = 0;
  let x = 6;
  for (let index = 0; index <= count; index++) {
    while (next < folds.length && folds[next].before <= index) {
      foldAt.push(x);
      x += FOLD;
      next += 1;
    }
    at[index] = x;
    x += pitch;
  }
  const bar = pitch > 3 ? pitch - Math.max(1, Math.min(4, pitch * 0.18)) : pitch;
  return { at, bar, pitch, foldAt, width: Math.max(width, at[count] + 6) };
}

function barAt(place, count, x) {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (place.at[middle] <= x) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The height of the scale: the largest call, and the budget unless it is so large that the bars would vanish. */
function scaleOf(calls) {
  let most = 1;
  let budget = 0;
  for (const call of calls) {
    if (call.tokens > most) most = call.tokens;
    if (call.budget > budget) budget = call.budget;
  }
  const top = Math.max(most, Math.min(budget, most * 2.5)) * 1.04;
  const rough = top / 4;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= rough);
  const ticks = [];
  for (let tick = step; tick < top; tick += step) ticks.push(tick);
  return { top, ticks, y: (value) => TOP + PLOT - (PLOT * value) / top };
}

const at1 = (value) => Math.round(value * 10) / 10;

function drawParts(calls, parts, hidden, place, scale) {
  const paths = parts.map(() => []);
  const unknown = [];
  const wide = at1(place.bar);
  const perToken = PLOT / scale.top;
  for (let index = 0; index < calls.length; index++) {
    const { split, tokens } = calls[index];
    const x = at1(place.at[index]);
    if (tokens == null || !split) {
      unknown.push(`M${x} ${TOP + PLOT}v-${UNKNOWN_HEIGHT}h${wide}v${UNKNOWN_HEIGHT}z`);
      continue;
    }
    let base = TOP + PLOT;
    for (let part = 0; part < parts.length; part++) {
      const value = split[part];
      if (!value || hidden.has(parts[part])) continue;
      const high = value * perToken;
      const drawn = high > 3 ? high - 0.8 : high; // a hair of background between parts
      paths[part].push(`M${x} ${at1(base)}v-${at1(Math.max(0.3, drawn))}h${wide}V${at1(base)}z`);
      base -= high;
    }
  }
  return { paths: paths.map((path) => path.join("")), unknown: unknown.join("") };
}

/** The budget as a line that follows its changes; calls without a budget interrupt it. */
function drawBudget(calls, place, scale) {
  const path = [];
  let drawing = false;
  for (let index = 0; index < calls.length; index++) {
    const { budget } = calls[index];
    if (budget == null || budget > scale.top) {
      drawing = false;
      continue;
    }
    const y = at1(scale.y(budget));
    path.push(`${drawing ? `V${y}` : `M${at1(place.at[index] - 1)} ${y}`}H${at1(place.at[index] + place.pitch)}`);
    drawing = true;
  }
  return path.join("");
}

const MARK_SHAPES = {
  error: (x, y) => `M${x - 3.5} ${y - 3.5}l7 7m0 -7l-7 7`,
  retry: (x, y) => `M${x - 3.5} ${y}a3.5 3.5 0 1 1 3.5 3.5`,
  incomplete: (x, y) => `M${x - 4} ${y}h2m1 0h2m1 0h2`,
  erased: (x, y) => `M${x - 3.5} ${y - 3.5}h7v7h-7z`,
};

function drawEvents(calls, place) {
  const breaks = [];
  const heads = [];
  const marks = new Map();
  for (let index = 0; index < calls.length; index++) {
    const call = calls[index];
    if (call.break) {
      const x = at1(place.at[index] - 0.5);
      breaks.push(`M${x} ${TOP - 7}V${TOP + PLOT}`);
      heads.push(`M${x} ${TOP - 5}l-4 -5 4 -5 4 5z`);
    }
    const shape = MARK_SHAPES[call.mark];
    if (shape) marks.set(call.mark, (marks.get(call.mark) ?? "") + shape(at1(place.at[index] + place.bar / 2), TOP + PLOT + 8));
  }
  return { breaks: breaks.join(""), heads: heads.join(""), marks: [...marks] };
}

/** Numbers of calls below the bars, about every 90 pixels. */
function drawNumbers(count, place) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000].find((size) => size * place.pitch >= 60) ?? 5000;
  const numbers = [];
  for (let number = step; number <= count; number += step) numbers.push(number);
  return numbers;
}

export function describeCall(call, index, total) {
  const facts = [`call ${number(index + 1)} of ${number(total)}: ${call.tokens == null ? "size unknown" : `${number(call.tokens)} tokens`}`];
  if (call.break) facts.push(`cache break: ${visible(call.break)}`);
  if (call.mark) facts.push(markWords(call.mark));
  return facts.join(", ");
}

/** Facts about the call under the pointer; its state is its own, so the bars are not rendered again. */
function Tip({ control, calls, parts }) {
  const [shown, show] = useState(null);
  control.current = show;
  if (!shown || !calls[shown.index]) return null;
  const call = calls[shown.index];
  const rows = call.split ? parts.map((part, index) => [part, call.split[index]]).filter(([, value]) => value) : [];
  return html`<div class="tip" aria-hidden="true" style=${shown.right ? { right: `${shown.right}px` } : { left: `${shown.left}px` }}>
    <p><b>Call ${number(shown.index + 1)}</b><span>${age(call.at)}</span></p>
    <p><span>${call.tokens == null ? "size unknown" : html`<b class="num">${number(call.tokens)}</b> tokens`}</span><span>${call.budget ? `of ${short(call.budget)}` : ""}</span></p>
    <table>${rows.reverse().map(([part, value]) => html`<tr key=${part}><td><i class=${`swatch ${partClass(part)}`}></i>${partName(part)}</td><td class="num">${number(value)}</td></tr>`)}</table>
    ${call.break && html`<p class="bad">⬥ ${visible(call.break)}${call.lost ? ` (${short(call.lost)} read again)` : ""}</p>`}
    ${call.mark && html`<p class="bad">${markWords(call.mark)}</p>`}
  </div>`;
}

export function Strip({ calls, parts, folds, selected, compared, hidden, wholeSession, select, compare, openFold }) {
  const scroller = useRef(null);
  const hover = useRef(null);
  const tip = useRef(null);
  const [width, setWidth] = useState(0);
  const [drag, setDrag] = useState(false);
  const total = calls.length;

  useLayoutEffect(() => {
    const measure = () => setWidth(scroller.current.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);

  const scale = useMemo(() => scaleOf(calls), [calls]);
  const place = useMemo(() => placeBars(total, folds, width, wholeSession), [total, folds, width, wholeSession]);
  const bars = useMemo(() => {
    if (!width) return null;
    const { paths, unknown } = drawParts(calls, parts, hidden, place, scale);
    const events = drawEvents(calls, place);
    return html`
      ${scale.ticks.map((tick) => html`<line key=${tick} class="grid" x1="0" x2=${place.width} y1=${at1(scale.y(tick))} y2=${at1(scale.y(tick))} />`)}
      ${place.foldAt.map((x, index) => html`<g key=${`fold${index}`} class=${`fold${folds[index].undone ? " undone" : ""}`}><rect x=${at1(x - 1)} y=${TOP - 6} width=${FOLD - 2} height=${PLOT + 6} /><path d=${`M${at1(x + 2.5)} ${TOP - 6}l3 4 -3 4 3 4`} /></g>`)}
      ${paths.map((path, index) => path && html`<path key=${parts[index]} class=${partClass(parts[index])} d=${path} />`)}
      ${unknown && html`<path class="p-unknown sizeless" d=${unknown} />`}
      <path class="budgetline" d=${drawBudget(calls, place, scale)} />
      <path class="seam" d=${events.breaks} /><path class="seamhead" d=${events.heads} />
      ${events.marks.map(([mark, path]) => html`<path key=${mark} class=${`mark ${mark}`} d=${path} />`)}
      <line class="baseline" x1="0" x2=${place.width} y1=${TOP + PLOT + 0.5} y2=${TOP + PLOT + 0.5} />
      ${drawNumbers(total, place).map((number) => html`<text key=${`n${number}`} x=${at1(place.at[number - 1] + place.bar / 2)} y=${TOP + PLOT + LANE - 4} text-anchor="middle">${number}</text>`)}`;
  }, [calls, parts, folds, hidden, place, scale, width]);

  // Keep the selected bar in view, a little away from the edges.
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!width || selected < 0) return;
    const x = place.at[selected];
    const edge = Math.min(80, width / 4);
    if (x < box.scrollLeft + edge) box.scrollLeft = x - edge;
    else if (x + place.pitch > box.scrollLeft + width - edge) box.scrollLeft = x + place.pitch - width + edge;
  }, [selected, place, width]);

  const indexOf = (event) => barAt(place, total, event.clientX - scroller.current.getBoundingClientRect().left + scroller.current.scrollLeft);
  const showTip = (index) => {
    const x = place.at[index] - scroller.current.scrollLeft;
    tip.current?.(x > width / 2 ? { index, right: width - x + 10 } : { index, left: x + place.pitch + 64 });
    hover.current?.setAttribute("x", at1(place.at[index] - 1));
    hover.current?.setAttribute("visibility", "visible");
  };
  const hideTip = () => {
    tip.current?.(null);
    hover.current?.setAttribute("visibility", "hidden");
  };
  const press = (event) => {
    if (event.button !== 0) return;
    const x = event.clientX - scroller.current.getBoundingClientRect().left + scroller.current.scrollLeft;
    const fold = place.foldAt.findIndex((start) => x >= start - 1 && x < start + FOLD - 2);
    if (fold >= 0) return openFold(folds[fold]);
    const index = indexOf(event);
    if (event.shiftKey) {
      event.preventDefault();
      return compare(index);
    }
    setDrag(event.pointerType === "mouse");
    return select(index);
  };
  const move = (event) => {
    const index = indexOf(event);
    if (drag && event.buttons === 1) select(index);
    showTip(index);
  };
  useEffect(() => {
    if (document.activeElement === scroller.current && scroller.current.matches(":focus-visible") && selected >= 0) showTip(selected);
  }, [selected, place]);

  const budget = calls[selected]?.budget;
  const above = budget != null && budget > scale.top;
  const height = TOP + PLOT + LANE;
  const current = calls[selected];
  return html`<div class="strip">
    <svg class="axis" width="56" height=${height} aria-hidden="true">
      ${scale.ticks.map((tick) => html`<text key=${tick} x="48" y=${at1(scale.y(tick)) + 4} text-anchor="end">${short(tick)}</text>`)}
      ${budget != null && html`<text class="budgetlabel" x="48" y=${above ? TOP - 6 : Math.max(9, at1(scale.y(budget)) + 4)} text-anchor="end">${above ? "↑ " : ""}${short(budget)}</text>`}
    </svg>
    <div ref=${scroller} class="scroller" tabindex="0" role="slider" aria-label="Calls of this session" aria-orientation="horizontal" aria-valuemin="1" aria-valuemax=${total} aria-valuenow=${selected + 1}
      aria-valuetext=${current ? describeCall(current, selected, total) : "no call"} onPointerDown=${press} onPointerMove=${move} onPointerLeave=${hideTip} onPointerUp=${() => setDrag(false)}
      onFocus=${() => scroller.current.matches(":focus-visible") && selected >= 0 && showTip(selected)} onBlur=${hideTip} onScroll=${hideTip}>
      <svg class="bars" width=${place.width} height=${height} aria-hidden="true">
        <defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="5" height="5" class="hatchground" /><rect width="2" height="5" class="hatchline" /></pattern></defs>
        ${width > 0 && compared >= 0 && html`<rect class="comparedbar" x=${at1(place.at[compared] - 1)} y="2" width=${at1(place.bar + 2)} height=${TOP + PLOT} />`}
        ${width > 0 && selected >= 0 && html`<rect class="selectedbar" x=${at1(place.at[selected] - 1.5)} y="2" width=${at1(Math.max(3, place.bar + 3))} height=${TOP + PLOT + 1} rx="2" />`}
        ${bars}
        <rect ref=${hover} class="hoverbar" y=${TOP - 4} width=${at1(Math.max(3, place.bar + 2))} height=${PLOT + 4} visibility="hidden" />
        ${width > 0 && selected >= 0 && html`<path class="pointer" d=${`M${at1(place.at[selected] + place.bar / 2)} ${TOP + PLOT + 2}l-5 7h10z`} />`}
      </svg>
    </div>
    <${Tip} control=${tip} calls=${calls} parts=${parts} />
  </div>`;
}

/** The parts with the tokens of the selected call; pressing one hides it in the bars. */
export function Legend({ parts, call, calls, hidden, toggle }) {
  const present = parts.map((part, index) => ({ part, index })).filter(({ index }) => calls.some((other) => other.split?.[index]));
  return html`<ul class="legend" aria-label="Parts of a call">${present.map(({ part, index }) => html`<li key=${part}>
    <button aria-pressed=${hidden.has(part) ? "false" : "true"} title=${partHint(part)} onClick=${() => toggle(part)}><i class=${`swatch ${partClass(part)}`}></i>${partName(part)} <span class="num">${call ? (call.split ? number(call.split[index]) : DASH) : ""}</span></button></li>`)}</ul>`;
}

/** A strip without interaction, for child agents. */
export function MiniStrip({ strip, label }) {
  const wide = 3;
  const high = 36;
  const sums = strip.splits.map((split) => (split ? split.reduce((sum, value) => sum + (value || 0), 0) : 0));
  const top = Math.max(1, ...sums);
  const paths = strip.parts.map(() => []);
  strip.splits.forEach((split, index) => {
    let base = high;
    split?.forEach((value, part) => {
      const size = ((value || 0) * high) / top;
      if (size) paths[part]?.push(`M${index * wide} ${at1(base)}v-${at1(size)}h${wide - 0.6}V${at1(base)}z`);
      base -= size;
    });
  });
  const width = Math.max(1, strip.splits.length * wide);
  return html`<svg class="ministrip" role="img" aria-label=${label} width=${width} height=${high} viewBox=${`0 0 ${width} ${high}`} preserveAspectRatio="none">
    ${paths.map((path, index) => path.length > 0 && html`<path key=${index} class=${partClass(strip.parts[index])} d=${path.join("")} />`)}</svg>`;
}

export function callTitle(call, index, total) {
  return `Call ${number(index + 1)} of ${number(total)}, ${moment(call.at)}`;
}
