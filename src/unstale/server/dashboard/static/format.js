// Numbers as people say them. A number and its unit stay on one line.

const UNITS = [[31557600, "y"], [2629800, "mo"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** A length of time in seconds: two digits and a unit. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0) return `−${span(-seconds)}`;
  if (seconds < 1) return seconds < 0.001 ? "0\u00a0s" : `${Math.round(1000 * seconds)}\u00a0ms`;
  const [size, unit] = UNITS.find(([one]) => seconds >= one);
  const count = seconds / size;
  return `${count < 10 ? Number(count.toPrecision(2)) : Math.round(count)}\u00a0${unit}`;
}

export const percent = (share, digits = 1) => (Number.isFinite(share) ? `${(100 * share).toFixed(digits)}\u00a0%` : "–");

// How far off a share may be, in points, where that is known.
export const give = (error) => (Number.isFinite(error) ? `, give or take ${(100 * error).toFixed(1)}` : "");

export function count(number, digits = 3) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  if (Math.abs(number) >= 100) return Math.round(number).toLocaleString("en");
  return String(Number(number.toPrecision(digits)));
}

/** So many of something, as it is said: "1 poll", "2 polls". */
export const many = (number, one, several = `${one}s`) => `${count(number)} ${number === 1 ? one : several}`;

/** Seconds since the epoch of a time in UTC, NaN for none. */
export const seconds = (stamp) => (stamp ? Date.parse(stamp) / 1000 : NaN);

export function ago(stamp, never = "never") {
  const past = Date.now() / 1000 - seconds(stamp);
  if (Number.isNaN(past)) return never;
  if (Math.abs(past) < 1) return past >= 0 ? "just now" : "in a moment";
  return past >= 0 ? `${span(past)}\u00a0ago` : `in\u00a0${span(-past)}`;
}

/** When something is to come. */
export const due = (stamp) => (seconds(stamp) * 1000 <= Date.now() ? "due now" : ago(stamp, "–"));

/** A long text cut in the middle: what tells rows apart is at its ends. */
export const short = (text, most = 100) => (text.length <= most ? text : `${text.slice(0, Math.ceil(0.6 * most))}…${text.slice(-Math.floor(0.4 * most))}`);

/** The reader's time zone, and a moment in words of the reader's place. */
export const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "local time";
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
export const moment = (at) => WHOLE.format(1000 * at);

/** Short words for moments along a scale: times within two days, with the day where it begins; days beyond. */
export function moments(all) {
  const days = all.length > 1 && all.at(-1) - all[0] > 2 * 86400;
  const form = (options) => new Intl.DateTimeFormat(undefined, options);
  const [day, time] = [form({ day: "numeric", month: "short" }), form({ hour: "2-digit", minute: "2-digit", ...(all[1] - all[0] < 60 ? { second: "2-digit" } : {}) })];
  return all.map((at, i) => {
    if (days) return day.format(1000 * at);
    const first = i === 0 || day.format(1000 * at) !== day.format(1000 * all[i - 1]);
    return first ? `${time.format(1000 * at)}\n${day.format(1000 * at)}` : time.format(1000 * at);
  });
}

export function bytes(size) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000 || unit === "GB") return `${count(size)}\u00a0${unit}`;
    size /= 1000;
  }
  return "";
}

/** How often something happens, from its rate per second. */
export const every = (rate) => (rate > 0 ? `every ${span(1 / rate)}` : "never");

/** 15m, 2h, 1d or plain seconds into seconds; null for nothing, NaN for nonsense. */
export function parsed(text) {
  if (!text.trim()) return null;
  const found = /^\s*(\d+(?:\.\d*)?)\s*(s|min|m|h|d|mo|y)?\s*$/.exec(text);
  if (!found) return NaN;
  const sizes = { m: 60, min: 60, ...Object.fromEntries(UNITS.map(([size, unit]) => [unit, size])) };
  return Number(found[1]) * (found[2] ? sizes[found[2]] : 1);
}
