// What all sections use: numbers as text, elements, tables.

const groups = d3.format(",");
const exact = value => typeof value === "number" ? (Number.isInteger(value) ? groups(value) : String(+value.toFixed(4))) : String(value);
const share = value => value.toFixed(value < 10 ? 2 : 1) + "\u00a0%";
const of = (part, all) => all ? 100 * part / all : 0;
const color = number => `var(--c${number % 8})`;

// element("p", {class: "faint"}, "text", another element)
function element(name, attributes, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...content.filter(c => c !== null && c !== undefined));
  return made;
}

// columns: [{title, of: row => value, number: true, wide: true, code: true}]
function table(caption, columns, rows) {
  const head = element("tr", {}, ...columns.map(c =>
    element("th", {scope: "col", class: c.number ? "number" : ""}, c.title)));
  const body = rows.map(row => element("tr", {}, ...columns.map(c => {
    const value = c.of(row);
    const shown = value instanceof Node ? value : c.number && typeof value === "number" ? exact(value) : String(value);
    return element("td", {class: (c.number ? "number" : "") + (c.wide ? " wide" : "") + (c.code ? " code" : "")}, shown);
  })));
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...body));
  return scrolled(element("div", {class: rows.length > 14 ? "scroll tall" : "scroll"}, made), caption);
}

// Is reached by keyboard, and known by its name, while there is more of it than can be seen.
function scrolled(target, name) {
  new ResizeObserver(() => {
    const more = target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight;
    for (const [key, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", name]]) {
      if (more) target.setAttribute(key, value);
      else target.removeAttribute(key);
    }
  }).observe(target);
  return target;
}

// Lines as they are, of code or numbers.
const codeBlock = (name, ...content) => scrolled(element("pre", {}, ...content), name);

const details = (summary, ...content) => element("details", {}, element("summary", {}, summary), ...content);

// Names and values, one a line.
function facts(caption, pairs) {
  const value = v => v instanceof Node ? v : element("span", {class: typeof v === "number" ? "whole" : ""}, exact(v));
  return table(caption, [{title: "what", of: p => p[0]}, {title: "value", of: p => value(p[1]), wide: true}],
    pairs.filter(p => p[1] !== null && p[1] !== undefined && p[1] !== ""));
}

// A picture that `text` stands for where it cannot be seen.
function picture(height, text) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", text);
  svg.setAttribute("height", height);
  return svg;
}

// Calls draw(width) now that the element is in the page, and whenever its width changes.
function drawWide(target, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(target.clientWidth);
    if (now === width || now === 0) return;
    width = now;
    draw(width);
    fit(target, width);
  }).observe(target);
}

// What was drawn for that width is made smaller where there is less room than on the screen: on paper.
const fit = (svg, width) => svg.setAttribute("viewBox", `0 0 ${width} ${svg.getAttribute("height")}`);

// A picture that keys act on.
function operated(svg, kind) {
  svg.setAttribute("role", "application");
  svg.setAttribute("aria-roledescription", kind);
  svg.setAttribute("tabindex", "0");
}

// A tool's results of a run.
const tool = (run, name) => {
  const tools = run.analyze.tools;
  const key = Object.keys(tools).find(k => k === name || k.startsWith(name + ":"));
  return key === undefined ? null : tools[key];
};
