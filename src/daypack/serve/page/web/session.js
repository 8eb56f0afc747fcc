// The page of a session: its facts, the strip, and below it the selected call or another part.
import { html, useEffect, useMemo, useRef, useState } from "./vendor/preact.js";
import { CallBody, CallHead } from "./call.js";
import { ChildTree } from "./children.js";
import { CompactionList } from "./compactions.js";
import { Difference } from "./diff.js";
import { History } from "./history.js";
import { Legend, Strip, describeCall, readCalls } from "./strip.js";
import { Tiers } from "./tiers.js";
import { Waiting, line } from "./text.js";
import { address, go, replaceAddress, sessionAddress } from "./router.js";
import { ask, home, useAnswer, useLive } from "./data.js";
import { age, counted, moment, number, short, tokens } from "./words.js";
import { useKeys } from "./keys.js";

const AGAIN = 8; // newest calls that are read again: replies and cache figures arrive after a call
const SETTLE = 70; // milliseconds; a held key moves along the strip without asking for every call

/** The strip's data, kept up to date with live events. */
function useSession(agent, session) {
  const [state, setState] = useState({});
  const running = useRef(null);
  const load = async (known) => {
    if (running.current) {
      running.current.again = true;
      return;
    }
    const run = (running.current = { stop: new AbortController(), again: false });
    try {
      const from = known ? Math.max(0, known.calls.length - AGAIN) : 0;
      const answer = await ask("session", { agent, session, ...(from && { from }) }, run.stop.signal);
      const calls = [...(known?.calls.slice(0, answer.from) ?? []), ...readCalls(answer)];
      setState({ value: { ...answer, calls } });
    } catch (error) {
      if (!run.stop.signal.aborted) setState((old) => ({ ...old, error }));
    }
    running.current = null;
    if (run.again && !run.stop.signal.aborted) setState((old) => ({ ...old, wanted: (old.wanted ?? 0) + 1 }));
  };
  useEffect(() => {
    setState({});
    load(null);
    return () => running.current?.stop.abort();
  }, [agent, session]);
  useEffect(() => {
    if (state.wanted && state.value) load(state.value);
  }, [state.wanted]);
  useLive({ agent, session }, (kind, data) => {
    // The first event of a connection repeats what was just loaded.
    setState((old) => {
      const facts = old.value?.facts;
      if (!facts || (kind === "session" && data.events === facts.events && data.messages === facts.messages)) return old;
      return kind === "sessions" ? old : { ...old, wanted: (old.wanted ?? 0) + 1 };
    });
  });
  return state;
}

function useSettled(value) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLE);
    return () => clearTimeout(timer);
  }, [value]);
  return settled === null ? value : settled;
}

function SessionHead({ facts }) {
  const details = [
    ["Model", facts.model && line(facts.model)],
    ["Messages", number(facts.messages)],
    ["Tokens", facts.tokens == null ? null : short(facts.tokens)],
    ["Budget", facts.budget_tokens == null ? null : number(facts.budget_tokens)],
    ["Tokenizer", facts.tokenizer && line(facts.tokenizer)],
    ["Memory", facts.memory && html`<a href=${address("memory", facts.memory.id)}>${line(facts.memory.title)}</a>`],
    ["Pins", facts.pins?.length ? facts.pins.map((pin) => line(pin)).join(", ") : null],
    ["Parent", facts.parent && html`<a href=${sessionAddress(facts.agent, facts.parent)}>${line(facts.parent)}</a>`],
    ["State", facts.state && facts.state !== "open" ? line(facts.state) : null],
    ["Changed", html`<time title=${moment(facts.updated_at)}>${age(facts.updated_at)}</time>`],
  ];
  return html`<header class="sessionhead"><h1 dir="auto">${line(facts.title) || line(facts.session)}</h1>
    <p class="meta">${line(facts.program || facts.agent)}${facts.project ? ` · ${line(facts.project)}` : ""} · <code>${line(facts.session)}</code>${facts.observed && !facts.own ? " · observed" : ""}</p>
    <dl class="facts row">${details.map(([name, value]) => value != null && value !== "" && html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></header>`;
}

function Sections({ facts, current, at, calls, folds }) {
  const sections = [
    ["calls", "Calls", at(), number(calls.length)],
    ["history", "History", at("history", facts.messages), number(facts.messages)],
    ["compactions", "Compactions", at("compactions"), number(folds.length)],
    ["children", "Children", at("children"), number(facts.children)],
    ...(facts.protocol ? [["tiers", "Tiers", at("tiers"), ""]] : []),
  ];
  return html`<nav class="sections" aria-label="Parts of this session">${sections.map(([id, name, href, count]) => html`<a key=${id} href=${href} aria-current=${id === current ? "page" : null}>${name}${count && html` <span class="count">${count}</span>`}</a>`)}</nav>`;
}

