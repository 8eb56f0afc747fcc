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

/** 31,240 → 31.2k */
export function short(value) {
  if (value == null) return "–";
  const [size, unit] = value < 1000 ? [1, ""] : value < 999_500 ? [1e3, "k"] : value < 999.5e6 ? [1e6, "M"]
    : [1e9, "G"];
  return `${(value / size).toFixed(unit && value / size < 100 ? 1 : 0).replace(/\.0$/, "")}${unit}`;
}

export function bytes(value) {
  return `${short(value).replace(/[kMG]?$/, " $&")}B`;
}

export function percent(part, whole) {
  return part == null || !whole ? "–" : `${Math.round((100 * part) / whole)} %`;
}

export function signed(value) {
  return value ? (value > 0 ? "+" : "−") + number(Math.abs(value)) : "±0";
}

export function moment(iso) {
  const time = new Date(iso ?? NaN);
  return isNaN(time) ? "unknown time" : precise.format(time);
}

const AGES = [[60, " min"], [3600, " h"], [86_400, " d"], [86_400 * 60, " mo"], [86_400 * 730, " y"]];
const MONTH = 2_629_800;

export function age(iso) {
  const seconds = (Date.now() - Date.parse(iso ?? "")) / 1000;
  if (isNaN(seconds)) return "–";
  const [from, unit] = AGES.findLast(([least]) => seconds >= least) ?? [];
  return unit ? Math.floor(seconds / ({ " mo": MONTH, " y": 12 * MONTH }[unit] ?? from)) + unit : "now";
}

/** system_prompt → System prompt */
export function spaced(code) {
  const text = String(code ?? "").replace(/[_-]+/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// The parts of a window in the order in which a request is sent.
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

const MARKS = new Map(Object.entries({ error: "the provider answered with an error", retry: "sent again",
  incomplete: "the answer was cut off", erased: "its content was erased" }));

export function markWords(mark) {
  return MARKS.get(mark) ?? String(mark);
}

/** "messages:12", "messages:3-8" or "msg-12" → 12 */
export function messageOf(reference) {
  const found = /(?:messages?:|msg-)(\d+)/.exec(reference);
  return found && Number(found[1]);
}
