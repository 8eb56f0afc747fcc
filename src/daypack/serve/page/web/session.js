// The page of a session: its facts, the strip, and below it the selected call or another part.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { CallBody, CallHead } from "./call.js";
import { ChildTree } from "./children.js";
import { Choice, Facts, Waiting } from "./pieces.js";
import { CompactionList } from "./compactions.js";
import { Difference } from "./diff.js";
import { Here, ask, home, useHere, useLive, useSettled } from "./data.js";
import { History } from "./history.js";
import { Legend, Strip, describeCall, readCalls } from "./strip.js";
import { Tiers } from "./tiers.js";
import { address, go, replaceAddress } from "./router.js";
import { age, counted, moment, number, short, spaced } from "./words.js";
import { dots, line } from "./text.js";
import { useKeys } from "./keys.js";
import { useToggled } from "./list.js";

const AGAIN = 8; // newest calls that are read again: replies and cache figures arrive after a call
const SETTLE = 70; // milliseconds; a held key moves along the strip without asking for every call

/** The strip's data; after live events only its end is read again. */
function useSession(here) {
  const [{ value, error }, setState] = useState({});
  const [wanted, setWanted] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    const known = value?.calls ?? [];
    ask("session", { ...here, from: Math.max(0, known.length - AGAIN) || null }, stop.signal).then(
      (answer) => setState({ value: { ...answer, calls: [...known.slice(0, answer.from), ...readCalls(answer)] } }),
      (problem) => stop.signal.aborted || setState({ value, error: problem }),
    );
    return () => stop.abort();
  }, [wanted]);
  useLive(here, (kind, { events, messages }) => {
    // The first event of a connection repeats what was just loaded.
    const same = events === value?.facts.events && messages === value?.facts.messages;
    if (value && kind !== "sessions" && !same) setWanted(wanted + 1);
  });
  return { value, error };
}

/** What the signs in the strip mean, as far as they occur. */
function StripNote({ calls, folds }) {
  const signs = [["◆", "cache break", calls.filter((call) => call.break)], ["▒", "compaction", folds],
    ...Object.entries({ error: "✕", retry: "↻", incomplete: "┅", erased: "□" }).map(([mark, sign]) => [sign, mark,
    calls.filter((call) => call.mark === mark)])];
  return html`<p class="stripnote">${signs.map(([sign, name, { length }]) => length > 0 && html`<span>
    <i class=${sign === "▒" ? "" : "bad"}>${sign}</i> ${number(length)} × ${name}</span>`)}
    ${calls.some((call) => call.budget) && html`<span>┄ budget</span>`}</p>`;
}

/** The strip, and below it a call, its raw request, or the difference between two calls. */
function Calls({ value: { calls, parts, folds, facts }, rest, at }) {
  const [hidden, toggle] = useToggled();
  const [wholeSession, setWholeSession] = useState(false);
  const [raw, setRaw] = useState(false);
  const [everything, setEverything] = useState(0);
  const [focus, setFocus] = useState(0);
  const places = useMemo(() => new Map(calls.map((call, index) => [call.event, index])), [calls]);
  const last = calls.length - 1;
  const differing = rest[0] === "diff";
  const named = differing ? rest[2] : rest[0] === "call" && rest[1];
  const before = differing ? rest[1] : "";
  const selected = named ? (places.get(named) ?? -1) : last;
  const row = calls[selected];

  const callAddress = (index) => (index === last ? at() : at("call", calls[index].event));
  const select = (index) => {
    const next = Math.max(0, Math.min(last, index));
    replaceAddress(differing ? at("diff", places.get(before) === next ? "" : before, calls[next].event)
      : callAddress(next));
  };
  const wasLast = useRef(last);
  useEffect(() => { // a selection of the newest call follows when a newer one arrives
    if (last > wasLast.current && named && selected === wasLast.current) select(last);
    wasLast.current = last;
  }, [last]);

  const event = useSettled(row?.event, SETTLE) ?? row?.event;
  const settled = calls[places.get(event)] ?? row;
  const answer = useHere(!differing && event && "call", { event }, `${settled?.reply} ${settled?.input}`);
  const mode = differing ? "diff" : raw ? "raw" : "pack";
  const show = (next) => {
    setRaw(next === "raw");
    if (row) replaceAddress(next === "diff" ? at("diff", "", row.event) : callAddress(selected));
  };
  const by = (step) => () => select(selected + step);
  const zoom = () => setWholeSession(!wholeSession);
  useKeys({
    ...{ j: by(1), ArrowRight: by(1), k: by(-1), ArrowLeft: by(-1), PageDown: by(20), PageUp: by(-20), Home: by(-last),
      End: by(last), z: zoom },
    p: () => show("pack"),
    d: () => show(differing ? "pack" : "diff"),
    r: () => show(mode === "raw" ? "pack" : "raw"),
    e: () => (show("pack"), setEverything(everything + 1)),
    b: () => (show("pack"), setFocus(focus + 1)),
    ...(mode !== "pack" && { Escape: () => show("pack") }),
  });
  const note = useMemo(() => html`<${StripNote} calls=${calls} folds=${folds} />`, [calls]);
  // While a key is held, the call below the strip stays as it is.
  const budget = rest[0] === "fit" && Number(rest[1]);
  const body = useMemo(
    () => html`<${CallBody} ...${{ answer, raw, everything, focus, facts, budget, row: settled }} />`,
    [answer.value, answer.error, answer.fresh, raw, everything, focus, settled, budget],
  );
  if (!calls.length) return html`<p class="empty">No calls of this session are recorded.</p>`;
  const compared = differing ? (places.get(before) ?? selected - 1) : -1;
  const compare = (index) => row && replaceAddress(at("diff", calls[index].event, row.event));
  const openFold = (fold) => go(at("compactions", fold.event));
  const strip = { calls, parts, folds, selected, compared, hidden, wholeSession, select, compare, openFold };
  const step = (words, sign, to, end) => html`<button class="small" aria-label=${words} disabled=${selected === end}
    onClick=${by(to)}>${sign}</button>`;
  return html`<section aria-label="Calls"><div class="line"><${Legend}
    ...${{ parts, calls, hidden, toggle, call: row }} /><button class="small" aria-pressed=${wholeSession}
    onClick=${zoom}>Whole session<kbd aria-hidden="true">z</kbd></button></div><${Strip} ...${strip} />${note}
    ${!row ? html`<p class="empty">This session has no call ${line(named)}.</p>`
      : html`<${CallHead} ...${{ row, parts, index: selected, total: calls.length, before: calls[selected - 1],
      call: !differing && answer.fresh && answer.value }}><${Choice} label="Show"
      options=${[["pack", "Pack", "p"], ["diff", "Difference", "d"], ["raw", "Raw request", "r"]]} chosen=${mode}
      choose=${show}>${step("Previous call", "←", -1, 0)}${step("Next call", "→", 1, last)}<//><//>
      ${differing ? html`<${Difference} ...${{ calls, before, after: event,
        choose: (other) => replaceAddress(at("diff", other, row.event)) }} />` : body}`}
        <p class="offscreen" aria-live="polite">${row && describeCall(row, selected, calls.length)}</p></section>`;
}

