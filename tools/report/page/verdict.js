// What the recording is, whether the replay is right, and where it came from.

const replayMatches = run => run.verify ? run.verify.verdict === "match" : !run.analyze.divergence;

function verdictSection(run) {
  const v = run.verify, info = run.info;
  const good = replayMatches(run);
  const n = run.analyze.instructions;
  const text = v ? (good ? "The replay is the run that was captured" : "The replay left the captured run")
    : good ? "The replay of this range agrees with the capture up to its end" : "The replay left the captured run";
  const parts = [
    element("p", {class: "verdict " + (good ? "good" : "bad")}, (good ? "\u2713 " : "\u2717 ") + text),
    element("p", {}, `${info.cpu}, ${groups(n)} instructions` +
      (run.whole ? "" : ` (${groups(run.analyze.from)} to ${groups(run.analyze.to)} of the run)`) + `; end: ${run.analyze.end}.`),
  ];
  parts.push(...sampleSummary(run));
  if (v) parts.push(evidenceTable(v), restingOn(v));
  if (info.warnings && info.warnings.length) {
    parts.push(element("h3", {}, "Warnings of the import"), element("ul", {}, ...info.warnings.map(w => element("li", {}, w))));
  }
  return parts;
}

function evidenceTable(v) {
  const names = {instruction_stream: "instruction stream", writes: "memory writes", write_backs: "lines written back",
    io_reads: "port reads", io_writes: "port writes", special_cycles: "special cycles", digests: "digests"};
  const rows = Object.entries(names).filter(([key]) => v[key] && v[key].checked).map(([key, name]) => ({name, ...v[key]}));
  return table("Evidence compared", [
    {title: "evidence", of: r => r.name}, {title: "compared", of: r => r.checked, number: true},
    {title: "equal", of: r => r.equal, number: true}, {title: "not equal", of: r => r.checked - r.equal, number: true}], rows);
}

function restingOn(v) {
  const memory = v.final_memory || {};
  return facts("What the verdict rests on", [
    ["final memory compared (bytes)", memory.bytes], ["final memory different (bytes)", memory.different],
    ["written to devices, not compared (bytes)", memory.device],
    ["changed by another bus master unseen (bytes)", memory.external_unseen],
    ["results adopted from the bus", v.adopted], ["reads and fills compared", v.reads],
    ["changes of one bit by another bus master", v.single_bit_changes],
    ["results that processors compute differently", v.model_specific_results], ["the first of them", v.first_model_specific],
    ["interrupts", v.interrupts], ["exceptions", v.exceptions], ["external writes", v.external_writes],
    ["waived evidence", v.waived === undefined ? null : JSON.stringify(v.waived)],
    ["places of interrupts that a search found", v.placement ? JSON.stringify(v.placement) : null],
    ...cacheFacts(v.cache)]);
}

/// What --cache found; nothing where it was not asked for.
function cacheFacts(cache) {
  if (!cache) return [];
  const counts = c => `${groups(c.predicted)} predicted, ${groups(c.captured)} captured, ${groups(c.agree)} agree`;
  const first = cache.first_disagreement;
  return [["cache, compared with the model", cache.model], ["line fills", counts(cache.fills)],
    ["lines written back by the cache", counts(cache.write_backs)], ["fills of lines that the model held", cache.refills],
    ["first disagreement of the cache", first ? `instruction ${groups(first.position)}: ${first.what} of line ${first.address}, ` +
      (first.captured ? "on the bus and not predicted" : "predicted and not on the bus") : "none"]];
}

function provenanceSection(run) {
  const info = run.info;
  return [facts("The recording", [
    ["content hash (XXH3-128)", element("code", {}, info.content_hash)], ["identity", element("code", {}, info.identity)],
    ["engine", info.engine], ["capture format", info.source.format], ["end of the capture", info.end],
    ["import options", info.source.options ? JSON.stringify(info.source.options) : null],
    ["bus", `cache ${info.bus.cache}, lines of ${info.bus.line_bytes} bytes, ${8 * info.bus.bus_bytes} data lines`],
    ["transactions", info.transactions], ["unknown registers at the start", info.unknown_registers.join(", ")]]),
  table("Captures it was made of", [
    {title: "file", of: f => f.name, wide: true}, {title: "bytes", of: f => f.bytes, number: true},
    {title: "XXH3-128", of: f => f.xxh3, wide: true, code: true}], info.source.files)];
}

function sizeSection(run) {
  const storage = run.info.storage;
  const parts = Object.entries(storage).filter(([key]) =>
    ["state", "image", "events", "digests", "evidence", "symbols", "checkpoints", "container"].includes(key));
  const all = run.info.bytes;
  return [table(`Archive: ${groups(all)} bytes`, [
    {title: "part", of: p => p[0]}, {title: "bytes", of: p => p[1], number: true}, {title: "share", of: p => share(of(p[1], all)), number: true},
    {title: "", of: p => { const bar = element("div", {class: "bar", "aria-hidden": "true"}); bar.style.width = 12 * p[1] / all + "rem"; return bar; }}],
  parts.filter(p => p[1])),
  facts("In proportion", [["needed to replay (bytes)", storage.needed_to_replay], ["bits for each instruction", storage.bits_per_instruction],
    ["of these needed to replay", storage.bits_per_instruction_needed]])];
}
