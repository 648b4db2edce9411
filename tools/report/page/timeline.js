// The run as a line from its first to its last instruction, which zooms down to one of them: stretches of the
// timeline tool as far as they are fine enough, single events and instructions beyond.

const timelineLanes = [
  {key: "interrupts", kind: "interrupt", title: "interrupts"},
  {key: "exceptions", kind: "exception", title: "exceptions"},
  {key: "system_calls", kind: "system call", title: "system calls"},
  {key: "ports", kind: "port", title: "port accesses"},
  {key: "external_writes", kind: "external write", title: "DMA, devices"},
  {key: "switches", kind: "switch", title: "switches"},
  {key: "halts", kind: "halt", title: "halts"},
];
const laneHeight = 26, laneGap = 6, labelWidth = 104, axisHeight = 24;
// Room for half of the last number below.
const rightMargin = 44;

class Timeline {
  constructor(run, target) {
    this.run = run;
    this.every = tool(run, "timeline").every;
    this.stretches = tool(run, "timeline").stretches;
    this.moments = tool(run, "moments");
    this.kept = stretchesOf(run);
    this.from = run.analyze.from;
    this.to = Math.max(run.analyze.to, this.from + 1);
    this.divergence = run.analyze.divergence ? run.analyze.divergence.position : null;
    this.lanes = timelineLanes.filter(lane => this.stretches.some(s => s[lane.key]));
    this.processes = this.processColors();
    this.domain = [this.from, this.to];
    this.at = this.divergence ?? this.from;
    this.height = (this.lanes.length + 3) * (laneHeight + laneGap) + axisHeight;
    this.build(target);
  }

  // Colours for the processes that ran longest, one for all others.
  processColors() {
    const time = new Map();
    for (const s of this.stretches) time.set(s.process, (time.get(s.process) || 0) + s.process_executions);
    const order = [...time.entries()].sort((a, b) => b[1] - a[1]).map(([name]) => name);
    return new Map(order.slice(0, 7).map((name, i) => [name, color(i)]));
  }

  build(target) {
    const summary = `Timeline of ${groups(this.to - this.from)} instructions: processes, privilege level, ` +
      this.lanes.map(l => `${groups(d3.sum(this.stretches, s => s[l.key]))} ${l.title}`).join(", ") +
      ". Arrow keys move, plus and minus zoom, Home shows the whole run. The same as tables below.";
    this.svg = picture(this.height, summary);
    operated(this.svg, "timeline");
    this.status = element("p", {"aria-live": "polite", class: "faint"});
    this.listing = element("div", {class: "listing"});
    const input = element("input", {type: "number", min: this.from, max: this.to - 1, "aria-label": "Instruction"});
    const button = (text, name, act) => {
      const made = element("button", {type: "button", "aria-label": name, title: name}, text);
      made.onclick = act;
      return made;
    };
    const places = [];
    if (this.divergence !== null) places.push(button("divergence", "Go to the divergence", () => this.goTo(this.divergence)));
    const go = event => { event.preventDefault(); if (input.value !== "") this.goTo(Number(input.value)); };
    const form = element("form", {class: "controls"}, input, element("button", {}, "Go to instruction"));
    form.onsubmit = go;
    target.append(
      element("div", {class: "controls"}, button("+", "Zoom in", () => this.zoom(1 / 4)), button("\u2212", "Zoom out", () => this.zoom(4)),
        button("\u2190", "Move left", () => this.move(-0.5)), button("\u2192", "Move right", () => this.move(0.5)),
        button("whole run", "Show the whole run", () => this.show(this.from, this.to)),
        button("first", "Go to the first instruction", () => this.goTo(this.from)),
        button("last", "Go to the last instruction", () => this.goTo(this.to - 1)), ...places, form),
      element("div", {class: "timeline"}, this.svg), this.legend(), this.status, this.listing, this.tables());
    this.svg.addEventListener("keydown", e => this.key(e));
    this.svg.addEventListener("wheel", e => this.wheel(e), {passive: false});
    this.listenToDrags();
    drawWide(this.svg, width => { this.width = width; this.draw(); });
    this.list();
  }

  legend() {
    const items = [...this.processes].map(([name, c]) => element("span", {style: `--swatch: ${c}`}, `process ${name}`));
    items.push(element("span", {style: "--swatch: var(--faint)"}, "other processes, or system"), element("span", {style: "--swatch: var(--c1)"}, "share at level 3"),
      element("span", {style: "--swatch: var(--c2)"}, "instructions in the page"));
    return element("div", {class: "key"}, ...items);
  }