export function SessionPage({ agent, session, rest }) {
  const here = useMemo(() => ({ agent, session }), []);
  const state = useSession(here);
  const { facts, calls, folds } = state.value ?? {};
  const at = (...more) => address("s", agent, session, ...more);
  const sections = { calls: [at(), calls?.length], history: [at("history", facts?.messages ?? 1), facts?.messages],
    compactions: [at("compactions"), folds?.length], children: [at("children"), facts?.children],
    tiers: [at("tiers"), facts?.protocol ? "" : null] };
  const section = Object.hasOwn(sections, rest[0]) ? rest[0] : "calls";
  const to = (name) => () => go(sections[name][0]);
  useKeys({ a: to("calls"), h: to("history"), c: to("compactions"), n: to("children"), t: to("tiers"),
    Escape: () => go(section === "calls" ? "#/" : at()) });
  const title = line(facts?.title) || line(session);
  useEffect(() => {
    document.title = `${title} · daypack`;
  }, [title]);
  if (!facts) return html`<${Waiting} answer=${state} />`;
  const { memory, parent } = facts;
  const known = { Model: facts.model, Messages: number(facts.messages), Tokens: short(facts.tokens),
    Budget: facts.budget_tokens && number(facts.budget_tokens), Tokenizer: facts.tokenizer,
    Memory: memory && (home.exported ? line(memory.title || memory.id)
      : html`<a href=${address("memory", memory.id)}>${line(memory.title || memory.id)}</a>`),
    Pins: facts.pins?.join(", "), Parent: parent && html`<a href=${address("s", agent, parent)}>${line(parent)}</a>`,
    State: facts.state !== "active" && facts.state, Changed: age(facts.updated_at) };
  return html`<${Here.Provider} value=${here}><header><h1 dir="auto">${title}</h1>
    <p class="meta">${dots(facts.program || agent, facts.project, session, facts.observed && !facts.own && "observed")}
    </p><${Facts} row facts=${known} /></header>
    <nav class="sections" aria-label="Parts of this session">${Object.entries(sections).map(([name,
      [href, count]]) => count != null && html`<a href=${href} aria-current=${name === section ? "page" : null}>
      ${spaced(name)} <span class="dim num">${count !== "" && number(count)}</span></a>`)}</nav>
    ${section === "calls" ? html`<${Calls} value=${state.value} rest=${rest} at=${at} />` : section === "history"
      ? html`<${History} total=${facts.messages} target=${Number(rest[1]) || null} at=${at} />`
      : section === "compactions" ? html`<${CompactionList} at=${at} chosen=${rest[1]} folds=${folds} />`
      : section === "children" ? html`<${ChildTree} facts=${facts} />`
      : html`<${Tiers} at=${at} chosen=${rest[1]} facts=${facts} />`}
    ${home.exported && html`<p
      class="note">Exported${home.start.exported_at && ` on ${moment(home.start.exported_at)}`}:
      ${" "}${home.start.calls < calls.length ? `the newest ${number(home.start.calls)} of ` : ""}${counted(calls.length,
      "call")}, ${counted(facts.messages, "message")}. <code>daypack export --html --calls 0</code> exports all,
      ${" "}<code>daypack view</code> shows everything, live.</p>`}<//>`;
}
