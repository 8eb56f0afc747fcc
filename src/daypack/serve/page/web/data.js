// Answers of the server's views, actions and live events; in an exported file, the answers that are inside it.
import { createContext, useContext, useEffect, useRef, useState } from "./vendor/preact.js";
import { encoded } from "./router.js";

const inside = document.getElementById("daypack-export");

/** `start`: what the server said first, its version, rights, write token and words for codes. */
export const home = { start: {}, exported: inside !== null };

/** The session that is shown: {agent, session}. */
export const Here = createContext();

class Refused extends Error {
  constructor(status, problem) {
    super(problem?.message ?? `The server answered ${status}.`);
    Object.assign(this, { status, hint: problem?.hint });
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

let unpacked;

async function unpack() {
  const packed = Uint8Array.from(atob(inside.textContent), (letter) => letter.charCodeAt(0));
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

export const events = new EventTarget(); // "locked": a token is needed; "live": the connection changed

async function askServer(path, options) {
  const response = await fetch(path, options).catch((error) => {
    throw error.name === "AbortError" ? error : new Refused(0, { message: "The server does not answer.",
      hint: "Is `daypack view` still running?" });
  });
  const body = await response.json();
  if (response.ok) return body;
  if (response.status === 401) events.dispatchEvent(new Event("locked"));
  throw new Refused(response.status, body.error);
}

export function ask(view, args = {}, signal) {
  const key = `${view}?${queryOf(args)}`;
  return home.exported ? askExport(key) : askServer(`/page/data/${key}`, { signal });
}

function post(path, body, headers) {
  return askServer(path, { method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers } });
}

export function act(action, args) {
  return post(`/page/do/${action}`, args, { "X-Daypack-Write": home.start.write_token });
}

export function enter(token) {
  return post("/page/enter", { token });
}

export function mayWrite() {
  return !home.exported && home.start.writes;
}

/** The answer of a view. The previous answer stays until the new one is there: `fresh`, or `stale` as a class. */
export function useAnswer(view, args, again) {
  const key = view && `${view}?${queryOf(args)}`;
  const [state, setState] = useState({});
  useEffect(() => {
    if (!key) return undefined;
    const stop = new AbortController();
    const set = (answer) => stop.signal.aborted || setState((old) => ({ value: old.key === key ? old.value
      : null, key, ...answer }));
    ask(view, args, stop.signal).then((value) => set({ value }), (error) => set({ error }));
    return () => stop.abort();
  }, [key, again]);
  const fresh = state.key === key;
  return { value: state.value, error: fresh && state.error, fresh, stale: fresh ? "" : "stale" };
}

/** The answer of a view about the session that is shown. */
export function useHere(view, args, again) {
  return useAnswer(view, { ...useContext(Here), ...args }, again);
}

/** A value that no longer changes: the one that was there for some milliseconds. */
export function useSettled(value, milliseconds) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

function setLive(state) {
  events.live = state;
  events.dispatchEvent(new Event("live"));
}

/** Follow live events; `follow` is also called after a lost connection, for what was missed.
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
      source.onopen = () => {
        failures = 0;
        setLive("on");
        if (missed) newest.current("missed", {});
      };
      source.onerror = () => {
        leave("lost");
        timer = setTimeout(connect, Math.min(30_000, 1000 * 2 ** failures++) * (0.75 + Math.random() / 2));
      };
      for (const name of ["sessions", "session"]) source.addEventListener(name,
        (event) => newest.current(name, JSON.parse(event.data)));
      source.addEventListener("replaced", () => leave("lost")); // by newer tabs, until this one is looked at again
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
