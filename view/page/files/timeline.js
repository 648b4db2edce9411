// The timeline: what happened in each part of the run, from all of it down to one instruction.

import { counted, element, fill, number_text, shape } from "./dom.js";
import { current_place, go_to, replace_place } from "./place.js";

const LANE_HEIGHT = 18, LANE_GAP = 4, LABEL_WIDTH = 136, AXIS_HEIGHT = 34;
const FEWEST_SHOWN = 16;  // instructions

/// Lanes in the order in which they are shown; those in which nothing happened are not.
const LANES = [
  ["interrupts", "interrupts"],
  ["exceptions", "exceptions"],
  ["software_interrupts", "software interrupts"],
  ["system_calls", "system calls"],
  ["port_reads", "port reads"],
  ["port_writes", "port writes"],
  ["external_writes", "other masters"],
  ["halts", "halts"],
];
const PROCESS_COLOURS = 8;

export class Timeline {
  /// `number`: of its run; `refresh`: shows all timelines of the page again.
  constructor(target, source, number, refresh) {
    this.target = target;
    this.source = source;
    this.number = number;
    this.refresh = refresh;
    this.run = null;
    this.at = undefined;
    this.shown = null;
    this.wanted = 0;
  }

  /// The stretch that the address of the page names, or all of the run.
  window() {
    const place = current_place();
    const first = this.run.from, last = Math.max(this.run.to, first + 1);
    const from = Math.max(first, Number(place.from ?? first));
    const to = Math.min(last, Number(place.to ?? last));
    return to > from ? { from, to } : { from: first, to: last };
  }

  /// `at`: the moment that is looked at, if any.
  async show(run, at) {
    this.run = run;
    this.at = at;
    const { from, to } = this.window();
    const width = this.target.clientWidth || 800;
    const count = Math.max(40, Math.min(1200, Math.floor((width - LABEL_WIDTH) / 2)));
    const number = ++this.wanted;
    // A step within what is shown changes nothing but the mark.
    const key = `${from} ${to} ${count} ${run.known_to}`;
    if (this.key !== key) this.answer = await this.source.ask("timeline", { from, to, count });
    this.key = key;
    const { answer } = this;
    if (this.processes === undefined || this.known !== answer.known_to) {
      this.processes = (await this.source.ask("processes")).processes;
      this.known = answer.known_to;
    }
    if (number === this.wanted) this.draw(answer, from, to, width);
  }

  draw(answer, from, to, width) {
    const columns = answer.columns;
    const lanes = LANES.filter(([name]) => columns[name] !== undefined);
    const plot = width - LABEL_WIDTH - 12;
    const x_of = (instruction) => LABEL_WIDTH + (plot * Math.max(instruction - from, 0)) / (to - from);
    const picture = shape("svg", { role: "img", width, "aria-label": this.description(columns, from, to) });
    let y = 4;
    const lane = (title, draw) => {
      picture.append(shape("text", { x: LABEL_WIDTH - 8, y: y + 13, class: "lane-title" }, title));
      draw(y);
      y += LANE_HEIGHT + LANE_GAP;
    };
    const bars = (values, top, kind, scale) => {
      let path = "";
      values.forEach((value, i) => {
        if (!value) return;
        const left = x_of(answer.from + i * answer.width), right = x_of(Math.min(to, answer.from + (i + 1) * answer.width));
        const height = Math.max(3, LANE_HEIGHT * scale(value));
        path += `M${left.toFixed(1)} ${top + LANE_HEIGHT}v${(-height).toFixed(1)}H${Math.max(right, left + 1).toFixed(1)}V${top + LANE_HEIGHT}z`;
      });
      picture.append(shape("path", { d: path, class: kind }));
    };
    if (columns.level3 !== undefined) {
      lane("program, kernel", (top) => this.draw_levels(picture, columns, answer, x_of, top, from, to));
    }
    if (new Set(columns.process.filter((p) => p !== null)).size > 1) {
      lane("process", (top) => this.draw_processes(picture, columns, answer, x_of, top, from, to));
    }
    for (const [name, title] of lanes) {
      const most = Math.log2(1 + Math.max(...columns[name]));
      lane(title, (top) => bars(columns[name], top, `bar ${name}`, (v) => Math.log2(1 + v) / most));
    }
    this.draw_axis(picture, x_of, y, from, to, width);
    this.draw_marks(picture, x_of, y, from, to, answer.known_to);
    picture.setAttribute("height", y + AXIS_HEIGHT);
    this.listen(picture, from, to, plot);
    fill(this.target, picture, this.controls(from, to));
    this.shown = { from, to, plot };
  }

