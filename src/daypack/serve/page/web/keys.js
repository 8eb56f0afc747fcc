// Keys without modifiers; "?" shows them. Those of a view take precedence over those of the frame around it.
import { html, useEffect, useRef } from "./vendor/preact.js";

const layers = []; // the newest is asked first

function handledByElement({ key, target }) {
  if (target.closest?.("textarea, select, input:not([type=checkbox])")) {
    if (key === "Escape") target.blur();
    return true;
  }
  return (key === "Enter" || key === " ") && target.closest?.("a, button, summary");
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("dialog[open]") || handledByElement(event)) return;
  const layer = layers.findLast(({ current }) => Object.hasOwn(current, event.key));
  if (!layer) return;
  event.preventDefault();
  layer.current[event.key](event);
});

/** Bind keys while a component is shown: {key: function}. */
export function useKeys(keys) {
  const layer = useRef();
  layer.current = keys;
  useEffect(() => {
    layers.push(layer);
    return () => layers.splice(layers.indexOf(layer), 1);
  }, []);
}

const KEYS = {
  Everywhere: [["/", "search all sessions"], ["?", "show these keys"], ["Esc", "back"],
    ["S M H", "Sessions, Memory, Health (with Shift)"]],
  Lists: [["j k ↓ ↑", "next, previous"], ["Home End PgUp PgDn", "move further"], ["Enter", "open"], ["f", "filter"]],
  "Calls of a session": [["j k → ←", "next, previous call"], ["Home End", "first, newest call"],
    ["p", "the pack, as sent"], ["d", "difference to the call before"], ["r", "raw request"],
    ["e", "everything left out"], ["b", "budget: would it fit?"], ["z", "whole session in the strip"]],
  "Parts of a session": [["a", "calls"], ["h", "history"], ["c", "compactions"], ["n", "child agents"], ["t", "tiers"]],
};

export function KeyHelp({ close }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} aria-label="Keys" onClose=${close}
    onClick=${(event) => event.target === dialog.current && close()}><form method="dialog" class="line"><h2>Keys</h2>
    <span class="push"></span><button class="quiet" aria-label="Close">✕</button></form>
    <div class="keygroups">${Object.entries(KEYS).map(([title, keys]) => html`<section key=${title}><h3>${title}</h3>
      <dl>${keys.map(([caps, words]) => html`<div key=${caps}><dt>
      ${caps.split(" ").map((cap) => html`<kbd key=${cap}>${cap}</kbd> `)}</dt><dd>${words}</dd></div>`)}</dl>
      </section>`)}</div></dialog>`;
}
