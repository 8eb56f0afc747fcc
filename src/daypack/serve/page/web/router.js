// Addresses are fragments, so an exported file has the same ones. Every name is percent-encoded: a session may be
// called "a/b" or "__proto__".
import { useEffect, useState } from "./vendor/preact.js";

function encoded(segment) {
  return encodeURIComponent(String(segment).toWellFormed()); // a lone surrogate would throw
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function address(...segments) {
  return "#/" + segments.map(encoded).join("/");
}

export function sessionAddress(agent, session, ...rest) {
  return address("s", agent, session, ...rest);
}

export function messageAddress(agent, session, seq) {
  return sessionAddress(agent, session, "history", seq);
}

export function route() {
  const path = location.hash.replace(/^#\/?/, "");
  return path ? path.split("/").map(decoded) : [];
}

export function go(to) {
  if (location.hash !== to) location.hash = to;
}

/** Change the address without a new entry in the browser's history: moving along the strip is not a navigation. */
export function replaceAddress(to) {
  if (location.hash === to) return;
  history.replaceState(history.state, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute() {
  const [current, setCurrent] = useState(route);
  useEffect(() => {
    const read = () => setCurrent(route());
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return current;
}
