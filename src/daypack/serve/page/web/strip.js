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
  const room = (width - 12 - folds.length * FOLD) / Math.max(1, count);
  const step = wholeSession ? Math.max(0.1, room) : Math.max(5, Math.min(28, room));
  const bars = new Float64Array(count + 1);
  const foldBars = [];
  let x = 6;
  for (let index = 0; index <= count; index++) {
    for (; folds[foldBars.length]?.before <= index; x += FOLD) foldBars.push(x);
    bars[index] = x;
    x += step;
  }
  return { bars, foldBars, step, bar: step > 3 ? step - Math.max(1, Math.min(4, step * 0.18))
    : step, width: Math.max(width, bars[count] + 12) };
}

function tenth(value) {
  return Math.round(value * 10) / 10;
}

/** The scale: the largest call, and the budget unless it is so large that the bars would vanish. */
function scaleOf(calls) {
  const most = calls.reduce((top, call) => Math.max(top, call.tokens ?? 0), 1);
  const budget = calls.reduce((top, call) => Math.max(top, call.budget ?? 0), 0);
  const top = Math.max(most, Math.min(budget, most * 2.5)) * 1.04;
  const unit = 10 ** Math.floor(Math.log10(top / 4));
  const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= top / 4);
  return { top, ticks: multiples(step, top), y: (value) => tenth(FLOOR - (PLOT * value) / top) };
}

function multiples(step, top) {
  return Array.from({ length: Math.floor(top / step) }, (_, index) => (index + 1) * step);
}

const MARK_PATHS = { error: "m-3-3l7 7m0-7l-7 7", retry: "m-3 0a3.5 3.5 0 1 1 3.5 3.5",
  incomplete: "m-4 0h2m1 0h2m1 0h2", erased: "m-3-3h7v7h-7z" };

/** One path for each class of things in the strip. */
function draw(calls, parts, hidden, place, scale) {
  const paths = new Map();
  const add = (name, path) => paths.get(name)?.push(path) ?? paths.set(name, [path]);
  const classes = parts.map((part) => !hidden.has(part) && partClass(part));
  const wide = tenth(place.bar);
  let lined = false; // the budget line continues
  calls.forEach(({ tokens, split, budget, break: broken, mark }, index) => {
    const x = tenth(place.bars[index]);
    let base = FLOOR;
    if (tokens == null || !split) add("sizeless", `M${x} ${FLOOR}v-${UNKNOWN}h${wide}v${UNKNOWN}z`);
    else {
      split.forEach((value, part) => {
        const high = (value * PLOT) / scale.top;
        if (!high || !classes[part]) return;
        // A hair of background separates the parts.
        add(classes[part], `M${x} ${tenth(base)}v-${tenth(high > 3 ? high - 0.8
          : high + 0.1)}h${wide}V${tenth(base)}z`);
        base -= high;
      });
    }
    const inside = budget != null && budget <= scale.top;
    if (inside) add("budgetline", `${lined ? "V" : `M${x} `}${scale.y(budget)}H${tenth(x + place.step)}`);
    lined = inside;
    if (broken) add("seam", `M${x} ${TOP - 5}l-4-5 4-5 4 5-4 5V${FLOOR}`);
    if (Object.hasOwn(MARK_PATHS, mark)) add(`mark ${mark}`, `M${tenth(x + wide / 2)} ${FLOOR + 9}${MARK_PATHS[mark]}`);
  });
  // Lines and marks are drawn over the parts, whichever occurred first.
  const order = ["sizeless", ...classes, "budgetline", "seam",
    ...Object.keys(MARK_PATHS).map((mark) => `mark ${mark}`)];
  return order.map((name) => paths.has(name) && html`<path class=${name} d=${paths.get(name).join("")} />`);
}

export function describeCall(call, index, total) {
  return [`call ${number(index + 1)} of ${number(total)}: ${call.tokens == null ? "size unknown"
    : `${number(call.tokens)} tokens`}`, call.break && `cache break: ${visible(call.break)}`,
    call.mark && markWords(call.mark)].filter(Boolean).join(", ");
}

