// Answers from the page itself: a stretch of a run that was exported with it. The answers are those
// of docs/formats/view-interface.md, as far as the stretch knows.

import { hex } from "./dom.js";
import { COMPLETED, DATA, NOT_KNOWN, OUTSIDE, PackedStretch, REPEATED, SYSTEM, WALK, WRITE } from "./packed_stretch.js";

const CALL = 1, RETURN = 2, INTERRUPT_RETURN = 3, SYSTEM_CALL = 4;
const ONE_STACK = 1n << 16n;
const EVENT_KINDS = ["exception", "interrupt", "software_interrupt", "nmi", "smi"];
const FLAGS = [[0, "CF"], [2, "PF"], [4, "AF"], [6, "ZF"], [7, "SF"], [8, "TF"], [9, "IF"], [10, "DF"], [11, "OF"]];
const MOST_FOUND = 200;

export class ExportedSource {
  is_live = false;

  static async open(data) {
    return new ExportedSource(await PackedStretch.unpack(data.textContent));
  }

  constructor(stretch) {
    this.stretch = stretch;
    this.about = stretch.description.about;
    this.digits = this.about.run.has.address_bits === 64 ? 16 : this.about.run.has.address_bits === 20 ? 5 : 8;
    this.physical_digits = this.about.run.has.address_bits === 20 ? 5 : 8;
    this.events = this.gather_events();
    this.events_of = new Map();  // of each step that has some
    for (const event of this.events) this.events_of.set(event.step, [...(this.events_of.get(event.step) ?? []), event]);
    this.calls = this.gather_calls();
  }

  async ask(question, parameters = {}) {
    const answer = {
      run: () => this.about.run, processes: () => ({ processes: this.about.processes, known_to: this.about.run.to }),
      moment: (p) => this.here(this.step_of(p.at)), state: (p) => this.state(p), setter: (p) => this.setter(p), code: (p) => this.code(p),
      listing: (p) => this.listing(p), memory: (p) => this.memory(p), access: (p) => this.access(p), move: (p) => this.move(p),
      calls: (p) => this.open_calls(p), timeline: (p) => this.timeline(p), events: (p) => this.list_events(p),
      syscalls: (p) => this.list_syscalls(p), console: (p) => this.console(p), find: (p) => this.find(p), nth: (p) => this.nth(p),
    }[question];
    if (answer === undefined) throw new Error(`this page does not answer '${question}'`);
    return answer(parameters);
  }

  // ---- moments

  moment(step) {
    const { instruction, iteration, deliveries } = this.stretch;
    return `${instruction[step]}${iteration[step] === 0 ? "" : "+" + iteration[step]}~${deliveries[step]}`;
  }

  /// The first step of instruction `instruction`, or the first behind it.
  first_step(instruction) {
    let low = 0, high = this.stretch.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.stretch.instruction[middle] < instruction) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  step_of(at) {
    const { instruction, iteration, deliveries, count } = this.stretch;
    if (at === "begin") return this.about.run.held === undefined ? 0 : this.step_of(String(this.about.run.from));
    if (at === "end") return count;
    if (at === "divergence") return this.step_of(this.about.run.verdict.moment);
    const parts = /^(\d+)(?:\+(\d+))?(?:~(\d+))?$/.exec(at ?? "");
    if (parts === null) throw new Error(`at: expected a moment like 123, 123+4 or 123~5, begin or end, found '${at}'`);
    const wanted = Number(parts[1]), iterated = Number(parts[2] ?? 0);
    for (let step = this.first_step(wanted); step <= count && instruction[step] === wanted; ++step) {
      if (iteration[step] === iterated && (parts[3] === undefined || deliveries[step] === Number(parts[3]))) return step;
    }
    const held = `this page holds each step of instructions ${instruction[0]} to ${instruction[count]}`;
    const { name, to } = this.about.run;
    throw new Error(wanted < to ? `at: ${held}; citcat view ${name} shows instruction ${wanted}` : `at: ${held}, and no moment ${at}`);
  }

  here(step) {
    const linear = this.stretch.linear_at(step);
    const json = { moment: this.moment(step), position: this.moment(step).split("~")[0], instruction: this.stretch.instruction[step], address: hex(linear, this.digits) };
    const place = step < this.stretch.count ? this.shape(step).place : this.end_line().place;
    if (place !== "") json.place = place;
    return json;
  }

