// The first screen: what is unusual, what there is, and where to go.

import { counted, element, fill } from "./dom.js";
import { moment_link, position_of } from "./links.js";
import { link_to } from "./place.js";

const TOTALS = [
  ["processes", "process", "processes"], ["system_calls", "system call"], ["interrupts", "interrupt"],
  ["exceptions", "exception"], ["software_interrupts", "software interrupt"], ["port_reads", "port read"],
  ["port_writes", "port write"], ["external_writes", "write by another bus master", "writes by other bus masters"],
  ["halts", "halt"], ["console_characters", "character printed", "characters printed"],
];

function unusual_item(item) {
  return element("li", {}, item.text,
    item.moment === undefined ? "" : [" (", item.moment === "begin" || item.moment === "divergence"
      ? element("a", { href: link_to({ at: item.moment }) }, "go there") : moment_link(item.moment, `instruction ${position_of(item.moment)}`), ")"],
    item.command === undefined ? "" : [" ", element("code", {}, item.command)]);
}

export function show_overview(target, run) {
  const places = [
    [{ at: String(run.from) }, "The beginning"],
    [{ at: run.complete_end ?? "end" }, "The end"],
    run.totals.console_characters === undefined ? null : [{ at: "end", panel: "console" }, "What was printed"],
    run.totals.processes === undefined ? null : [{ at: String(run.from), panel: "processes" }, "Processes"],
    run.totals.system_calls === undefined ? null : [{ at: String(run.from), panel: "syscalls" }, "System calls"],
    [{ at: String(run.from), panel: "find" }, run.has.symbols ? "Find a function" : "Find a text"],
  ].filter((p) => p !== null);
  const totals = TOTALS.filter(([name]) => run.totals[name] !== undefined)
    .map(([name, one, many]) => counted(run.totals[name], one, many));
  fill(target,
    run.unusual.length === 0 ? element("p", {}, run.complete ? "Nothing unusual was seen." : "Nothing unusual was seen so far.")
      : [element("h3", {}, "Unusual"), element("ul", { class: "unusual" }, run.unusual.map(unusual_item))],
    element("h3", {}, "What is in it"),
    element("p", {}, `${counted(run.to - run.from, "instruction")}, processor ${run.processor}${totals.length === 0 ? "" : `, ${totals.join(", ")}`}.`),
    element("h3", {}, "Where to go"),
    element("ul", { class: "places" }, places.map(([place, title]) => element("li", {}, element("a", { href: link_to(place) }, title)))),
    element("p", { class: "hint" }, "Or click the timeline. Press ? for the keys."));
}