/** The figures of the call under the pointer. Its state is its own, so that the bars are not rendered again. */
function Tip({ control, calls, parts }) {
  const [at, show] = useState(null);
  control.current = show;
  const call = calls[at?.index];
  if (!call) return null;
  return html`<div class="tip" aria-hidden="true" style=${{ left: `${at.left}px` }}><p><b>Call ${number(at.index + 1)}
    </b><span>${age(call.at)}</span></p><p><b class="num">${call.tokens == null ? "size unknown" : number(call.tokens)}
    </b><span>${call.budget && `of ${short(call.budget)}`}</span></p>
    ${parts.map((part, index) => call.split?.[index] > 0 && html`<p><span><i class=${`swatch ${partClass(part)}`}></i>
      ${spaced(part)}</span><span class="num">${number(call.split[index])}</span></p>`).reverse()}
    ${call.break && html`<p class="bad">◆ ${visible(call.break)}${call.lost ? ` (${short(call.lost)} read again)` : ""}
      </p>`}${call.mark && html`<p class="bad">${markWords(call.mark)}</p>`}</div>`;
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
  const drawn = useMemo(() => {
    const numbers = multiples([1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => size * place.step >= 60) ?? 2000,
      total);
    return html`<path class="grid" d=${[...scale.ticks.map((tick) => scale.y(tick)),
      FLOOR + 0.5].map((y) => `M0 ${y}H${place.width}`).join("")} />
      ${place.foldBars.map((x, index) => html`<path class=${`fold ${folds[index].undone ? "undone" : ""}`}
        d=${`M${tenth(x - 1)} ${TOP - 6}h${FOLD - 2}V${FLOOR}h-${FOLD - 2}z`} />`)}
        ${draw(calls, parts, hidden, place, scale)}
      ${numbers.map((label) => html`<text x=${tenth(place.bars[label - 1] + place.bar / 2)} y=${HEIGHT - 4}
        text-anchor="middle">${label}</text>`)}`;
  }, [calls, parts, folds, hidden, place, scale]);

  useLayoutEffect(() => { // keep the selected bar in view, away from the edges
    const edge = Math.min(80, width / 4);
    const x = place.bars[selected];
    const left = scroller.current.scrollLeft;
    if (x < left + edge) scroller.current.scrollLeft = x - edge;
    else if (x + place.step > left + width - edge) scroller.current.scrollLeft = x + place.step - width + edge;
  }, [selected, place]);

  const xOf = (event) => event.clientX - scroller.current.getBoundingClientRect().left + scroller.current.scrollLeft;
  const barAt = (x) => {
    const after = place.bars.findIndex((start) => start > x);
    return after < 0 ? total - 1 : Math.max(0, after - 1);
  };
  const showTip = (index) => {
    const x = place.bars[index] - scroller.current.scrollLeft;
    tip.current({ index, left: x > width / 2 ? x - 170 : x + 76 });
    hover.current.setAttribute("d", `M${tenth(place.bars[index] - 1)} ${TOP - 4}h${tenth(Math.max(3,
      place.bar + 2))}V${FLOOR}h-${tenth(Math.max(3, place.bar + 2))}z`);
  };
  const hideTip = () => {
    tip.current(null);
    hover.current?.setAttribute("d", ""); // the focus is also lost when the strip is removed
  };
  const press = (event) => {
    const x = xOf(event);
    const fold = place.foldBars.findIndex((start) => x >= start - 1 && x < start + FOLD - 3);
    if (event.button) return;
    if (fold >= 0) openFold(folds[fold]);
    else (event.shiftKey ? compare : select)(barAt(x));
  };
  const move = (event) => {
    const index = barAt(xOf(event));
    if (event.buttons === 1 && event.pointerType === "mouse" && !event.shiftKey) select(index);
    showTip(index);
  };
  const focused = () => scroller.current.matches(":focus-visible") && selected >= 0 && showTip(selected);
  useEffect(focused, [selected, place]);

  const budget = calls[selected]?.budget;
  const frame = (index, name) => index >= 0 && html`<rect class=${name} x=${tenth(place.bars[index] - 1.5)} y="2"
    width=${tenth(Math.max(3, place.bar + 3))} height=${FLOOR} rx="2" />`;
  return html`<div class="strip"><svg class="axis" width="56" height=${HEIGHT} aria-hidden="true">
    ${scale.ticks.map((tick) => html`<text x="48" y=${scale.y(tick) + 4} text-anchor="end">${short(tick)}</text>`)}
    ${budget != null && html`<text class="budgetlabel" x="48" y=${Math.max(10, scale.y(budget) + 4)} text-anchor="end">
    ${budget > scale.top ? "↑ " : ""}${short(budget)}</text>`}</svg>
    <div ref=${scroller} class="scroller" tabindex="0" role="slider" aria-label="Calls of this session"
      aria-valuemin="1" aria-valuemax=${total} aria-valuenow=${selected + 1}
      aria-valuetext=${selected < 0 ? "no call" : describeCall(calls[selected], selected, total)} onPointerDown=${press}
      onPointerMove=${move} onPointerLeave=${hideTip} onFocus=${focused} onBlur=${hideTip} onScroll=${hideTip}>
      <svg class="bars" width=${place.width} height=${HEIGHT} aria-hidden="true">
        <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <path class="hatchline" d="M1 0v5" /></pattern>
        ${width > 0 && drawn}</svg><svg class="over" width=${place.width} height=${HEIGHT} aria-hidden="true">
          ${width > 0 && html`${frame(compared, "comparedbar")}${frame(selected, "selectedbar")}`}
          <path ref=${hover} class="hoverbar" /></svg></div><${Tip} control=${tip} calls=${calls} parts=${parts} />
          </div>`;
}

/** The parts with the tokens of the selected call; pressing one takes it out of the bars. */
export function Legend({ parts, call, calls, hidden, toggle }) {
  const present = useMemo(() => parts.map((_, index) => calls.some(({ split }) => split?.[index])), [calls]);
  return html`<ul class="legend" aria-label="Parts of a call">
    ${parts.map((part, index) => present[index] && html`<li><button aria-pressed=${!hidden.has(part)}
    title=${partHint(part)} onClick=${() => toggle(part)}><i class=${`swatch ${partClass(part)}`}></i>
    ${spaced(part)} <span class="num dim">${number(call?.split?.[index])}</span></button></li>`)}</ul>`;
}

/** A strip without interaction: `splits` are the tokens of each call by part. */
export function MiniStrip({ parts, splits, label }) {
  const calls = splits.map((split) => ({ split, tokens: split?.reduce((sum, value) => sum + value, 0) }));
  const place = placeBars(calls.length, [], 12 + calls.length * Math.max(4, Math.min(14, 600 / calls.length)), true);
  return html`<svg class="ministrip" role="img" aria-label=${label} width=${place.width} height="40"
    viewBox=${`0 ${TOP} ${place.width} ${PLOT}`} preserveAspectRatio="none">
    ${draw(calls, parts, new Set(), place, scaleOf(calls))}</svg>`;
}
