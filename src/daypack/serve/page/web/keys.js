// Keys without modifiers, shown by "?". A view's keys take precedence over those of the frame around it.
import { html, useEffect, useRef } from "./vendor/preact.js";

const layers = []; // the newest is asked first

function isTyping(target) {
  return target instanceof HTMLElement && (/^(TEXTAREA|SELECT)$/.test(target.tagName) || (target.tagName === "INPUT" && target.type !== "checkbox"));
}

/** Enter and space press the button or link that has the focus, not the selected row. */
function pressesSomething(event) {
  return (event.key === "Enter" || event.key === " ") && event.target.closest?.("a, button, summary, input, select");
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (pressesSomething(event)) return;
  for (let index = layers.length - 1; index >= 0; index--) {
    const keys = layers[index].current;
    if (!keys || !Object.hasOwn(keys, event.key)) continue;
    event.preventDefault();
    keys[event.key](event);
    return;
  }
});

/** Bind keys while a component is shown: {key: function}. */
export function useKeys(keys) {
  const layer = useRef(keys);
  layer.current = keys;
  useEffect(() => {
    layers.push(layer);
    return () => layers.splice(layers.indexOf(layer), 1);
  }, []);
}

const KEYS = [
  ["Everywhere", [["/", "search all sessions"], ["?", "show these keys"], ["Esc", "back"], ["S  M  H", "Sessions, Memory, Health (with Shift)"]]],
  ["Lists", [["j  k  ↓  ↑", "next, previous"], ["Home  End  PgUp  PgDn", "move further"], ["Enter", "open"], ["f", "filter"]]],
  ["Calls of a session", [["j  k  →  ←", "next, previous call"], ["Home  End", "first, newest call"], ["d", "difference to the call before"], ["e", "everything left out"], ["r", "raw request"], ["b", "budget: would it fit?"], ["p", "the pack, as sent"], ["z", "whole session or wide bars"]]],
  ["Parts of a session", [["h", "history"], ["c", "compactions"], ["n", "child agents"], ["t", "tiers"], ["a", "calls"]]],
];

export function KeyHelp({ open, close }) {
  const dialog = useRef(null);
  useEffect(() => {
    if (open && !dialog.current.open) dialog.current.showModal();
    if (!open && dialog.current.open) dialog.current.close();
  }, [open]);
  return html`<dialog ref=${dialog} class="keyhelp" aria-labelledby="keys-title" onClose=${close} onClick=${(event) => event.target === dialog.current && close()}>
    <form method="dialog"><h2 id="keys-title">Keys</h2><button class="quiet" aria-label="Close">✕</button></form>
    <div class="keygroups">${KEYS.map(([title, keys]) => html`<section key=${title}><h3>${title}</h3>
      <dl>${keys.map(([key, words]) => html`<div key=${key}><dt>${key.split("  ").map((cap) => html`<kbd key=${cap}>${cap}</kbd>`)}</dt><dd>${words}</dd></div>`)}</dl></section>`)}</div>
  </dialog>`;
}
