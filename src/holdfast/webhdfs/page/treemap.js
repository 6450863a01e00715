// Draw what uses space as areas: the squarified treemap of Bruls, Huizing and van Wijk (2000).

import { draw } from "./elements.js";
import { visible } from "./words.js";

const GAP = 2;
const PADDING = 8;
const SHADES = 6;

/** Return a rectangle for each weight; the weights are positive, and fall. */
export function squarify(weights, width, height) {
  const area = (width * height) / weights.reduce((sum, one) => sum + one, 0);
  const found = [];
  let [x, y, w, h] = [0, 0, width, height];
  let at = 0;
  while (at < weights.length) {
    const side = Math.min(w, h);
    let end = at + 1;
    let sum = weights[at] * area;
    let worst = worstRatio(weights, at, end, sum, side, area);
    while (end < weights.length) {
      const more = sum + weights[end] * area;
      const next = worstRatio(weights, at, end + 1, more, side, area);
      if (next > worst) break;
      [sum, worst, end] = [more, next, end + 1];
    }
    const depth = side ? sum / side : 0;
    let along = 0;
    for (; at < end; at++) {
      const length = depth ? (weights[at] * area) / depth : 0;
      found.push(w >= h ? { x, y: y + along, w: depth, h: length } : { x: x + along, y, w: length, h: depth });
      along += length;
    }
    [x, y, w, h] = w >= h ? [x + depth, y, w - depth, h] : [x, y + depth, w, h - depth];
  }
  return found;
}

function worstRatio(weights, from, end, sum, side, area) {
  const [largest, least] = [weights[from] * area, weights[end - 1] * area];
  const squared = sum * sum;
  return Math.max((side * side * largest) / squared, squared / (side * side * least));
}

/** Return a picture of items: {name, weight, words, address, kind}, the largest first. */
export function drawTreemap(items, width, height, label) {
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
  const places = squarify(items.map((item) => item.weight), width, height);
  items.forEach((item, number) => picture.append(drawItem(item, places[number], number)));
  return picture;
}

function drawItem(item, place, number) {
  const w = Math.max(place.w - GAP, 0.5);
  const h = Math.max(place.h - GAP, 0.5);
  const kind = item.kind === "directory" ? `shade-${Math.min(number, SHADES - 1)}` : item.kind;
  const parts = [
    draw("title", {}, `${visible(item.name)}: ${item.words}`),
    draw("rect", { x: place.x, y: place.y, width: w, height: h, rx: Math.min(4, w / 2, h / 2) }),
  ];
  const room = w - 2 * PADDING;
  const name = h >= 22 ? shorten(visible(item.name), room) : "";
  const texts = name ? [drawText(17, name, "label")] : [];
  if (name && h >= 40 && widthOf(item.words) <= room) texts.push(drawText(33, item.words, "words"));
  if (texts.length) parts.push(draw("svg", { x: place.x, y: place.y, width: w, height: h }, ...texts)); // it clips
  const named = { class: `area ${kind}`, "aria-label": `${visible(item.name)}, ${item.words}` };
  return item.address ? draw("a", { href: item.address, ...named }, ...parts) : draw("g", { role: "img", ...named }, ...parts);
}

const drawText = (y, text, kind) => draw("text", { x: PADDING, y, class: kind, "aria-hidden": "true" }, text);

const ruler = document.createElement("canvas").getContext("2d");

function widthOf(text) {
  ruler.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
  return ruler.measureText(text).width;
}

/** Leave out the middle of a name that is too long: many names of a directory begin alike. */
function shorten(text, room) {
  if (widthOf(text) <= room) return text;
  const letters = [...text];
  for (let most = Math.min(letters.length - 1, Math.floor(room / 3)); most >= 2; most--) {
    const tail = Math.floor(most / 2);
    const shorter = `${letters.slice(0, most - tail).join("")}…${letters.slice(letters.length - tail).join("")}`;
    if (widthOf(shorter) <= room) return shorter;
  }
  return "";
}
