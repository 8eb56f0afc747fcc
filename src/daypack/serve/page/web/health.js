// Health: the store, hook failures, disk use, indexes, and what the doctor finds.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Meter, Problem, Shown, Waiting, line, visible } from "./text.js";
import { age, bytes, counted, moment, number, spaced } from "./words.js";
import { ask, useAnswer } from "./data.js";
import { sessionAddress } from "./router.js";

const SEVERITIES = ["error", "warning", "info"];

/** Examine all sessions, some with each request, until the last or until the page is left. */
function useDoctor() {
  const [state, setState] = useState(null);
  const [times, setTimes] = useState(0);
  useEffect(() => {
    if (!times) return undefined;
    const stop = new AbortController();
    (async () => {
      const findings = [];
      let examined = 0;
      let cursor = "";
      setState({ examined: 0, total: null, findings, running: true });
      while (cursor !== null && !stop.signal.aborted) {
        const part = await ask("doctor", cursor ? { cursor } : {}, stop.signal);
        findings.push(...part.findings);
        examined = part.examined > examined || !cursor ? part.examined : examined + part.examined;
        cursor = part.next ?? null;
        setState({ examined, total: part.total, findings: [...findings], running: cursor !== null });
      }
    })().catch((error) => stop.signal.aborted || setState((old) => ({ ...old, running: false, error })));
    return () => stop.abort();
  }, [times]);
  return [state, () => setTimes(times + 1)];
}

function Doctor() {
  const [doctor, start] = useDoctor();
  const findings = doctor ? [...doctor.findings].sort((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity)) : [];
  return html`<section class="panel" aria-labelledby="doctor"><h2 id="doctor">Doctor</h2>
    <div class="tools"><button onClick=${start} disabled=${doctor?.running}>${doctor ? "Examine again" : "Examine all sessions"}</button>${doctor && html`<progress max=${doctor.total || 1} value=${doctor.examined} aria-label="Sessions examined"></progress><span class="dim num" role="status">${number(doctor.examined)} of ${number(doctor.total)}${doctor.running ? " …" : ""}</span>`}</div>
    ${doctor?.error && html`<${Problem} error=${doctor.error} />`}
    ${doctor && !doctor.running && !doctor.error && !findings.length && html`<p class="good">✓ No findings.</p>`}
    <ul class="findings">${findings.map((finding, index) => html`<li key=${index} class=${SEVERITIES.includes(finding.severity) ? finding.severity : "info"}><div class="head"><span class="tag">${line(finding.severity)}</span>${finding.session && html`<a href=${sessionAddress(finding.agent, finding.session)}>${line(finding.agent)} / ${line(finding.session)}</a>`}<span class="dim">${line(finding.path)}${finding.line ? `:${finding.line}` : ""}</span></div><p>${visible(finding.problem)}</p>${finding.advice && html`<p class="why">${visible(finding.advice)}</p>`}</li>`)}</ul></section>`;
}

export function HealthPage() {
  const answer = useAnswer("health", {});
  useEffect(() => {
    document.title = "Health · daypack";
  }, []);
  const health = answer.value;
  if (!health) return html`<${Waiting} answer=${answer} />`;
  const { store, hooks, disk, indexes } = health;
  const most = Math.max(1, ...disk.map((use) => use.bytes || 0));
  const sum = disk.reduce((total, use) => total + (use.bytes || 0), 0);
  return html`<div class="pagehead"><h1>Health</h1><span class="dim">daypack ${line(health.version)} · Python ${line(health.python)} · <code>${line(health.home)}</code></span><span class="push"></span><a href="/metrics">Metrics</a></div>
    ${!store.ok && html`<div class="problem" role="alert"><p>The store has a problem: ${visible(store.problem)}</p></div>`}
    <div class="healthgrid"><section class="panel" aria-labelledby="hooks"><h2 id="hooks">Hook failures</h2>
        ${hooks.number ? html`<p><b class="num">${number(hooks.number)}</b>${hooks.since ? ` since ${moment(hooks.since)}` : ""}${hooks.newest ? `, the newest ${age(hooks.newest) === "now" ? "just now" : `${age(hooks.newest)} ago`}` : ""}</p><${Shown} class="code" text=${hooks.lines.map((entry) => (typeof entry === "string" ? entry : JSON.stringify(entry))).join("\n")} tabindex="0" role="region" aria-label="Newest hook failures" />` : html`<p class="good">✓ None.</p>`}</section>
      <section class="panel" aria-labelledby="disk"><h2 id="disk">Disk <span class="dim">${bytes(sum)}</span></h2>${disk.map((use) => html`<${Meter} key=${use.what} label=${spaced(use.what)} value=${use.bytes} whole=${most} note=${`${bytes(use.bytes)} · ${counted(use.files, "file")}`} kind="disk" />`)}</section>
      <section class="panel" aria-labelledby="indexes"><h2 id="indexes">Indexes</h2><ul class="plain">${indexes.map((index) => html`<li key=${index.what}><b>${spaced(index.what)}</b> <span class=${`tag ${["ok", "fresh", "complete", "ready", "current"].includes(index.state) ? "good" : ""}`}>${line(index.state)}</span><p class="why">${visible(index.words)}</p></li>`)}</ul></section></div>
    <${Doctor} />`;
}
