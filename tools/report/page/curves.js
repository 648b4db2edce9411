// How well caches, translation buffers and branch predictors of several sizes would do.

// points: [[size, percent]]; sizes double from one to the next.
function curve(title, unit, points) {
  const text = `${title}: ` + points.map(([size, percent]) => `${groups(size)} ${unit} ${share(percent)}`).join(", ");
  const svg = picture(190, text);
  drawWide(svg, width => {
    const root = d3.select(svg);
    root.selectAll("*").remove();
    const x = d3.scale.log().base(2).domain(d3.extent(points, p => p[0])).range([44, width - 16]);
    const low = d3.min(points, p => p[1]), high = d3.max(points, p => p[1]);
    const y = d3.scale.linear().domain([Math.max(0, low - (high - low) * 0.1), high || 1]).nice().range([156, 12]);
    const ticks = points.map(p => p[0]).filter((size, i, all) => i % Math.ceil(all.length / Math.max(2, width / 70)) === 0);
    root.append("g").attr("class", "axis").attr("transform", "translate(0,156)").call(d3.svg.axis().scale(x).tickValues(ticks).tickFormat(d3.format(",d")));
    root.append("g").attr("class", "axis").attr("transform", "translate(44,0)").call(d3.svg.axis().scale(y).orient("left").ticks(5).tickFormat(v => v + "%"));
    root.append("path").attr("d", d3.svg.line().x(p => x(p[0])).y(p => y(p[1]))(points)).style({fill: "none", stroke: color(0), "stroke-width": 2});
    for (const p of points) {
      root.append("circle").attr({cx: x(p[0]), cy: y(p[1]), r: 3.5}).style("fill", color(0)).append("title").text(`${groups(p[0])} ${unit}: ${share(p[1])}`);
    }
  });
  return element("div", {}, element("h3", {}, title), svg,
    details("As a table", table(title, [{title: unit, of: p => p[0], number: true}, {title: "%", of: p => p[1], number: true}], points)));
}

function curvesSection(run) {
  const reuse = tool(run, "reuse"), cache = tool(run, "cache"), tlb = tool(run, "tlb"), bpred = tool(run, "bpred");
  const missing = d3.nest().key(p => p.entries).entries(tlb.pages)
    .map(({values}) => [values[0].entries, of(d3.sum(values, p => p.misses), d3.sum(values, p => p.accesses))]);
  const predicted = bpred.sizes.filter(s => s.counter === "two_bit").map(s => [s.entries, s.percent]);
  const parts = [curve(`Hits of a fully associative cache with LRU, lines of ${reuse.line} bytes`, "lines", reuse.distances.map(d => [d.below, d.hit_percent])),
    curve(`Misses of a translation lookaside buffer of ${tlb.ways} ways`, "entries", missing),
    curve("Conditional branches predicted, two-bit counters", "counters", predicted)];
  const i486 = cache ? facts(`A cache as the ${cache.model}'s: ${groups(cache.bytes)} bytes, ${cache.ways} ways, lines of ${cache.line} bytes`, [
    ["code: references", cache.code.references], ["code: fills", cache.code.fills], ["code: fills in %", cache.code.percent],
    ["data: references", cache.data.references], ["data: fills", cache.data.fills], ["data: fills in %", cache.data.percent], ["write-backs", cache.write_backs]]) : null;
  return [element("div", {class: "grid"}, ...parts.filter(p => p)), i486].filter(p => p);
}

function portsSection(run) {
  const io = tool(run, "io"), events = tool(run, "events"), switches = tool(run, "switches");
  return [element("div", {class: "grid"},
    table("Events", [{title: "event", of: e => e.event}, {title: "count", of: e => e.count, number: true}, {title: "from level 3", of: e => e.from_user, number: true},
      {title: "first", of: e => e.first, number: true}, {title: "last", of: e => e.last, number: true}], events.events),
    table("Ports", [{title: "port", of: p => p.port, code: true}, {title: "direction", of: p => p.direction}, {title: "bytes", of: p => p.size, number: true},
      {title: "count", of: p => p.count, number: true}, {title: "last value", of: p => p.last_value, code: true}], io.ports),
    table("Processes up to the last switch", [{title: "process", of: p => p.process}, {title: "times", of: p => p.times, number: true},
      {title: "instructions", of: p => p.instructions, number: true}], switches.processes)),
  facts("Other bus masters", [["writes", io.external_writes], ["bytes", io.external_bytes]])];
}
