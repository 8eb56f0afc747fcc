// Answers of the server's views, actions and live events; in an exported file, the answers that are inside it.
import { createContext, useContext, useEffect, useRef, useState } from "./vendor/preact.js";
import { encoded } from "./router.js";

/** `start` is what the server said first: version, rights, write token, words for codes. */
export const home = { start: null, exported: false };

/** The session that is shown: {agent, session}. */
export const Here = createContext({});

export class Refused extends Error {
  constructor(status, problem) {
    super(problem?.message || (status ? `The server answered ${status}.` : "The server does not answer."));
    this.status = status;
    this.hint = problem?.hint;
  }
}

export function wordsFor(group, code) {
  const words = home.start.words?.[group] ?? {};
  return Object.hasOwn(words, code) ? words[code] : null;
}

function queryOf(args) {
  const names = Object.keys(args).filter((name) => args[name] != null).sort();
  return names.map((name) => `${name}=${encoded(args[name])}`).join("&");
}

// An exported file

const inside = document.getElementById("daypack-export");
let unpacked = null;

async function unpack() {
  const packed = Uint8Array.from(atob(inside.textContent.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** Put shared values back into their places; {"$": 3} is the third of them. */
function filled(value, texts) {
  if (Array.isArray(value)) return value.map((part) => filled(part, texts));
  if (value === null || typeof value !== "object") return value;
  const fields = Object.entries(value);
  if (fields.length === 1 && fields[0][0] === "$") return texts[value.$];
  return Object.fromEntries(fields.map(([name, part]) => [name, filled(part, texts)]));
}

async function askExport(key) {
  const { texts, answers } = await (unpacked ??= unpack());
  if (Object.hasOwn(answers, key)) return filled(answers[key], texts);
  throw new Refused(404, { message: "This is not in the export.", hint: "`daypack view` shows everything." });
}

// The server

export const events = new EventTarget(); // "locked": a token is needed; "live": the connection changed

async function answerOf(request) {
  try {
    const response = await request;
    const body = await response.json();
    if (response.ok) return body;
    if (response.status === 401) events.dispatchEvent(new Event("locked"));
    throw new Refused(response.status, body.error);
  } catch (error) {
    if (error instanceof Refused || error.name === "AbortError") throw error;
    throw new Refused(0, { hint: "Is `daypack view` still running?" });
  }
}

export function ask(view, args = {}, signal) {
  const query = queryOf(args);
  return home.exported ? askExport(`${view}?${query}`) : answerOf(fetch(`/page/data/${view}?${query}`, { signal }));
}

function post(path, body, headers) {
  return answerOf(fetch(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers } }));
}

export function act(action, args) {
  return post(`/page/do/${action}`, args, { "X-Daypack-Write": home.start.write_token });
}

export function enter(token) {
  return post("/page/enter", { token });
}

export function mayWrite() {
  return !home.exported && home.start.writes && Boolean(home.start.write_token);
}

export async function begin() {
  home.exported = inside !== null;
  home.start = await ask("start");
}

/** The answer of a view. The previous answer stays until the new one is there; `fresh` says which it is. */
export function useAnswer(view, args, again) {
  const key = view && `${view}?${queryOf(args)}`;
  const [state, setState] = useState({});
  useEffect(() => {
    if (!key) return undefined;
    const stop = new AbortController();
    const set = (answer) => stop.signal.aborted || setState((old) => ({ ...(old.key === key && { value: old.value }), key, ...answer }));
    ask(view, args, stop.signal).then((value) => set({ value, error: null }), (error) => set({ error }));
    return () => stop.abort();
  }, [key, again]);
  const fresh = state.key === key;
  return { value: state.value, error: fresh && state.error, fresh, stale: fresh ? "" : "stale" };
}

/** The answer of a view about the session that is shown. */
export function useHere(view, args, again) {
  return useAnswer(view, { ...useContext(Here), ...args }, again);
}

// Live events

function setLive(state) {
  if (events.live === state) return;
  events.live = state;
  events.dispatchEvent(new Event("live"));
}

/** Follow live events while a view is shown. `follow` is also called after a lost connection, for what was missed.
 *
 * A hidden tab is disconnected: browsers allow few connections to a server, and many tabs would use them up. */
export function useLive(args, follow) {
  const newest = useRef();
  newest.current = follow;
  useEffect(() => {
    if (home.exported) return undefined;
    let source, timer, missed;
    let failures = 0;
    const leave = (state) => {
      clearTimeout(timer);
      source?.close();
      source = null;
      missed = true;
      setLive(state);
    };
    const connect = () => {
      if (source || document.hidden) return;
      source = new EventSource(`/page/live?${queryOf(args)}`);
      const receive = (event) => newest.current(event.type, JSON.parse(event.data));
      source.addEventListener("sessions", receive);
      source.addEventListener("session", receive);
      source.addEventListener("replaced", () => leave("lost")); // by newer tabs; comes back when it is looked at
      source.onopen = () => {
        failures = 0;
        setLive("on");
        if (missed) newest.current("missed", {});
      };
      source.onerror = () => {
        leave("lost");
        timer = setTimeout(connect, Math.min(30_000, 1000 * 2 ** failures++) * (0.75 + Math.random() / 2));
      };
    };
    const look = () => (document.hidden ? leave("lost") : connect());
    document.addEventListener("visibilitychange", look);
    connect();
    return () => {
      document.removeEventListener("visibilitychange", look);
      leave("off");
    };
  }, [queryOf(args)]);
}
