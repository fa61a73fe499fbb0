// Curves over time or along a scale, in the colours of the theme.
/* global uPlot */

import { moment, moments, zone } from "./format.js";

/** Round numbers along a scale by powers of ten: 1, 2 and 5 of each that lies within. */
const round = (least, most) => Array.from({ length: 40 }, (_, i) => 10 ** (i - 15)).flatMap((ten) => [ten, 2 * ten, 5 * ten])
  .filter((one) => one >= least && one <= most);

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/**
 * Draw into an element: `xs`, and series of {name, values, colour, dash, band, points, show, shown}
 * (`shown`: what stands for a value below it). `said` is what a reader who cannot see it is told. Returns a way to take it down.
 */
export function chart(into, xs, series, { said, height = 220, time = true, logX = false, logY = false, y, x, xName = "", range, yTicks, at = xs.length - 1 }) {
  let plot = null;
  const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const options = () => ({
    width: Math.max(into.clientWidth, 120), height,
    scales: { x: { time, distr: logX ? 3 : 1, ...(logX ? { range: (_, least, most) => [least / 1.1, most * 1.1] } : {}), ...(time && xs.length === 1 ? { range: [xs[0] - 1800, xs[0] + 1800] } : {}) }, y: { distr: logY ? 3 : 1, ...(range ? { range } : {}) } },
    axes: [{ ...axis, ...(time ? { label: `time in ${zone}`, labelSize: 20, labelFont: "12px system-ui", size: 42, space: 72, values: (_, all) => moments(all) } : {}), ...(logX ? { splits: (plot, __, least, most) => round(least, most).filter((one) => plot.width > 480 || Math.log10(one) % 1 === 0) } : {}), ...(x ? { values: (_, all) => all.map((one) => (one === null ? null : x(one))), filter: (_, all) => all } : {}) },
      { ...axis, size: 76, ...(yTicks ? { splits: () => yTicks } : {}), values: (_, all) => all.map((one) => (one === null ? null : y(one))) }],
    series: [{ label: x ? xName : "time", value: (_, one) => (one === null ? "–" : (x ?? moment)(one)) }, ...series.map((one) => ({
      label: one.name, stroke: () => colour(one.colour), width: 2, dash: one.dash, spanGaps: true,
      fill: one.fill ? () => colour(one.fill) : undefined,
      paths: one.points ? () => null : undefined,
      points: { show: Boolean(one.points || xs.length < 3), size: one.points || 6, fill: () => colour(one.colour) },
      value: (_, value) => (value === null || value === undefined ? "–" : (one.shown ?? y)(value)),
    }))],
    bands: series.flatMap((one, i) => (one.band ? [{ series: [i + 1, i + 2], fill: () => colour("band") }] : [])),
    // A stretch of time is dragged over to see it larger; a double click shows all again.
    cursor: { drag: { x: time, y: false, setScale: true } },
    // The newest values, or those at a place of note, where nobody points at others.
    hooks: {
      ready: [(made) => made.setLegend({ idx: at })],
      setCursor: [(made) => { if (!(made.cursor.left >= 0)) made.setLegend({ idx: at }); }],
    },
  });
  const draw = () => {
    plot?.destroy();
    plot = new uPlot(options(), [xs, ...series.map((one) => one.values)], into);
  };
  into.setAttribute("role", "img");
  into.setAttribute("aria-label", said);
  if (time) into.title = "Drag over a stretch of time to see it larger, double click to see all.";
  into.replaceChildren();
  draw();
  const watch = new ResizeObserver(() => plot.setSize({ width: Math.max(into.clientWidth, 120), height }));
  watch.observe(into);
  addEventListener("theme", draw);
  return () => { watch.disconnect(); removeEventListener("theme", draw); plot?.destroy(); };
}
