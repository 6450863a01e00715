// Ask the server. The user name or the token stays in this module, and is gone with the page.

const me = { user: new URLSearchParams(location.search).get("user.name") ?? "", token: "" };

/** The server has refused a request, or has not answered. */
export class Refused extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

export const given = () => ({ user: me.user, hasToken: Boolean(me.token) });

/** Look as another user from now on; a token counts before a name. */
export function lookAs(user, token) {
  me.user = token ? "" : user;
  me.token = token;
}

async function send(path, parameters, signal) {
  const query = new URLSearchParams(parameters);
  if (me.user && !me.token) query.set("user.name", me.user);
  const headers = me.token ? { authorization: `Bearer ${me.token}` } : {};
  let answer;
  try {
    answer = await fetch(`${path}?${query}`, { headers, signal, cache: "no-store", referrerPolicy: "no-referrer" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("the server does not answer: check that it runs, and reload this page");
  }
  if (!answer.ok) throw new Refused(await reasonOf(answer), answer.status);
  return answer;
}

async function reasonOf(answer) {
  try {
    return (await answer.json()).RemoteException.message;
  } catch {
    return `the server answers ${answer.status}: see its log`;
  }
}

const inNamespace = (path) => `/webhdfs/v1${path.split("/").map(encodeURIComponent).join("/")}`;

/** Return data that only this page asks for: servers, work or usage. */
export const askPage = async (what, parameters = {}, signal = undefined) =>
  (await send(`/page/${what}`, parameters, signal)).json();

/** Return the page of a directory after an entry. */
export async function list(path, startAfter, signal) {
  const answer = await send(inNamespace(path), { op: "LISTSTATUS_BATCH", startafter: startAfter }, signal);
  const found = (await answer.json()).DirectoryListing;
  return { entries: found.partialListing.FileStatuses.FileStatus, more: found.remainingEntries > 0 };
}

/** Return the first bytes of a file. */
export async function readBeginning(path, length, signal) {
  return new Uint8Array(await (await send(inNamespace(path), { op: "OPEN", length }, signal)).arrayBuffer());
}
