// The frame: top bar, search, connection state, keys; and the view that the address names.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./vendor/preact.js";
import { FindPage } from "./find.js";
import { HealthPage } from "./health.js";
import { KeyHelp, useKeys } from "./keys.js";
import { MemoryPage } from "./memory.js";
import { Problem } from "./text.js";
import { SessionPage } from "./session.js";
import { SessionsPage } from "./sessions.js";
import { address, go, useRoute } from "./router.js";
import { begin, connection, enter, home, onEntryNeeded } from "./data.js";

function LiveDot() {
  const [live, setLive] = useState(connection.live);
  useEffect(() => {
    const read = () => setLive(connection.live);
    connection.addEventListener("change", read);
    return () => connection.removeEventListener("change", read);
  }, []);
  if (home.exported || live === "off") return null;
  const words = live === "on" ? "Live" : "Not connected";
  return html`<span class=${`dot ${live}`} role="status" title=${live === "on" ? "Changes appear by themselves" : "The connection is lost; trying again"}><span class="word">${words}</span></span>`;
}

function TopBar({ route, help }) {
  const field = useRef(null);
  const search = (event) => {
    event.preventDefault();
    const query = field.current.value.trim();
    if (query) {
      go(address("find", query));
      field.current.blur();
    }
  };
  useKeys({
    "/": () => {
      field.current?.focus();
      field.current?.select();
    },
    "?": help,
    S: () => go("#/"),
    M: () => go(address("memory")),
    H: () => go(address("health")),
  });
  const place = route[0] ?? "";
  const links = [["#/", "Sessions", place === "" || place === "s"], [address("memory"), "Memory", place === "memory"], [address("health"), "Health", place === "health"]];
  return html`<header class="topbar"><a class="name" href="#/" aria-label="daypack: all sessions"><svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true"><path class="p-prefix" d="M2 12h4v4H2zM7 12h4v4H7zM12 12h4v4h-4z" /><path class="p-tail" d="M2 9h4v2.3H2zM7 5h4v6.3H7zM12 7h4v4.3h-4z" /><path class="p-pins" d="M12 3h4v3.3h-4z" /></svg><b>daypack</b></a>
    ${!home.exported && html`<nav aria-label="Main">${links.map(([href, name, current]) => html`<a key=${name} href=${href} aria-current=${current ? "page" : null}>${name}</a>`)}</nav>
      <form role="search" onSubmit=${search}><input ref=${field} type="search" placeholder="Search all sessions" aria-label="Search all sessions" aria-keyshortcuts="/" defaultValue=${place === "find" ? route[1] : ""} /><kbd aria-hidden="true">/</kbd></form>`}
    ${home.exported && html`<span class="push"></span>`}<${LiveDot} /><button class="quiet" aria-label="Keys" aria-keyshortcuts="?" onClick=${help}>?</button></header>`;
}

/** The view of an address; a key makes a new component for another session, so no state is carried over. */
function View({ route }) {
  const [error, reset] = useErrorBoundary();
  const [place, ...rest] = route;
  useEffect(() => {
    if (error) reset();
  }, [route.join("/")]);
  if (error) return html`<${Problem} error=${{ message: "This view failed to render.", hint: String(error.message ?? error) }} />`;
  if (place === "s" && rest.length >= 2) return html`<${SessionPage} key=${JSON.stringify(rest.slice(0, 2))} agent=${rest[0]} session=${rest[1]} rest=${rest.slice(2)} />`;
  if (place === "find") return html`<${FindPage} key="find" query=${rest[0] ?? ""} />`;
  if (place === "memory") return html`<${MemoryPage} key="memory" id=${rest[0] || null} />`;
  if (place === "health") return html`<${HealthPage} key="health" />`;
  return html`<${SessionsPage} key="sessions" />`;
}

function EnterForm({ entered }) {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    const pasted = new FormData(event.target).get("token").trim();
    const token = /[?&]token=([^&#\s]+)/.exec(pasted)?.[1] ?? pasted; // the whole address may be pasted
    setBusy(true);
    try {
      await enter(token);
      entered();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return html`<main class="enter" id="main"><h1>daypack</h1><p>Open the address that <code>daypack view</code> printed, or paste a token.</p>
    <form onSubmit=${submit}><label class="stack">Token<input name="token" type="password" autocomplete="off" required /></label><button class="primary" disabled=${busy}>Enter</button></form>${error && html`<${Problem} error=${error} />`}</main>`;
}

function Page() {
  const [state, setState] = useState({ ready: false });
  const [help, setHelp] = useState(false);
  const route = useRoute();
  const main = useRef(null);
  const start = () => begin().then(() => setState({ ready: true }), (error) => setState({ ready: false, locked: error.status === 401, error }));
  useEffect(() => {
    start();
    return onEntryNeeded(() => setState((old) => (old.locked ? old : { ready: false, locked: true })));
  }, []);
  // A new view begins at its top, with the focus where a screen reader starts to read.
  const view = route[0] === "s" ? JSON.stringify(route.slice(0, 4).filter((_, index) => index !== 3 || !["call", "diff", "fit"].includes(route[3]))) : JSON.stringify(route);
  const first = useRef(true);
  useEffect(() => {
    if (first.current) first.current = false;
    else if (document.activeElement === document.body || !document.activeElement?.isConnected) main.current?.focus({ preventScroll: true });
    if (route[3] !== "history") scrollTo(0, 0);
  }, [view]);
  if (state.locked) return html`<${EnterForm} entered=${() => (setState({ ready: false }), start())} />`;
  if (state.error) return html`<main class="enter"><h1>daypack</h1><${Problem} error=${state.error} /><button onClick=${start}>Try again</button></main>`;
  if (!state.ready) return null;
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current.focus())}>Skip to the content</a>
    <${TopBar} route=${route} help=${() => setHelp(true)} /><main ref=${main} id="main" tabindex="-1"><${View} route=${route} /></main><${KeyHelp} open=${help} close=${() => setHelp(false)} />`;
}

render(html`<${Page} />`, document.getElementById("page"));