  /// What is next behind the last step, and why it is not here.
  end_line() {
    const [bytes, text, place, ends] = this.stretch.description.end_line;
    return { bytes, text, place, ends: ends || "the stretch of this page ends here" };
  }

  shape(step) {
    return this.stretch.shapes[this.stretch.shape_of[step]];
  }

  // ---- the processor

  is_paged() {
    const cr0 = this.stretch.register("cr0");
    return cr0 !== undefined && (cr0 & 0x80000000n) !== 0n;
  }

  level() {
    const cr0 = this.stretch.register("cr0");
    if (cr0 === undefined || (cr0 & 1n) === 0n) return undefined;
    const flags = this.stretch.register("eflags") ?? this.stretch.register("rflags");
    return (flags & 0x20000n) !== 0n ? 3 : Number(this.stretch.register("ss") & 3n);
  }

  register_text(i, step) {
    const register = this.stretch.registers[i];
    if (register.name === "eip" || register.name === "rip" || register.name === "ip") {
      return hex(this.stretch.pointer_value(this.stretch.linear_at(step)), register.digits);
    }
    return register.digits <= 16 ? hex(this.stretch.low[i], register.digits)
      : hex(this.stretch.high[i], register.digits - 16) + hex(this.stretch.low[i], 16);
  }

  state({ at }) {
    const step = this.step_of(at), { stretch } = this;
    stretch.go_to(Math.max(step - 1, 0));
    const before = step === 0 ? null : stretch.registers.map((_, i) => this.register_text(i, step - 1));
    stretch.go_to(step);
    const json = this.here(step);
    const shape = step < stretch.count ? this.shape(step) : null;
    json.bytes = shape?.code ?? this.end_line().bytes;
    json.text = shape?.text ?? this.end_line().text;
    const level = this.level();
    if (level !== undefined) json.level = level;
    if (this.is_paged()) {
      const space = hex(stretch.register("cr3"), 8);
      json.address_space = space;
      const process = this.about.processes.find((p) => p.address_space === space);
      if (process !== undefined && process.label !== space) json.process = process.label;
    }
    const flags = stretch.register("eflags") ?? stretch.register("rflags") ?? stretch.register("flags") ?? 0n;
    json.flags = FLAGS.filter(([bit]) => (flags >> BigInt(bit)) & 1n).map(([, name]) => name).join(" ");
    json.registers = stretch.registers.map((register, i) => {
      const unknown = register.unknown && step < register.first_change;
      const value = unknown ? null : this.register_text(i, step);
      const row = { name: register.name, group: register.group, value };
      if (before !== null && value !== null && value !== before[i]) row.before = before[i];
      return row;
    });
    return json;
  }

  setter({ at, register }) {
    const here = this.step_of(at), { stretch } = this, number = stretch.number_of.get(register);
    if (number === undefined) throw new Error(`register: the processor has no '${register}'`);
    const json = { asked_at: this.moment(here), found: false, looked_back: stretch.instruction[here] - stretch.instruction[0] };
    for (let step = here - 1; step >= 0; --step) {
      for (let i = stretch.change_at[step]; i < stretch.change_at[step + 1]; ++i) {
        if (stretch.changed.items[i] === number) return { ...json, found: true, ...this.here(step), text: this.shape(step).text, ...this.ended_with(step) };
      }
    }
    return { ...json, why: "it has had this value since this page's stretch began" };
  }

  /// The events of a step, if it has some.
  ended_with(step) {
    const events = (this.events_of.get(step) ?? []).filter((event) => event.text !== undefined).map((event) => event.text);
    return events.length === 0 ? {} : { events };
  }

  // ---- code

  value_text(at, size) {
    const bytes = [...this.stretch.pool.items.subarray(at, at + size)].map((b) => hex(b, 2));
    return (size <= 8 ? bytes.reverse() : bytes).join("");
  }

