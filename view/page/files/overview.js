// The first screen: what is unusual, what there is, and where to go.

import { counted, element, fill, number_text, table, with_short_addresses } from "./dom.js";
import { moment_link, position_of } from "./links.js";
import { link_to } from "./place.js";

const TOTALS = [
  ["processes", "process", "processes"], ["system_calls", "system call"], ["interrupts", "interrupt"],
  ["exceptions", "exception"], ["software_interrupts", "software interrupt"], ["port_reads", "port read"],
  ["port_writes", "port write"], ["external_writes", "write by another bus master", "writes by other bus masters"],
  ["halts", "halt"], ["console_characters", "character printed", "characters printed"],
];

/// Which of the interrupts have names of their own.
function special_interrupts({ nmis, smis }) {
  const names = [[nmis, "NMI"], [smis, "SMI"]].filter(([n]) => n !== undefined).map(([n, name]) => counted(n, name));
  return names.length === 0 ? "" : ` (${names.join(", ")} among them)`;
}

/// A button that asks the server for the causes of the divergence, and what it answers.
function cause_search(source) {
  const found = element("div", { "aria-live": "polite" });
  const button = element("button", { type: "button", click: async () => {
    fill(found, element("p", {}, "Looking, for 20 seconds at most ..."));
    try {
      const { causes, why } = await source.ask("causes");
      const end = (c) => (!c.tried ? " (not tried)" : c.repairs ? " (with it the replay agrees to the end)" : "");
      fill(found, causes.length === 0 ? element("p", {}, "None was found. ") : element("ol", {}, causes.map((c) => element("li", {}, c.text, end(c)))),
        why === undefined ? "" : element("p", { class: "hint" }, why));
    } catch (error) {
      fill(found, element("p", { role: "alert" }, error.message));
    }
  } }, "Look for its cause");
  return [" ", button, found];
}

function unusual_item(item, run, source, has) {
  return element("li", {}, with_short_addresses(item.text, has),
    item.moment === undefined ? "" : [" (", item.moment === "begin" || item.moment === "divergence"
      ? element("a", { href: link_to({ run, at: item.moment }) }, "go there")
      : moment_link(item.moment, `instruction ${position_of(item.moment)}`, run), ")"],
    item.command === undefined ? "" : [" ", element("code", {}, item.command)],
    item.moment === "divergence" && source.is_live ? cause_search(source) : "");
}

/// `number`: of the run; `has_figures`: the page has the figures of analyses.
export function show_overview(target, run, number, source, has_figures) {
  const begin = String(run.held?.[0] ?? run.from);
  const places = [
    [{ at: begin }, run.held === undefined || run.held[0] === run.from ? "The beginning" : `Instruction ${number_text(run.held[0])}`],
    [{ at: "end" }, run.held === undefined || run.held[1] === run.to ? "The end" : `Instruction ${number_text(run.held[1])}`],
    run.totals.console_characters === undefined ? null : [{ at: "end", panel: "console" }, "What was printed"],
    run.totals.processes === undefined ? null : [{ at: begin, panel: "processes" }, "Processes"],
    run.totals.system_calls === undefined ? null : [{ at: begin, panel: "syscalls" }, "System calls"],
    [{ at: begin, panel: "find" }, run.has.symbols ? "Find a function" : "Find a text"],
    has_figures ? [{ screen: "figures" }, "Figures of analyses: what ran most, memory, ports, where the recording came from"] : null,
  ].filter((p) => p !== null);
  const totals = TOTALS.filter(([name]) => run.totals[name] !== undefined)
    .map(([name, one, many]) => counted(run.totals[name], one, many) + (name === "interrupts" ? special_interrupts(run.totals) : ""));
  fill(target,
    run.unusual.length === 0 ? element("p", {}, run.complete ? "Nothing unusual was seen." : "Nothing unusual was seen so far.")
      : [element("h3", {}, "Unusual"), element("ul", { class: "unusual" }, run.unusual.map((item) => unusual_item(item, number, source, run.has)))],
    element("h3", {}, "What is in it"),
    element("p", {}, `${counted(run.to - run.from, "instruction")}${run.processor === "unknown" ? "" : `, processor ${run.processor}`}${totals.length === 0 ? "" : `, ${totals.join(", ")}`}.`),
    run.held === undefined ? "" : element("p", { class: "hint" }, `These figures are of instructions ${number_text(run.from)} to ${number_text(run.to)}. The page holds each step of ${number_text(run.held[0])} to ${number_text(run.held[1])}.`),
    element("h3", {}, "Where to go"),
    element("ul", { class: "places" }, places.map(([place, title]) => element("li", {}, element("a", { href: link_to({ run: number, ...place }) }, title)))),
    element("p", { class: "hint" }, "Or click the timeline. Press ? for the keys."),
    has_figures ? "" : element("p", { class: "hint" }, "Figures of analyses: ", element("code", {}, `citcat report ${run.name}`)));
}

/// Where two runs part first; nothing where they are not compared.
export function show_parting(parting) {
  if (parting === undefined) return "";
  const link = (moments, text) => element("a", { href: link_to({ moments }) }, text);
  const { a, b } = parting;
  const there = { 1: String(a?.position ?? "end"), 2: String(b?.position ?? "end") };
  if (!parting.differs) {
    const longer = a === null && b === null ? "" : [`; then the ${a === null ? "first" : "second"} ends. `, link(there, "Go there")];
    return element("p", { class: "parting" }, `Both executed the same ${counted(parting.compared, "instruction")}`, longer, ".");
  }
  const at = (one) => (one === null ? "the run ends" : [`instruction ${number_text(one.position)}, `, element("code", {}, `${one.address} ${one.text}`)]);
  const rows = [...parting.registers, ...parting.memory].map((v) => [v.name, v.a ?? "not known", v.b ?? "not known"]);
  return [element("h3", {}, "Where they separate"),
    element("p", { class: "parting" }, `After ${counted(parting.compared, "instruction")} that both executed: in the first `, at(a), "; in the second ", at(b), ". ",
      link(there, "Go there"),
      parting.last === undefined ? "" : [", or ", link({ 1: String(parting.last.a), 2: String(parting.last.b) }, "to the last instruction that both executed")], "."),
    rows.length === 0 ? "" : [element("p", {}, "Different before that instruction:"), table(["", "First", "Second"], rows)]];
}
