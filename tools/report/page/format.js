// What all sections use: numbers as text, elements, tables.

const groups = d3.format(",");
const exact = value => typeof value === "number" ? (Number.isInteger(value) ? groups(value) : String(+value.toFixed(4))) : String(value);
const share = value => value.toFixed(value < 10 ? 2 : 1) + " %";
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
  // Reached by keyboard, because it may have to be scrolled.
  return element("div", {class: rows.length > 14 ? "scroll tall" : "scroll", tabindex: "0", role: "region", "aria-label": caption}, made);
}

const details = (summary, ...content) => element("details", {}, element("summary", {}, summary), ...content);

// Names and values, one a line.
function facts(caption, pairs) {
  return table(caption, [{title: "what", of: p => p[0]}, {title: "value", of: p => p[1] instanceof Node ? p[1] : exact(p[1]), wide: true}],
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
  }).observe(target);
}

// The tools' results of a run, by name; several of one kind: toolsOf(run, "tlb").
const tool = (run, name) => {
  const tools = run.analyze.tools;
  const key = Object.keys(tools).find(k => k === name || k.startsWith(name + ":"));
  return key === undefined ? null : tools[key];
};
const toolsOf = (run, name) => Object.entries(run.analyze.tools)
  .filter(([key]) => key === name || key.startsWith(name + ":")).map(([, value]) => value);
