// The strip: every call of a session as a stacked bar. Each part is one path, so that 2,000 calls are a dozen nodes;
// hover and selection are overlays, so that moving along the strip draws no bar again.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { age, markWords, number, partClass, partHint, short, spaced } from "./words.js";
import { visible } from "./text.js";

const TOP = 20; // room for the heads of cache breaks
const PLOT = 168;
const FLOOR = TOP + PLOT;
const HEIGHT = FLOOR + 26; // with marks and numbers below the bars
const FOLD = 14; // width of a compaction between two calls
const UNKNOWN = 30; // height of a call of unknown size

/** The calls as objects by the names of the columns. */
export function readCalls({ columns, calls }) {
  return calls.map((values) => Object.fromEntries(columns.map((name, index) => [name, values[index]])));
}

/** Where each bar begins; a compaction takes room of its own before the first call after it. */
function placeBars(count, folds, width, wholeSession) {
  const pitch = (width - 12 - folds.length * FOLD) / Math.max(1, count);
  const step = wholeSession ? Math.max(0.1, pitch) : Math.max(5, Math.min(22, pitch));
  const bars = new Float64Array(count + 1);
  const foldBars = [];
  let x = 6;
  for (let index = 0; index <= count; index++) {
    while (folds[foldBars.length]?.before <= index) {
      foldBars.push(x);
      x += FOLD;
    }
    bars[index] = x;
    x += step;
  }
  return { bars, foldBars, step, bar: step > 3 ? step - Math.max(1, Math.min(4, step * 0.18)) : step, width: Math.max(width, bars[count] + 12) };
}

/** The scale: the largest call, and the budget unless it is so large that the bars would vanish. */
function scaleOf(calls) {
  const most = calls.reduce((top, call) => Math.max(top, call.tokens ?? 0), 1);
  const budget = calls.reduce((top, call) => Math.max(top, call.budget ?? 0), 0);
  const top = Math.max(most, Math.min(budget, most * 2.5)) * 1.04;
  const unit = 10 ** Math.floor(Math.log10(top / 4));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((size) => size >= top / 4);
  return { top, ticks: Array.from({ length: Math.floor(top / step) }, (_, index) => (index + 1) * step), y: (value) => tenth(FLOOR - (PLOT * value) / top) };
}

function tenth(value) {
  return Math.round(value * 10) / 10;
}

const MARKS_DRAWN = {
  error: (x, y) => `M${x - 3.5} ${y - 3.5}l7 7m0-7l-7 7`,
  retry: (x, y) => `M${x - 3.5} ${y}a3.5 3.5 0 1 1 3.5 3.5`,
  incomplete: (x, y) => `M${x - 4} ${y}h2m1 0h2m1 0h2`,
  erased: (x, y) => `M${x - 3.5} ${y - 3.5}h7v7h-7z`,
};

/** The paths of all calls by class. */
function draw(calls, parts, hidden, place, scale) {
  const paths = new Map(parts.map((part) => [partClass(part), []]));
  for (const name of ["sizeless", "budgetline", "seam", "seamhead", ...Object.keys(MARKS_DRAWN).map((mark) => `mark ${mark}`)]) paths.set(name, []);
  const add = (name, path) => paths.get(name).push(path);
  const stacks = parts.map((part) => (hidden.has(part) ? null : paths.get(partClass(part))));
  const wide = tenth(place.bar);
  let drawing = false; // a budget line
  calls.forEach((call, index) => {
    const x = tenth(place.bars[index]);
    let base = FLOOR;
    if (call.tokens == null || !call.split) add("sizeless", `M${x} ${FLOOR}v-${UNKNOWN}h${wide}v${UNKNOWN}z`);
    else {
      call.split.forEach((value, part) => {
        const high = (value * PLOT) / scale.top;
        if (!high || !stacks[part]) return;
        // A hair of background separates the parts.
        stacks[part].push(`M${x} ${tenth(base)}v-${tenth(high > 3 ? high - 0.8 : high + 0.1)}h${wide}V${tenth(base)}z`);
        base -= high;
      });
    }
    if (call.budget == null || call.budget > scale.top) drawing = false;
    else {
      add("budgetline", `${drawing ? "V" : `M${x} `}${scale.y(call.budget)}H${tenth(x + place.step)}`);
      drawing = true;
    }
    if (call.break) {
      add("seam", `M${x} ${TOP - 7}V${FLOOR}`);
      add("seamhead", `M${x} ${TOP - 5}l-4-5 4-5 4 5z`);
    }
    if (Object.hasOwn(MARKS_DRAWN, call.mark)) add(`mark ${call.mark}`, MARKS_DRAWN[call.mark](tenth(x + wide / 2), FLOOR + 9));
  });
  return [...paths].map(([name, pieces]) => pieces.length > 0 && html`<path key=${name} class=${name} d=${pieces.join("")} />`);
}

