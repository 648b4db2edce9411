// The second screen of a page that `citcat report` made: the figures of analyses, each run's beside
// the other's.

import { curve, flame_graph, memory_map, pins } from "./charts.js";
import { element, fill, number_text, share_text } from "./dom.js";
import { moment_link } from "./links.js";

/// 12345 as "12,345", 0.123456 as "0.1235".
const exact_text = (v) => (typeof v !== "number" ? String(v) : Number.isInteger(v) ? number_text(v) : String(+v.toFixed(4)));
const is_empty = (v) => v === 0 || v === "" || v === null || v === undefined;
const share_of = (part, all) => (all === 0 ? 0 : (100 * part) / all);

/// A table; columns are {title, of, number, code}. Columns and tables in which there is nothing are
/// left out.
function figure_table(caption, columns, rows) {
  const filled = columns.filter((column) => rows.some((row) => !is_empty(column.of(row))));
  if (rows.length === 0 || filled.length === 0) return null;
  const cell = (column, row) => {
    const value = column.of(row);
    return element("td", { class: `${column.number ? "number" : ""} ${column.code ? "code" : ""}` }, value instanceof Node ? value : is_empty(value) ? "" : column.number ? exact_text(value) : String(value));
  };
  return element("div", { class: "scroll tall", tabindex: rows.length > 14 ? 0 : false, role: "region", "aria-label": caption },
    element("table", { class: "figures" }, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, filled.map((c) => element("th", { scope: "col", class: c.number ? "number" : "" }, c.title)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, filled.map((column) => cell(column, row)))))));
}

/// Names and values, one a line; what is empty is left out.
const fact_table = (caption, pairs) => figure_table(caption, [{ title: "what", of: (p) => p[0] },
  { title: "value", of: (p) => (p[1] instanceof Node ? p[1] : exact_text(p[1])) }], pairs.filter((p) => !is_empty(p[1])));

const lines_of = (name, text) => element("pre", { class: "scroll tall", tabindex: 0, "aria-label": name }, text);
const folded = (summary, ...content) => element("details", {}, element("summary", {}, summary), ...content);
const share_bar = (percent) => element("div", { class: "share", "aria-hidden": "true", style: `width: ${(percent / 10).toFixed(2)}em` });

/// What a tool found in a run; null where it was not asked.
function tool_of(run, name) {
  const { tools } = run.analyze;
  const key = Object.keys(tools).find((k) => k === name || k.startsWith(`${name}:`));
  return key === undefined ? null : tools[key];
}

// ---- samples

const sample_text = (s) => `a sample: ${number_text(s.instructions)} of ${number_text(s.of)} instructions, in ${number_text(s.windows)} windows (${s.plan})`;

/// Whether the figures of these tools are of the whole run.
function sample_note(run, names) {
  const { sample } = run.analyze;
  if (!sample || names === undefined) return null;
  const rows = sample.tools.filter((t) => names.some((name) => t.tool === name || t.tool.startsWith(`${name}:`)));
  const parts = rows.filter((t) => t.figures !== "exact");
  if (parts.length === 0) return element("p", { class: "hint exact" }, `Exact: of all ${number_text(sample.of)} instructions.`);
  const some = parts.map((t) => (t.figures === "sample" ? t.tool : t.sampled)).join("; ");
  return element("p", { class: "sample" }, rows.every((t) => t.figures === "sample") ? `What follows is ${sample_text(sample)}. Numbers are those of the windows.`
    : `${some}: ${sample_text(sample)}; numbers are those of the windows. All else here is exact.`);
}

/// Above all: that there are such figures, and how to have all of them exact.
function sample_summary(run) {
  const { sample } = run.analyze;
  if (!sample) return null;
  const names = sample.tools.filter((t) => t.figures !== "exact").map((t) => (t.figures === "sample" ? t.tool : `${t.tool} (${t.sampled})`));
  return element("p", { class: "sample" }, `Some figures below are ${sample_text(sample)}: ${names.join(", ")}. All others, the verdict among them, are exact. `,
    element("code", {}, "citcat report --sample none"), " makes them all exact, and takes longer.");
}

// ---- is it right, and why not

const EVIDENCE = { instruction_stream: "instruction stream", writes: "memory writes", write_backs: "lines written back", io_reads: "port reads",
  io_writes: "port writes", special_cycles: "special cycles", digests: "digests" };

