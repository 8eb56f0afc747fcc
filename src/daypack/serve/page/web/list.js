// A list that renders only the rows near the viewport. All rows have one height except the open ones, which are
// measured: so the place of row 80,000 is known without rendering those before it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

const MARGIN = 700; // pixels rendered above and below the viewport
const WHOLE = 200; // up to this many rows are all rendered, each as high as it wants

/** The lower edge of what covers the top of the viewport. */
function covered() {
  return Math.max(0, ...Array.from(document.querySelectorAll(".sticks"), (element) => Math.min(innerHeight / 2, element.offsetHeight))) + 8;
}

/** `row(index)` renders a row; `opened` holds the indexes of rows that are higher than `height`; `seen(first, last)` is
 * called for the rendered rows; `control.current(index, atTop)` scrolls to a row. */
export function List({ count, height, row, opened = new Set(), control, seen, ...rest }) {
  const box = useRef();
  const extras = useRef(new Map()); // by how much an open row is higher
  const [range, setRange] = useState([0, 30]);
  const [, measured] = useState(0);
  const whole = count <= WHOLE;
  for (const index of extras.current.keys()) if (!opened.has(index)) extras.current.delete(index);
  const offset = (index) => [...extras.current].reduce((sum, [open, extra]) => sum + (open < index ? extra : 0), index * height);
  const rowAt = (place) => {
    let low = 0;
    let high = Math.max(0, count - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (offset(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  };

  useLayoutEffect(() => {
    if (whole) return undefined;
    let frame = 0;
    const look = () => {
      frame = 0;
      const top = -(box.current?.getBoundingClientRect().top ?? 0);
      const next = [rowAt(top - MARGIN), rowAt(top + innerHeight + MARGIN)];
      setRange((old) => (String(old) === String(next) ? old : next));
    };
    const soon = () => (frame ||= requestAnimationFrame(look));
    look();
    for (const event of ["scroll", "resize"]) addEventListener(event, soon, { passive: true });
    return () => {
      cancelAnimationFrame(frame);
      for (const event of ["scroll", "resize"]) removeEventListener(event, soon);
    };
  }, [count, height, whole]);

  useLayoutEffect(() => {
    if (whole || !opened.size) return undefined;
    const observer = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        const extra = target.offsetHeight - height;
        if (extras.current.get(Number(target.dataset.row)) !== extra) measured((times) => times + 1);
        extras.current.set(Number(target.dataset.row), extra);
      }
    });
    for (const element of box.current.querySelectorAll("[data-row].open")) observer.observe(element);
    return () => observer.disconnect();
  });

  const first = whole ? 0 : Math.min(range[0], count - 1);
  const last = whole ? count - 1 : Math.min(range[1], count - 1);
  useEffect(() => seen?.(first, last), [first, last, count]);
  if (control) {
    control.current = (index, atTop) => {
      const there = box.current.querySelector(`[data-row="${index}"]`)?.getBoundingClientRect();
      const top = there?.top ?? box.current.getBoundingClientRect().top + offset(index);
      const below = (there?.bottom ?? top + height) + 8 - innerHeight;
      const above = top - covered();
      if (atTop || above < 0) scrollBy(0, above);
      else if (below > 0) scrollBy(0, Math.min(below, above));
    };
  }
  const rows = Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => row(first + index));
  return html`<div ...${rest} ref=${box} class=${`${whole ? "" : "virtual"} ${rest.class ?? ""}`} style=${whole ? {} : { height: `${offset(count)}px` }}>
    <div role="presentation" style=${whole ? {} : { transform: `translateY(${offset(first)}px)` }}>${rows}</div></div>`;
}

/** Keys that select rows, as `useKeys` takes them. */
export function rowKeys(count, selected, select, open) {
  const by = (step) => () => count && select(Math.max(0, Math.min(count - 1, selected + step)));
  const keys = { j: by(1), ArrowDown: by(1), k: by(-1), ArrowUp: by(-1), Home: by(-count), End: by(count), PageDown: by(10), PageUp: by(-10) };
  return open ? { ...keys, Enter: () => selected >= 0 && selected < count && open(selected) } : keys;
}

/** A set of open rows, and the function that opens or closes one. */
export function useOpened() {
  const [opened, setOpened] = useState(new Set());
  const flip = (index) => setOpened((old) => {
    const next = new Set(old);
    next.delete(index) || next.add(index);
    return next;
  });
  return [opened, flip];
}