function drawNumbers(count, place) {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((size) => size * place.step >= 60) ?? 5000;
  return Array.from({ length: Math.floor(count / step) }, (_, index) => (index + 1) * step).map((label) => html`<text key=${label} x=${tenth(place.bars[label - 1] + place.bar / 2)} y=${HEIGHT - 4} text-anchor="middle">${label}</text>`);
}

export function describeCall(call, index, total) {
  return [`call ${number(index + 1)} of ${number(total)}: ${call.tokens == null ? "size unknown" : `${number(call.tokens)} tokens`}`, call.break && `cache break: ${visible(call.break)}`, call.mark && markWords(call.mark)].filter(Boolean).join(", ");
}

/** The figures of the call under the pointer. Its state is its own, so that the bars are not rendered again. */
function Tip({ control, calls, parts }) {
  const [at, show] = useState(null);
  control.current = show;
  const call = at && calls[at.index];
  if (!call) return null;
  const rows = parts.map((part, index) => [part, call.split?.[index]]).filter(([, value]) => value).reverse();
  return html`<div class="tip" aria-hidden="true" style=${{ left: `${at.left}px` }}>
    <p><b>Call ${number(at.index + 1)}</b><span>${age(call.at)}</span></p><p><b class="num">${call.tokens == null ? "size unknown" : number(call.tokens)}</b><span>${call.budget ? `of ${short(call.budget)}` : ""}</span></p>
    <table>${rows.map(([part, value]) => html`<tr key=${part}><td><i class=${`swatch ${partClass(part)}`}></i>${spaced(part)}</td><td class="num">${number(value)}</td></tr>`)}</table>
    ${call.break && html`<p class="bad">◆ ${visible(call.break)}${call.lost ? ` (${short(call.lost)} read again)` : ""}</p>`}${call.mark && html`<p class="bad">${markWords(call.mark)}</p>`}</div>`;
}