/// What --cache found.
function cache_facts(cache) {
  if (!cache) return [];
  const counts = (c) => `${number_text(c.predicted)} predicted, ${number_text(c.captured)} captured, ${number_text(c.agree)} agree`;
  const first = cache.first_disagreement;
  return [["cache, compared with the model", cache.model], ["line fills", counts(cache.fills)], ["lines written back by the cache", counts(cache.write_backs)],
    ["fills of lines that the model held", cache.refills],
    ["first disagreement of the cache", first ? `instruction ${number_text(first.position)}: ${first.what} of line ${first.address}, ${first.captured ? "on the bus and not predicted" : "predicted and not on the bus"}` : "none"]];
}

function verdict_section(run) {
  const { verify, info } = run;
  const good = verify ? verify.verdict === "match" : !run.analyze.divergence;
  const said = verify ? (good ? "The replay is the run that was captured" : "The replay diverged from the captured run")
    : good ? "The replay of this range agrees with the capture up to its end" : "The replay diverged from the captured run";
  const range = run.whole ? "" : ` (${number_text(run.analyze.from)} to ${number_text(run.analyze.to)} of the run)`;
  const parts = [element("p", { class: `verdict ${good ? "match" : "diverged"}` }, element("strong", {}, `${good ? "\u2713" : "\u2717"} ${said}`)),
    element("p", {}, `${info.cpu === "unknown" ? "" : `${info.cpu}, `}${number_text(run.analyze.instructions)} instructions${range}; end: ${run.analyze.end}.`), sample_summary(run)];
  if (verify) {
    const rows = Object.entries(EVIDENCE).filter(([key]) => verify[key] && verify[key].checked).map(([key, name]) => ({ name, ...verify[key] }));
    const memory = verify.final_memory ?? {};
    parts.push(figure_table("Evidence compared", [{ title: "evidence", of: (r) => r.name }, { title: "compared", of: (r) => r.checked, number: true },
      { title: "equal", of: (r) => r.equal, number: true }, { title: "not equal", of: (r) => r.checked - r.equal, number: true }], rows),
    fact_table("What the verdict rests on", [["final memory compared (bytes)", memory.bytes], ["final memory different (bytes)", memory.different],
      ["written to devices, not compared (bytes)", memory.device], ["changed by another bus master unseen (bytes)", memory.external_unseen],
      ["results adopted from the bus", verify.adopted], ["reads and fills compared", verify.reads], ["changes of one bit by another bus master", verify.single_bit_changes],
      ["results that processors compute differently", verify.model_specific_results], ["the first of them", verify.first_model_specific],
      ["interrupts", verify.interrupts], ["exceptions and software interrupts", verify.exceptions], ["external writes", verify.external_writes],
      ["waived evidence", verify.waived === undefined ? null : JSON.stringify(verify.waived)],
      ["places of interrupts that a search found", verify.placement ? JSON.stringify(verify.placement) : null], ...cache_facts(verify.cache)]));
  }
  if ((info.warnings ?? []).length !== 0) parts.push(element("h4", {}, "Warnings of the import"), element("ul", {}, info.warnings.map((w) => element("li", {}, w))));
  return parts;
}

const context_lines = (lines) => lines_of("Instructions", lines.map((l) =>
  `${String(l.iteration ? `${l.instruction}+${l.iteration}` : l.instruction).padStart(12)} ${l.address} ${l.bytes.padEnd(22)} ${l.text}${l.accesses ? "  ; " + l.accesses : ""}`).join("\n"));

