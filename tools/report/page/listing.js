// Instructions that the page holds, as `citcat cat --format text` shows them.

const place = (instruction, iteration) => iteration ? `${instruction}+${iteration}` : String(instruction);

// The stretches of a run, with where each begins and ends (the last instruction it has a record of).
function stretchesOf(run) {
  const moments = tool(run, "moments");
  if (!moments) return [];
  return moments.stretches.map(s => {
    const records = moments.records.slice(s.first, s.first + s.records);
    return {why: s.why, records, from: d3.min(records, r => r.instruction), to: d3.max(records, r => r.instruction)};
  });
}

// The lines of a record: one for each iteration of a REP, of which `most` are shown.
function linesOf(record, code, most) {
  const at = iteration => place(record.instruction, record.iteration + iteration).padStart(12);
  if (record.code === "") return [at(0) + " " + record.event];
  const {address, bytes, text} = code[record.code];
  const addresses = record.addresses === "" ? [] : record.addresses.split(" ").map(a => parseInt(a, 16));
  const lines = [];
  for (let i = 0; i < Math.min(record.iterations, most); ++i) {
    const told = addresses.map(a => " @" + ((a + i * record.step) >>> 0).toString(16).padStart(8, "0"));
    lines.push(`${at(i)} ${address} ${bytes.padEnd(22)} ${text}${told.join("")}`);
  }
  if (record.iterations > most) lines.push(`${"".padStart(12)} ${groups(record.iterations - most)} further iterations`);
  return lines;
}

const linesAround = 40, iterationsShown = 64;

// What is shown around instruction `at`: {lines: [{text, here}], note}.
function listingAt(run, stretches, at) {
  const code = tool(run, "moments").code;
  const stretch = stretches.find(s => s.from <= at && at <= s.to);
  if (!stretch) {
    const nearest = stretches.reduce((best, s) => {
      const distance = Math.min(Math.abs(s.from - at), Math.abs(s.to - at));
      return !best || distance < best.distance ? {distance, s} : best;
    }, null);
    return {lines: [], nearest: nearest && (nearest.s.from > at ? nearest.s.from : nearest.s.to)};
  }
  const first = stretch.records.findIndex(r => r.instruction >= at);
  const shown = stretch.records.slice(Math.max(0, first - linesAround), first + linesAround);
  const lines = shown.flatMap(r => linesOf(r, code, iterationsShown).map(text => ({text, here: r.instruction === at})));
  return {lines, why: stretch.why};
}

// Shows it in `target`, a <div>; `go(n)` is called where another place is asked for.
function showListing(target, run, stretches, at, go) {
  const {lines, nearest, why} = listingAt(run, stretches, at);
  const command = `citcat cat ${run.name} --from ${at} --to ${at + linesAround} --format text`;
  if (!lines.length) {
    const button = element("button", {type: "button"}, `nearest that is: ${groups(nearest ?? 0)}`);
    button.onclick = () => go(nearest);
    target.replaceChildren(element("p", {}, `Instruction ${groups(at)} itself is not in the page. `, nearest === undefined || nearest === null ? null : button),
      element("p", {}, element("code", {}, command), " shows it."));
    return;
  }
  const text = element("pre", {tabindex: "0", class: "tall", "aria-label": `Instructions around ${at}`, "data-at": at});
  for (const line of lines) text.append(line.here ? element("mark", {}, line.text) : line.text, "\n");
  target.replaceChildren(element("p", {class: "faint"}, `Kept because of: ${why}`), text);
  const mark = text.querySelector("mark");
  if (mark) text.scrollTop = Math.max(0, mark.offsetTop - text.offsetTop - text.clientHeight / 3);
}