  /// Adds what a step did to its line.
  add_effects(line, step) {
    const { stretch } = this, shape = this.shape(step);
    shape.accesses.forEach((access, j) => {
      const i = stretch.access_at[step] + j;
      if (access.flags & WALK) return;
      const list = access.flags & WRITE ? (line.writes ??= []) : (line.reads ??= []);
      if (list.length >= 40) return;
      const json = { physical: hex(stretch.access_physical.items[i], this.physical_digits), size: access.size };
      if (access.flags & DATA) json.address = hex(stretch.access_address.items[i], this.digits);
      if (!(access.flags & NOT_KNOWN)) json.value = this.value_text(stretch.access_bytes.items[i], access.size);
      if (access.flags & OUTSIDE) json.by = "another bus master";
      else if (access.flags & SYSTEM) json.by = "the processor itself";
      list.push(json);
    });
    for (const event of this.events_of.get(step) ?? []) {
      if (event.port !== undefined) (line.ports ??= []).push({ port: hex(event.port, 4), write: event.write, size: event.size, value: hex(event.value, 2 * event.size) });
      else if (event.text !== undefined) (line.events ??= []).push(event.text);
    }
    for (let i = stretch.change_at[step]; i < stretch.change_at[step + 1]; ++i) {
      const register = stretch.registers[stretch.changed.items[i]], high = stretch.change_high.get(i);
      const value = stretch.change_new.items[i];
      (line.changes ??= {})[register.name] = register.digits <= 16 ? hex(value, register.digits) : hex(high[1], register.digits - 16) + hex(value, 16);
    }
  }

  line(step) {
    const shape = this.shape(step);
    const line = { moment: this.moment(step), position: this.moment(step).split("~")[0], address: shape.address, bytes: shape.code, text: shape.text };
    if (shape.place !== "") line.place = shape.place;
    if (!(shape.flags & COMPLETED)) line[this.is_fault(step) ? "faults" : "interrupted"] = true;
    return line;
  }

  /// The instruction of a step that did not complete faulted; an interrupt may have come before it.
  is_fault(step) {
    const delivered = this.events_of.get(step)?.find((event) => event.vector !== undefined);
    return delivered === undefined || delivered.kind === "exception";
  }

  /// Iterations of one REP that follow one another are one line.
  joins(step, here) {
    if (step === 0 || step === here || this.stretch.iteration[step] === 0) return false;
    const shape = this.shape(step), before = this.shape(step - 1);
    return (shape.flags & REPEATED) !== 0 && shape.linear === before.linear && (before.flags & COMPLETED) !== 0;
  }

  code({ at, before = 40, after = 40 }) {
    const here = this.step_of(at), { stretch } = this;
    let first = here;
    for (let lines = 0; first > 0 && lines < before; ++lines) {
      --first;
      while (first > 0 && this.joins(first, here)) --first;
    }
    const lines = [];
    let behind = 0;
    for (let step = first; step < stretch.count; ++step) {
      if (step > first && this.joins(step, here)) {
        const line = lines[lines.length - 1];
        line.iterations = (line.iterations ?? 1) + 1;
        this.add_effects(line, step);
        line.next = this.moment(step + 1);
        continue;
      }
      if (step >= here && behind++ >= after) break;
      const line = this.line(step);
      this.add_effects(line, step);
      line.next = this.moment(step + 1);
      lines.push(line);
    }
    if (behind <= after) lines.push({ ...this.here(stretch.count), ...this.end_line() });
    return { ...this.here(here), lines };
  }

  /// Code in memory, as far as it ran within the stretch.
  listing({ at, address, count = 40 }) {
    this.instructions ??= new Map(this.stretch.shapes.map((shape) => [shape.linear, shape]));
    const lines = [];
    let linear = BigInt("0x" + address);
    for (let i = 0; i < count; ++i) {
      const shape = this.instructions.get(linear);
      if (shape === undefined || shape.code === "") {
        lines.push({ address: hex(linear, this.digits), bytes: "", text: "did not run in this stretch" });
        break;
      }
      const line = { address: shape.address, bytes: shape.code, text: shape.text };
      if (shape.place !== "") line.place = shape.place;
      lines.push(line);
      linear += BigInt(shape.code.length / 2);
    }
    return { ...this.here(this.step_of(at)), lines };
  }

  // ---- memory

  /// Where a linear address lies at a step, as far as the stretch shows; undefined where it does not.
  lies_at(linear, step) {
    if (!this.is_paged()) return Number(BigInt.asUintN(this.digits === 5 ? 20 : 32, linear));
    const met = this.stretch.page_frames.get(linear >> 12n);
    if (met === undefined) return undefined;
    let i = met.steps.length - 1;
    while (i > 0 && met.steps[i] > step) --i;
    return met.steps[i] > step ? undefined : met.frames[i] * 4096 + Number(linear & 4095n);
  }

