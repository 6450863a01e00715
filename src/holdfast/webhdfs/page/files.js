// Browse directories.

import { list } from "./access.js";
import { showDetails } from "./details.js";
import { draw, find, make, replace, say } from "./elements.js";
import { addressOf, childOf, lastOf } from "./paths.js";
import { hideUsage, showUsage } from "./usage.js";
import { bytes, count, counted, modeOf, nameOf, timeOf, visible } from "./words.js";

const ICONS = {
  directory: "M2 5a2 2 0 0 1 2-2h4l2 2h6a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2z",
  file: "M5 2h7l4 4v11a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V3a1 1 0 0 1 1-1z",
};
const ORDERS = {
  name: () => 0, // as the server sends them
  size: (one, other) => sizeOf(other) - sizeOf(one),
  time: (one, other) => other.modificationTime - one.modificationTime,
};

const here = { path: "/", entries: [], more: false, starts: [""], order: "name", usage: new Map(), isFile: false };
let running = new AbortController();
let fail = () => {};

const nameIn = (entry) => entry.pathSuffix || lastOf(here.path);
const pathOf = (entry) => (entry.pathSuffix ? childOf(here.path, entry.pathSuffix) : here.path);

function sizeOf(entry) {
  return entry.type === "DIRECTORY" ? (here.usage.get(entry.pathSuffix)?.size ?? -1) : entry.length;
}

/** Show a directory, or the file that has the path. */
export async function showFiles(path) {
  here.path = path;
  find("filter").value = "";
  showCrumbs(path);
  await load([""], true);
}

/** Go on where the eyes are after a step: at the top, with the focus on the path. */
export function beginAtTop() {
  scrollTo(0, 0);
  find("crumbs").lastElementChild.focus({ preventScroll: true });
}

/** Load a page: that after the last of the names with which pages started. */
async function load(starts, isNew = false) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const { path } = here;
  if (isNew) Object.assign(here, { entries: [], more: false, starts, usage: new Map(), isFile: false });
  find("listing").setAttribute("aria-busy", "true");
  try {
    const page = await list(path, starts.at(-1), signal);
    Object.assign(here, page, { starts, isFile: page.entries.length === 1 && !page.entries[0].pathSuffix });
    showEntries();
    fail(null);
    if (!isNew) return;
    if (here.isFile) return hideUsage();
    here.usage = await showUsage(path, signal);
    showEntries();
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!here.entries.length) {
      showEntries();
      say(find("listing-empty"), "Nothing can be shown.");
      find("listing-count").textContent = "";
      hideUsage();
    }
    fail(error);
  } finally {
    if (!signal.aborted) find("listing").removeAttribute("aria-busy");
  }
}

function showCrumbs(path) {
  const crumbs = [make("a", { href: "#/", "aria-label": "root directory" }, "/")];
  let sofar = "/";
  for (const name of path.split("/").filter(Boolean)) {
    sofar = childOf(sofar, name);
    if (crumbs.length > 1) crumbs.push(make("span", { class: "slash", "aria-hidden": "true" }, "/"));
    crumbs.push(make("a", { href: addressOf(sofar) }, nameOf(name)));
  }
  crumbs.at(-1).setAttribute("aria-current", "page");
  replace(find("crumbs"), ...crumbs);
}

// --- the table -------------------------------------------------------------------------------------------------------
function showEntries() {
  const wanted = find("filter").value.toLowerCase();
  const found = here.entries.filter((entry) => nameIn(entry).toLowerCase().includes(wanted));
  const sorted = here.order === "name" ? found : [...found].sort(ORDERS[here.order]);
  const largest = Math.max(1, ...here.entries.map(sizeOf));
  const now = Date.now();
  replace(find("listing").tBodies[0], ...sorted.map((entry) => rowOf(entry, largest, now)));
  const isPart = here.more || here.starts.length > 1;
  const shown = wanted ? `${count(found.length)} of ${count(here.entries.length)}` : count(here.entries.length);
  find("listing-count").textContent = `${shown}${isPart ? " on this page" : ""}`;
  say(find("listing-empty"), found.length ? "" : wanted ? "No name here contains this." : "The directory is empty.");
  find("listing").hidden = !found.length;
  find("pager").hidden = !isPart;
  find("first-page").disabled = find("previous-page").disabled = here.starts.length === 1;
  find("next-page").disabled = !here.more;
  find("page-number").textContent = `page ${count(here.starts.length)}`;
}

function rowOf(entry, largest, now) {
  const isDirectory = entry.type === "DIRECTORY";
  const name = nameIn(entry);
  const parts = [iconOf(isDirectory ? "directory" : "file"), nameOf(name)];
  const title = visible(name);
  const link = isDirectory
    ? make("a", { href: addressOf(pathOf(entry)), title }, ...parts)
    : make("button", { type: "button", class: "link", title, click: () => showDetails(pathOf(entry), entry) }, ...parts);
  return make(
    "tr",
    {},
    make("td", { class: "name" }, link),
    sizeCell(entry, isDirectory, largest),
    make("td", { class: "time" }, timeOf(entry.modificationTime, now)),
    make("td", { class: "wide", title: `group ${visible(entry.group)}` }, nameOf(entry.owner)),
    make("td", { class: "wide mono" }, modeOf(entry.permission, isDirectory)),
  );
}

function sizeCell(entry, isDirectory, largest) {
  const usage = isDirectory ? here.usage.get(entry.pathSuffix) : null;
  const cell = make("td", { class: "number" });
  if (isDirectory && !usage) return cell;
  const size = usage ? usage.size : entry.length;
  const title = usage ? `${counted(usage.files, "file")}, ${counted(usage.directories, "directory", "directories")}` : `${count(size)} bytes`;
  cell.title = title;
  cell.append(make("span", {}, `${usage && !usage.is_complete ? "≥ " : ""}${bytes(size)}`), size / largest < 0.01 ? "" : barOf(size / largest));
  return cell;
}

function barOf(share) {
  const bar = make("span", { class: "bar" });
  bar.style.width = `${100 * share}%`;
  return make("span", { class: "room", "aria-hidden": "true" }, bar);
}

const iconOf = (kind) =>
  draw("svg", { class: `icon ${kind}`, viewBox: "0 0 20 20", "aria-label": kind, role: "img" }, draw("path", { d: ICONS[kind] }));

// --- controls --------------------------------------------------------------------------------------------------------
function sortBy(order) {
  here.order = order;
  for (const button of document.querySelectorAll("[data-sort]")) {
    const isThis = button.dataset.sort === order;
    button.closest("th").setAttribute("aria-sort", isThis ? (order === "name" ? "ascending" : "descending") : "none");
  }
  showEntries();
}

/** Prepare what browsing needs; errors go to a function, null when there is none anymore. */
export function startFiles(onError) {
  fail = onError;
  find("filter").addEventListener("input", showEntries);
  for (const button of document.querySelectorAll("[data-sort]")) {
    button.addEventListener("click", () => sortBy(button.dataset.sort));
  }
  find("next-page").addEventListener("click", () => load([...here.starts, here.entries.at(-1).pathSuffix]));
  find("previous-page").addEventListener("click", () => load(here.starts.slice(0, -1)));
  find("first-page").addEventListener("click", () => load([""]));
}
