// The panels beside the code: calls, events, processes, console, bus, and what is looked for.

import { counted, element, fill, number_text, table } from "./dom.js";
import { memory_link, moment_link, position_of } from "./links.js";
import { current_place, go_to, link_to } from "./place.js";
import { show_listing } from "./code.js";
import { address_digits, show_memory } from "./memory.js";

// ---- calls

const code_link = (address, place) => element("a", { href: link_to({ panel: "listing", address, space: "linear" }), title: `Code at ${address}` }, place ?? address);

export function show_calls(target, answer) {
  const rows = answer.calls.map((call) => element("li", {},
    moment_link(call.moment), " ",
    call.kind === "event" ? [element("span", { class: "event" }, call.text), call.address_space === undefined ? "" : ` with page tables ${call.address_space}`]
      : [element("strong", {}, code_link(call.to, call.to_place)), " from ", code_link(call.from, call.from_place)]));
  if (answer.why !== undefined) return fill(target, element("p", { role: "alert" }, answer.why));
  const behind = answer.whole ? "" : `Looked back ${counted(answer.looked_back, "instruction")}.`;
  fill(target, rows.length === 0 ? element("p", {}, "None was seen. ", behind)
    : [element("ol", { class: "calls" }, rows), element("p", { class: "hint" }, behind)]);
}

// ---- events

function event_text(event) {
  switch (event.kind) {
    case "port_read": return `port ${event.port} read, ${event.value}`;
    case "port_write": return `port ${event.port} written, ${event.value}`;
    case "external_write": return [counted(event.size, "byte"), " by another bus master at ", memory_link(event.physical, event.physical, "physical")];
    case "process": return `process ${event.process}`;
    case "exception": return `exception ${event.vector}h${event.address === undefined ? "" : `, page fault at ${event.address}`}`;
    case "translation_dropped": return `translation of the page at ${event.address} dropped`;
    case "nmi": return "NMI";
    case "smi": return "SMI";
    case "interrupt": return `interrupt ${event.vector}h`;
    case "software_interrupt": return `INT ${event.vector}h`;
    default: return event.kind;
  }
}

async function show_events(target, source, moment) {
  const from = Math.max(0, parseInt(moment, 10) - 1000);
  const answer = await source.ask("events", { from, limit: 200 });
  const here = parseInt(moment, 10);
  fill(target, element("p", {}, `From instruction ${number_text(from)} on. `),
    answer.events.length === 0 ? element("p", {}, "Nothing happened but instructions.")
      : table(["Instruction", "What happened"], answer.events.map((e) => [
        [parseInt(e.moment, 10) >= here ? "" : element("span", { class: "past", title: "before here" }, "↑ "), moment_link(e.moment)], event_text(e)])),
    answer.more ? element("p", { class: "hint" }, "There are more: go on from the last of them.") : "");
}

// ---- processes

async function show_processes(target, source) {
  const { processes } = await source.ask("processes");
  const calls = processes.some((p) => p.system_calls !== undefined);
  fill(target, table(["Process", "Page tables", "First seen", "Last seen", "Instructions", ...(calls ? ["System calls"] : [])],
    processes.map((p) => [p.label, p.address_space, moment_link(p.first), moment_link(Math.max(0, p.last - 1)), number_text(p.instructions),
      ...(calls ? [p.system_calls === undefined ? "" : number_text(p.system_calls)] : [])])));
}

async function show_system_calls(target, source, moment) {
  const from = Math.max(0, parseInt(moment, 10) - 100000);
  const answer = await source.ask("syscalls", { from, limit: 200 });
  fill(target, answer.system_calls.length === 0 ? element("p", {}, `None begins after instruction ${number_text(from)}.`)
    : table(["Instruction", "Process", "Call", "Result"], answer.system_calls.map((c) => [moment_link(c.moment), c.process,
      element("code", {}, c.text), c.result === undefined ? "it does not return" : [element("span", { class: c.failed ? "event" : "" }, c.result), " at ", moment_link(c.ends)]])));
}

// ---- console

async function show_console(target, source, moment) {
  const answer = await source.ask("console", { at: moment });
  const here = parseInt(moment, 10);
  const parts = [];
  if (answer.screen !== undefined) {
    parts.push(element("h3", {}, "Screen"), element("pre", { class: "screen", tabindex: 0, "aria-label": "Text on the screen" },
      answer.screen.lines.map((l) => l.trimEnd()).join("\n")));
  }
  if (answer.lines.length !== 0) {
    parts.push(element("h3", {}, "Serial and debug ports"),
      table(["Instruction", "Port", "Text"], answer.lines.map((l) => [
        [parseInt(l.moment, 10) < here ? element("span", { class: "past", title: "printed before here" }, "✓ ") : "", moment_link(l.moment)], l.port, element("code", {}, l.text)])));
  }
  fill(target, parts.length === 0 ? element("p", {}, "Nothing was printed.") : parts);
}

