// A list that renders only the rows near the viewport. All rows have one height except the open ones, whose extra
// height is measured: so the place of row 80,000 is known without rendering those before it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

const MARGIN = 700; // pixels rendered above and below the viewport
const WHOLE = 200; // up to this many rows are all rendered, each as high as it wants

/** What covers the top of the viewport, so that a row is not scrolled under it. */
function covered() {
  let bottom = 0;
  for (const element of document.querySelectorAll(".sticks")) bottom = Math.max(bottom, element.getBoundingClientRect().bottom);
  return Math.min(bottom, innerHeight / 2) + 8;
}

export function scrollToRow(box, index, height, extras, block = "near") {
  const row = box.querySelector(`[data-row="${index}"]`);
  const above = box.getBoundingClientRect().top;
  const top = row ? row.getBoundingClientRect().top : above + offsetOf(index, height, extras);
  const bottom = row ? row.getBoundingClientRect().bottom : top + height;
  const first = covered();
  if (block === "start" || top < first) scrollBy(0, top - first);
  else if (bottom > innerHeight) scrollBy(0, Math.min(bottom - innerHeight + 8, top - first));
}

function offsetOf(index, height, extras) {
  let offset = index * height;
  for (const [opened, extra] of extras) if (opened < index) offset += extra;
  return offset;
}

function indexAt(offset, count, height, extras) {
  let low = 0;
  let high = Math.max(0, count - 1);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsetOf(middle, height, extras) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** `row(index)` renders a row; `opened` holds the indexes of rows higher than `height`; `control.current` gets `show(index)`. */
export function List({ count, height, row, opened, control, seen, ...rest }) {
  const box = useRef(null);
  const extras = useRef(new Map());
  const [range, setRange] = useState([0, 30]);
  const [, remeasure] = useState(0);
  const whole = count <= WHOLE;
  for (const index of extras.current.keys()) if (!opened?.has(index)) extras.current.delete(index);

  useLayoutEffect(() => {
    if (whole) return undefined;
    let frame = 0;
    const look = () => {
      frame = 0;
      if (!box.current) return;
      const top = -box.current.getBoundingClientRect().top;
      const first = indexAt(top - MARGIN, count, height, extras.current);
      const last = indexAt(top + innerHeight + MARGIN, count, height, extras.current);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    };
    const soon = () => (frame ||= requestAnimationFrame(look));
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, [count, height, whole]);

  useLayoutEffect(() => {
    if (whole || !opened?.size) return undefined;
    const observer = new ResizeObserver((entries) => {
      let changed = false;
      for (const { target } of entries) {
        const extra = target.offsetHeight - height;
        changed ||= extras.current.get(Number(target.dataset.row)) !== extra;
        extras.current.set(Number(target.dataset.row), extra);
      }
      if (changed) remeasure((times) => times + 1);
    });
    for (const element of box.current.querySelectorAll("[data-row].open")) observer.observe(element);
    return () => observer.disconnect();
  });

  const first = whole ? 0 : Math.min(range[0], Math.max(0, count - 1));
  const last = whole ? count - 1 : Math.min(range[1], count - 1);
  useEffect(() => seen?.(first, last), [first, last, count]);
  if (control) {
    control.current = { show: (index, block) => scrollToRow(box.current, index, height, whole ? new Map() : extras.current, block) };
  }

  const rows = [];
  for (let index = first; index <= last; index++) rows.push(row(index));
  const size = whole ? undefined : { height: `${offsetOf(count, height, extras.current)}px` };
  const place = whole ? undefined : { transform: `translateY(${offsetOf(first, height, extras.current)}px)` };
  return html`<div ...${rest} ref=${box} style=${size} class=${`list ${whole ? "whole" : "virtual"} ${rest.class ?? ""}`}>
    <div class="rows" role="presentation" style=${place}>${rows}</div>
  </div>`;
}

/** Select rows with j, k and the arrow keys; returns what `useKeys` takes. */
export function rowKeys(count, selected, select, open) {
  const to = (index) => () => count && select(Math.max(0, Math.min(count - 1, index)));
  return {
    j: to(selected + 1),
    ArrowDown: to(selected + 1),
    k: to(selected - 1),
    ArrowUp: to(selected - 1),
    Home: to(0),
    End: to(count - 1),
    PageDown: to(selected + 12),
    PageUp: to(selected - 12),
    ...(open && { Enter: () => selected >= 0 && selected < count && open(selected) }),
  };
}