  physical_of(space, address, step) {
    return space === "physical" ? Number(address) : this.lies_at(address, step);
  }

  memory({ at, space = "linear", address, size = 256 }) {
    const step = this.step_of(at);
    this.stretch.go_to(step);
    const first = BigInt("0x" + address), pages = [];
    let bytes = "", page;
    for (let i = 0n; i < BigInt(size); ++i) {
      const wanted = first + i;
      if (i === 0n || wanted % 4096n === 0n) {
        page = this.physical_of(space, wanted - (wanted % 4096n), step);
        pages.push(page === undefined ? null : hex(page + Number(wanted % 4096n), this.physical_digits));
      }
      const byte = page === undefined ? undefined : this.stretch.byte(page + Number(wanted % 4096n));
      bytes += byte === undefined ? "??" : hex(byte, 2);
    }
    return { ...this.here(step), space, at: hex(first, space === "physical" ? 8 : this.digits), bytes, pages };
  }

  access({ at, space = "linear", address, size = 1, kind = "write", direction = "back" }) {
    const here = this.step_of(at), { stretch } = this;
    stretch.go_to(here);
    const first = this.physical_of(space, BigInt("0x" + address), here);
    if (first === undefined) throw new Error(`address: the stretch does not show what lies at ${address}`);
    const length = Number(size), back = direction === "back";
    for (let step = back ? here - 1 : here; back ? step >= 0 : step < stretch.count; step += back ? -1 : 1) {
      const { accesses } = this.shape(step);
      for (let n = 0; n < accesses.length; ++n) {
        const j = back ? accesses.length - 1 - n : n, access = accesses[j];
        const writes = (access.flags & WRITE) !== 0;
        if ((writes && kind === "read") || (!writes && kind === "write")) continue;
        const physical = stretch.access_physical.items[stretch.access_at[step] + j];
        if (physical < first + length && first < physical + access.size) return this.found(at, step, access, physical, first, length);
      }
    }
    return { asked_at: this.moment(here), found: false, why: back ? "nobody has before, within this page's stretch" : "nobody does, within this page's stretch" };
  }

  held(first, length) {
    const bytes = Array.from({ length }, (_, i) => this.stretch.byte(first + i));
    return bytes.includes(undefined) ? "" : bytes.map((b) => hex(b, 2)).join("");
  }

  found(at, step, access, physical, first, length) {
    this.stretch.go_to(step);
    const before = this.held(first, length);
    const json = { asked_at: at, found: true, ...this.here(step), write: (access.flags & WRITE) !== 0, physical: hex(physical, this.physical_digits), size: access.size };
    json.by = access.flags & OUTSIDE ? "another bus master" : access.flags & WALK ? "a page walk" : access.flags & SYSTEM ? "the processor itself" : "the program";
    if (!(access.flags & OUTSIDE)) Object.assign(json, { text: this.shape(step).text }, this.ended_with(step));
    this.stretch.go_to(step + 1);
    return { ...json, before, next: this.moment(step + 1), after: this.held(first, length) };
  }

  // ---- moves

  move({ at, how, address }) {
    const step = this.step_of(at), { count } = this.stretch;
    const moved = (to, why) => ({ ...this.here(to), why: why ?? (to === step ? "end" : "moved") });
    switch (how) {
      case "step": return moved(Math.min(step + 1, count));
      case "back": return step === 0 ? moved(0, "beginning") : moved(step - 1);
      case "over": return moved(this.over(step));
      case "over-back": return step === 0 ? moved(0, "beginning") : moved(this.over_back(step));
      case "out": case "out-back": {
        const call = this.running_call(step);
        if (call === undefined) return moved(step, "no call");
        return moved(how === "out" ? this.until_return(step, call) : call.step);
      }
      case "run": case "run-back": {
        const wanted = BigInt("0x" + address), back = how === "run-back";
        for (let to = back ? step - 1 : step + 1; back ? to >= 0 : to <= count; to += back ? -1 : 1) {
          if (this.stretch.linear_at(to) === wanted && this.stretch.iteration[to] === 0) return moved(to);
        }
        return moved(back ? 0 : count, back ? "beginning" : "end");
      }
      default: throw new Error(`how: found '${how}'`);
    }
  }

