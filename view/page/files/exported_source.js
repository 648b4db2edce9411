// Answers from the page itself: a stretch of a run that was exported with it. The answers are those
// of docs/formats/view-interface.md, as far as the stretch knows.

import { hex } from "./dom.js";
import { COMPLETED, DATA, HAS_EVENTS, NOT_KNOWN, OUTSIDE, PackedStretch, REPEATED, SYSTEM, WALK, WRITE } from "./packed_stretch.js";

const CALL = 1, RETURN = 2, INTERRUPT_RETURN = 3;
/// What a procedure may take from the stack when it returns.
const MOST_TAKEN = 4096n;
const EVENT_KINDS = ["exception", "interrupt", "software_interrupt", "nmi", "smi"];
const FLAGS = [[0, "CF"], [2, "PF"], [4, "AF"], [6, "ZF"], [7, "SF"], [8, "TF"], [9, "IF"], [10, "DF"], [11, "OF"]];
const MOST_FOUND = 200;
/// Display adapters: where their characters lie, and the port of the CRT controller, whose registers 0Ch and 0Dh say
/// where the screen begins.
const SCREENS = [{ memory: 0xb8000, port: 0x3d4 }, { memory: 0xb0000, port: 0x3b4 }];
const SCREEN_COLUMNS = 80, SCREEN_ROWS = 25;
/// Characters that must be seen for a screen to be one.
const FEWEST_CHARACTERS = 4;
/// Code page 437: the characters 00h to 1Fh, and those from 7Fh on.
const LOW_CHARACTERS = " ☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼";
const HIGH_CHARACTERS = "⌂ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■ ";

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
    this.calls = this.read_calls();
  }

  async ask(question, parameters = {}) {
    const answer = {
      run: () => this.about.run, processes: () => ({ processes: this.about.processes, known_to: this.about.run.to }),
      moment: (p) => this.here(this.step_of(p.at)), state: (p) => this.state(p), setter: (p) => this.setter(p), code: (p) => this.code(p),
      listing: (p) => this.listing(p), memory: (p) => this.memory(p), access: (p) => this.access(p), move: (p) => this.move(p),
      calls: (p) => this.open_calls(p), timeline: (p) => this.timeline(p), events: (p) => this.list_events(p),
      syscalls: (p) => this.list_syscalls(p), console: (p) => this.console(p), functions: (p) => this.functions(p), find: (p) => this.find(p), nth: (p) => this.nth(p),
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

  position(step) {
    return this.moment(step).split("~")[0];
  }

  here(step) {
    const linear = this.stretch.linear_at(step);
    const json = { moment: this.moment(step), position: this.position(step), instruction: this.stretch.instruction[step], address: hex(linear, this.digits) };
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

  has_bit(name, bit) {
    return (((this.stretch.register(name) ?? 0n) >> BigInt(bit)) & 1n) !== 0n;
  }
  is_paged() {
    return this.has_bit("cr0", 31);
  }
  is_protected() {
    return this.has_bit("cr0", 0);
  }
  eflags() {
    const { stretch } = this;
    return stretch.register("eflags") ?? stretch.register("rflags") ?? stretch.register("flags") ?? 0n;
  }

  level() {
    if (!this.is_protected()) return undefined;
    return (this.eflags() & 0x20000n) !== 0n ? 3 : Number(this.stretch.register("ss") & 3n);
  }

  /// CR3 without the context that CR4.PCIDE has in it.
  address_space() {
    const cr3 = this.stretch.register("cr3");
    return hex(this.has_bit("cr4", 17) ? cr3 & ~0xfffn : cr3, 8);
  }

  /// The code segment's bits: 16, 32 or 64.
  code_bits() {
    if (!this.has_bit("efer", 10)) return this.has_bit("cs.attributes", 14) ? 32 : 16;
    return this.has_bit("cs.attributes", 13) ? 64 : this.has_bit("cs.attributes", 14) ? 32 : 16;
  }

  mode(step) {
    if (this.stretch.number_of.get("cs.attributes") === undefined) return "16-bit code";
    const kind = !this.is_protected() ? "real mode" : (this.eflags() & 0x20000n) !== 0n ? "virtual-8086 mode" : this.has_bit("efer", 10) ? "long mode" : "protected mode";
    const managed = this.is_in(step, (line) => line.text === "SMI") ? ", system management mode" : "";
    return `${kind}, ${this.code_bits()}-bit code${this.is_paged() ? ", paging" : ""}${managed}`;
  }

  /// The step before ended with a halt, and nothing has ended that.
  is_halted(step) {
    return (this.events_of.get(step - 1) ?? []).filter((event) => event.text !== undefined).at(-1)?.kind === "halt";
  }

  /// Whose stack is in use, as the server tells stacks apart, and where it is at the step where one is.
  stack_place() {
    const { stretch } = this, sp = stretch.register("rsp") ?? stretch.register("esp") ?? stretch.register("sp");
    const program = this.level() === 3 ? this.address_space() : undefined;
    if (this.has_bit("efer", 10) && this.code_bits() === 64) return { program, top: sp };
    const offset = this.has_bit("ss.attributes", 14) ? sp & 0xffffffffn : sp & 0xffffn;
    return { program, top: BigInt.asUintN(32, (stretch.register("ss.base") ?? 0n) + offset) };
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
    const level = this.level(), pointer = this.stretch.pointer_value(stretch.linear_at(step));
    json.code = `${hex(stretch.register("cs"), 4)}:${hex(pointer, this.digits === 5 ? 4 : 8)}`;
    json.mode = this.mode(step);
    json.halted = this.is_halted(step);
    if (level !== undefined) json.level = level;
    if (this.is_paged()) {
      const space = this.address_space();
      json.address_space = space;
      const process = this.about.processes.find((p) => p.address_space === space);
      if (process !== undefined && process.label !== space) json.process = process.label;
    }
    json.flags = FLAGS.filter(([bit]) => (this.eflags() >> BigInt(bit)) & 1n).map(([, name]) => name).join(" ");
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
    const line = { moment: this.moment(step), position: this.position(step), address: shape.address, text: shape.text };
    if (shape.code !== "") line.bytes = shape.code;
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

  /// At the step where one is.
  physical_of(space, address) {
    return space === "physical" ? Number(address) : this.stretch.find(address);
  }

  memory({ at, space = "linear", address, size = 256 }) {
    const step = this.step_of(at);
    this.stretch.go_to(step);
    const first = BigInt("0x" + address), pages = [];
    let bytes = "", page;
    for (let i = 0n; i < BigInt(size); ++i) {
      const wanted = first + i;
      if (i === 0n || wanted % 4096n === 0n) {
        page = this.physical_of(space, wanted - (wanted % 4096n));
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
    const first = this.physical_of(space, BigInt("0x" + address));
    if (first === undefined) throw new Error(`address: nothing is mapped at ${address}, as far as this page holds the tables`);
    const length = Math.min(Number(size), 4096 - (first % 4096)), back = direction === "back";
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
      case "out": return this.out(step, moved);
      case "out-back": {
        const open = this.running(step);
        if (open === undefined) return moved(step, "no call");
        const to = open.step ?? this.step_of(open.line.moment);
        return moved(to === step ? Math.max(to - 1, 0) : to);
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
    const { stretch } = this;
    if (step >= stretch.count) return step;
    const shape = this.shape(step), behind = shape.linear + BigInt(shape.code.length / 2);
    if (shape.kind === CALL || /^int /.test(shape.text)) {
      stretch.go_to(step);
      const there = this.stack_place(), slot = shape.kind === CALL ? this.slot_of(step) : undefined;
      stretch.go_to(step + 1);
      return this.until_back(step, [behind], there, this.with_base(slot, behind));
    }
    let to = step + 1;
    while (to < stretch.count && this.joins(to, -1)) ++to;
    return to;
  }

  /// The physical bytes in which a call stored its return address; undefined where it is none, or did not.
  slot_of(step) {
    const { accesses } = this.shape(step);
    for (let j = accesses.length - 1; j >= 0; --j) {
      if ((accesses[j].flags & (WRITE | DATA | OUTSIDE)) === (WRITE | DATA)) return this.access_of(step, j);
    }
    return undefined;
  }

  /// Includes the base of the code segment in which the return address is an offset at this step.
  with_base(slot, returns_to) {
    const offset = slot && this.stretch.number_at(slot.physical, slot.size);
    return offset === undefined ? undefined : { ...slot, base: returns_to - offset };
  }

  access_of(step, j) {
    const i = this.stretch.access_at[step] + j;
    return { physical: this.stretch.access_physical.items[i], size: this.shape(step).accesses[j].size, linear: this.stretch.access_address.items[i] };
  }

  /// Behind step number `step`, the first at one of `addresses` with the stack pointer back at `there`. What is stored to
  /// `slot`, where the return address is, changes where the procedure returns to, or shows that it has returned elsewhere.
  until_back(step, addresses, there, slot) {
    const { stretch } = this;
    for (let to = step + 1; to <= stretch.count; ++to) {
      if (slot !== undefined && to > step + 1) {
        const stored = this.stored_to(slot, to - 1);
        if (stored === "pushed") return to;
        if (stored === "changed") {
          stretch.go_to(to);
          const offset = stretch.number_at(slot.physical, slot.size);
          if (offset !== undefined) addresses = [BigInt.asUintN(this.digits === 16 ? 64 : 32, slot.base + offset)];
        }
      }
      if (!addresses.includes(stretch.linear_at(to)) || stretch.iteration[to] !== 0) continue;
      stretch.go_to(to);
      if (this.has_come_back(there)) return to;
    }
    return stretch.count;
  }

  has_come_back(there) {
    const now = this.stack_place();
    return now.program === there.program && now.top >= there.top && now.top - there.top < MOST_TAKEN;
  }

  /// What a step stores to a slot: "pushed" with the stack pointer above it before, else "changed".
  stored_to(slot, step) {
    const { accesses } = this.shape(step);
    const is_slot = (a, j) => {
      if ((a.flags & (WRITE | DATA)) !== (WRITE | DATA)) return false;
      const { physical } = this.access_of(step, j);
      return physical < slot.physical + slot.size && slot.physical < physical + a.size;
    };
    if (!accesses.some(is_slot)) return undefined;
    this.stretch.go_to(step);
    const { top } = this.stack_place();
    return top > slot.linear && top - slot.linear < MOST_TAKEN ? "pushed" : "changed";
  }

  over_back(step) {
    let to = step - 1;
    const { kind } = this.shape(to);
    if (this.shape(to).flags & REPEATED) {
      while (to > 0 && this.stretch.iteration[to] !== 0) --to;
      return to;
    }
    if (kind !== RETURN && kind !== INTERRUPT_RETURN) return to;
    this.stretch.go_to(to);
    const at = this.stretch.find(this.stack_place().top);
    if (at === undefined) return to;
    for (let from = to - 1; from >= 0; --from) {
      const { accesses, kind: of } = this.shape(from);
      const stores = accesses.some((a, j) => {
        const { physical } = this.access_of(from, j);
        return a.flags & WRITE && physical <= at && at < physical + a.size;
      });
      if (stores) return kind === INTERRUPT_RETURN || of === CALL ? from : to;
    }
    return to;
  }

  /// What runs at a step: the innermost call or event that has not returned, but for SYSENTER, which does not say where
  /// it returns to.
  running(step) {
    return this.open_at(step).find((open) => open.line.text !== "SYSENTER");
  }

  out(step, moved) {
    const open = this.running(step);
    if (open === undefined) return moved(step, "no call");
    const { line } = open, address = (text) => BigInt("0x" + text);
    if (line.kind === "call") {
      const linear = address(line.slot), returns_to = address(line.returns_to), program = this.program_of(open);
      this.stretch.go_to(step);
      const physical = this.stretch.find(linear);
      const slot = open.step !== undefined ? this.slot_of(open.step) : physical === undefined ? undefined : { physical, size: line.slot_bytes, linear };
      return moved(this.until_back(step, [returns_to], { program, top: linear + 1n }, this.with_base(slot, returns_to)));
    }
    const from = address(line.from), shape = this.stretch.shapes.find((s) => s.linear === from && s.code !== "");
    const addresses = shape === undefined ? [from] : [from, from + BigInt(shape.code.length / 2)];
    return moved(this.until_back(step, addresses, { program: line.program, top: address(line.stack) }));
  }

  /// The program that made a call, if it runs at level 3.
  program_of(open) {
    if (open.step === undefined) return open.line.program;
    this.stretch.go_to(open.step);
    return this.stack_place().program;
  }

  // ---- calls

  /// A tree of open calls and events: the innermost after each step (docs/formats/view-page.md).
  read_calls() {
    const { stretch } = this, { calls: column } = stretch, nodes = [{ parent: 0 }], top = new Uint32Array(stretch.count + 1);
    let step = 0, now = 0;
    while (column.at < column.bytes.length) {
      const next = step + column.varint();
      top.fill(now, step, next);
      step = next;
      for (let n = column.varint(); n > 0; --n) now = nodes[now].parent;
      for (let n = column.varint(); n > 0; --n) {
        const number = column.varint();
        nodes.push({ parent: now, ...(number % 2 === 0 ? { step: step - number / 2 } : { line: (number - 1) / 2 }) });
        now = nodes.length - 1;
      }
    }
    top.fill(now, step);
    return { nodes, top };
  }

  /// What is open at a step, the innermost first: the `step` that made a call, and its line.
  open_at(step) {
    const open = [], { nodes, top } = this.calls;
    for (let n = top[step]; n !== 0; n = nodes[n].parent) {
      open.push(nodes[n].step === undefined ? { line: this.stretch.description.calls.lines[nodes[n].line] } : { step: nodes[n].step, line: this.call_line(nodes[n].step) });
    }
    return open;
  }

  /// Whether `is_it` is true of an event that is open.
  is_in(step, is_it) {
    const { nodes, top } = this.calls, { lines } = this.stretch.description.calls;
    for (let n = top[step]; n !== 0; n = nodes[n].parent) if (nodes[n].line !== undefined && is_it(lines[nodes[n].line])) return true;
    return false;
  }

  call_line(step) {
    const shape = this.shape(step), to = this.here(step + 1);
    const line = { kind: "call", moment: this.position(step), from: shape.address, to: to.address,
      returns_to: hex(shape.linear + BigInt(shape.code.length / 2), this.digits), slot: hex(this.slot_of(step).linear, this.digits) };
    if (shape.place !== "") line.from_place = shape.place;
    if (to.place !== undefined) line.to_place = to.place;
    return line;
  }

  open_calls({ at }) {
    const step = this.step_of(at), { stretch } = this;
    stretch.go_to(step);
    const space = this.is_paged() ? this.address_space() : "00000000";
    const calls = this.open_at(step).map(({ line: { stack, program, slot_bytes, address_space, ...line } }) =>
      (address_space === undefined || address_space === space ? line : { ...line, address_space }));
    const from = Math.max(stretch.instruction[0] - stretch.description.calls.reach, 0);
    return { ...this.here(step), looked_back: stretch.instruction[step] - from, whole: from === 0, calls };
  }

  // ---- the run

  /// In the order of steps. `at`: the instruction where the run has it.
  gather_events() {
    const { stretch } = this, events = [];
    for (const [step, text, at, kind, vector, address] of stretch.description.events) {
      events.push(vector === undefined ? { step, at, kind: text === "halted" ? "halt" : text, text } : { step, at, kind: EVENT_KINDS[kind], text, vector, address });
    }
    for (const port of stretch.ports) events.push({ ...port, at: stretch.instruction[port.step], kind: port.write ? "port_write" : "port_read" });
    for (const [step, at, physical, size] of stretch.description.outside) events.push({ step, at, kind: "external_write", physical, bytes: size });
    return events.sort((a, b) => a.step - b.step);
  }

  /// The events, and from which instruction on another process runs.
  events_and_processes() {
    if (this.all_events !== undefined) return this.all_events;
    const { stretch } = this, { process } = this.times ??= this.gather_times(), all = [...this.events];
    for (let step = 0; step < stretch.count; ++step) {
      const begins = step === 0 ? stretch.instruction[0] === 0 : process[step] !== process[step - 1];
      if (begins && process[step] >= 0 && this.about.run.has.paging) all.push({ step, at: stretch.instruction[step], kind: "process", process: this.about.processes[process[step]].label });
    }
    return this.all_events = all.sort((a, b) => a.at - b.at);
  }

  list_events({ from = 0, to = Infinity, limit = 200, kinds = "" }) {
    const wanted = kinds === "" ? null : kinds.split(",");
    const found = this.events_and_processes().filter((e) => e.at >= from && e.at < to && (wanted === null || wanted.includes(e.kind)));
    return {
      events: found.slice(0, limit).map((e) => {
        const json = { moment: String(e.at), kind: e.kind };
        if (e.vector !== undefined && e.kind !== "smi") json.vector = hex(e.vector, 2);
        if (e.address !== undefined) json.address = e.address;
        if (e.port !== undefined) Object.assign(json, { port: hex(e.port, 4), value: hex(e.value, 2 * e.size) });
        if (e.physical !== undefined) Object.assign(json, { physical: e.physical, size: e.bytes });
        if (e.process !== undefined) json.process = e.process;
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
        of_process = this.is_paged() ? numbers.get(this.address_space()) ?? -1 : 0;
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
    let counted = -1;
    for (let step = this.first_step(from); step < Math.min(last, stretch.count); ++step) {
      // One that faults comes again, and a REP counts once.
      if (!(this.shape(step).flags & COMPLETED) || stretch.instruction[step] === counted) continue;
      counted = stretch.instruction[step];
      const at = Math.floor((stretch.instruction[step] - from) / width);
      add(`level${times.level[step]}`, at);
      if (times.process[step] >= 0) shares[at].set(times.process[step], (shares[at].get(times.process[step]) ?? 0) + 1);
    }
    shares.forEach((share, at) => { columns.process[at] = [...share].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null; });
    const names = { interrupt: "interrupts", nmi: "interrupts", smi: "interrupts", exception: "exceptions", software_interrupt: "software_interrupts", port_read: "port_reads", port_write: "port_writes", external_write: "external_writes", halt: "halts" };
    // What the end of the run delivers has its position, and belongs to the last part.
    const part_of = (instruction) => (instruction === to && to === this.about.run.to ? most - 1 : Math.floor((instruction - from) / width));
    for (const event of this.events) {
      const at = part_of(event.at);
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
    const step = this.step_of(at), { lines, more } = this.about.console;
    this.stretch.go_to(step);
    const screen = this.screen(step, 0) ?? this.screen(step, 1);
    return { ...this.here(step), lines, more, ...(screen === undefined ? {} : { screen }) };
  }

  /// The text that the memory of a display adapter has at the step where one is, if it has one.
  screen(step, adapter) {
    const memory = SCREENS[adapter].memory, start = this.screen_start(step, adapter), lines = [];
    let seen = 0;
    for (let row = 0; row < SCREEN_ROWS; ++row) {
      let line = "";
      for (let column = 0; column < SCREEN_COLUMNS; ++column) {
        const code = this.stretch.byte(memory + 2 * ((start + row * SCREEN_COLUMNS + column) & 0x3fff));
        if (code > 0x20 && code < 0x7f) ++seen;
        line += code === undefined ? "·" : code < 0x20 ? LOW_CHARACTERS[code] : code < 0x7f ? String.fromCharCode(code) : HIGH_CHARACTERS[code - 0x7f];
      }
      lines.push(line);
    }
    return seen < FEWEST_CHARACTERS ? undefined : { columns: SCREEN_COLUMNS, rows: SCREEN_ROWS, lines };
  }

  /// Where the screen begins, as the program has told the CRT controller.
  screen_start(step, adapter) {
    const now = this.stretch.instruction[step], base = SCREENS[adapter].port;
    let [index, start] = this.about.screens[adapter];
    const set = (number, value) => {
      if (number === 0x0c) start = (start & 0xff) | ((value & 0xff) << 8);
      if (number === 0x0d) start = (start & 0xff00) | (value & 0xff);
    };
    for (const { at, kind, port, value, size } of this.events) {
      if (at >= now) break;
      if (kind !== "port_write") continue;
      if (port === base) {
        index = value & 0xff;
        if (size === 2) set(index, value >> 8);
      } else if (port === base + 1) set(index, value);
    }
    return start;
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

  functions({ at, reach = 100_000, limit = 200 }) {
    const { stretch } = this, here = stretch.instruction[this.step_of(at)], found = new Map();
    const from = Math.max(here - Number(reach), stretch.instruction[0]), to = Math.min(here + Number(reach), stretch.instruction[stretch.count]);
    for (let step = this.first_step(from); step < stretch.count && stretch.instruction[step + 1] < to; ++step) {
      const { kind, flags } = this.shape(step);
      if (kind !== CALL || (flags & (COMPLETED | HAS_EVENTS)) !== COMPLETED || !(this.shape(step + 1).flags & COMPLETED)) continue;
      const linear = stretch.linear_at(step + 1), one = found.get(linear) ?? { step: step + 1, times: 0 };
      ++one.times;
      found.set(linear, one);
    }
    const functions = [...found].map(([linear, { step, times }]) => {
      const { place } = this.shape(step);
      return { address: hex(linear, this.digits), ...(place === "" ? {} : { place }), times, first: this.position(step) };
    });
    functions.sort((a, b) => b.times - a.times || (a.address < b.address ? -1 : 1));
    return { ...this.here(this.step_of(at)), from, to, functions: functions.slice(0, Number(limit)), more: functions.length > limit };
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
