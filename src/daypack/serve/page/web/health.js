// Health: the store, hook failures, disk use, indexes, and what doctor finds.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Boxed, line, visible } from "./text.js";
import { Meter, Panel, Problem, Tag, Waiting } from "./pieces.js";
import { address } from "./router.js";
import { ask, useAnswer } from "./data.js";
import { bytes, counted, moment, number, spaced } from "./words.js";

const SEVERITIES = ["error", "warning", "info"];

/** Examine all sessions, some with each request, until the last or until the page is left. */
async function examine(signal, show) {
  const findings = [];
  for (let cursor = ""; cursor !== null; ) {
    const part = await ask("doctor", cursor ? { cursor } : {}, signal);
    findings.push(...part.findings);
    findings.sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity));
    cursor = part.next;
    show({ ...part, findings, running: cursor !== null });
  }
}

function Doctor() {
  const [state, setState] = useState({ findings: [] });
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setState({ findings: [], running: times > 0 });
    if (times) examine(stop.signal, setState).catch((error) => stop.signal.aborted || setState((old) => ({ ...old, running: false, error })));
    return () => stop.abort();
  }, [times]);
  const { findings, running, examined, total, error } = state;
  return html`<${Panel} title="Doctor"><div class="tools"><button disabled=${running} onClick=${() => setTimes(times + 1)}>Examine all sessions</button>${total != null && html`<progress max=${total} value=${examined} aria-label="Sessions examined"></progress><span class="dim num" role="status">${number(examined)} of ${number(total)}${running ? " …" : !findings.length ? ": no findings" : ""}</span>`}</div>
    ${error && html`<${Problem} error=${error} />`}<ul>${findings.map((finding, index) => html`<li key=${index} class="entry"><div class="head"><${Tag} warn=${finding.severity !== "info"}>${line(finding.severity)}<//>${finding.session && html`<a href=${address("s", finding.agent, finding.session)}>${line(finding.agent)} / ${line(finding.session)}</a>`}<span class="dim cut">${line(finding.path)}${finding.line ? `:${finding.line}` : ""}</span></div><p>${visible(finding.problem)}</p><p class="why">${visible(finding.advice)}</p></li>`)}</ul><//>`;
}

export function HealthPage() {
  const answer = useAnswer("health", {});
  if (!answer.value) return html`<${Waiting} answer=${answer} />`;
  const { store, hooks, disk, indexes, version, python, home: folder } = answer.value;
  const sum = disk.reduce((total, use) => total + use.bytes, 0);
  return html`<div class="line pagehead"><h1>Health</h1><span class="dim">daypack ${line(version)} · Python ${line(python)} · <code>${line(folder)}</code></span><a class="push" href="/metrics">Metrics</a></div>
    ${!store.ok && html`<${Problem} error=${{ message: `The memory store has a problem: ${store.problem}` }} />`}
    <div class="healthgrid"><${Panel} title="Hook failures">${hooks.number ? html`<p><b>${number(hooks.number)}</b> since ${moment(hooks.since)}, the newest ${moment(hooks.newest)}</p><${Boxed} class="box code" text=${hooks.lines.join("\n")} label="Newest hook failures" />` : html`<p class="good">✓ None.</p>`}<//>
      <${Panel} title="Disk" count=${bytes(sum)}>${disk.map((use) => html`<${Meter} key=${use.what} kind="disk" label=${spaced(use.what)} value=${use.bytes} whole=${Math.max(...disk.map((other) => other.bytes))} note=${`${bytes(use.bytes)} · ${counted(use.files, "file")}`} />`)}${answer.value.incomplete && html`<p class="dim">Counting took too long; there are more files.</p>`}<//>
      <${Panel} title="Indexes"><ul>${indexes.map((index) => html`<li key=${index.what} class="entry"><div class="head"><b>${spaced(index.what)}</b><${Tag}>${line(index.state)}<//></div><p class="why">${visible(index.words)}</p></li>`)}</ul><//></div><${Doctor} />`;
}