  over(step) {
    if (step >= this.stretch.count) return step;
    const shape = this.shape(step), behind = shape.linear + BigInt(shape.code.length / 2);
    if (shape.kind === CALL) return this.until_return(step, { returns_to: behind, node: this.calls.top[step + 1] });
    let to = step + 1;
    while (to < this.stretch.count && this.joins(to, -1)) ++to;
    return to;
  }

  /// Where the call that `call.node` names has gone.
  until_return(step, call) {
    for (let to = step + 1; to <= this.stretch.count; ++to) {
      if (this.stretch.linear_at(to) === call.returns_to && !this.is_open(call.node, to)) return to;
    }
    return this.stretch.count;
  }

  is_open(node, step) {
    for (let n = this.calls.top[step]; n !== 0; n = this.calls.nodes[n].parent) if (n === node) return true;
    return false;
  }

  over_back(step) {
    let to = step - 1;
    const shape = this.shape(to);
    while (to > 0 && this.joins(to, -1)) --to;
    const ended = this.calls.ended_by.get(to);
    if ((shape.kind === RETURN || shape.kind === INTERRUPT_RETURN) && ended !== undefined) return this.calls.nodes[ended].step;
    return to;
  }

  running_call(step) {
    for (let n = this.calls.top[step]; n !== 0; n = this.calls.nodes[n].parent) {
      const node = this.calls.nodes[n];
      if (node.slot !== undefined) return { ...node, node: n };
    }
    return undefined;
  }

  // ---- calls

  /// A tree of calls and events: for each step the innermost that has not returned.
  gather_calls() {
    const { stretch } = this, nodes = [null], top = new Uint32Array(stretch.count + 2), ended_by = new Map();
    const events = new Map();
    for (const event of this.events) if (event.vector !== undefined) events.set(event.step, event);
    let now = 0;
    for (let step = 0; step < stretch.count; ++step) {
      top[step] = now;
      const shape = this.shape(step), i = stretch.access_at[step];
      if (shape.kind === CALL && shape.flags & COMPLETED) now = this.enter_call(nodes, now, step, shape, i);
      else if (shape.kind === RETURN && shape.flags & COMPLETED) now = this.leave_call(nodes, now, step, shape, i, ended_by);
      else if (shape.kind === SYSTEM_CALL && shape.flags & COMPLETED) now = nodes.push({ parent: now, step, text: shape.text.trim().toUpperCase() }) - 1;
      else if (shape.kind === INTERRUPT_RETURN) {
        let n = now;
        while (n !== 0 && nodes[n].text === undefined) n = nodes[n].parent;
        if (n !== 0) {
          ended_by.set(step, n);
          now = nodes[n].parent;
        }
      }
      const event = events.get(step);
      if (event !== undefined) now = nodes.push({ parent: now, step, text: event.text }) - 1;
    }
    top[stretch.count] = now;
    return { nodes, top, ended_by };
  }

  enter_call(nodes, now, step, shape, i) {
    let j = shape.accesses.length - 1;
    while (j >= 0 && !((shape.accesses[j].flags & WRITE) && (shape.accesses[j].flags & DATA))) --j;
    if (j < 0) return now;
    const slot = this.stretch.access_address.items[i + j];
    return nodes.push({ parent: now, step, slot, returns_to: shape.linear + BigInt(shape.code.length / 2) }) - 1;
  }

  leave_call(nodes, now, step, shape, i, ended_by) {
    const j = shape.accesses.findIndex((a) => a.flags & DATA && !(a.flags & WRITE));
    if (j < 0) return now;
    const slot = this.stretch.access_address.items[i + j];
    let n = now;
    while (n !== 0 && nodes[n].slot !== undefined && nodes[n].slot < slot && slot - nodes[n].slot < ONE_STACK) n = nodes[n].parent;
    if (n !== 0 && nodes[n].slot === slot) {
      ended_by.set(step, n);
      return nodes[n].parent;
    }
    return n;
  }