/** The strip with what is below it: a call, its raw request, or the difference between two calls. */
function Calls({ agent, session, value, rest, at }) {
  const { calls, parts, folds, facts } = value;
  const [hidden, setHidden] = useState(new Set());
  const [wholeSession, setWholeSession] = useState(false);
  const [raw, setRaw] = useState(false);
  const [everything, setEverything] = useState(0);
  const [focusFit, setFocusFit] = useState(0);
  const places = useMemo(() => new Map(calls.map((call, index) => [String(call.event), index])), [calls]);
  const last = calls.length - 1;
  const differing = rest[0] === "diff";
  const named = differing ? rest[2] : rest[0] === "call" ? rest[1] : null;
  const selected = named != null ? (places.get(named) ?? -1) : last;
  const compared = differing ? (rest[1] ? (places.get(rest[1]) ?? -1) : selected - 1) : -1;
  const row = calls[selected];

  const addressOf = (index) => {
    if (differing) return at("diff", rest[1] && places.get(rest[1]) !== index ? rest[1] : "", calls[index].event);
    return index === last ? at() : at("call", calls[index].event);
  };
  const select = (index) => calls.length && replaceAddress(addressOf(Math.max(0, Math.min(last, index))));
  const compare = (index) => row && go(at("diff", calls[index].event, row.event));
  // A selection of the newest call follows when a newer one arrives.
  const wasLast = useRef(last);
  useEffect(() => {
    if (last > wasLast.current && selected === wasLast.current && named != null) select(last);
    wasLast.current = last;
  }, [last]);

  const call = useSettled(row ? row.event : null);
  const settledRow = calls[places.get(String(call))] ?? row;
  const version = settledRow ? `${settledRow.reply} ${settledRow.input}` : "";
  const answer = useAnswer(row && !differing ? "call" : null, { agent, session, event: call }, version);
  const showPack = () => {
    setRaw(false);
    if (differing && row) replaceAddress(selected === last ? at() : at("call", row.event));
  };
  const showDiff = () => row && replaceAddress(differing ? (selected === last ? at() : at("call", row.event)) : at("diff", "", row.event));
  useKeys({
    j: () => select(selected + 1),
    ArrowRight: () => select(selected + 1),
    k: () => select(selected - 1),
    ArrowLeft: () => select(selected - 1),
    Home: () => select(0),
    End: () => select(last),
    PageDown: () => select(selected + 20),
    PageUp: () => select(selected - 20),
    d: showDiff,
    p: showPack,
    r: () => (differing ? (showPack(), setRaw(true)) : setRaw(!raw)),
    e: () => (showPack(), setEverything(everything + 1)),
    b: () => (showPack(), setFocusFit(focusFit + 1)),
    z: () => setWholeSession(!wholeSession),
  });
  if (!calls.length) return html`<p class="empty">No calls are recorded for this session yet. ${facts.messages ? "Its history is under History." : ""}</p>`;
  const toggle = (part) => setHidden((old) => {
    const next = new Set(old);
    next.delete(part) || next.add(part);
    return next;
  });
  const tab = (name, pressed, press, key) => html`<button class="small" aria-pressed=${pressed ? "true" : "false"} aria-keyshortcuts=${key} onClick=${press}>${name}<kbd aria-hidden="true">${key}</kbd></button>`;
  const tools = html`<div class="tools" role="group" aria-label="Show">
    ${tab("Pack", !differing && !raw, showPack, "p")}${tab("Difference", differing, showDiff, "d")}${tab("Raw request", !differing && raw, () => (differing ? (showPack(), setRaw(true)) : setRaw(!raw)), "r")}
    <button class="small" disabled=${selected <= 0} aria-label="Previous call" onClick=${() => select(selected - 1)}>←</button><button class="small" disabled=${selected >= last} aria-label="Next call" onClick=${() => select(selected + 1)}>→</button></div>`;
  return html`<section aria-label="Calls"><div class="striphead"><${Legend} parts=${parts} call=${row} calls=${calls} hidden=${hidden} toggle=${toggle} /><button class="small" aria-pressed=${wholeSession ? "true" : "false"} onClick=${() => setWholeSession(!wholeSession)}>Whole session<kbd aria-hidden="true">z</kbd></button></div>
    <${Strip} calls=${calls} parts=${parts} folds=${folds} selected=${selected} compared=${compared} hidden=${hidden} wholeSession=${wholeSession} select=${select} compare=${compare} openFold=${(fold) => go(at("compactions", fold.event))} />
    <${StripNote} calls=${calls} folds=${folds} />
    ${row ? html`<${CallHead} row=${row} index=${selected} total=${calls.length} before=${calls[selected - 1]} call=${answer.fresh && !differing ? answer.value : null} parts=${parts} tools=${tools} agent=${agent} session=${session} />
      ${differing ? html`<${Difference} agent=${agent} session=${session} calls=${calls} before=${rest[1]} after=${call} choose=${(before) => replaceAddress(at("diff", before, row.event))} />` : html`<${CallBody} agent=${agent} session=${session} answer=${answer} row=${settledRow} parts=${parts} raw=${raw} everything=${everything} focusFit=${focusFit} budget=${rest[0] === "fit" ? Number(rest[1]) : null} usual=${facts.budget_tokens} fits=${facts.own || !facts.observed} />`}` : html`<p class="empty">This session has no call ${line(named)}.</p>`}
    <p class="offscreen" aria-live="polite">${row ? describeCall(row, selected, calls.length) : ""}</p></section>`;
}

