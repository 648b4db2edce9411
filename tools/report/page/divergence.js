// Where the replay left the evidence: both sides, what led there, and what it may come of.

function contextText(lines) {
  return codeBlock("Instructions", lines.map(l =>
    `${place(l.instruction, l.iteration).padStart(12)} ${l.address} ${l.bytes.padEnd(22)} ${l.text}${l.accesses ? "  ; " + l.accesses : ""}`).join("\n"));
}

// The pins around the transaction, each a line of its own; lines that do not move last.
function waveform(wave) {
  const moves = c => c.levels.includes("0") && c.levels.includes("1");
  const channels = [...wave.channels.filter(moves), ...wave.channels.filter(c => !moves(c))];
  const count = wave.channels.length ? wave.channels[0].levels.length : 0;
  const svg = picture(channels.length * 18 + 26, `Levels of ${channels.length} pins in samples ${groups(wave.first)} to ${groups(wave.first + count - 1)}; the bus cycle is in ` +
    `${groups(wave.begin)} to ${groups(wave.end)}. The same as text below.`);
  drawWide(svg, width => {
    const root = d3.select(svg), x = d3.scale.linear().domain([wave.first, wave.first + count]).range([84, width - 8]);
    root.selectAll("*").remove();
    root.append("rect").attr({x: x(wave.begin), width: x(wave.end + 1) - x(wave.begin), y: 0, height: channels.length * 18}).style("fill", "var(--mark)");
    channels.forEach((c, row) => {
      let path = "";
      for (let i = 0; i < count; ++i) {
        const y = row * 18 + (c.levels[i] === "1" ? 4 : 15);
        path += `${i ? "V" + y : "M" + x(wave.first) + " " + y}H${x(wave.first + i + 1).toFixed(1)}`;
      }
      root.append("text").attr({x: 4, y: row * 18 + 14}).text(c.name);
      root.append("path").attr("d", path).style({fill: "none", stroke: color(0)});
    });
    root.append("g").attr("class", "axis").attr("transform", `translate(0,${channels.length * 18 + 2})`)
      .call(d3.svg.axis().scale(x).ticks(Math.max(2, Math.floor(width / 140))).tickFormat(d3.format(",d")));
  });
  return element("div", {}, element("h3", {}, `The pins around transaction ${groups(wave.transaction)}`), svg,
    details("As text", codeBlock("Levels of pins", channels.map(c => `${c.name.padEnd(10)} ${c.levels}`).join("\n"))));
}

function divergenceSection(run) {
  const d = (run.verify && run.verify.divergence) || run.analyze.divergence;
  if (!d) return null;
  const parts = [element("p", {class: "bad"}, `At instruction ${groups(d.position)}: ${d.reason}`),
    facts("Both sides", [["the capture shows", d.expected], ["the replay does", d.found], ["transaction", d.transaction],
      ["address", d.linear === null ? null : d.linear.toString(16).padStart(8, "0")]])];
  if (d.causes && d.causes.length) parts.push(element("h3", {}, "Perhaps"), element("ul", {}, ...d.causes.map(c => element("li", {}, c))));
  if (run.waveform) parts.push(waveform(run.waveform));
  const round = run.explain && run.explain.rounds[0];
  if (!round) {
    parts.push(element("p", {}, element("code", {}, `citcat explain ${run.name}`), " looks for its causes."));
    return parts;
  }
  if (round.causes.length) {
    parts.push(table("Causes, the likeliest first", [
      {title: "cause", of: c => c.cause}, {title: "what it says", of: c => c.text, wide: true},
      {title: "with it the replay agrees", of: c => c.suspected ? "not tried" : c.repairs ? "to the end" : `for ${groups(c.agrees_for)} instructions more`},
      {title: "as likely as the first", of: c => c.tied ? "yes" : ""}], round.causes));
  }
  if (round.context.length) parts.push(element("h3", {}, "The instructions before it"), contextText(round.context));
  for (const lineage of round.lineage) {
    parts.push(element("h3", {}, `Where its value came from: ${lineage.source}`));
    if (lineage.path.length) parts.push(contextText(lineage.path));
  }
  if (round.not_tried.length) parts.push(element("h3", {}, "Not tried"), element("ul", {}, ...round.not_tried.map(t => element("li", {}, t))));
  return parts;
}
