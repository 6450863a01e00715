// Begin: show the view that the address names, ask the server again and again, and let people say who they are.

import { given, lookAs } from "./access.js";
import { startDetails } from "./details.js";
import { find, say } from "./elements.js";
import { beginAtTop, showFiles, startFiles } from "./files.js";
import { pathIn } from "./paths.js";
import { forget, loadServers, loadWork, startServers } from "./servers.js";
import { startUsage } from "./usage.js";
import { sentence, visible } from "./words.js";

const SERVERS_MS = 2000;
const WORK_MS = 10_000;

const problems = new Map(); // by where they came from: one that goes on does not hide that another one ended
let workDue = 0;

function note(where, error) {
  if (error) problems.set(where, error);
  else problems.delete(where);
  const [first] = problems.values();
  say(find("problem"), first ? sentence(first.message) : "");
  if (error?.status === 401 && !find("sign-in").open) askWho(sentence(error.message));
}

// --- views -----------------------------------------------------------------------------------------------------------
function showView() {
  const path = pathIn(location.hash);
  find("files").hidden = path === null;
  find("servers").hidden = path !== null;
  mark("show-files", path !== null);
  mark("show-servers", path === null);
  if (path === null) {
    note("files", null);
    refresh();
  } else {
    showFiles(path);
  }
}

function mark(id, isCurrent) {
  if (isCurrent) find(id).setAttribute("aria-current", "page");
  else find(id).removeAttribute("aria-current");
}

async function refresh() {
  try {
    const found = await loadServers();
    find("namespace").textContent = visible(found.namespace);
    document.title = `${visible(found.namespace)} – Holdfast`;
    find("who").textContent = `${visible(found.user)}${found.isSuperuser ? " (superuser)" : ""}`;
    if (!find("servers").hidden && Date.now() >= workDue) {
      workDue = Date.now() + WORK_MS;
      await loadWork();
    }
    note("servers", null);
    if (problems.get("files")?.status === 0) showView(); // the server did not answer, and does again
  } catch (error) {
    note("servers", error);
  }
}

async function refreshForever() {
  if (!document.hidden && !find("sign-in").open) await refresh();
  setTimeout(refreshForever, SERVERS_MS);
}

// --- who looks -------------------------------------------------------------------------------------------------------
function askWho(reason) {
  find("sign-in-reason").textContent = reason;
  find("user").value = given().user;
  find("token").value = "";
  find("sign-in").showModal();
}

function startSignIn() {
  find("who").addEventListener("click", () => askWho(""));
  find("sign-in-cancel").addEventListener("click", () => find("sign-in").close());
  find("sign-in-form").addEventListener("submit", (event) => {
    event.preventDefault();
    lookAs(find("user").value.trim(), find("token").value.trim());
    find("token").value = "";
    find("sign-in").close();
    problems.clear();
    forget();
    workDue = 0;
    showView();
    refresh();
  });
}

startFiles((error) => note("files", error));
startDetails();
startUsage();
startServers();
startSignIn();
addEventListener("hashchange", () => {
  showView();
  if (find("servers").hidden) beginAtTop();
});
showView();
refreshForever();
