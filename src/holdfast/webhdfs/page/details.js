// Show one file: its attributes, and how it begins.

import { readBeginning } from "./access.js";
import { find, make, replace } from "./elements.js";
import { absolute, ago, bytes, count, modeOf, nameOf, sentence, visible } from "./words.js";

const PREVIEW_BYTES = 4096;
const BINARY = /[\u0000-\u0008\u000e-\u001f\ufffd]/;

let running = new AbortController();

/** Show a file in a dialog. */
export function showDetails(path, entry) {
  running.abort();
  running = new AbortController();
  replace(find("details-title"), nameOf(path));
  const time = (ms) => (ms ? `${absolute(ms)} (${ago(ms, Date.now())})` : "–");
  const rows = {
    Size: `${bytes(entry.length)} (${count(entry.length)} bytes)`,
    Modified: time(entry.modificationTime),
    Read: time(entry.accessTime),
    Owner: `${visible(entry.owner)}, group ${visible(entry.group)}`,
    Mode: `${modeOf(entry.permission, false)} (${entry.permission})`,
    Replication: String(entry.replication),
    "Block size": bytes(entry.blockSize),
  };
  const parts = Object.entries(rows).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]);
  replace(find("details-list"), ...parts);
  find("details").showModal();
  showBeginning(path, entry.length, running.signal);
}

async function showBeginning(path, length, signal) {
  const preview = find("preview");
  preview.textContent = length ? "reading …" : "(the file is empty)";
  if (!length) return;
  try {
    preview.textContent = textOf(await readBeginning(path, PREVIEW_BYTES, signal), length);
  } catch (error) {
    if (error.name !== "AbortError") preview.textContent = sentence(error.message);
  }
}

function textOf(data, length) {
  const isPart = data.length < length;
  const text = new TextDecoder().decode(data, { stream: isPart }); // the last letter may be cut
  return BINARY.test(text) ? hexOf(data.subarray(0, 256)) : text + (isPart ? "\n…" : "");
}

function hexOf(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const piece = [...data.subarray(at, at + 16)];
    const digits = piece.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(48);
    const letters = piece.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${digits} ${letters}`);
  }
  return lines.join("\n");
}

/** Prepare the dialog. */
export function startDetails() {
  find("details-close").addEventListener("click", () => find("details").close());
  find("details").addEventListener("close", () => running.abort());
}
