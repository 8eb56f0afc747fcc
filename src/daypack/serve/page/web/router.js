// Addresses are fragments, so that an exported file has the same ones. Every name in them is percent-encoded.
import { useEffect, useState } from "./vendor/preact.js";

/** Percent-encode a name; a lone surrogate would throw. */
export function encoded(name) {
  return encodeURIComponent(String(name).toWellFormed());
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function address(...segments) {
  return `#/${segments.map(encoded).join("/")}`;
}

function readRoute() {
  const path = location.hash.replace(/^#\/?/, "");
  return path ? path.split("/").map(decoded) : [];
}

export function go(to) {
  location.hash = to;
}

/** Change the address without a new entry in the browser's history: moving along the strip is not a navigation. */
export function replaceAddress(to) {
  if (location.hash === to) return;
  history.replaceState(null, "", to);
  dispatchEvent(new Event("hashchange"));
}

export function useRoute() {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    addEventListener("hashchange", () => setRoute(readRoute()));
    setRoute(readRoute()); // it may have changed since the first rendering
  }, []);
  return route;
}
