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
import { ask, enter, events, home } from "./data.js";
import { spaced } from "./words.js";

function LiveDot() {
  const [live, setLive] = useState();
  useEffect(() => events.addEventListener("live", () => setLive(events.live)), []);
  return (live === "on" || live === "lost") && html`<span class=${`dot ${live}`} role="status"><span>
    ${live === "on" ? "Live" : "Not connected"}</span></span>`;
}

function TopBar({ place = "s", help, skip }) {
  const field = useRef();
  const places = { s: "Sessions", memory: "Memory", health: "Health" };
  useKeys({ "/": () => field.current?.select(), "?": help, S: () => go("#/"), M: () => go(address("memory")),
    H: () => go(address("health")) });
  const search = (event) => {
    event.preventDefault();
    const query = field.current.value.trim();
    field.current.blur();
    if (query) go(address("find", query));
  };
  return html`<header class="topbar"><button class="skip" onClick=${skip}>Skip to the content</button>
    <a class="brand" href="#/"><svg width="18" height="18" aria-hidden="true">
    <path class="part p-prefix" d="M1 12h4v4H1zM7 12h4v4H7zM13 12h4v4h-4z" />
    <path class="part p-tail" d="M1 9h4v2H1zM7 4h4v7H7zM13 7h4v4h-4z" /><path class="part p-pins" d="M13 2h4v4h-4z" />
    </svg>daypack</a>
    ${!home.exported && html`<nav aria-label="Main">${Object.entries(places).map(([name,
      words]) => html`<a href=${name === "s" ? "#/" : address(name)} aria-current=${name === place ? "page" : null}>
      ${words}</a>`)}</nav><form role="search" onSubmit=${search}>
      <input ref=${field} type="search" placeholder="Search all sessions" aria-label="Search all sessions"
      aria-keyshortcuts="/" /><kbd aria-hidden="true">/</kbd></form>`}<span class="push"></span><${LiveDot} />
      <button class="quiet" aria-label="Keys" aria-keyshortcuts="?" onClick=${help}>?</button></header>`;
}

/** The view of an address. Its key makes a new component for another session, so that no state is carried over. */
function View({ route: [place, ...rest] }) {
  const [error, reset] = useErrorBoundary();
  useEffect(() => error && reset(), [location.hash]);
  if (home.exported && place !== "s") [place, ...rest] = ["s", ...home.start.session];
  if (error) return html`<${Problem} error=${{ message: "This view cannot be shown.", hint: error }} />`;
  if (place === "s" && rest.length > 1) return html`<${SessionPage} key=${address(...rest.slice(0, 2))} agent=${rest[0]}
    session=${rest[1]} rest=${rest.slice(2)} />`;
  if (place === "find") return html`<${FindPage} query=${rest[0]} />`;
  if (place === "memory") return html`<${MemoryPage} id=${rest[0]} />`;
  return place === "health" ? html`<${HealthPage} />` : html`<${SessionsPage} />`;
}

function EnterForm({ entered }) {
  const [error, setError] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    const pasted = event.target.elements.token.value.trim();
    enter(/[?&]token=([^&#\s]+)/.exec(pasted)?.[1] ?? pasted).then(entered,
      setError); // the whole address may be pasted
  };
  return html`<main class="enter"><h1>daypack</h1>
    ${location.search === "?used" && html`<p class="bad" role="status">This address was used already, or its server has
      ended: it works once.</p>`}
    <p>Open the address that <code>daypack view</code> or <code>daypack serve</code> printed, or paste a token of
      ${" "}<code>daypack token new</code>.</p>
    <form class="tools" onSubmit=${submit}><input class="push" name="token" type="password" aria-label="Token"
    placeholder="Token" autocomplete="off" required /><button class="primary">Enter</button></form>
    ${error && html`<${Problem} error=${error} />`}</main>`;
}

function Page() {
  const [state, setState] = useState("starting");
  const [help, setHelp] = useState(false);
  const route = useRoute();
  const main = useRef();
  const begin = async () => {
    try {
      home.start = await ask("start");
      setState("ready");
    } catch (error) {
      setState(error.status === 401 ? "locked" : error);
    }
  };
  useEffect(() => {
    events.addEventListener("locked", () => setState("locked"));
    begin();
  }, []);
  // Another view begins at its top; another call of the same session does not.
  const view = address(...route.slice(0, ["call", "diff", "fit"].includes(route[3]) ? 3 : 4));
  useEffect(() => {
    if (route[0] !== "s") document.title = `${spaced(route[0] ?? "sessions")} · daypack`;
    if (route[3] !== "history") scrollTo(0, 0);
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [view]);
  if (state === "starting") return null;
  if (state === "locked") return html`<${EnterForm} entered=${begin} />`;
  if (state !== "ready") return html`<main class="enter"><h1>daypack</h1><${Problem} error=${state} />
    <button onClick=${begin}>Try again</button></main>`;
  return html`<${TopBar} place=${route[0]} help=${() => setHelp(true)} skip=${() => main.current.focus()} />
    <main ref=${main} tabindex="-1"><${View} route=${route} /></main>
    ${help && html`<${KeyHelp} close=${() => setHelp(false)} />`}`;
}

render(html`<${Page} />`, document.getElementById("page"));