  tables() {
    const columns = ["from", "executions", "user", "iterations", "interrupts", "exceptions", "system_calls", "ports", "switches", "halts", "external_writes", "process"];
    // As many rows as can be read; the whole is in the page's JSON.
    const step = Math.ceil(this.stretches.length / 256);
    return element("div", {},
      details("Events as a table", table("Events, of each kind every so-manieth", [
        {title: "kind", of: e => e.kind}, {title: "instruction", of: e => this.link(e.instruction, place(e.instruction, e.iteration))},
        {title: "event", of: e => e.text, wide: true}], this.moments.events)),
      details("How many events there were", table("Events by kind", [
        {title: "kind", of: k => k.kind}, {title: "count", of: k => k.count, number: true}, {title: "one of so many is listed", of: k => k.every, number: true}], this.moments.kinds)),
      details("Stretches as a table", table(`Stretches of ${groups(this.every)} instructions` + (step > 1 ? `, one of ${step}` : ""),
        columns.map(c => ({title: c.replace("_", " "), of: s => s[c], number: c !== "process"})), this.stretches.filter((s, i) => i % step === 0))),
      this.kept.length ? details("Stretches that the page holds instruction by instruction", table("Instructions held", [
        {title: "from", of: s => this.link(s.from, groups(s.from))}, {title: "to", of: s => s.to, number: true}, {title: "because of", of: s => s.why, wide: true}], this.kept)) : null);
  }

  link(instruction, text) {
    const made = element("a", {href: `#at=${instruction}`}, text);
    made.onclick = event => { event.preventDefault(); this.goTo(instruction); };
    return made;
  }

  show(from, to) {
    const span = Math.min(Math.max(to - from, 8), this.to - this.from);
    const begin = Math.min(Math.max(from, this.from), this.to - span);
    this.domain = [begin, begin + span];
    this.draw();
  }
  zoom(factor, around) {
    const [a, b] = this.domain, middle = around ?? (this.at >= a && this.at < b ? this.at : (a + b) / 2);
    this.show(middle - (middle - a) * factor, middle + (b - middle) * factor);
  }
  move(share) {
    const span = this.domain[1] - this.domain[0];
    this.show(this.domain[0] + share * span, this.domain[1] + share * span);
  }
  // Zooms to one instruction and shows what ran there.
  goTo(instruction) {
    this.at = Math.min(Math.max(Math.floor(instruction), this.from), this.to - 1);
    this.show(this.at - 20, this.at + 20);
    this.list();
  }
  pick(instruction) {
    this.at = Math.min(Math.max(Math.floor(instruction), this.from), this.to - 1);
    const [a, b] = this.domain;
    if (this.at < a || this.at >= b) this.show(this.at - (b - a) / 2, this.at + (b - a) / 2);
    else this.draw();
    this.list();
  }
  list() { showListing(this.listing, this.run, this.kept, this.at, n => this.goTo(n)); }