/** What the signs in the strip mean, as far as they occur. */
function StripNote({ calls, folds }) {
  const breaks = calls.filter((call) => call.break).length;
  const marks = new Map();
  for (const { mark } of calls) if (mark) marks.set(mark, (marks.get(mark) ?? 0) + 1);
  const notes = [];
  if (breaks) notes.push(html`<span key="b"><i class="sgn seamsign">⬥</i>${counted(breaks, "cache break")}</span>`);
  if (folds.length) notes.push(html`<span key="f"><i class="sgn foldsign"></i>${counted(folds.length, "compaction")}</span>`);
  const signs = { error: "✕", retry: "↻", incomplete: "┅", erased: "□" };
  for (const [mark, count] of marks) notes.push(html`<span key=${mark}><i class="sgn marksign">${signs[mark] ?? "?"}</i>${number(count)} ${mark === "retry" && count > 1 ? "retries" : mark === "error" && count > 1 ? "errors" : mark}</span>`);
  if (calls.some((call) => call.budget != null)) notes.push(html`<span key="l"><i class="sgn linesign"></i>budget</span>`);
  return html`<p class="stripnote">${notes}</p>`;
}

export function SessionPage({ agent, session, rest }) {
  const state = useSession(agent, session);
  const at = (...more) => sessionAddress(agent, session, ...more);
  const section = ["history", "compactions", "children", "tiers"].includes(rest[0]) ? rest[0] : "calls";
  const messages = state.value?.facts.messages;
  useKeys({
    a: () => go(at()),
    h: () => go(at("history", messages ?? 1)),
    c: () => go(at("compactions")),
    n: () => go(at("children")),
    t: () => state.value?.facts.protocol && go(at("tiers")),
    Escape: () => {
      if (section === "compactions" && rest[1]) go(at("compactions"));
      else if (section !== "calls" || rest[0] === "diff") go(at());
      else go("#/");
    },
  });
  useEffect(() => {
    const facts = state.value?.facts;
    document.title = `${facts ? line(facts.title, 80) || line(facts.session, 80) : "…"} · daypack`;
  }, [state.value]);
  if (!state.value) return html`<${Waiting} answer=${state} />`;
  const { facts, calls, folds } = state.value;
  const shared = { agent, session, facts, at };
  return html`<${SessionHead} facts=${facts} /><${Sections} facts=${facts} current=${section} at=${at} calls=${calls} folds=${folds} />
    ${section === "calls" && html`<${Calls} ...${shared} value=${state.value} rest=${rest} />`}
    ${section === "history" && html`<${History} ...${shared} total=${facts.messages} target=${Number(rest[1]) || null} />`}
    ${section === "compactions" && html`<${CompactionList} ...${shared} folds=${folds} chosen=${rest[1] ?? null} />`}
    ${section === "children" && html`<${ChildTree} ...${shared} />`}
    ${section === "tiers" && html`<${Tiers} ...${shared} chosen=${rest[1] ?? null} />`}
    ${home.exported && html`<p class="note">Exported${home.start.exported_at ? ` on ${moment(home.start.exported_at)}` : ""}. What was not exported is shown by <code>daypack view</code>. ${tokens(facts.tokens)} in ${counted(facts.messages, "message")}.</p>`}`;
}