  open_calls({ at }) {
    const step = this.step_of(at), calls = [], { nodes, top } = this.calls;
    for (let n = top[step]; n !== 0 && calls.length < 500; n = nodes[n].parent) {
      const node = nodes[n];
      const json = { kind: node.slot === undefined ? "event" : "call", moment: this.moment(node.step), from: this.shape(node.step).address };
      if (node.slot === undefined) json.text = node.text;
      else {
        const to = this.here(node.step + 1);
        Object.assign(json, { to: to.address, returns_to: hex(node.returns_to, this.digits), slot: hex(node.slot, this.digits) });
        if (to.place !== undefined) json.to_place = to.place;
        if (this.shape(node.step).place !== "") json.from_place = this.shape(node.step).place;
      }
      calls.push(json);
    }
    return { ...this.here(step), looked_back: this.stretch.instruction[step] - this.stretch.instruction[0], whole: this.about.run.from === 0, calls };
  }

  // ---- the run

  gather_events() {
    const { stretch } = this, events = [];
    for (const [step, text, kind, vector] of stretch.description.events) {
      events.push(vector === undefined ? { step, kind: text === "halted" ? "halt" : text, text } : { step, kind: EVENT_KINDS[kind], text, vector });
    }
    for (const port of stretch.ports) events.push({ ...port, kind: port.write ? "port_write" : "port_read" });
    stretch.shapes.forEach((shape, number) => {
      if (!shape.accesses.some((a) => a.flags & OUTSIDE)) return;
      for (let step = 0; step < stretch.count; ++step) {
        if (stretch.shape_of[step] !== number) continue;
        shape.accesses.forEach((access, j) => {
          if (access.flags & OUTSIDE) events.push({ step, kind: "external_write", physical: stretch.access_physical.items[stretch.access_at[step] + j], bytes: access.size });
        });
      }
    });
    return events.sort((a, b) => a.step - b.step);
  }

  list_events({ from = 0, to = Infinity, limit = 200, kinds = "" }) {
    const wanted = kinds === "" ? null : kinds.split(",");
    const found = this.events.filter((e) => this.stretch.instruction[e.step] >= from && this.stretch.instruction[e.step] < to && (wanted === null || wanted.includes(e.kind)));
    return {
      events: found.slice(0, limit).map((e) => {
        const json = { moment: String(this.stretch.instruction[e.step]), kind: e.kind };
        if (e.vector !== undefined && e.kind !== "smi") json.vector = hex(e.vector, 2);
        if (e.port !== undefined) Object.assign(json, { port: hex(e.port, 4), value: hex(e.value, 2 * e.size) });
        if (e.physical !== undefined) Object.assign(json, { physical: hex(e.physical, this.physical_digits), size: e.bytes });
        return json;
      }),
      more: found.length > limit, kept_to: this.about.run.to,
    };
  }

  list_syscalls({ from = 0, to = Infinity, limit = 200, text = "" }) {
    const { system_calls, more, all_kept } = this.about.system_calls;
    const calls = system_calls.filter((c) => Number(c.moment) >= from && Number(c.moment) < to && c.text.includes(text));
    return { system_calls: calls.slice(0, limit), more: calls.length > limit || more, all_kept };
  }

  /// For each step what level and process it runs at.
  gather_times() {
    const { stretch } = this, level = new Uint8Array(stretch.count), process = new Int32Array(stretch.count);
    const numbers = new Map(this.about.processes.map((p) => [p.address_space, p.number]));
    const watched = new Set(["ss", "cs", "cr0", "cr3", "eflags", "rflags"].map((n) => stretch.number_of.get(n)));
    let of_level = 0, of_process = -1, is_new = true;
    for (let step = 0; step < stretch.count; ++step) {
      if (step > 0) for (let i = stretch.change_at[step - 1]; i < stretch.change_at[step]; ++i) is_new ||= watched.has(stretch.changed.items[i]);
      if (is_new) {
        stretch.go_to(step);
        of_level = this.level() ?? 0;
        of_process = this.is_paged() ? numbers.get(hex(stretch.register("cr3"), 8)) ?? -1 : 0;
        is_new = false;
      }
      level[step] = of_level;
      process[step] = of_process;
    }
    return { level, process };
  }

