// The page of a session: its facts, the strip, and below it the selected call or another part.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { CallBody, CallHead } from "./call.js";
import { ChildTree } from "./children.js";
import { Choice, Facts, Waiting } from "./pieces.js";
import { CompactionList } from "./compactions.js";
import { Difference } from "./diff.js";
import { Here, ask, home, useHere, useLive } from "./data.js";
import { History } from "./history.js";
import { Legend, Strip, describeCall, readCalls } from "./strip.js";
import { Tiers } from "./tiers.js";
import { address, go, replaceAddress } from "./router.js";
import { age, counted, moment, number, short } from "./words.js";
import { line } from "./text.js";
import { useKeys } from "./keys.js";
import { useOpened } from "./list.js";

const AGAIN = 8; // newest calls that are read again: replies and cache figures arrive after a call
const SETTLE = 70; // milliseconds; a held key moves along the strip without asking for every call

/** The strip's data; after live events only its end is read again. */
function useSession(here) {
  const [state, setState] = useState({});
  const [wanted, setWanted] = useState(0);
  const known = state.value;
  useEffect(() => {
    const stop = new AbortController();
    const from = known ? Math.max(0, known.calls.length - AGAIN) : 0;
    ask("session", { ...here, from: from || null }, stop.signal).then(
      (answer) => setState({ value: { ...answer, calls: [...(known?.calls.slice(0, answer.from) ?? []), ...readCalls(answer)] } }),
      (error) => stop.signal.aborted || setState({ value: known, error }),
    );
    return () => stop.abort();
  }, [wanted]);
  useLive(here, (kind, counts) => {
    const facts = known?.facts;
    // The first event of a connection repeats what was just loaded.
    if (facts && kind !== "sessions" && (counts.events !== facts.events || counts.messages !== facts.messages)) setWanted(wanted + 1);
  });
  return state;
}

function useSettled(value) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLE);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

const SIGNS_OF = { error: "✕", retry: "↻", incomplete: "┅", erased: "□" };

/** What the signs in the strip mean, as far as they occur. */
function StripNote({ calls, folds }) {
  const marks = Object.entries(SIGNS_OF).map(([mark, sign]) => [calls.filter((call) => call.mark === mark).length, sign, `× ${mark}`]);
  const signs = [[calls.filter((call) => call.break).length, "◆", "× cache break"], [folds.length, "▒", "× compaction"], ...marks];
  return html`<p class="stripnote">${signs.map(([count, sign, words]) => count > 0 && html`<span key=${words}><i class=${sign === "▒" ? "dim" : "bad"}>${sign}</i> ${number(count)} ${words}</span>`)}${calls.some((call) => call.budget) && html`<span>┄ budget</span>`}</p>`;
}

/** The strip, and below it a call, its raw request, or the difference between two calls. */
function Calls({ value: { calls, parts, folds, facts }, rest, at }) {
  const [hidden, toggle] = useOpened();
  const [wholeSession, setWholeSession] = useState(false);
  const [raw, setRaw] = useState(false);
  const [everything, setEverything] = useState(0);
  const [focus, setFocus] = useState(0);
  const places = useMemo(() => new Map(calls.map((call, index) => [call.event, index])), [calls]);
  const last = calls.length - 1;
  const differing = rest[0] === "diff";
  const named = differing ? rest[2] : rest[0] === "call" && rest[1];
  const selected = named ? (places.get(named) ?? -1) : last;
  const row = calls[selected];
  const before = differing ? rest[1] : "";

  const callAddress = (index) => (index === last ? at() : at("call", calls[index].event));
  const select = (index) => {
    const next = Math.max(0, Math.min(last, index));
    replaceAddress(differing ? at("diff", places.get(before) === next ? "" : before, calls[next].event) : callAddress(next));
  };
  const wasLast = useRef(last);
  useEffect(() => { // a selection of the newest call follows when a newer one arrives
    if (last > wasLast.current && named && selected === wasLast.current) select(last);
    wasLast.current = last;
  }, [last]);

  const event = useSettled(row?.event) ?? row?.event;
  const settled = calls[places.get(event)] ?? row;
  const answer = useHere(!differing && event && "call", { event }, `${settled?.reply} ${settled?.input}`);
  const mode = differing ? "diff" : raw ? "raw" : "pack";
  const show = (next) => {
    setRaw(next === "raw");
    if (row) replaceAddress(next === "diff" ? at("diff", "", row.event) : callAddress(selected));
  };
  const by = (step) => () => select(selected + step);
  useKeys({
    j: by(1), ArrowRight: by(1), k: by(-1), ArrowLeft: by(-1), PageDown: by(20), PageUp: by(-20), Home: by(-last), End: by(last),
    p: () => show("pack"),
    d: () => show(differing ? "pack" : "diff"),
    r: () => show(mode === "raw" ? "pack" : "raw"),
    e: () => (show("pack"), setEverything(everything + 1)),
    b: () => (show("pack"), setFocus(focus + 1)),
    z: () => setWholeSession(!wholeSession),
  });
  if (!calls.length) return html`<p class="empty">No calls of this session are recorded.</p>`;
  const compare = (index) => row && replaceAddress(at("diff", calls[index].event, row.event));
  return html`<section aria-label="Calls"><div class="line"><${Legend} parts=${parts} call=${row} calls=${calls} hidden=${hidden} toggle=${toggle} /><button class="small" aria-pressed=${wholeSession} onClick=${() => setWholeSession(!wholeSession)}>Whole session<kbd aria-hidden="true">z</kbd></button></div>
    <${Strip} calls=${calls} parts=${parts} folds=${folds} selected=${selected} compared=${differing ? (places.get(before) ?? selected - 1) : -1} hidden=${hidden} wholeSession=${wholeSession} select=${select} compare=${compare} openFold=${(fold) => go(at("compactions", fold.event))} /><${StripNote} calls=${calls} folds=${folds} />
    ${row ? html`<${CallHead} row=${row} index=${selected} total=${calls.length} before=${calls[selected - 1]} call=${!differing && answer.fresh && answer.value} parts=${parts}><${Choice} label="Show" options=${[["pack", "Pack", "p"], ["diff", "Difference", "d"], ["raw", "Raw request", "r"]]} chosen=${mode} choose=${show}><button class="small" aria-label="Previous call" disabled=${!selected} onClick=${by(-1)}>←</button><button class="small" aria-label="Next call" disabled=${selected === last} onClick=${by(1)}>→</button><//><//>
      ${differing ? html`<${Difference} calls=${calls} before=${before} after=${event} choose=${(other) => replaceAddress(at("diff", other, row.event))} />` : html`<${CallBody} answer=${answer} row=${settled} raw=${raw} everything=${everything} focus=${focus} budget=${rest[0] === "fit" && Number(rest[1])} facts=${facts} />`}` : html`<p class="empty">This session has no call ${line(named)}.</p>`}
    <p class="offscreen" aria-live="polite">${row && describeCall(row, selected, calls.length)}</p></section>`;
}

