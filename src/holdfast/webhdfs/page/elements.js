// Make elements. Texts become text nodes, never HTML: names of files are written by strangers.

const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Make an element of HTML. A function among the attributes listens to the event of that name. */
export const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** Make an element of SVG. */
export const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

const keyOf = (element) => element.getAttribute("href") ?? element.textContent;

/** Put elements in place of all that an element has; who has the focus on one of them keeps it. */
export function replace(element, ...children) {
  const active = element.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  element.replaceChildren(...children.filter((child) => child !== null));
  if (active === null) return;
  const same = [...element.querySelectorAll("a, button")].find((one) => keyOf(one) === active);
  same?.focus({ preventScroll: true });
}

/** Show a text, or hide the element if it is empty. */
export function say(element, text) {
  element.textContent = text;
  element.hidden = !text;
}

/** Call a function now and whenever the width of an element changes. */
export function onWidth(element, redraw) {
  let known = 0;
  new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width && width !== known) {
      known = width;
      redraw();
    }
  }).observe(element);
}