  timeline({ from = this.about.run.from, to = this.about.run.to, count = 800 }) {
    const { held } = this.about.run;
    if (held !== undefined && (from < held[0] || to > held[1])) return this.whole_timeline(from, to, count);
    const { stretch } = this, times = this.times ??= this.gather_times();
    const width = Math.max(1, Math.ceil((to - from) / count)), most = Math.ceil((to - from) / width);
    const columns = { process: new Array(most).fill(null) }, shares = Array.from({ length: most }, () => new Map());
    const add = (name, at, n = 1) => { (columns[name] ??= new Array(most).fill(0))[at] += n; };
    const last = this.first_step(to);
    for (let step = this.first_step(from); step < Math.min(last, stretch.count); ++step) {
      if (stretch.iteration[step] !== 0) continue;
      const at = Math.floor((stretch.instruction[step] - from) / width);
      add(`level${times.level[step]}`, at);
      if (times.process[step] >= 0) shares[at].set(times.process[step], (shares[at].get(times.process[step]) ?? 0) + 1);
    }
    shares.forEach((share, at) => { columns.process[at] = [...share].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null; });
    const names = { interrupt: "interrupts", nmi: "interrupts", smi: "interrupts", exception: "exceptions", software_interrupt: "software_interrupts", port_read: "port_reads", port_write: "port_writes", external_write: "external_writes", halt: "halts" };
    // What the end of the run delivers has its position, and belongs to the last part.
    const part_of = (instruction) => (instruction === to && to === this.about.run.to ? most - 1 : Math.floor((instruction - from) / width));
    for (const event of this.events) {
      const at = part_of(stretch.instruction[event.step]);
      if (at >= 0 && at < most && names[event.kind] !== undefined) add(names[event.kind], at);
    }
    for (const call of this.about.system_calls.system_calls) {
      const at = part_of(Number(call.moment));
      if (at >= 0 && at < most) add("system_calls", at);
    }
    return { from, to, width, known_to: this.about.run.to, columns };
  }

  /// The same of all of the run, as it was put together when the page was made.
  whole_timeline(from, to, count) {
    const { width, columns: all } = this.about.timeline;
    const joined = Math.max(1, Math.ceil((to - from) / count / width)), first = Math.floor(from / width), last = Math.ceil(to / width);
    const columns = {};
    for (const [name, values] of Object.entries(all)) {
      const column = [];
      for (let i = first; i < last; i += joined) {
        const part = values.slice(i, Math.min(i + joined, last));
        column.push(name === "process" ? part.find((p) => p !== null) ?? null : part.reduce((a, b) => a + b, 0));
      }
      if (name === "process" || column.some((n) => n !== 0)) columns[name] = column;
    }
    return { from: first * width, to, width: width * joined, known_to: this.about.run.to, columns };
  }

  console({ at }) {
    return { ...this.here(this.step_of(at)), lines: this.about.console.lines, more: this.about.console.more };
  }

  // ---- find

  places() {
    if (this.named !== undefined) return this.named;
    this.named = new Map();
    for (const shape of this.stretch.shapes) {
      if (shape.place === "") continue;
      const [name, offset] = shape.place.split("+0x");
      this.named.set(name, shape.linear - BigInt(offset === undefined ? 0 : "0x" + offset));
    }
    return this.named;
  }

  find({ text, at }) {
    const symbols = [...this.places()].filter(([name]) => name.includes(text)).slice(0, MOST_FOUND)
      .map(([name, address]) => ({ name, module: "", address: hex(address, this.digits), size: 0, code: true }));
    const memory = [];
    if (at !== undefined) {
      this.stretch.go_to(this.step_of(at));
      const wanted = new TextEncoder().encode(text);
      for (const [number, frame] of this.stretch.frames) {
        for (let i = 0; i + wanted.length <= 4096 && memory.length < MOST_FOUND; ++i) {
          if (wanted.every((b, j) => frame.bytes[i + j] === b && frame.known[i + j] === 1)) memory.push({ physical: hex(number * 4096 + i, this.physical_digits) });
        }
      }
    }
    return { symbols, memory };
  }

  nth({ function: name, n = 1, at }) {
    const address = this.places().get(name) ?? (/^(0x)?[0-9a-f]+$/i.test(name) ? BigInt("0x" + name.replace(/^0x/i, "")) : undefined);
    if (address === undefined) throw new Error(`function: expected a name that this page's stretch runs, or a hexadecimal address, found '${name}'`);
    let times = 0;
    for (let step = at === undefined ? 0 : this.step_of(at) + 1; step < this.stretch.count; ++step) {
      if (this.stretch.iteration[step] !== 0 || this.shape(step).linear !== address) continue;
      if (++times === Number(n)) return { found: true, times, function: hex(address, this.digits), ...this.here(step) };
    }
    return { found: false, times, function: hex(address, this.digits), why: `it runs ${times} times in this page's stretch` };
  }
}
