// Turn paths of the namespace into addresses of this page (#/data/raw) and back.

export const addressOf = (path) => `#${path.split("/").map(encodeURIComponent).join("/")}`;

export const childOf = (path, name) => (path === "/" ? `/${name}` : `${path}/${name}`);

export const lastOf = (path) => path.slice(path.lastIndexOf("/") + 1);

/** Return the path that the address of this page names; null for another view. */
export function pathIn(hash) {
  if (hash && !hash.startsWith("#/")) return null;
  try {
    const path = (hash || "#/").slice(1).split("/").map(decodeURIComponent).join("/");
    return path === "/" ? path : path.replace(/\/+$/, "") || "/";
  } catch {
    return "/";
  }
}
