// Answers of the server's views, actions and live events; or, in an exported file, the answers that are inside it.
import { useEffect, useRef, useState } from "./vendor/preact.js";

/** What the server said at the start: version, rights, write token, words for codes. */
export const home = { start: null, exported: false };

export class Refused extends Error {
  constructor(status, problem) {
    super(problem?.message || (status ? `the server answered ${status}` : "the server does not answer"));
    this.status = status;
    this.hint = problem?.hint || "";
  }
}

/** The words for a code, as the server gave them. */
export function wordsFor(group, code) {
  const words = home.start?.words?.[group];
  return words && Object.hasOwn(words, code) ? words[code] : null;
}

function queryOf(args) {
  const names = Object.keys(args).filter((name) => args[name] !== undefined && args[name] !== null);
  return names.sort().map((name) => `${name}=${encodeURIComponent(String(args[name]).toWellFormed())}`).join("&");
}

// ---------------------------------------------------------------- an exported file

let exportRead = null;

function exportElement() {
  return document.getElementById("daypack-export");
}

async function readExport() {
  const packed = Uint8Array.from(atob(exportElement().textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Put the shared texts back into their places. */
function filled(value, texts) {
  if (Array.isArray(value)) return value.map((part) => filled(part, texts));
  if (value === null || typeof value !== "object") return value;
  const names = Object.keys(value);
  if (names.length === 1 && names[0] === "$") return texts[value.$];
  const copy = {};
  for (const name of names) {
    // Plain assignment to "__proto__" would set the prototype.
    Object.defineProperty(copy, name, { value: filled(value[name], texts), enumerable: true });
  }
  return copy;
}

async function askExport(view, args) {
  exportRead ??= readExport();
  const { texts, answers } = await exportRead;
  const key = `${view}?${queryOf(args)}`;
  if (Object.hasOwn(answers, key)) return filled(answers[key], texts);
  throw new Refused(404, { message: "This is not in the export.", hint: "Open the session with `daypack view` to see everything." });
}

// ---------------------------------------------------------------- the server

const entry = new EventTarget(); // "needed": the server wants a token

export function onEntryNeeded(call) {
  entry.addEventListener("needed", call);
  return () => entry.removeEventListener("needed", call);
}

async function answerOf(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { hint: "Is `daypack view` still running?" });
  }
  const body = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (response.ok) return body;
  if (response.status === 401) entry.dispatchEvent(new Event("needed"));
  throw new Refused(response.status, body?.error);
}

export function ask(view, args = {}, signal) {
  if (home.exported) return askExport(view, args);
  const query = queryOf(args);
  return answerOf(fetch(`/page/data/${view}${query && "?"}${query}`, { signal, headers: { Accept: "application/json" } }));
}

function post(path, body, headers) {
  const text = JSON.stringify(body);
  return answerOf(fetch(path, { method: "POST", body: text, headers: { "Content-Type": "application/json", ...headers } }));
}

export function act(action, args) {
  return post(`/page/do/${action}`, args, { "X-Daypack-Write": home.start?.write_token ?? "" });
}

export function enter(token) {
  return post("/page/enter", { token }, {});
}

export function mayWrite() {
  return !home.exported && Boolean(home.start?.writes && home.start?.write_token);
}

export async function begin() {
  home.exported = exportElement() !== null;
  home.start = await ask("start");
  return home.start;
}

/** The answer of a view; the previous answer stays until the new one is there (`fresh` says which it is). */
export function useAnswer(view, args, again = 0) {
  const key = view ? `${view}?${queryOf(args)}` : null;
  const [state, setState] = useState({ key: null });
  useEffect(() => {
    if (!key) return undefined;
    const stop = new AbortController();
    ask(view, args, stop.signal).then(
      (value) => stop.signal.aborted || setState({ key, value }),
      (error) => stop.signal.aborted || setState((old) => ({ key, value: old.key === key ? old.value : undefined, error })),
    );
    return () => stop.abort();
  }, [key, again]);
  const fresh = state.key === key;
  return { value: state.value, error: fresh ? state.error : undefined, fresh };
}

// ---------------------------------------------------------------- live events

export const connection = new EventTarget(); // "change": `connection.live` is "on", "off" or "waiting"
connection.live = "off";

function setLive(state) {
  if (connection.live === state) return;
  connection.live = state;
  connection.dispatchEvent(new Event("change"));
}

/** Follow live events while a view is shown. After a lost connection `follow` is called once, for what was missed.
 *
 * A hidden tab is disconnected: browsers allow few connections to a server, and many tabs would use them up. */
export function useLive(args, follow) {
  const query = queryOf(args);
  const newest = useRef(follow);
  newest.current = follow;
  useEffect(() => {
    if (home.exported) return undefined;
    let source = null;
    let timer = 0;
    let failures = 0;
    let missed = false;
    const leave = (state) => {
      clearTimeout(timer);
      source?.close();
      source = null;
      missed = true;
      setLive(state);
    };
    const connect = () => {
      if (source) return;
      source = new EventSource(`/page/live${query && "?"}${query}`);
      source.onopen = () => {
        failures = 0;
        setLive("on");
        if (missed) newest.current("missed", null);
      };
      const receive = (event) => newest.current(event.type, JSON.parse(event.data));
      source.addEventListener("sessions", receive);
      source.addEventListener("session", receive);
      source.addEventListener("replaced", () => leave("waiting"));
      source.onerror = () => {
        leave("waiting");
        timer = setTimeout(connect, Math.min(30_000, 1000 * 2 ** failures++) * (0.75 + Math.random() / 2));
      };
    };
    const visibility = () => (document.hidden ? leave("waiting") : connect());
    document.addEventListener("visibilitychange", visibility);
    if (!document.hidden) connect();
    return () => {
      document.removeEventListener("visibilitychange", visibility);
      leave("off");
    };
  }, [query]);
}