  description(columns, from, to) {
    const totals = LANES.filter(([name]) => columns[name] !== undefined)
      .map(([name, title]) => `${number_text(columns[name].reduce((a, b) => a + b, 0))} ${title}`);
    return `Instructions ${number_text(from)} to ${number_text(to)}: ${totals.join(", ") || "ordinary code"}`;
  }

  draw_levels(picture, columns, answer, x_of, top, from, to) {
    let program = "", kernel = "";
    columns.level3.forEach((value, i) => {
      const all = value + (columns.level0?.[i] ?? 0) + (columns.level1?.[i] ?? 0) + (columns.level2?.[i] ?? 0);
      if (all === 0) return;
      const left = x_of(answer.from + i * answer.width).toFixed(1);
      const right = x_of(Math.min(to, answer.from + (i + 1) * answer.width)).toFixed(1);
      const cut = top + LANE_HEIGHT * (1 - value / all);
      kernel += `M${left} ${top}H${right}V${cut.toFixed(1)}H${left}z`;
      program += `M${left} ${cut.toFixed(1)}H${right}V${top + LANE_HEIGHT}H${left}z`;
    });
    picture.append(shape("path", { d: kernel, class: "level0" }), shape("path", { d: program, class: "level3" }));
  }

  draw_processes(picture, columns, answer, x_of, top, from, to) {
    const values = columns.process;
    for (let i = 0; i < values.length;) {
      let end = i + 1;
      while (end < values.length && values[end] === values[i]) ++end;
      if (values[i] !== null) {
        const left = x_of(answer.from + i * answer.width), right = x_of(Math.min(to, answer.from + end * answer.width));
        const label = this.processes[values[i]]?.label ?? "";
        picture.append(shape("rect", { x: left, y: top, width: Math.max(1, right - left), height: LANE_HEIGHT,
          class: `process process${values[i] % PROCESS_COLOURS}` }, shape("title", {}, label)));
        if (right - left > 8 * label.length + 8) {
          picture.append(shape("text", { x: left + 4, y: top + 13, class: "process-name" }, label));
        }
      }
      i = end;
    }
  }

  draw_axis(picture, x_of, y, from, to, width) {
    const rough = (to - from) / Math.max(2, Math.floor((width - LABEL_WIDTH) / 120));
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const step = Math.max(1, [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? 10 * power);
    picture.append(shape("path", { d: `M${x_of(from)} ${y}H${x_of(to)}`, class: "axis" }));
    let last = -100;
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = x_of(at), text = number_text(at), half = 3.6 * text.length;
      picture.append(shape("path", { d: `M${x} ${y}v4`, class: "axis" }));
      if (x - half < last + 8) continue;
      const shown = Math.min(Math.max(x, LABEL_WIDTH - 20 + half), width - half - 2);
      picture.append(shape("text", { x: shown, y: y + 16, class: "tick" }, text));
      last = shown + half;
    }
    picture.append(shape("text", { x: LABEL_WIDTH - 8, y: y + 16, class: "lane-title" }, "instruction"));
  }

  /// Where one is, where the run diverges from its evidence, and up to where it is known.
  draw_marks(picture, x_of, y, from, to, known) {
    const mark = (instruction, kind, title) => {
      if (instruction < from || instruction > to) return;
      const x = x_of(instruction).toFixed(1);
      picture.append(shape("path", { d: `M${x} 0V${y}`, class: kind }, shape("title", {}, title)));
    };
    if (known < to) {
      const x = Math.max(x_of(known), LABEL_WIDTH);
      picture.append(shape("rect", { x, y: 0, width: Math.max(0, x_of(to) - x), height: y, class: "not-known" },
        shape("title", {}, "not looked at yet")));
    }
    if (this.run.verdict.state === "diverged") {
      mark(parseInt(this.run.verdict.moment, 10), "divergence", "here the replay diverges from its evidence");
    }
    for (const held of this.run.held === undefined ? [] : [[from, this.run.held[0]], [this.run.held[1], to]]) {
      const left = x_of(Math.max(held[0], from)), right = x_of(Math.min(held[1], to));
      if (right <= left) continue;
      picture.append(shape("rect", { x: left, y: 0, width: right - left, height: y, class: "not-known" },
        shape("title", {}, "not in this page")));
    }
    const at = parseInt(this.at, 10);
    if (!Number.isNaN(at)) mark(at, "here", "you are here");
  }

