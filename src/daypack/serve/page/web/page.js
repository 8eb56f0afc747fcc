// The frame: top bar, search, connection state, keys; and the view that the address names.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact.js";
import { FindPage } from "./find.js";
import { HealthPage } from "./health.js";
import { KeyHelp, useKeys } from "./keys.js";
import { MemoryPage } from "./memory.js";
import { Problem } from "./pieces.js";
import { SessionPage } from "./session.js";
import { SessionsPage } from "./sessions.js";
import { address, go, useRoute } from "./router.js";
import { begin, enter, events, home } from "./data.js";

function LiveDot() {
  const [live, setLive] = useState(events.live);
  useEffect(() => events.addEventListener("live", () => setLive(events.live)), []);
  return (live === "on" || live === "lost") && html`<span class=${`dot ${live}`} role="status"><span>${live === "on" ? "Live" : "Not connected"}</span></span>`;
}

function TopBar({ route, help }) {
  const field = useRef();
  useKeys({ "/": () => field.current?.select(), "?": help, S: () => go("#/"), M: () => go(address("memory")), H: () => go(address("health")) });
  const search = (event) => {
    event.preventDefault();
    const query = field.current.value.trim();
    field.current.blur();
    if (query) go(address("find", query));
  };
  const links = { Sessions: ["#/", !route[0] || route[0] === "s"], Memory: [address("memory"), route[0] === "memory"], Health: [address("health"), route[0] === "health"] };
  return html`<header class="topbar"><a class="brand" href="#/"><svg width="18" height="18" aria-hidden="true"><path class="part p-prefix" d="M1 12h4v4H1zM7 12h4v4H7zM13 12h4v4h-4z" /><path class="part p-tail" d="M1 9h4v2H1zM7 4h4v7H7zM13 7h4v4h-4z" /><path class="part p-pins" d="M13 2h4v4h-4z" /></svg>daypack</a>
    ${!home.exported && html`<nav aria-label="Main">${Object.entries(links).map(([name, [href, current]]) => html`<a key=${name} href=${href} aria-current=${current ? "page" : null}>${name}</a>`)}</nav>
      <form role="search" onSubmit=${search}><input ref=${field} type="search" placeholder="Search all sessions" aria-label="Search all sessions" aria-keyshortcuts="/" /><kbd aria-hidden="true">/</kbd></form>`}<span class="push"></span><${LiveDot} /><button class="quiet" aria-label="Keys" aria-keyshortcuts="?" onClick=${help}>?</button></header>`;
}

/** The view of an address. Its key makes a new component for another session, so that no state is carried over. */
function View({ route: [place, ...rest] }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => error && reset(), [location.hash]);
  if (error) return html`<${Problem} error=${{ message: "This view cannot be shown.", hint: String(error) }} />`;
  if (place === "s" && rest.length > 1) return html`<${SessionPage} key=${JSON.stringify(rest.slice(0, 2))} agent=${rest[0]} session=${rest[1]} rest=${rest.slice(2)} />`;
  if (place === "find") return html`<${FindPage} query=${rest[0] ?? ""} />`;
  if (place === "memory") return html`<${MemoryPage} id=${rest[0]} />`;
  return place === "health" ? html`<${HealthPage} />` : html`<${SessionsPage} />`;
}

function EnterForm({ entered }) {
  const [error, setError] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    const pasted = new FormData(event.target).get("token").trim();
    enter(/[?&]token=([^&#\s]+)/.exec(pasted)?.[1] ?? pasted).then(entered, setError); // the whole address may be pasted
  };
  return html`<main class="enter"><h1>daypack</h1><p>Open the address that <code>daypack view</code> printed, or paste a token.</p><form class="tools" onSubmit=${submit}><input class="push" name="token" type="password" aria-label="Token" placeholder="Token" autocomplete="off" required /><button class="primary">Enter</button></form>${error && html`<${Problem} error=${error} />`}</main>`;
}

const TITLES = { memory: "Memory", health: "Health", find: "Search" };

function Page() {
  const [state, setState] = useState("starting");
  const [help, setHelp] = useState(false);
  const route = useRoute();
  const main = useRef();
  const start = () => begin().then(() => setState("ready"), (error) => setState((old) => (old === "locked" ? old : error)));
  useEffect(() => {
    events.addEventListener("locked", () => setState("locked"));
    start();
  }, []);
  // Another view begins at its top; another call of the same session does not.
  const view = JSON.stringify(["call", "diff", "fit", undefined].includes(route[3]) ? route.slice(0, 3) : route.slice(0, 4));
  useEffect(() => {
    if (TITLES[route[0]]) document.title = `${TITLES[route[0]]} · daypack`;
    if (route[3] !== "history") scrollTo(0, 0);
    if (!document.activeElement || document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [view]);
  if (state === "starting") return null;
  if (state === "locked") return html`<${EnterForm} entered=${() => (setState("starting"), start())} />`;
  if (state !== "ready") return html`<main class="enter"><h1>daypack</h1><${Problem} error=${state} /><button onClick=${start}>Try again</button></main>`;
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>Skip to the content</a><${TopBar} route=${route} help=${() => setHelp(true)} />
    <main ref=${main} tabindex="-1"><${View} route=${route} /></main>${help && html`<${KeyHelp} close=${() => setHelp(false)} />`}`;
}

render(html`<${Page} />`, document.getElementById("page"));