function divergence_section(run) {
  const d = run.verify?.divergence ?? run.analyze.divergence;
  if (!d) return null;
  const parts = [element("p", { class: "event" }, `At instruction ${number_text(d.position)}: ${d.reason}`),
    fact_table("Both sides", [["the capture shows", d.expected], ["the replay does", d.found], ["transaction", d.transaction],
      ["address", d.linear === null ? null : d.linear.toString(16).padStart(run.has.address_bits === 20 ? 5 : 8, "0")]])];
  if (d.causes?.length) parts.push(element("h4", {}, "Perhaps"), element("ul", {}, d.causes.map((c) => element("li", {}, c))));
  if (run.waveform) {
    parts.push(element("h4", {}, `The pins around transaction ${number_text(run.waveform.transaction)}`), pins(run.waveform),
      folded("As text", lines_of("Levels of pins", run.waveform.channels.map((c) => `${c.name.padEnd(10)} ${c.levels}`).join("\n"))));
  }
  const round = run.explain?.rounds[0];
  if (!round) return [...parts, element("p", {}, element("code", {}, `citcat explain ${run.name}`), " looks for its causes.")];
  parts.push(figure_table("Causes, the likeliest first", [{ title: "cause", of: (c) => c.cause }, { title: "what it says", of: (c) => c.text },
    { title: "with it the replay agrees", of: (c) => (c.suspected ? "not tried" : c.repairs ? "to the end" : `for ${number_text(c.agrees_for)} instructions more`) },
    { title: "as likely as the first", of: (c) => (c.tied ? "yes" : "") }], round.causes));
  if (round.context.length) parts.push(element("h4", {}, "The instructions before it"), context_lines(round.context));
  for (const lineage of round.lineage) {
    parts.push(element("h4", {}, `Where its value came from: ${lineage.source}`));
    if (lineage.path.length) parts.push(context_lines(lineage.path));
  }
  if (round.not_tried.length) parts.push(element("h4", {}, "Not tried"), element("ul", {}, round.not_tried.map((t) => element("li", {}, t))));
  return parts;
}

// ---- what happened

function events_section(run) {
  const io = tool_of(run, "io"), events = tool_of(run, "events"), switches = tool_of(run, "switches");
  const link = (at) => (typeof at === "number" ? moment_link(at, number_text(at)) : at);
  return [element("div", { class: "columns" },
    figure_table("Events", [{ title: "event", of: (e) => e.event }, { title: "count", of: (e) => e.count, number: true }, { title: "from level 3", of: (e) => e.from_user, number: true },
      { title: "first", of: (e) => link(e.first), number: true }, { title: "last", of: (e) => link(e.last), number: true }], events.events.filter((e) => e.count !== 0)),
    figure_table("Ports", [{ title: "port", of: (p) => p.port, code: true }, { title: "direction", of: (p) => p.direction }, { title: "bytes", of: (p) => p.size, number: true },
      { title: "count", of: (p) => p.count, number: true }, { title: "last value", of: (p) => p.last_value, code: true }], io.ports),
    switches === null ? null : figure_table("Processes up to the last switch", [{ title: "process", of: (p) => p.process }, { title: "times", of: (p) => p.times, number: true },
      { title: "instructions", of: (p) => p.instructions, number: true }], switches.processes),
    fact_table("Other bus masters", [["writes", io.external_writes], ["bytes", io.external_bytes]]))];
}

function mix_section(run) {
  const count = tool_of(run, "count");
  const rows = (title, key, name) => figure_table(title, [{ title: name, of: (r) => r[name] }, { title: "executions", of: (r) => r.count, number: true },
    { title: "share", of: (r) => share_text(r.percent), number: true }, { title: "", of: (r) => share_bar(r.percent) }], count[key]);
  const repeated = count.iterations === 0 ? "" : `, ${number_text(count.iterations)} further iterations of REP`;
  return [element("p", {}, `${number_text(count.executions)} executions of ${number_text(count.static_instructions)} different instructions${repeated}. ` +
    `${number_text(count.blocks.for_90_percent)} of ${number_text(count.blocks.static)} blocks make 90\u00a0% of them.`),
  element("div", { class: "columns" }, rows("By class", "classes", "class"), rows("By mnemonic", "mix", "mnemonic"))];
}

/// Lines of code from `begin` up to before `end`, of those that the page lists.
function code_lines(listing, begin, end) {
  const rows = listing.filter((r) => { const at = BigInt("0x" + r.address); return at >= begin && at < end; });
  if (rows.length === 0) return element("p", { class: "hint" }, "None of its instructions is among those listed.");
  return lines_of("Code", rows.map((r) => `${number_text(r.executions).padStart(14)}  ${r.address} ${r.bytes.padEnd(22)} ${r.text}`).join("\n"));
}

/// Opens to `make()`, which is called when that is wanted.
function opened_later(summary, make) {
  const details = folded(summary);
  details.addEventListener("toggle", () => { if (details.children.length === 1) details.append(make()); });
  return details;
}

function blocks_section(run) {
  const { blocks, listing } = tool_of(run, "count");
  return [element("p", {}, "Blocks with most executions; each opens to its code, with how often each instruction ran."),
    ...blocks.hottest.map((b) => {
      const begin = BigInt("0x" + b.address);
      // A block's instructions lie one behind the other: so many of the listing from its address on.
      const rows = listing.filter((r) => BigInt("0x" + r.address) >= begin).slice(0, b.instructions);
      const end = rows.length === 0 ? begin : BigInt("0x" + rows[rows.length - 1].address) + 1n;
      return opened_later(`${b.address}: ${share_text(b.percent)}, ${number_text(b.executions)} times ${number_text(b.instructions)} instructions`, () => code_lines(listing, begin, end));
    })];
}