// ---- bus

async function show_bus(target, source, moment) {
  const answer = await source.ask("bus", { at: moment, count: 25 });
  if (answer.why !== undefined) return fill(target, element("p", {}, answer.why));
  let marked = false;
  const rows = answer.transactions.map((t) => {
    const mark = !t.passed && !marked;
    marked = marked || mark;
    return [[mark ? element("span", { class: "here-mark", title: "the next one" }, "→ ") : "", String(t.index)],
      t.position === undefined ? "" : moment_link(t.position), t.operation.replaceAll("_", " "), t.address === undefined ? "" : t.operation.startsWith("io_") ? t.address : memory_link(t.address, t.address, "physical"),
      t.data ?? (t.size === undefined ? "" : counted(t.size, "byte"))];
  });
  fill(target, answer.counted ? "" : element("p", { class: "hint" }, "The capture does not count instructions: the place is approximate."),
    table(["Transaction", "Instruction", "Operation", "Address", "Data"], rows));
}

// ---- how do you know?

/// Bytes of memory that lie beside each other and are confirmed by the same are one row.
function joined_inputs(inputs, run) {
  const rows = [], address = (i) => /^memory at ([0-9a-f]+)$/.exec(i.input)?.[1];
  for (const input of inputs) {
    const last = rows.at(-1), at = address(input);
    if (at !== undefined && last?.end !== undefined && parseInt(at, 16) === parseInt(last.end, 16) + 1 && last.confirmed === input.confirmed && last.at === input.at) {
      last.end = at;
      last.input = `memory at ${last.begin} to ${at}`;
    } else {
      const name = run.has.paging ? input.input : input.input.replace(/^e(?=[abcd]x |[sbi]p |[sd]i |flags )/, "");
      rows.push({ ...input, input: name, begin: at, end: at });
    }
  }
  return rows;
}

/// What the bus showed of this instruction and next after it; and what confirms its inputs, which takes long to find.
async function show_evidence(target, source, moment, run, state) {
  const answer = await source.ask("bus", { at: moment, count: 60 });
  if (answer.why !== undefined) return fill(target, element("p", {}, answer.why));
  const here = parseInt(moment, 10), at_of = (t) => (t.position === undefined ? undefined : parseInt(t.position, 10));
  const { verdict } = run;
  const reached = verdict.state === "match" || (verdict.state === "comparing" && here < run.known_to) || (verdict.state === "diverged" && here <= parseInt(verdict.moment, 10));
  const stands = verdict.state === "not compared" ? "Nothing of this run is compared with the bus."
    : !reached ? verdict.state === "diverged" ? "The replay has left its evidence before this instruction." : "The comparison has not come here yet."
      : "Everything that the bus showed up to here agrees with the replay.";
  const own = answer.transactions.filter((t) => at_of(t) === here);
  const next = answer.transactions.find((t) => at_of(t) > here);
  const name = (t) => [`transaction ${number_text(t.index)}, ${t.operation.replaceAll("_", " ")}`, t.address === undefined ? "" : ` at ${t.address}`, t.data === undefined ? "" : ` = ${t.data}`];
  const origins = element("div", { "aria-live": "polite" });
  const button = element("button", { type: "button", click: async () => {
    fill(origins, element("p", {}, "Replaying the run instruction by instruction, for 20 seconds at most ..."));
    try {
      const found = await source.ask("origins", { at: moment });
      const command = element("p", { class: "hint" }, element("code", {}, answer.command), " says the same in a terminal, without a limit.");
      fill(origins, found.inputs.length === 0 ? "" : table(["Made from", "What confirms it", "Instruction"], joined_inputs(found.inputs, run).map((i) =>
        [i.input, i.confirmed ?? element("span", { class: "event" }, "nothing that was seen"), i.at === undefined ? "" : moment_link(i.at)])),
      found.why === undefined ? "" : element("p", { role: "alert" }, found.why), command);
    } catch (error) {
      fill(origins, element("p", { role: "alert" }, error.message));
    }
  } }, "What confirms its inputs?");
  fill(target, element("p", {}, stands),
    !answer.counted ? element("p", {}, "The capture does not count instructions, so it does not say which transactions are of this one.")
      : own.length === 0 ? element("p", {}, element("code", {}, state.text), " itself left nothing on the bus: its code and its data were in the processor.")
        : [element("p", {}, element("code", {}, state.text), " on the bus:"), element("ul", {}, own.map((t) => element("li", {}, name(t))))],
    next === undefined ? "" : element("p", {}, "The next thing that the bus showed: ", name(next), ", by instruction ", moment_link(next.position), "."),
    button, origins);
}

