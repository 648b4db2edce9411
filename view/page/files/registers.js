// The registers at the moment, with what the last step changed.

import { element, fill, hex } from "./dom.js";
import { memory_link, moment_link, position_of } from "./links.js";

const GROUPS = [
  ["general", "General", true],
  ["flags", "Flags", true],
  ["segment", "Segments", false],
  ["control", "Control", false],
  ["debug", "Debug", false],
  ["x87", "Floating point", false],
  ["sse", "Vectors", false],
];

/// What is there in any recording of it, and says nothing while it is as reset leaves it.
const is_quiet = (group) => group === "debug" || group === "x87" || group === "sse";

let opened = new Set(["general", "flags"]);

/// Asks what gave the register its value, and says so in its row.
async function tell_setter(source, moment, name, target, run) {
  target.textContent = "looking ...";
  try {
    const answer = await source.ask("setter", { at: moment, register: name });
    if (!answer.found) target.textContent = answer.why;
    else fill(target, "by ", moment_link(answer.moment, position_of(answer.moment), run), ": ", element("code", {}, answer.text), answer.events === undefined ? "" : ` and ${answer.events.join(", ")}`, answer.place === undefined ? "" : ` in ${answer.place}`);
  } catch (error) {
    target.textContent = error.message;
  }
}

/// Where the value of a general register lies as an offset, as instructions use it: with the stack's
/// segment, or that of data. Segments of 64-bit code begin at 0.
function address_in(state, register) {
  const of_stack = /^[er]?[sb]p$/.test(register.name);
  const base = state.registers.find((r) => r.name === (of_stack ? "ss.base" : "ds.base"))?.value;
  if (base === undefined || base === null || state.mode?.includes("64-bit")) return register.value;
  const digits = state.address.length;
  return hex(BigInt.asUintN(4 * digits, BigInt(`0x${base}`) + BigInt(`0x${register.value}`)), digits);
}

/// Where the top of the stack lies; undefined where that is not known.
export function stack_address(state) {
  const pointer = state.registers.find((r) => /^[er]?sp$/.test(r.name));
  return pointer === undefined || pointer.value === null ? undefined : address_in(state, pointer);
}

/// Processors without protection have no bases, limits and rights that a program could change.
export const is_of_descriptor = (name) => name.includes(".");

function row(register, source, state, run) {
  const { moment } = state;
  const changed = register.before !== undefined;
  const value = register.value === null ? element("span", { class: "unknown" }, "not known")
    : register.group === "general" && register.name !== "ip" ? memory_link(address_in(state, register), register.value, "linear", run) : register.value;
  const told = element("td", { class: "before", "aria-live": "polite" }, changed ? `was ${register.before}` : "");
  const ask = register.value === null || register.name.endsWith("ip") ? "" : element("button", { type: "button", class: "ask",
    title: `What gave ${register.name} this value?`, "aria-label": `What gave ${register.name} this value?`,
    click: () => tell_setter(source, moment, register.name, told, run) }, "set by");
  return element("tr", { class: changed ? "changed" : "", "data-register": register.name },
    element("th", { scope: "row" }, register.name),
    element("td", { class: "value" }, value),
    element("td", {}, ask), told);
}

/// `run`: the number of the run that has them; `has`: what its processor has.
export function show_registers(target, state, source, run, has) {
  const facts = [state.text, state.place, state.mode, state.level === undefined ? null : `level ${state.level}`,
    state.process === undefined ? state.address_space && `process ${state.address_space}` : `process ${state.process}`,
    state.halted ? "halted" : null].filter((f) => f);
  const groups = [];
  for (const [name, title, open] of GROUPS) {
    const registers = state.registers.filter((r) => r.group === name && (has.levels || !is_of_descriptor(r.name)));
    if (registers.length === 0) continue;
    const tells = registers.some((r) => r.value !== null && /[1-9a-f]/.test(r.value));
    if (is_quiet(name) && !tells) continue;
    const details = element("details", { open: opened.has(name), "data-group": name,
      toggle: () => { if (details.open) opened.add(name); else opened.delete(name); } },
    element("summary", {}, name === "flags" ? `${title}: ${state.flags || "none set"}` : title),
    element("table", { class: "registers", "aria-label": title }, element("tbody", {}, registers.map((r) => row(r, source, state, run)))));
    groups.push(details);
  }
  fill(target, element("p", { class: "facts" }, facts.map((f) => element("span", {}, f))), ...groups);
}