function functions_section(run) {
  const func = tool_of(run, "func"), { listing } = tool_of(run, "count");
  const rows = func.procedures_by_instructions;
  const begins = rows.filter((f) => f.address !== "").map((f) => BigInt("0x" + f.address));
  const name_of = (f) => {
    if (f.address === "") return f.procedure;
    const begin = BigInt("0x" + f.address);
    const end = begins.filter((b) => b > begin).reduce((a, b) => (a < b ? a : b), 1n << 64n);
    return opened_later(f.procedure, () => code_lines(listing, begin, end));
  };
  return [figure_table(`Functions with most instructions, of ${number_text(func.procedures)}`, [{ title: "function", of: name_of }, { title: "module", of: (f) => f.module },
    { title: "calls", of: (f) => f.calls, number: true }, { title: "own", of: (f) => f.own, number: true }, { title: "share", of: (f) => share_text(f.share), number: true },
    { title: "with what it called", of: (f) => f.with_callees, number: true }], rows),
  element("h4", {}, "Call tree"), flame_graph(func.tree, func.instructions),
  folded("The tree as a table", figure_table("Call paths with most instructions", [{ title: "function", of: (r) => r.procedure }, { title: "called by path", of: (r) => r.parent, number: true },
    { title: "calls", of: (r) => r.calls, number: true }, { title: "own", of: (r) => r.own, number: true }, { title: "with what it called", of: (r) => r.total, number: true }], func.tree.slice(0, 200)) ?? "")];
}

const MEMORY_KINDS = [{ key: "image_bytes", title: "known before" }, { key: "code_bytes", title: "executed" }, { key: "reads", title: "read" },
  { key: "writes", title: "written" }, { key: "tables", title: "tables" }, { key: "external_writes", title: "DMA, devices" },
  // A sampled run has writes counted in windows alone; whether a frame was stored to at all is known.
  { key: "stored", title: "stored to (exact)" }];

function memory_section(run) {
  const map = tool_of(run, "map");
  const regions = map.regions.map((r) => ({ ...r, stored: r.changed === "yes" ? 1 : 0 }));
  if (regions.length === 0) return null;
  const kinds = MEMORY_KINDS.filter((kind) => regions.some((r) => r[kind.key] > 0));
  return [memory_map(regions, map.region_bytes, kinds),
    element("p", { class: "hint" }, `Darker means more. Tables are what the processor itself reads and marks: vectors of interrupts${run.has.levels ? ", descriptors" : ""}${run.has.paging ? ", page tables" : ""}. Addresses that were not used are left out; after such a gap, the next address is shown.${map.ram_bytes ? ` The machine has ${number_text(map.ram_bytes)} bytes of memory.` : ""}`),
    folded("The map as a table", figure_table(`Regions of ${number_text(map.region_bytes)} bytes`, [{ title: "address", of: (r) => r.address, code: true },
      ...kinds.map((k) => ({ title: k.title, of: (r) => r[k.key], number: true })), { title: "at level 3", of: (r) => r.user, number: true },
      { title: "memory", of: (r) => (r.device === "yes" ? "no" : "yes") }, { title: "touched by", of: (r) => (run.has.paging ? r.processes : "") }], regions))];
}

