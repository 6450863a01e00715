// Show servers, their leader and its work, operations a second, and files that are being written.

import { askPage } from "./access.js";
import { drawChart, MOST_MS } from "./chart.js";
import { find, make, onWidth, replace } from "./elements.js";
import { addressOf } from "./paths.js";
import { bytes, count, counted, duration, nameOf, rate, timeOf, visible } from "./words.js";

const WORDS = {
  trees: ["directory removed", "directories removed"],
  files: ["file removed", "files removed"],
  blobs: ["blob deleted", "blobs deleted"],
  leases: ["file of a silent writer closed", "files of silent writers closed"],
  checkpoints: ["part of the trash emptied", "parts of the trash emptied"],
};

const seen = new Map(); // of each server: its last record, and its rate
const points = [];
let found = null;
let work = null;

/** Ask who serves; return the answer. Whoever calls this again and again gets operations a second. */
export async function loadServers() {
  found = await askPage("servers");
  note(found);
  showServers();
  return found;
}

/** Ask what waits. */
export async function loadWork() {
  work = await askPage("work");
  showWork();
}

/** Forget what another user has seen. */
export function forget() {
  work = null;
  replace(find("open-files").tBodies[0]);
  find("open-count").textContent = "";
}

/** Return the operations a second of all servers; null if they are not known yet. */
export function totalRate() {
  const rates = (found?.servers ?? []).map((one) => seen.get(one.id)?.rate ?? null).filter((one) => one !== null);
  return rates.length ? rates.reduce((sum, one) => sum + one, 0) : null;
}

// --- operations a second ---------------------------------------------------------------------------------------------
function note({ servers, now }) {
  let isNew = false;
  for (const one of servers) {
    const before = seen.get(one.id);
    if (one.isSilent) {
      seen.set(one.id, { at: one.at, requests: one.requests, rate: null });
    } else if (!before || before.rate === undefined) {
      seen.set(one.id, { at: one.at, requests: one.requests, rate: null });
    } else if (one.at > before.at) {
      const value = Math.max(one.requests - before.requests, 0) / (one.at - before.at);
      seen.set(one.id, { at: one.at, requests: one.requests, rate: value });
      isNew = true;
    }
  }
  for (const id of seen.keys()) if (!servers.some((one) => one.id === id)) seen.delete(id);
  const total = totalRate();
  if (isNew && total !== null) points.push({ ms: now * 1000, value: total });
  while (points.length && points[0].ms < now * 1000 - MOST_MS) points.shift();
}

function showChart() {
  const width = Math.floor(find("chart").clientWidth);
  if (width && found) replace(find("chart"), drawChart(points, width, found.now * 1000));
}

// --- servers ---------------------------------------------------------------------------------------------------------
function showServers() {
  const { servers, now } = found;
  const live = servers.filter((one) => !one.isSilent);
  replace(find("server-list").tBodies[0], ...servers.map((one) => serverRow(one, now)));
  replace(find("leader"), ...leaderWords(found));
  const total = totalRate();
  find("rate").textContent = total === null ? "" : `${rate(total)} operations/s`;
  find("chart-note").textContent = total === null ? "measuring …" : `${rate(total)} now, by ${counted(live.length, "process", "processes")}`;
  showChart();
  showTiles();
}

const addressFor = (one) => `${one.host.includes(":") ? `[${one.host}]` : one.host}:${one.port}`;

function serverRow(one, now) {
  const badges = [one.leads ? make("span", { class: "badge" }, "leads") : null];
  if (one.isSilent) badges.push(make("span", { class: "badge warning" }, "silent"));
  const speed = seen.get(one.id)?.rate ?? null;
  return make(
    "tr",
    {},
    make("td", {}, nameOf(addressFor(one)), ...badges),
    make("td", { class: "number wide" }, String(one.process)),
    make("td", { class: "number" }, speed === null ? "–" : rate(speed)),
    make("td", { class: "number wide" }, count(one.requests)),
    make("td", { class: "time wide" }, duration(now - one.since)),
    make("td", { class: "time wide" }, timeOf(one.at * 1000, now * 1000)),
  );
}

function leaderWords({ leader, servers }) {
  if (!leader) return ["No process leads now: nothing is removed until one does."];
  const one = servers.find((server) => server.leads);
  if (!one) return ["Another process leads, such as holdfast namespace gc: ", nameOf(leader.holder)];
  const done = Object.entries(WORDS)
    .filter(([kind]) => one.done[kind])
    .map(([kind, words]) => counted(one.done[kind], ...words));
  const result = done.length ? `since it started: ${done.join(", ")}.` : "it had nothing to remove so far.";
  return [make("strong", {}, `${visible(addressFor(one))}, process ${one.process}, leads`), `; ${result}`];
}

// --- what waits ------------------------------------------------------------------------------------------------------
const atMost = (number) => (number >= work.mostCounted ? `${count(work.mostCounted)}+` : count(number));

function showTiles() {
  const live = found.servers.filter((one) => !one.isSilent).length;
  const total = totalRate();
  const tiles = [tileOf(total === null ? "–" : rate(total), "operations a second"), tileOf(count(live), live === 1 ? "server process" : "server processes")];
  if (work) {
    const { leases, deleted_trees: trees, garbage_blobs: blobs, garbage_blobs_due: due } = work.pending;
    const kept = `${atMost(due)} due; the others wait for ${duration(work.safetyAge)}`;
    tiles.push(tileOf(atMost(leases), leases === 1 ? "file being written" : "files being written"));
    tiles.push(tileOf(atMost(trees), "deleted directories to remove"));
    tiles.push(tileOf(atMost(blobs), "blobs to delete", blobs ? kept : ""));
  }
  replace(find("tiles"), ...tiles);
}

const tileOf = (value, words, more = "") =>
  make("div", { class: "tile" }, make("strong", {}, value), make("span", { class: "quiet" }, words), more ? make("small", { class: "quiet" }, more) : null);

function showWork() {
  const { openFiles, pending } = work;
  const now = Date.now();
  replace(find("open-files").tBodies[0], ...openFiles.map((one) => openFileRow(one, now)));
  find("open-files").hidden = !openFiles.length;
  find("open-empty").hidden = Boolean(openFiles.length);
  find("open-count").textContent = pending.leases > openFiles.length ? `the first ${count(openFiles.length)} of ${atMost(pending.leases)}` : openFiles.length ? count(openFiles.length) : "";
  if (found) showTiles();
}

function openFileRow(one, now) {
  const place = one.path
    ? make("a", { href: addressOf(one.path) }, nameOf(one.path))
    : make("span", { class: "quiet" }, one.isHidden ? "only its owner and the superuser see where" : "moves just now");
  return make(
    "tr",
    {},
    make("td", { class: "name" }, place),
    make("td", { class: "wide" }, nameOf(one.owner || "–")),
    make("td", { class: "number" }, bytes(one.size)),
    make("td", { class: "wide mono" }, nameOf(one.holder)),
    make("td", { class: "time" }, timeOf(one.heard * 1000, now), one.isSilent ? make("span", { class: "badge warning" }, "silent") : null),
  );
}

/** Prepare the chart. */
export function startServers() {
  onWidth(find("chart"), showChart);
}
