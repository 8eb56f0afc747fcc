// Health: the store, hook failures, disk use, indexes, and what doctor finds.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Boxed, dots, line, visible } from "./text.js";
import { Entry, Meter, Panel, Problem, Tag, Waiting } from "./pieces.js";
import { address } from "./router.js";
import { ask, useAnswer } from "./data.js";
import { bytes, counted, moment, number, spaced } from "./words.js";

const SEVERITIES = ["damage", "warning", "note"];

/** Examine all sessions, some with each request, until the last or until the page is left. */
async function examine(signal, show) {
  const findings = [];
  for (let cursor = ""; cursor !== null; ) {
    const part = await ask("doctor", { cursor: cursor || null }, signal);
    findings.push(...part.findings);
    findings.sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity));
    cursor = part.next;
    show({ ...part, findings, running: cursor !== null });
  }
}

function Doctor() {
  const [times, setTimes] = useState(0);
  const [{ findings = [], running, examined, total, error }, setState] = useState({});
  useEffect(() => {
    const stop = new AbortController();
    setState({ running: times > 0 });
    if (times) examine(stop.signal, setState).catch((problem) => stop.signal.aborted || setState({ error: problem }));
    return () => stop.abort();
  }, [times]);
  return html`<${Panel} title="Doctor"><div class="tools"><button disabled=${running}
    onClick=${() => setTimes(times + 1)}>Examine sessions and memories</button>
    ${total != null && html`<progress max=${total} value=${examined} aria-label="Examined"></progress>
    <span class="dim num" role="status">${number(examined)} of ${number(total)} examined
    ${running ? " …" : findings.length ? "" : ": no findings"}</span>`}</div>
    ${error && html`<${Problem} error=${error} />`}
    <ul>${findings.map(({ agent, session, severity, path, line: at, problem,
      advice }) => html`<li class="entry"><div class="head"><${Tag} warn=${severity !== "note"} words=${severity} />
      ${session && html`<a href=${address("s", agent, session)}>${line(agent)} / ${line(session)}</a>`}
      <span class="dim cut">${line(path)}${at && `:${at}`}</span></div><p>${visible(problem)}</p>
      <p class="why">${visible(advice)}</p></li>`)}</ul><//>`;
}

export function HealthPage() {
  const answer = useAnswer("health", {});
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { store, hooks, disk, indexes, version, python, home: folder, incomplete } = answer.value;
  const most = Math.max(...disk.map((use) => use.bytes));
  return html`<div class="line pagehead"><h1>Health</h1><span class="dim">
    ${dots(`daypack ${version}`, `Python ${python}`, folder, store.place)}</span><a class="last" href="/metrics">Metrics</a></div>
    ${!store.ok && html`<${Problem} error=${{ message: `The memory store has a problem: ${store.problem}` }} />`}
    <div class="healthgrid"><${Panel} title="Hook failures">${hooks.number
      ? html`<p><b>${number(hooks.number)}</b> since ${moment(hooks.since)}, the newest ${moment(hooks.newest)}</p>
      <${Boxed} kind="code" text=${hooks.lines.join("\n")} label="Newest hook failures" />`
      : html`<p class="good">✓ None.</p>`}<//>
      <${Panel} title="Disk" count=${bytes(disk.reduce((sum, use) => sum + use.bytes, 0))}>
        ${disk.map((use) => html`<${Meter} kind="disk" label=${spaced(use.what)} value=${use.bytes} whole=${most}
        note=${dots(bytes(use.bytes), counted(use.files, "file"))} />`)}
        ${incomplete && html`<p class="dim">Counting took too long; there are more files.</p>`}<//>
      <${Panel} title="Indexes"><ul>${indexes.map((index) => html`<${Entry} name=${spaced(index.what)}
        tag=${index.state} why=${index.words} />`)}</ul><//></div><${Doctor} />`;
}
