// Write numbers, times and names as people read them.

import { make } from "./elements.js";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const STEPS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const FIELDS = /(?: [a-z_]+=(?:'[^']*'|"[^"]*"|[^\s'"]+))+$/;
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });
const whole = new Intl.NumberFormat("en");

// Controls, and what turns the direction of a text or has no width: a name could pretend to be another one.
const INVISIBLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

export const count = (number) => whole.format(number);

export const counted = (number, noun, plural = `${noun}s`) => `${count(number)} ${number === 1 ? noun : plural}`;

export function bytes(number) {
  const power = number < 1024 ? 0 : Math.min(Math.floor(Math.log2(number) / 10), UNITS.length - 1);
  const value = number / 1024 ** power;
  return `${power && value < 10 ? value.toFixed(1) : whole.format(Math.round(value))} ${UNITS[power]}`;
}

export const rate = (number) => (number < 10 ? number.toFixed(1) : whole.format(Math.round(number)));

/** Return a duration such as 3 hours. */
export function duration(seconds) {
  const [unit, length] = STEPS.find(([, step]) => seconds >= step) ?? STEPS[3];
  return counted(Math.max(Math.floor(seconds / length), 0), unit);
}

/** Return a name with what nobody would see made visible. */
export const visible = (name) =>
  name.replace(INVISIBLE, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** Make an element with a name; it cannot change the direction of the text around it. */
export const nameOf = (name) => make("bdi", { class: "text" }, visible(name));

const two = (number) => String(number).padStart(2, "0");

export function absolute(ms) {
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Return how long ago something was, such as 3 min. ago. */
export function ago(ms, nowMs) {
  const seconds = (ms - nowMs) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  const [unit, length] = STEPS.find(([, step]) => Math.abs(seconds) >= step);
  return relative.format(Math.trunc(seconds / length), unit);
}

/** Make an element with a time: how long ago, and the time itself for those who have the room, or point at it. */
export function timeOf(ms, nowMs = Date.now()) {
  if (!ms) return make("span", { class: "quiet" }, "–");
  const full = absolute(ms);
  const old = Math.abs(nowMs - ms) > 30 * 86400_000;
  const text = old ? full.slice(0, 10) : ago(ms, nowMs);
  return make("time", { datetime: new Date(ms).toISOString(), title: full }, text);
}

/** Return the mode of a file as ls shows it. */
export function modeOf(octal, isDirectory) {
  const bits = parseInt(octal, 8);
  let text = isDirectory ? "d" : "-";
  for (let bit = 8; bit >= 0; bit--) text += (bits >> bit) & 1 ? "xwr"[bit % 3] : "-";
  return bits & 0o1000 ? text.slice(0, -1) + (bits & 1 ? "t" : "T") : text;
}

/** Return a message of the server as a sentence. */
export function sentence(text) {
  const line = text.trim().split("\n", 1)[0] || "the server gives no reason";
  const first = line.replace(FIELDS, (found) => ` (${found.trim()})`); // what the message is about
  return first[0].toUpperCase() + first.slice(1) + (/[.!?]$/.test(first) ? "" : ".");
}
