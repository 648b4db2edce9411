// What ran around the moment: instructions in the order in which they ran, with what each read and
// wrote.

import { element, fill, move_by_arrows } from "./dom.js";
import { memory_link, moment_link, position_of } from "./links.js";
import { link_to } from "./place.js";
import { is_of_descriptor } from "./registers.js";

/// Accesses of one line that are shown one by one: those of a REP are as many as it has iterations.
const SHOWN_ACCESSES = 6;
/// Pixels of code that must be seen to read it.
const LEAST_SEEN = 100;

/// Links to the memory that a step accessed.
function accesses(line, name, sign, run) {
  const all = line[name] ?? [];
  const shown = all.slice(0, SHOWN_ACCESSES).map((a) => element("span", { class: name },
    `${sign} `,
    a.address !== undefined ? memory_link(a.address, a.address, "linear", run) : memory_link(a.physical, a.physical, "physical", run),
    a.value === undefined ? " ?" : ` = ${a.value}`,
    a.by === undefined ? "" : ` (${a.by})`));
  return shown.length < all.length ? [...shown, element("span", { class: name }, `${sign} more ...`)] : shown;
}

function effects(line, run, has) {
  const changes = Object.entries(line.changes ?? {}).filter(([name]) => has.levels || !is_of_descriptor(name)).map(([name, value]) =>
    element("span", { class: "change" }, `${name} = ${value}`));
  const ports = (line.ports ?? []).map((p) =>
    element("span", { class: "port" }, `port ${p.port} ${p.write ? "←" : "→"} ${p.value}`));
  const events = [...(line.events ?? []), ...(line.ends === undefined ? [] : [line.ends])].map((e) => element("span", { class: "event" }, e));
  return [...accesses(line, "reads", "read", run), ...accesses(line, "writes", "wrote", run), ...ports, ...changes, ...events];
}

/// "schedule" of "schedule+0x1c".
const procedure_of = (place) => (place ?? "").split("+")[0];

/// `run`: the number of the run that ran it; `has`: what its processor has.
export function show_code(target, answer, run, has) {
  const rows = [];
  let procedure = null;
  for (const line of answer.lines) {
    if (line.place !== undefined && procedure_of(line.place) !== procedure) {
      procedure = procedure_of(line.place);
      rows.push(element("tr", { class: "procedure" }, element("th", { colspan: 4, scope: "rowgroup" }, procedure)));
    }
    const is_here = line.moment === answer.moment;
    const shown = effects(line, run, has);
    rows.push(element("tr", { class: is_here ? "here" : "", "aria-current": is_here ? "step" : false, "data-moment": line.moment },
      element("td", { class: "position" }, moment_link(line.moment, position_of(line.moment), run)),
      element("td", { class: "address" },
        element("a", { href: link_to({ run, panel: "listing", address: line.address, space: "linear" }), title: line.place ?? "Code in memory from here on" }, line.address)),
      element("td", { class: "instruction" }, line.text, line.iterations ? element("span", { class: "times" }, ` ×${line.iterations}`) : "",
        line.faults ? element("span", { class: "event" }, " faults") : line.interrupted ? element("span", { class: "event" }, " not yet") : ""),
      element("td", { class: "effects" }, shown)));
  }
  if (!answer.lines.some((line) => line.moment === answer.moment)) {
    rows.push(element("tr", { class: "here", "aria-current": "step" },
      element("td", { class: "position" }, position_of(answer.moment)),
      element("td", { colspan: 3 }, answer.why ?? "the run ends here")));
  }
  const table = element("table", { class: "code ran", "aria-label": "Code, as it ran" },
    element("thead", {}, element("tr", {}, ["Instruction", "Address", "Code", "What it did"].map((t) => element("th", { scope: "col" }, t)))),
    element("tbody", {}, rows));
  const has_focus = target.contains(document.activeElement) && document.activeElement !== target;
  fill(target, table);
  move_by_arrows(table, (link) => link.closest("tr").classList.contains("here"));
  const current = target.querySelector(".here");
  if (has_focus) current?.querySelector("a")?.focus({ preventScroll: true });
  if (current !== null) scroll_to(target, current);
}

/// Scrolls the pane so that the line lies a third down the part of it that the window shows. The page
/// itself moves only if the window shows too little of the pane: whoever opens a link sees its beginning.
function scroll_to(pane, line) {
  const { top } = pane.getBoundingClientRect();
  const first = Math.max(0, -top), last = Math.min(pane.clientHeight, innerHeight - top);
  const is_seen = last - first >= LEAST_SEEN;
  pane.scrollTop = line.offsetTop - (is_seen ? first + (last - first) / 3 : pane.clientHeight / 3);
  const { bottom } = line.getBoundingClientRect();
  if (bottom > innerHeight) scrollBy(0, bottom - innerHeight + 16);
}

/// Code as it lies in memory.
export function show_listing(target, answer) {
  let procedure = null;
  const rows = [];
  for (const line of answer.lines) {
    if (line.place !== undefined && procedure_of(line.place) !== procedure) {
      procedure = procedure_of(line.place);
      rows.push(element("tr", { class: "procedure" }, element("th", { colspan: 3, scope: "rowgroup" }, procedure)));
    }
    rows.push(element("tr", {},
      element("td", { class: "address" }, memory_link(line.address)),
      element("td", { class: "bytes" }, line.bytes),
      element("td", { class: "instruction" }, line.text)));
  }
  fill(target, element("div", { class: "scroll" }, element("table", { class: "code", "aria-label": "Code in memory" },
    element("thead", {}, element("tr", {}, ["Address", "Bytes", "Code"].map((t) => element("th", { scope: "col" }, t)))),
    element("tbody", {}, rows))));
}