/// For processors that have a cache, pages, or a predictor.
function models_section(run) {
  const reuse = tool_of(run, "reuse"), cache = tool_of(run, "cache"), tlb = tool_of(run, "tlb"), bpred = tool_of(run, "bpred");
  const curves = [];
  if (reuse !== null && reuse.distances.length > 1) {
    curves.push(curve_of(`Hits of a fully associative cache with LRU, lines of ${reuse.line} bytes`, "lines", reuse.distances.map((d) => [d.below, d.hit_percent])));
  }
  if (tlb !== null && tlb.pages.some((p) => p.accesses > 0)) {
    const sizes = [...new Set(tlb.pages.map((p) => p.entries))];
    const sum = (entries, key) => tlb.pages.filter((p) => p.entries === entries).reduce((n, p) => n + p[key], 0);
    curves.push(curve_of(`Misses of a translation lookaside buffer of ${tlb.ways} ways`, "entries", sizes.map((n) => [n, share_of(sum(n, "misses"), sum(n, "accesses"))])));
  }
  if (bpred !== null) {
    curves.push(curve_of("Conditional branches predicted, two-bit counters", "counters", bpred.sizes.filter((s) => s.counter === "two_bit").map((s) => [s.entries, s.percent])));
  }
  const facts = cache === null ? null : fact_table(`A cache as the ${cache.model}'s: ${number_text(cache.bytes)} bytes, ${cache.ways} ways, lines of ${cache.line} bytes`,
    [["code: references", cache.code.references], ["code: fills", cache.code.fills], ["code: fills in %", cache.code.percent],
      ["data: references", cache.data.references], ["data: fills", cache.data.fills], ["data: fills in %", cache.data.percent], ["write-backs", cache.write_backs]]);
  return curves.length === 0 && facts === null ? null : [element("div", { class: "columns" }, curves), facts];
}

const curve_of = (title, unit, points) => element("div", {}, element("h4", {}, title), curve(title, unit, points),
  folded("As a table", figure_table(title, [{ title: unit, of: (p) => p[0], number: true }, { title: "%", of: (p) => p[1], number: true }], points) ?? ""));

// ---- where it came from

const PARTS_OF_ARCHIVE = ["state", "image", "events", "digests", "evidence", "symbols", "checkpoints", "container"];

function size_section(run) {
  const { storage, bytes } = run.info;
  const parts = Object.entries(storage).filter(([key, size]) => PARTS_OF_ARCHIVE.includes(key) && size);
  return [figure_table(`Archive: ${number_text(bytes)} bytes`, [{ title: "part", of: (p) => p[0] }, { title: "bytes", of: (p) => p[1], number: true },
    { title: "share", of: (p) => share_text(share_of(p[1], bytes)), number: true }, { title: "", of: (p) => share_bar(share_of(p[1], bytes)) }], parts),
  fact_table("In proportion", [["needed to replay (bytes)", storage.needed_to_replay], ["bits for each instruction", storage.bits_per_instruction],
    ["of these needed to replay", storage.bits_per_instruction_needed]])];
}

function provenance_section(run) {
  const { info } = run;
  const bus = `${info.bus.cache === "none" ? "no cache" : `cache ${info.bus.cache}, lines of ${info.bus.line_bytes} bytes`}, ${8 * info.bus.bus_bytes} data lines`;
  return [fact_table("The recording", [["content hash (XXH3-128)", element("code", {}, info.content_hash)], ["identity", element("code", {}, info.identity)], ["engine", info.engine],
    ["capture format", info.source.format], ["end of the capture", info.end], ["import options", info.source.options ? JSON.stringify(info.source.options) : null], ["bus", bus],
    ["transactions", info.transactions], ["unknown registers at the start", info.unknown_registers.map((name) => register_name(run, name)).join(", ")]]),
  figure_table("Captures from which it was made", [{ title: "file", of: (f) => f.name }, { title: "bytes", of: (f) => f.bytes, number: true }, { title: "XXH3-128", of: (f) => f.xxh3, code: true }], info.source.files)];
}

function json_section(run) {
  const save = (name, value) => element("button", { type: "button", click: () => {
    const link = element("a", { download: name, href: URL.createObjectURL(new Blob([JSON.stringify(value)], { type: "application/json" })) });
    link.click();
    URL.revokeObjectURL(link.href);
  } }, `Save ${name}`);
  return [element("p", {}, "All figures come from this command, and the page holds what it printed:"), lines_of("Command", run.analyze_command),
    element("p", { class: "controls" }, save("analyze.json", run.printed.analyze), run.verify ? save("verify.json", run.verify) : null, save("info.json", run.info))];
}

// ---- two runs