export function SessionPage({ agent, session, rest }) {
  const here = useMemo(() => ({ agent, session }), []);
  const state = useSession(here);
  const at = (...more) => address("s", agent, session, ...more);
  const section = ["history", "compactions", "children", "tiers"].includes(rest[0]) ? rest[0] : "calls";
  const { facts, calls, folds } = state.value ?? {};
  const newest = at("history", facts?.messages ?? 1);
  const leave = () => go(section === "calls" && rest[0] !== "diff" ? "#/" : at());
  useKeys({ a: () => go(at()), h: () => go(newest), c: () => go(at("compactions")), n: () => go(at("children")), t: () => go(at("tiers")), Escape: leave });
  const title = facts && (line(facts.title) || line(facts.session));
  useEffect(() => {
    if (title) document.title = `${title} · daypack`;
  }, [title]);
  if (!facts) return html`<${Waiting} answer=${state} />`;
  const tabs = [["calls", at(), calls.length], ["history", newest, facts.messages], ["compactions", at("compactions"), folds.length], ["children", at("children"), facts.children], facts.protocol && ["tiers", at("tiers")]].filter(Boolean);
  return html`<${Here.Provider} value=${here}><header><h1 dir="auto">${title}</h1><p class="meta">${[facts.program || facts.agent, facts.project, facts.session, facts.observed && !facts.own && "observed"].filter(Boolean).map((fact) => line(fact)).join(" · ")}</p>
      <${Facts} class="row" facts=${[["Model", facts.model && line(facts.model)], ["Messages", number(facts.messages)], ["Tokens", short(facts.tokens)], ["Budget", facts.budget_tokens && number(facts.budget_tokens)], ["Tokenizer", facts.tokenizer && line(facts.tokenizer)], ["Memory", facts.memory && html`<a href=${address("memory", facts.memory.id)}>${line(facts.memory.title)}</a>`], ["Pins", facts.pins?.map((pin) => line(pin)).join(", ")], ["Parent", facts.parent && html`<a href=${address("s", agent, facts.parent)}>${line(facts.parent)}</a>`], ["State", facts.state !== "open" && line(facts.state)], ["Changed", age(facts.updated_at)]]} /></header>
    <nav class="sections" aria-label="Parts of this session">${tabs.map(([id, href, count]) => html`<a key=${id} href=${href} aria-current=${id === section ? "page" : null}>${id[0].toUpperCase() + id.slice(1)} <span class="dim num">${count == null ? "" : number(count)}</span></a>`)}</nav>
    ${section === "calls" && html`<${Calls} value=${state.value} rest=${rest} at=${at} />`}${section === "history" && html`<${History} total=${facts.messages} target=${Number(rest[1]) || null} at=${at} />`}
    ${section === "compactions" && html`<${CompactionList} at=${at} chosen=${rest[1]} folds=${folds} />`}${section === "children" && html`<${ChildTree} facts=${facts} />`}${section === "tiers" && html`<${Tiers} at=${at} chosen=${rest[1]} facts=${facts} />`}
    ${home.exported && html`<p class="note">Exported${home.start.exported_at ? ` on ${moment(home.start.exported_at)}` : ""}: ${counted(calls.length, "call")}, ${counted(facts.messages, "message")}. Live, with everything: <code>daypack view</code></p>`}<//>`;
}
