// A list that renders only the rows near the viewport. All rows have one height except the open ones, which are
// measured: so the place of row 80,000 is known without rendering those before it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

const MARGIN = 700; // pixels rendered above and below the viewport
const WHOLE = 200; // up to this many rows are all rendered, each as high as it wants

/** `row(index)` renders a row; `opened` holds the indexes of rows that are higher than `height`; `seen(first, last)` is
 * called with the rendered rows; `control.current(index, atTop)` scrolls to a row. */
export function List({ count, height, row, opened = new Set(), control, seen, ...rest }) {
  const box = useRef();
  const extras = useRef(new Map()); // by how much an open row is higher
  const [range, setRange] = useState([0, 30]);
  const [, measured] = useState();
  const whole = count <= WHOLE;
  for (const index of extras.current.keys()) if (!opened.has(index)) extras.current.delete(index);
  const offset = (index) => [...extras.current].reduce((sum, [open, extra]) => sum + (open < index ? extra : 0),
    index * height);
  const rowAt = (place) => {
    let low = 0;
    let high = count - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (offset(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const top = () => box.current.getBoundingClientRect().top;

  useLayoutEffect(() => {
    if (whole) return undefined;
    let frame = 0;
    const look = () => {
      frame = 0;
      const next = [rowAt(-top() - MARGIN), rowAt(-top() + innerHeight + MARGIN)];
      setRange((old) => (`${old}` === `${next}` ? old : next));
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
    if (whole || !opened.size) return undefined;
    const observer = new ResizeObserver((entries) => {
      for (const { target } of entries) extras.current.set(Number(target.dataset.row), target.offsetHeight - height);
      measured(`${[...extras.current]}`);
    });
    for (const element of box.current.querySelectorAll(".open")) observer.observe(element);
    return () => observer.disconnect();
  });

  const first = whole ? 0 : Math.min(range[0], count - 1);
  const last = whole ? count - 1 : Math.min(range[1], count - 1);
  useEffect(() => seen?.(first, last), [first, last, count]);
  if (control) {
    control.current = (index, atTop) => {
      const there = box.current.querySelector(`[data-row="${index}"]`)?.getBoundingClientRect();
      const start = there?.top ?? top() + offset(index);
      const covered = document.querySelector(".sticks")?.offsetHeight ?? 0;
      const above = start - covered - 8;
      const below = (there?.bottom ?? start + height) + 8 - innerHeight;
      if (atTop || above < 0) scrollBy(0, above);
      else if (below > 0) scrollBy(0, Math.min(below, above));
    };
  }
  const rows = Array.from({ length: last - first + 1 }, (_, index) => row(first + index));
  return html`<div ...${rest} ref=${box} class=${whole ? "" : "virtual"}
    style=${whole ? {} : { height: `${offset(count)}px` }}><div role="presentation"
    style=${whole ? {} : { transform: `translateY(${offset(first)}px)` }}>${rows}</div></div>`;
}

/** Keys that select rows, as `useKeys` takes them. */
export function rowKeys(count, selected, select, open) {
  const by = (step) => () => count && select(Math.max(0, Math.min(count - 1, selected + step)));
  const keys = { j: by(1), ArrowDown: by(1), k: by(-1), ArrowUp: by(-1), Home: by(-count), End: by(count),
    PageDown: by(10), PageUp: by(-10) };
  return open ? { ...keys, Enter: () => selected >= 0 && selected < count && open(selected) } : keys;
}

/** A set, and the function that puts a value in or takes it out. */
export function useToggled() {
  const [set, setSet] = useState(new Set());
  const toggle = (value) => setSet((old) => (old.has(value) ? new Set([...old].filter((other) => other !== value))
    : new Set([...old, value])));
  return [set, toggle];
}