  controls(from, to) {
    const whole = from <= this.run.from && to >= this.run.to;
    const button = (text, title, act, disabled) => element("button", { type: "button", title, click: act, disabled }, text);
    const middle = Number.isNaN(parseInt(this.at, 10)) ? (from + to) / 2 : parseInt(this.at, 10);
    const focus = middle >= from && middle <= to ? middle : (from + to) / 2;
    return element("p", { class: "controls" },
      button("Zoom in", "Zoom in (+)", () => this.zoom(0.25, focus), to - from <= FEWEST_SHOWN),
      button("Zoom out", "Zoom out (-)", () => this.zoom(4, focus), whole),
      button("Whole run", "Show all of the run (0)", () => this.replace(null, null), whole),
      element("span", { class: "hint" },
        `${counted(Math.max(Math.min(to, this.run.to) - from, 0), "instruction")} shown. A bar is the higher, the more happened. Click to go there, drag to zoom, turn the wheel.`,
        this.run.held === undefined ? "" : ` This page holds each step of instructions ${number_text(this.run.held[0])} to ${number_text(this.run.held[1])}.`));
  }

  zoom(factor, around) {
    const { from, to } = this.window();
    const length = Math.max(FEWEST_SHOWN, (to - from) * factor);
    const share = (around - from) / (to - from);
    const first = Math.round(around - length * share);
    this.limit(first, Math.round(first + length));
  }

  pan(share) {
    const { from, to } = this.window();
    const by = Math.round((to - from) * share);
    this.limit(from + by, to + by);
  }

  replace(from, to) {
    replace_place({ from, to });
    this.refresh();
  }

  /// Shows the stretch, as far as there is one.
  limit(from, to) {
    const length = Math.min(to - from, this.run.to - this.run.from);
    const first = Math.min(Math.max(from, this.run.from), this.run.to - length);
    if (length >= this.run.to - this.run.from) return this.replace(null, null);
    this.replace(Math.floor(first), Math.ceil(first + length));
  }

  listen(picture, from, to, plot) {
    const at = (event) => {
      const x = event.clientX - picture.getBoundingClientRect().left - LABEL_WIDTH;
      return from + ((to - from) * Math.min(Math.max(x, 0), plot)) / plot;
    };
    let begun = null, band = null;
    picture.addEventListener("pointerdown", (event) => {
      begun = { x: event.clientX, at: at(event) };
      picture.setPointerCapture(event.pointerId);
    });
    picture.addEventListener("pointermove", (event) => {
      if (begun === null || Math.abs(event.clientX - begun.x) < 6) return;
      if (band === null) picture.append(band = shape("rect", { y: 0, height: "100%", class: "band" }));
      const left = picture.getBoundingClientRect().left;
      band.setAttribute("x", Math.min(event.clientX, begun.x) - left);
      band.setAttribute("width", Math.abs(event.clientX - begun.x));
    });
    picture.addEventListener("pointerup", (event) => {
      if (begun === null) return;
      const [first, last] = [begun.at, at(event)].sort((a, b) => a - b);
      const dragged = band !== null;
      begun = band = null;
      if (dragged) return this.limit(Math.floor(first), Math.max(Math.ceil(last), Math.floor(first) + FEWEST_SHOWN));
      go_to({ run: this.number, at: Math.min(Math.round(last), Math.max(this.run.to, 0)) });
    });
    picture.addEventListener("pointercancel", () => { begun = band = null; });
    picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / 1000);
      else this.zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, at(event));
    }, { passive: false });
  }
}