/// Differences in the figures that are one number each.
function comparison_section([a, b]) {
  const both = (rows, key) => [...new Set([a, b].flatMap((run) => rows(run).map((r) => r[key])))];
  const found = (rows, run, key, name, value) => rows(run).find((r) => r[key] === name)?.[value] ?? 0;
  const classes = (run) => tool_of(run, "count").classes, events = (run) => tool_of(run, "events").events, procedures = (run) => tool_of(run, "func").procedures_by_instructions;
  const row = (name, value) => ({ name, a: value(a), b: value(b) });
  const rows = [row("instructions", (r) => r.analyze.instructions), row("different instructions", (r) => tool_of(r, "count").static_instructions),
    ...both(events, "event").map((name) => row(name, (r) => found(events, r, "event", name, "count"))),
    row("page frames used", (r) => tool_of(r, "map").pages), row("bytes of the archive", (r) => r.info.bytes),
    ...both(classes, "class").map((name) => row(`${name} (% of executions)`, (r) => found(classes, r, "class", name, "percent")))];
  // Numbers of windows say nothing beside those of a whole run: shares do.
  const sampled = a.analyze.sample || b.analyze.sample, key = sampled ? "share" : "own";
  const differing = both(procedures, "procedure").map((name) => row(name, (r) => found(procedures, r, "procedure", name, key)))
    .sort((p, q) => Math.abs(q.b - q.a) - Math.abs(p.b - p.a)).slice(0, 100);
  const columns = [{ title: "", of: (r) => r.name }, { title: name_of_run(a), of: (r) => r.a, number: true }, { title: name_of_run(b), of: (r) => r.b, number: true },
    { title: "difference", of: (r) => r.b - r.a, number: true }];
  return [figure_table("In numbers", columns, rows.filter((r) => r.a !== 0 || r.b !== 0)),
    figure_table(sampled ? "Own instructions of functions in %, of samples, largest difference first" : "Own instructions of functions, largest difference first", columns, differing)];
}

/// Commands name all registers and addresses as a processor of 32 bits has them.
const register_name = (run, name) => (run.has.paging ? name : name.replace(/^e(?=[abcd]x$|[sbi]p$|[sd]i$|flags$)/, ""));

/// The figures with addresses as long as those of the processor.
function with_its_addresses(figures, has) {
  const shortened = (value) => {
    if (typeof value === "string") return /^0{3}[0-9a-f]{5}$/.test(value) ? value.slice(3) : value;
    if (Array.isArray(value)) return value.map(shortened);
    return value === null || typeof value !== "object" ? value : Object.fromEntries(Object.entries(value).map(([key, its]) => [key, shortened(its)]));
  };
  const { analyze, explain } = figures;
  const shown = has.address_bits === 20 ? { analyze: shortened(analyze), explain: shortened(explain) } : {};
  return { ...figures, ...shown, has, printed: figures };
}

const name_of_run = (run) => run.name + (run.whole ? "" : ` ${number_text(run.analyze.from)} to ${number_text(run.analyze.to)}`);

/// Name, title, what makes it, and the tools that it shows.
const SECTIONS = [
  ["right", "What it is, and whether it is right", verdict_section],
  ["divergence", "The divergence", divergence_section],
  ["events", "Events, ports, processes", events_section, ["events", "io", "switches"]],
  ["mix", "Instruction mix", mix_section, ["count"]],
  ["functions", "Functions", functions_section, ["func"]],
  ["blocks", "Hot blocks", blocks_section, ["count"]],
  ["memory", "Physical memory", memory_section, ["map"]],
  ["models", "Caches, TLB, branches", models_section, ["reuse", "cache", "tlb", "bpred"]],
  ["sizes", "Size of the archive", size_section],
  ["provenance", "Where it came from", provenance_section],
  ["json", "The figures as JSON", json_section],
];

/// `figures`: those of each run; `has`: what each recording has, as the answer to `run` says it;
/// `compared`: they are compared with each other.
export function show_figures(target, figures, has, compared) {
  // They are the same whatever moment is looked at.
  if (target.childElementCount !== 0) return;
  const runs = figures.map((its, i) => with_its_addresses(its, has[i]));
  const section = (name, title, ...content) => element("div", { id: `figures-${name}`, class: "figures-part" }, element("h3", {}, title), ...content);
  const parts = compared ? [section("comparison", "Comparison", ...comparison_section(runs))] : [];
  for (const [name, title, make, tools] of SECTIONS) {
    const made = runs.map((run) => [run, make(run)]).filter(([, content]) => content !== null);
    if (made.length === 0) continue;
    parts.push(section(name, title, element("div", { class: made.length > 1 ? "panes" : "" }, made.map(([run, content]) =>
      element("div", { class: "pane-figures" }, runs.length > 1 ? element("h4", { class: "run-name" }, name_of_run(run)) : null, sample_note(run, tools), ...content)))));
  }
  const links = parts.map((part) => element("button", { type: "button", click: () => part.scrollIntoView() }, part.firstChild.textContent));
  fill(target, element("nav", { class: "controls", "aria-label": "Figures" }, links), ...parts);
}
