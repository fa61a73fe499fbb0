// Numbers as people say them.

const UNITS = [[31557600, "y"], [2629800, "mo"], [86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

/** A length of time in seconds: two digits and a unit. */
export function span(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0) return `−${span(-seconds)}`;
  if (seconds < 1) return seconds < 0.001 ? "0 s" : `${Math.round(1000 * seconds)} ms`;
  const [size, unit] = UNITS.find(([one]) => seconds >= one);
  const count = seconds / size;
  return `${count < 10 ? Number(count.toPrecision(2)) : Math.round(count)} ${unit}`;
}

export const percent = (share, digits = 1) => (Number.isFinite(share) ? `${(100 * share).toFixed(digits)} %` : "–");

export function count(number, digits = 3) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  if (Math.abs(number) >= 100) return Math.round(number).toLocaleString("en");
  return String(Number(number.toPrecision(digits)));
}

/** Seconds since the epoch of a time in UTC, NaN for none. */
export const seconds = (stamp) => (stamp ? Date.parse(stamp) / 1000 : NaN);

export function ago(stamp, never = "never") {
  const past = Date.now() / 1000 - seconds(stamp);
  if (Number.isNaN(past)) return never;
  return past >= 0 ? `${span(past)} ago` : `in ${span(-past)}`;
}

/** When something is to come. */
export const due = (stamp) => (seconds(stamp) * 1000 <= Date.now() ? "due now" : ago(stamp, "–"));

export function bytes(size) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (size < 1000 || unit === "GB") return `${count(size)} ${unit}`;
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
