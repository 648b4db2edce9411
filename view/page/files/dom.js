// Elements of the page, made short to write.

/// What may be put into an element: lists, however deep, become one, and what is not there is left out.
const nodes_of = (children) => children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false);

/// An element with attributes; functions among them are listeners ("click": f), false is left out.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== undefined && value !== null) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...nodes_of(children));
  return made;
}

/// The same of a picture.
export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...nodes_of(children));
  return made;
}

export const by_id = (id) => document.getElementById(id);

/// What an element holds from now on.
export function fill(target, ...children) {
  target.replaceChildren(...nodes_of(children));
}

/// Fills an element anew by `refill()`; what had the focus there has it afterwards, if it is there again.
export function keep_focus(target, refill) {
  const path = [];
  for (let at = document.activeElement; at !== target && target.contains(at); at = at.parentElement) path.unshift([...at.parentElement.children].indexOf(at));
  refill();
  if (path.length === 0) return;
  let found = target;
  for (const i of path) found = found?.children[i];
  found?.focus({ preventScroll: true });
}

/// Lets arrow keys go from link to link of a table, so that Tab goes past it: it stops only at those
/// that `is_stop` names, or at the first.
export function move_by_arrows(table, is_stop) {
  const links_of = (row) => [...row.querySelectorAll("a")];
  const links = links_of(table), stops = links.filter(is_stop);
  for (const link of links) link.tabIndex = stops.includes(link) || (stops.length === 0 && link === links[0]) ? 0 : -1;
  table.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    let row = event.target.closest("tr");
    if (by === undefined || row === null) return;
    const at = Math.max(links_of(row).indexOf(event.target), 0);
    let to = links_of(row)[at + by];
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      do row = by < 0 ? row.previousElementSibling : row.nextElementSibling;
      while (row !== null && links_of(row).length === 0);
      to = row === null ? undefined : links_of(row)[at] ?? links_of(row).pop();
    }
    if (to === undefined) return;
    event.preventDefault();
    to.focus();
  });
}

/// A table with titles; rows are lists of cells.
export function table(titles, rows, attributes = { "aria-label": titles.filter((t) => t !== "").join(", ") }) {
  const cell = (content) => element("td", {}, content);
  return element("div", { class: "scroll" },
    element("table", attributes,
      element("thead", {}, element("tr", {}, titles.map((t) => element("th", { scope: "col" }, t)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell))))));
}

/// 12345678 as "12,345,678".
export const number_text = (n) => Number(n).toLocaleString("en");

/// 1.234 as "1.23 %".
export const share_text = (percent) => `${percent.toFixed(percent < 10 ? 2 : 1)}\u00a0%`;

/// "1 interrupt", "2 interrupts".
export const counted = (n, one, many = one + "s") => `${number_text(n)} ${n === 1 ? one : many}`;

/// A text that names addresses with 8 digits, for a processor that has 20 address lines.
export const with_short_addresses = (text, has) => (has.address_bits === 20 ? text.replace(/\b000(?=[0-9a-f]{5}\b)/g, "") : text);

/// A number in hexadecimal digits.
export const hex = (value, digits) => value.toString(16).padStart(digits, "0");
