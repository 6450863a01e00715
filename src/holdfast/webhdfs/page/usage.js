// Show what uses the space of a directory.

import { askPage } from "./access.js";
import { find, onWidth, replace, say } from "./elements.js";
import { addressOf, childOf } from "./paths.js";
import { drawTreemap } from "./treemap.js";
import { bytes, count, counted } from "./words.js";

const MOST_AREAS = 60;
const SMALLEST = 0.0005; // of the whole: a smaller area could not be seen
const HEIGHT = 420;

let shown = null;
let measure = "size";

const wordsOf = (one) => (measure === "size" ? bytes(one.size) : counted(one.files, "file"));

/** Measure a directory and show it; return the measured entries by name. */
export async function showUsage(path, signal) {
  hideUsage();
  find("usage").hidden = false;
  find("usage-total").textContent = "measuring …";
  try {
    shown = await askPage("usage", { path }, signal);
  } catch (error) {
    if (error.name !== "AbortError") hideUsage();
    throw error;
  }
  redraw();
  return new Map(shown.entries.map((one) => [one.name, one]));
}

/** Show no usage: there is none of a file, or of what may not be listed. */
export function hideUsage() {
  shown = null;
  find("usage").hidden = true;
  replace(find("map"));
  say(find("usage-note"), "");
}

function redraw() {
  if (!shown) return;
  const { total, isComplete } = shown;
  find("usage-total").textContent = `${isComplete ? "" : "at least "}${bytes(total.size)} in ${counted(total.files, "file")}`;
  say(find("usage-note"), notesOf(shown).join(" "));
  const items = itemsOf(shown);
  const width = Math.floor(find("map").clientWidth);
  if (!items.length || !width) {
    find("map").textContent = items.length ? "" : measure === "size" ? "No file here has any bytes." : "There are no files here.";
    return;
  }
  replace(find("map"), drawTreemap(items, width, Math.min(HEIGHT, Math.max(width * 0.8, 240)), "Areas by usage"));
}

function itemsOf({ path, entries, others, total }) {
  const sorted = entries.filter((one) => one[measure] > 0).sort((one, other) => other[measure] - one[measure]);
  const large = sorted.slice(0, MOST_AREAS).filter((one) => one[measure] >= total[measure] * SMALLEST);
  const items = large.map((one) => ({
    name: one.name,
    weight: one[measure],
    words: wordsOf(one),
    kind: one.is_directory ? "directory" : "file",
    address: one.is_directory ? addressOf(childOf(path, one.name)) : null,
  }));
  const rest = { size: others.size, files: others.files };
  for (const one of sorted.slice(large.length)) {
    rest.size += one.size;
    rest.files += one.files;
  }
  const number = sorted.length - large.length + others.number;
  if (rest[measure] > 0) {
    const weight = Math.min(rest[measure], items.length ? items[items.length - 1].weight : Infinity);
    items.push({ name: `${count(number)} smaller`, weight, words: wordsOf(rest), kind: "others", address: null });
  }
  return items;
}

function notesOf({ isComplete, measured, total }) {
  const notes = [];
  if (!isComplete) notes.push(`The measure stopped after ${count(measured)} files and directories: all numbers are lower bounds.`);
  if (total.unreadable) {
    const what = counted(total.unreadable, "directory", "directories");
    notes.push(`${what} may not be listed by you: what is in there is not counted.`);
  }
  return notes;
}

/** Prepare the buttons and the picture. */
export function startUsage() {
  const buttons = [...document.querySelectorAll("[data-measure]")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      measure = button.dataset.measure;
      for (const one of buttons) one.setAttribute("aria-pressed", String(one === button));
      redraw();
    });
  }
  onWidth(find("map"), redraw);
}