export function Strip({ calls, parts, folds, selected, compared, hidden, wholeSession, select, compare, openFold }) {
  const scroller = useRef();
  const hover = useRef();
  const tip = useRef();
  const [width, setWidth] = useState(0);
  const total = calls.length;
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(scroller.current.clientWidth));
    observer.observe(scroller.current);
    setWidth(scroller.current.clientWidth);
    return () => observer.disconnect();
  }, []);
  const scale = useMemo(() => scaleOf(calls), [calls]);
  const place = useMemo(() => placeBars(total, folds, width, wholeSession), [total, folds, width, wholeSession]);
  const drawn = useMemo(() => width > 0 && html`
    ${scale.ticks.map((tick) => html`<path key=${tick} class="grid" d=${`M0 ${scale.y(tick)}H${place.width}`} />`)}
    ${place.foldBars.map((x, index) => html`<path key=${x} class=${`fold ${folds[index].undone ? "undone" : ""}`} d=${`M${tenth(x - 1)} ${TOP - 6}h${FOLD - 2}V${FLOOR}h-${FOLD - 2}z`} />`)}
    ${draw(calls, parts, hidden, place, scale)}<path class="grid strong" d=${`M0 ${FLOOR + 0.5}H${place.width}`} />${drawNumbers(total, place)}`, [calls, parts, folds, hidden, place, scale]);

  useLayoutEffect(() => { // keep the selected bar in view, away from the edges
    const edge = Math.min(80, width / 4);
    const x = place.bars[selected];
    const left = scroller.current.scrollLeft;
    if (x < left + edge) scroller.current.scrollLeft = x - edge;
    else if (x + place.step > left + width - edge) scroller.current.scrollLeft = x + place.step - width + edge;
  }, [selected, place]);

  const xOf = (event) => event.clientX - scroller.current.getBoundingClientRect().left + scroller.current.scrollLeft;
  const barOf = (event) => {
    const after = place.bars.findIndex((x) => x > xOf(event));
    return after < 0 ? total - 1 : Math.max(0, after - 1);
  };
  const showTip = (index) => {
    const x = place.bars[index] - scroller.current.scrollLeft;
    tip.current({ index, left: x > width / 2 ? x - 170 : x + 76 });
    hover.current.setAttribute("x", tenth(place.bars[index] - 1));
    hover.current.setAttribute("visibility", "visible");
  };
  const hideTip = () => {
    tip.current(null);
    hover.current.setAttribute("visibility", "hidden");
  };
  const press = (event) => {
    const fold = place.foldBars.findIndex((start) => xOf(event) >= start - 1 && xOf(event) < start + FOLD - 3);
    if (event.button) return;
    if (fold >= 0) openFold(folds[fold]);
    else (event.shiftKey ? compare : select)(barOf(event));
  };
  const move = (event) => {
    if (event.buttons === 1 && event.pointerType === "mouse" && !event.shiftKey) select(barOf(event));
    showTip(barOf(event));
  };
  const focused = () => scroller.current.matches(":focus-visible") && selected >= 0 && showTip(selected);
  useEffect(focused, [selected, place]);

  const budget = calls[selected]?.budget;
  const frame = (index, name, space) => width > 0 && index >= 0 && html`<rect class=${name} x=${tenth(place.bars[index] - space)} y="2" width=${tenth(Math.max(3, place.bar + 2 * space))} height=${FLOOR} rx="2" />`;
  return html`<div class="strip"><svg class="axis" width="56" height=${HEIGHT} aria-hidden="true">${scale.ticks.map((tick) => html`<text key=${tick} x="48" y=${scale.y(tick) + 4} text-anchor="end">${short(tick)}</text>`)}
      ${budget != null && html`<text class="budgetlabel" x="48" y=${Math.max(10, scale.y(budget) + 4)} text-anchor="end">${budget > scale.top ? "↑ " : ""}${short(budget)}</text>`}</svg>
    <div ref=${scroller} class="scroller" tabindex="0" role="slider" aria-label="Calls of this session" aria-valuemin="1" aria-valuemax=${total} aria-valuenow=${selected + 1} aria-valuetext=${selected < 0 ? "no call" : describeCall(calls[selected], selected, total)}
      onPointerDown=${press} onPointerMove=${move} onPointerLeave=${hideTip} onFocus=${focused} onBlur=${hideTip} onScroll=${hideTip}>
      <svg class="bars" width=${place.width} height=${HEIGHT} aria-hidden="true"><defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path class="hatchline" d="M1 0v5" /></pattern></defs>
        ${frame(compared, "comparedbar", 1)}${frame(selected, "selectedbar", 1.5)}${drawn}<rect ref=${hover} class="hoverbar" y=${TOP - 4} width=${tenth(Math.max(3, place.bar + 2))} height=${PLOT + 4} visibility="hidden" />
        ${width > 0 && selected >= 0 && html`<path class="pointer" d=${`M${tenth(place.bars[selected] + place.bar / 2)} ${FLOOR + 2}l-5 7h10z`} />`}</svg></div>
    <${Tip} control=${tip} calls=${calls} parts=${parts} /></div>`;
}

/** The parts with the tokens of the selected call; pressing one takes it out of the bars. */
export function Legend({ parts, call, calls, hidden, toggle }) {
  const present = useMemo(() => parts.map((_, index) => calls.some(({ split }) => split?.[index])), [calls]);
  return html`<ul class="legend" aria-label="Parts of a call">${parts.map((part, index) => present[index] && html`<li key=${part}><button aria-pressed=${!hidden.has(part)} title=${partHint(part)} onClick=${() => toggle(part)}><i class=${`swatch ${partClass(part)}`}></i>${spaced(part)} <span class="num dim">${number(call?.split?.[index])}</span></button></li>`)}</ul>`;
}

/** A small strip without interaction. */
export function MiniStrip({ strip, label }) {
  const sums = strip.splits.map((split) => (split ?? []).reduce((sum, value) => sum + value, 0));
  const top = Math.max(1, ...sums) / 36;
  const paths = strip.parts.map(() => "");
  strip.splits.forEach((split, index) => {
    let base = 36;
    split?.forEach((value, part) => {
      if (value) paths[part] += `M${index * 4} ${tenth(base)}v-${tenth(value / top)}h3.2V${tenth(base)}z`;
      base -= value / top;
    });
  });
  return html`<svg class="ministrip" role="img" aria-label=${label} width=${sums.length * 4} height="36" viewBox=${`0 0 ${Math.max(1, sums.length * 4)} 36`} preserveAspectRatio="none">${paths.map((path, index) => path && html`<path key=${index} class=${partClass(strip.parts[index])} d=${path} />`)}</svg>`;
}
