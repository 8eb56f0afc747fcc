// Numbers, times and names as people read them. What is not known is a dash or "unknown", never 0.

const grouped = new Intl.NumberFormat("en-US");
const precise = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export function number(value) {
  return value == null ? "–" : grouped.format(value);
}

export function counted(value, noun, nouns = `${noun}s`) {
  return value == null ? `unknown ${nouns}` : `${number(value)} ${value === 1 ? noun : nouns}`;
}

export function tokens(value) {
  return counted(value, "token");
}

/** 31,240 → 31.2k: for axes and narrow places. */
export function short(value) {
  if (value == null) return "–";
  const [divisor, unit] = value < 1000 ? [1, ""] : value < 999_500 ? [1e3, "k"] : value < 999.5e6 ? [1e6, "M"] : [1e9, "G"];
  return `${(value / divisor).toFixed(unit && value / divisor < 100 ? 1 : 0).replace(/\.0$/, "")}${unit}`;
}

export function bytes(value) {
  return value == null ? "–" : `${short(value).replace(/[kMG]?$/, " $&")}B`;
}

export function percent(part, whole) {
  return part == null || !whole ? "–" : `${Math.round((100 * part) / whole)} %`;
}

export function signed(value) {
  return value == null ? "–" : value > 0 ? `+${number(value)}` : `−${number(-value)}`.replace("−0", "±0").replace("−-0", "±0");
}

export function moment(iso) {
  const time = new Date(iso ?? NaN);
  return isNaN(time) ? "unknown time" : precise.format(time);
}

const AGES = [[60, 1, "now"], [3600, 60, " min"], [86_400, 3600, " h"], [86_400 * 60, 86_400, " d"], [86_400 * 700, 2_629_800, " mo"], [Infinity, 31_557_600, " y"]];

export function age(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso ?? "")) / 1000);
  if (isNaN(seconds)) return "–";
  const [, size, unit] = AGES.find(([below]) => seconds < below);
  return size === 1 ? unit : Math.floor(seconds / size) + unit;
}

/** system_prompt → System prompt. */
export function spaced(code) {
  const text = String(code ?? "").replace(/[_-]+/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// What each part of a window is, in the order in which a request is sent.
const PARTS = new Map(Object.entries({
  prefix: "system prompt and tools",
  pins: "texts pinned by the user, instructions",
  memory: "memory document and entries",
  summary: "CONTEXT.md and summaries",
  records: "decisions, facts, todos, errors",
  tail: "the newest messages as they were said",
  recalled: "older messages and search hits",
  volatile: "changes at every call, so it is last",
  unknown: "sent, but its source is not known",
}));

export function partHint(part) {
  return PARTS.get(part);
}

/** The class that gives a part its colour; a name from data never becomes a class. */
export function partClass(part) {
  return `part p-${PARTS.has(part) ? part : "unknown"}`;
}

const MARKS = new Map(Object.entries({ error: "the provider answered with an error", retry: "sent again", incomplete: "the answer was cut off", erased: "its content was erased" }));

export function markWords(mark) {
  return MARKS.get(mark) ?? String(mark);
}

/** "messages:12", "messages:3-8" or "msg-12" → 12: the message that a reference opens. */
export function messageOf(reference) {
  const found = /(?:messages?:|msg-)(\d+)/.exec(reference ?? "");
  return found ? Number(found[1]) : null;
}