  key(event) {
    const acts = {ArrowLeft: () => event.shiftKey ? this.pick(this.at - 1) : this.move(-0.25), ArrowRight: () => event.shiftKey ? this.pick(this.at + 1) : this.move(0.25),
      "+": () => this.zoom(1 / 2), "=": () => this.zoom(1 / 2), "-": () => this.zoom(2),
      Home: () => this.show(this.from, this.to), Enter: () => this.pick((this.domain[0] + this.domain[1]) / 2)};
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
  // Only once the line was chosen, so that the page can be scrolled over it.
  wheel(event) {
    if (document.activeElement !== this.svg) return;
    event.preventDefault();
    this.zoom(event.deltaY > 0 ? 1.4 : 1 / 1.4, this.scale().invert(event.offsetX));
  }
  listenToDrags() {
    let from = null, moved = false;
    this.svg.addEventListener("pointerdown", e => { from = {x: e.clientX, domain: this.domain.slice()}; moved = false; });
    this.svg.addEventListener("pointermove", e => {
      if (!from || !(e.buttons & 1)) return;
      const by = (from.x - e.clientX) / (this.width - labelWidth - rightMargin) * (from.domain[1] - from.domain[0]);
      if (Math.abs(from.x - e.clientX) < 4 && !moved) return;
      moved = true;
      this.show(from.domain[0] + by, from.domain[1] + by);
    });
    this.svg.addEventListener("click", e => {
      from = null;
      const x = e.clientX - this.svg.getBoundingClientRect().left;
      if (!moved && x >= labelWidth) this.pick(this.scale().invert(x));
    });
  }

  scale() { return d3.scale.linear().domain(this.domain).range([labelWidth, this.width - rightMargin]); }

  draw() {
    if (!this.width) return;
    const x = this.scale(), [a, b] = this.domain;
    const svg = d3.select(this.svg);
    svg.selectAll("*").remove();
    const shown = this.stretches.filter(s => s.from + this.every > a && s.from < b);
    let top = 4;
    const lane = (title, draw) => {
      svg.append("text").attr("x", 4).attr("y", top + laneHeight - 8).text(title);
      svg.append("line").attr("class", "lane-line").attr({x1: labelWidth, x2: this.width - rightMargin, y1: top + laneHeight, y2: top + laneHeight});
      draw(svg.append("g"), top);
      top += laneHeight + laneGap;
    };
    lane("processes", (g, y) => this.drawProcesses(g, y, x, shown));
    lane("level 3", (g, y) => this.drawBars(g, y, x, shown, s => of(s.user, s.executions) / 100, 1, color(1)));
    for (const l of this.lanes) lane(l.title, (g, y) => this.drawEvents(g, y, x, shown, l));
    lane("in the page", (g, y) => this.drawKept(g, y, x));
    this.drawMarks(svg, x);
    const axis = d3.svg.axis().scale(x).ticks(Math.max(2, Math.floor(this.width / 130))).tickFormat(d3.format(",d"));
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${top})`).call(axis);
    this.status.textContent = `Instructions ${groups(Math.floor(a))} to ${groups(Math.ceil(b))}; chosen: ${groups(this.at)}.`;
  }

  clip(x, from, to) {
    const left = Math.max(x(from), labelWidth), right = Math.min(x(to), this.width - rightMargin);
    return {left, width: Math.max(right - left, 0.5)};
  }
  drawProcesses(g, y, x, shown) {
    // Neighbours of one process are one piece.
    const pieces = [];
    for (const s of shown) {
      const last = pieces[pieces.length - 1];
      if (last && last.process === s.process && last.to === s.from) last.to = s.from + this.every;
      else pieces.push({process: s.process, from: s.from, to: s.from + this.every});
    }
    for (const p of pieces) {
      const {left, width} = this.clip(x, p.from, p.to);
      g.append("rect").attr({x: left, y: y + 2, width, height: laneHeight - 4}).style("fill", this.processes.get(p.process) || "var(--faint)")
        .append("title").text(`${p.process}: ${groups(p.from)} to ${groups(p.to)}`);
      const room = Math.floor((width - 8) / 7);
      if (room > 3) g.append("text").attr({x: left + 4, y: y + laneHeight - 8}).style("fill", "var(--back)").text(p.process.slice(0, room));
    }
  }
  drawBars(g, y, x, shown, value, most, fill) {
    let path = "";
    for (const s of shown) {
      const height = most ? Math.min(1, value(s) / most) * (laneHeight - 2) : 0;
      if (!height) continue;
      const {left, width} = this.clip(x, s.from, s.from + this.every);
      path += `M${left.toFixed(2)} ${y + laneHeight}v${-Math.max(height, 2).toFixed(2)}h${width.toFixed(2)}V${y + laneHeight}z`;
    }
    g.append("path").attr("d", path).style("fill", fill);
  }
  // Where every event is listed, or a stretch is wider than an event needs, each by itself.
  drawEvents(g, y, x, shown, lane) {
    const kind = this.moments.kinds.find(k => k.kind === lane.kind);
    const wide = x(this.every) - x(0) > 12;
    const fill = color(timelineLanes.indexOf(lane) + 2);
    if (wide) {
      const listed = this.moments.events.filter(e => e.kind === lane.kind && e.instruction >= this.domain[0] && e.instruction < this.domain[1]);
      for (const e of listed) {
        g.append("rect").attr({x: x(e.instruction) - 1, y: y + 2, width: 3, height: laneHeight - 4}).style("fill", fill)
          .append("title").text(`${place(e.instruction, e.iteration)} ${e.text}`);
      }
      if (kind && kind.every === 1) return;
    }
    const layer = g.append("g").attr("opacity", wide ? 0.25 : 1);
    this.drawBars(layer, y, x, shown, s => s[lane.key], d3.max(this.stretches, s => s[lane.key]), fill);
  }
  drawKept(g, y, x) {
    for (const s of this.kept) {
      if (s.to < this.domain[0] || s.from > this.domain[1]) continue;
      const {left, width} = this.clip(x, s.from, s.to + 1);
      g.append("rect").attr({x: left, y: y + 6, width: Math.max(width, 2), height: laneHeight - 12}).style("fill", color(2))
        .append("title").text(`${groups(s.from)} to ${groups(s.to)}: ${s.why}`);
    }
  }
  drawMarks(svg, x) {
    const mark = (position, fill, dash, title) => {
      if (position === null || position < this.domain[0] || position > this.domain[1]) return;
      svg.append("line").attr({x1: x(position), x2: x(position), y1: 0, y2: this.height - axisHeight, "stroke-width": 2, "stroke-dasharray": dash})
        .style("stroke", fill).append("title").text(title);
    };
    for (const c of this.run.checkpoints) mark(c, "var(--faint)", "2 4", `checkpoint at ${groups(c)}`);
    mark(this.at, "var(--link)", "6 3", `chosen: ${groups(this.at)}`);
    mark(this.divergence, "var(--bad)", "", "divergence");
  }
}

function timelineSection(run) {
  const target = element("div", {});
  const made = new Timeline(run, target);
  // A link to an instruction: report.html#at=12345.
  const follow = () => {
    const asked = /^#at=(\d+)$/.exec(location.hash);
    if (asked) made.goTo(Number(asked[1]));
  };
  addEventListener("hashchange", follow);
  follow();
  return [target];
}
