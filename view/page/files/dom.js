// Elements of the page, made short to write.

/// An element with attributes; functions among them are listeners ("click": f), false is left out.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== undefined && value !== null) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

/// The same of a picture.
export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export const by_id = (id) => document.getElementById(id);

/// What an element holds from now on.
export function fill(target, ...children) {
  target.replaceChildren(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
}

/// A table with titles; rows are lists of cells.
export function table(titles, rows, attributes = {}) {
  const cell = (content) => element("td", {}, ...(Array.isArray(content) ? content : [content]));
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

/// A number in hexadecimal digits.
export const hex = (value, digits) => value.toString(16).padStart(digits, "0");
