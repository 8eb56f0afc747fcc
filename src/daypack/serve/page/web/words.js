// Numbers, times and names as people read them. What is not known is a dash or "unknown", never 0.

const grouped = new Intl.NumberFormat("en-US");
const precise = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const DASH = "–";

export function number(value) {
  return value == null ? DASH : grouped.format(value);
}

export function counted(value, noun, nouns) {
  return value == null ? `unknown ${nouns || noun + "s"}` : `${number(value)} ${value === 1 ? noun : nouns || noun + "s"}`;
}

export function tokens(value) {
  return counted(value, "token");
}

/** 31,240 → 31.2k: for axes and narrow places. */
export function short(value) {
  if (value == null) return DASH;
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  const [divisor, unit] = size < 999_500 ? [1e3, "k"] : size < 999.5e6 ? [1e6, "M"] : [1e9, "G"];
  return `${(value / divisor).toFixed(size / divisor < 100 ? 1 : 0).replace(/\.0$/, "")}${unit}`;
}

export function bytes(value) {
  if (value == null) return DASH;
  return value < 1000 ? `${value} B` : `${short(value).replace(/[kMG]$/, (unit) => ` ${unit}`)}B`;
}

export function percent(part, whole) {
  return part == null || !whole ? DASH : `${Math.round((100 * part) / whole)} %`;
}

export function signed(value) {
  return value == null ? DASH : value > 0 ? `+${number(value)}` : value < 0 ? `−${number(-value)}` : "±0";
}

export function moment(iso) {
  const time = iso ? new Date(iso) : null;
  return time && !isNaN(time) ? precise.format(time) : iso || "unknown time";
}

export function age(iso) {
  const time = iso ? Date.parse(iso) : NaN;
  if (isNaN(time)) return DASH;
  const seconds = Math.max(0, (Date.now() - time) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 86_400 * 60) return `${Math.floor(seconds / 86_400)} d`;
  return seconds < 86_400 * 700 ? `${Math.floor(seconds / 2_629_800)} mo` : `${Math.floor(seconds / 31_557_600)} y`;
}

// What each part of a window is, in the order in which a request is sent.
const PART_WORDS = new Map([
  ["prefix", ["Prefix", "system prompt and tools"]],
  ["pins", ["Pins", "texts pinned by the user, instructions"]],
  ["memory", ["Memory", "memory document and entries"]],
  ["summary", ["Summary", "CONTEXT.md and summaries"]],
  ["records", ["Records", "decisions, facts, todos, errors"]],
  ["tail", ["Tail", "the newest messages as they were said"]],
  ["recalled", ["Recalled", "older messages and search hits"]],
  ["volatile", ["Volatile", "changes at every call, so it is last"]],
  ["unknown", ["Unknown", "sent, but its source is not known"]],
]);

export function partName(part) {
  return PART_WORDS.get(part)?.[0] ?? String(part);
}

export function partHint(part) {
  return PART_WORDS.get(part)?.[1] ?? "";
}

/** The class that gives a part its colour; names from data never become class names. */
export function partClass(part) {
  return `p-${PART_WORDS.has(part) ? part : "unknown"}`;
}

/** system_prompt → System prompt. */
export function spaced(code) {
  const text = String(code ?? "").replace(/[_-]+/g, " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const MARK_WORDS = new Map([
  ["error", "the provider answered with an error"],
  ["retry", "sent again"],
  ["incomplete", "the answer was cut off"],
  ["erased", "its content was erased"],
]);

export function markWords(mark) {
  return MARK_WORDS.get(mark) ?? String(mark);
}

/** "messages:12", "messages:3-8" or "msg-12" → 12: the message that a reference opens. */
export function messageOf(reference) {
  const match = /(?:messages?:|msg-)(\d+)/.exec(reference ?? "");
  return match ? Number(match[1]) : null;
}
