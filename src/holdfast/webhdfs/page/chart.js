// Draw a line over the last minutes.

import { draw } from "./elements.js";
import { absolute, rate } from "./words.js";

const HEIGHT = 180;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 10;
const SPANS = [1, 2, 5, 10]; // minutes
export const MOST_MS = SPANS.at(-1) * 60_000;

/** Return the next number of 1, 2 and 5 times a power of ten. */
function roundUp(number) {
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].map((step) => step * power).find((one) => one >= number);
}

const agoOf = (minutes) => (minutes >= 1 ? `${minutes} min ago` : minutes ? `${minutes * 60} s ago` : "now");

/** Return a picture of points {ms, value}. */
export function drawChart(points, width, nowMs) {
  const most = roundUp(Math.max(1, ...points.map((point) => point.value)));
  const age = points.length ? nowMs - points[0].ms : 0;
  const span = SPANS.find((one) => age <= one * 60_000) ?? SPANS.at(-1);
  const x = (ms) => LEFT + ((ms - nowMs) / (span * 60_000) + 1) * (width - LEFT - 8);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const latest = points.at(-1);
  const label = latest ? `${rate(latest.value)} operations a second now` : "no numbers yet";
  const picture = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": label });
  for (const value of [0, most / 2, most]) {
    picture.append(
      draw("line", { x1: LEFT, x2: width - 8, y1: y(value), y2: y(value), class: "grid" }),
      draw("text", { x: LEFT - 8, y: y(value) + 4, class: "axis", "text-anchor": "end" }, rate(value).replace(".0", "")),
    );
  }
  for (const minutes of [span, span / 2, 0]) {
    const anchor = minutes === span ? "start" : minutes ? "middle" : "end";
    const at = { x: x(nowMs - minutes * 60_000), y: HEIGHT - 4, class: "axis", "text-anchor": anchor };
    picture.append(draw("text", at, agoOf(minutes)));
  }
  if (!latest) return picture;
  const line = points.map((point) => `${x(point.ms).toFixed(1)},${y(point.value).toFixed(1)}`);
  const ground = y(0);
  picture.append(
    draw("polygon", { points: `${x(points[0].ms)},${ground} ${line.join(" ")} ${x(latest.ms)},${ground}`, class: "below" }),
    draw("polyline", { points: line.join(" "), class: "line" }),
    draw("circle", { cx: x(latest.ms), cy: y(latest.value), r: 3.5, class: "dot" }),
  );
  for (const point of points) {
    picture.append(
      draw(
        "rect",
        { x: x(point.ms) - 4, y: TOP, width: 8, height: HEIGHT - BOTTOM - TOP, class: "target" },
        draw("title", {}, `${rate(point.value)} operations a second, ${absolute(point.ms)}`),
      ),
    );
  }
  return picture;
}