// ---- find

export async function find_call(source, name, n, at) {
  const answer = await source.ask("nth", { function: name, n, at });
  if (!answer.found) throw new Error(`${name}: ${answer.why}`);
  return answer.moment;
}

/// What is called around a moment: for who does not know a name.
function show_functions(target, { functions, from, to }) {
  if (functions.length === 0) return;
  fill(target, element("h3", {}, "Called here"),
    table(["Function", "Calls", "The first", ""], functions.map((f) => [code_link(f.address, f.place), number_text(f.times), moment_link(f.first),
      element("a", { href: link_to({ panel: "find", function: f.place ?? f.address }) }, "calls")])),
    element("p", { class: "hint" }, `From instruction ${number_text(from)} to ${number_text(to)}.`));
}

async function show_find(target, source, moment, run) {
  const place = current_place();
  const text_form = element("form", { class: "line", role: "search", submit: (event) => {
    event.preventDefault();
    go_to({ panel: "find", text: new FormData(text_form).get("text") });
  } },
  element("label", {}, "A name, or a text in memory ", element("input", { name: "text", type: "search", value: place.text ?? "", required: true, maxlength: 200 })),
  element("button", {}, "Find"));
  const results = element("div", { "aria-live": "polite" });
  const call_form = element("form", { class: "line", id: "find-call", submit: async (event) => {
    event.preventDefault();
    const data = new FormData(call_form);
    fill(results, element("p", {}, "Looking ..."));
    try {
      const name = data.get("function").trim();
      go_to({ at: await find_call(source, name.includes(":") ? address_digits(name, run) ?? name : name, data.get("n")) });
    } catch (error) {
      fill(results, element("p", { role: "alert" }, error.message));
    }
  } },
  element("label", {}, "Function, or its address ", element("input", { name: "function", value: place.function ?? "", required: true, spellcheck: "false" })),
  element("label", {}, "Call number ", element("input", { name: "n", type: "number", min: 1, value: 1, size: 6 })),
  element("button", {}, "Go to the call"));
  fill(target, text_form, call_form, results);
  if (place.text === undefined) return show_functions(results, await source.ask("functions", { at: moment }));
  const answer = await source.ask("find", { text: place.text, at: moment });
  const parts = [];
  if (answer.symbols.length !== 0) {
    parts.push(element("h3", {}, "Names"), table(["Name", "Module", "Address", ""], answer.symbols.map((s) => [
      s.name, s.module, memory_link(s.address),
      s.code ? [element("a", { href: link_to({ panel: "listing", address: s.address }) }, "code"), " ",
        element("a", { href: link_to({ panel: "find", function: s.name }) }, "calls")] : ""])));
  }
  if ((answer.memory ?? []).length !== 0) {
    parts.push(element("h3", {}, "In memory now"), element("ul", {}, answer.memory.map((m) => element("li", {}, memory_link(m.physical, m.physical, "physical")))));
  }
  fill(results, parts.length === 0 ? element("p", {}, "Not found.") : parts);
}

async function show_code_in_memory(target, source, moment, run, state) {
  const place = current_place();
  const address = (place.space === "physical" ? undefined : address_digits(place.address ?? "", run)) ?? state.address;
  const list = element("div");
  show_listing(list, await source.ask("listing", { at: moment, address, count: 60 }));
  fill(target, element("p", {}, element("a", { href: link_to({ panel: "find", function: address }) }, `When does ${address} run?`)), list);
}

/// Tabs: a name in the address of the page, a title, what shows it, and whether the recording has it.
export const PANELS = [
  ["memory", "Memory", show_memory, () => true],
  ["listing", "Code in memory", show_code_in_memory, () => true],
  ["events", "Events", show_events, () => true],
  ["syscalls", "System calls", show_system_calls, (run) => run.totals.system_calls !== undefined],
  ["processes", "Processes", show_processes, (run) => run.totals.processes !== undefined],
  ["console", "Console", show_console, () => true],
  ["bus", "Bus", show_bus, (run, source) => run.has.evidence && source.is_live],
  ["evidence", "How do you know?", show_evidence, (run, source) => run.has.evidence && source.is_live],
  ["find", "Find", show_find, () => true],
];
