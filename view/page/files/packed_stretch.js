// A stretch of a run, unpacked: every step with all that it read, wrote and changed
// (docs/formats/view-page.md). One can go to any step, forwards by doing what the steps did,
// backwards by undoing it.

const PAGE = 4096;
/// The address bits of an entry of a page table.
const ADDRESS = 0x000ffffffffff000n;
const FORESEEN_BY_LAST = 0, FORESEEN_BY_STRIDE = 1, FIRST_INPUT = 2;
export const WRITE = 1, OUTSIDE = 2, NOT_KNOWN = 4, DATA = 8, SYSTEM = 16, WALK = 32;
export const COMPLETED = 1, REPEATED = 2, ITERATES = 4, HAS_EVENTS = 8;

/// Bytes read from front to back.
class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  /// A number below 2^53.
  varint() {
    let value = 0, factor = 1, byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte & 128);
    return value;
  }
  piece(length) {
    const piece = this.bytes.subarray(this.at, this.at + length);
    this.at += length;
    return piece;
  }
}

/// Numbers of 64 bits, each written as how far off it was foreseen.
class Column {
  constructor(bytes, foresight) {
    this.bytes = bytes;
    this.at = 0;
    this.by = foresight;
    this.last = 0n;
    this.before = 0n;
    this.last_input = 0n;
  }
  difference() {
    const first = this.bytes[this.at++];
    if (first < 128) return BigInt(first & 1 ? -((first >> 1) + 1) : first >> 1);
    let value = BigInt(first & 127), shift = 7n, byte;
    do {
      byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      shift += 7n;
    } while (byte & 128);
    return value & 1n ? -(value >> 1n) - 1n : value >> 1n;
  }
  next(inputs, count) {
    let foreseen = this.last, input = 0n;
    if (this.by === FORESEEN_BY_STRIDE) foreseen = this.last + this.last - this.before;
    else if (this.by >= FIRST_INPUT && this.by - FIRST_INPUT < count) {
      input = inputs[this.by - FIRST_INPUT];
      foreseen = input + (this.last_input === null ? 0n : this.last - this.last_input);
    }
    const difference = this.difference();
    const value = difference === 0n && this.by === FORESEEN_BY_LAST ? this.last : BigInt.asUintN(64, foreseen + difference);
    this.before = this.last;
    this.last = value;
    this.last_input = input;
    return value;
  }
}

/// An array that grows.
class Growing {
  constructor(kind, size = 1 << 16) {
    this.kind = kind;
    this.items = new kind(size);
    this.length = 0;
  }
  reserve(more) {
    if (this.length + more <= this.items.length) return;
    const larger = new this.kind(Math.max(this.items.length * 2, this.length + more));
    larger.set(this.items);
    this.items = larger;
  }
  push(value) {
    this.reserve(1);
    this.items[this.length++] = value;
  }
}

async function inflated(text) {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export class PackedStretch {
  static async unpack(text) {
    return new PackedStretch(await inflated(text));
  }

  constructor(bytes) {
    const reader = new Reader(bytes);
    this.description = JSON.parse(new TextDecoder().decode(reader.piece(reader.varint())));
    this.count = this.description.steps;
    this.registers = this.description.registers.map(([name, group, digits, value, unknown]) =>
      ({ name, group, digits, value: BigInt("0x" + value), unknown: unknown === 1, first_change: Infinity }));
    this.number_of = new Map(this.registers.map((r, i) => [r.name, i]));
    this.path = new Reader(reader.piece(reader.varint()));
    this.long_bytes = new Reader(reader.piece(reader.varint()));
    this.read_memory(new Reader(reader.piece(reader.varint())));
    this.calls = new Reader(reader.piece(reader.varint()));
    this.shapes = this.description.shapes.map((shape) => this.read_shape(shape, reader));
    this.make_arrays();
    this.run_through();
  }

  read_memory(reader) {
    this.frames = new Map();
    for (let i = 0; i < this.description.frames; ++i) {
      const number = reader.varint(), known = new Uint8Array(PAGE);
      if (reader.bytes[reader.at++] === 1) known.fill(1);
      else {
        const mask = reader.piece(PAGE >> 3);
        for (let j = 0; j < PAGE; ++j) known[j] = (mask[j >> 3] >> (j & 7)) & 1;
      }
      this.frames.set(number, { bytes: reader.piece(PAGE).slice(), known });
    }
  }

  read_shape([address, code, text, place, flags, instructions, deliveries, kind, accesses, ports, registers], reader) {
    const column = (foresight) => new Column(reader.piece(reader.varint()), foresight);
    const shape = { address, linear: BigInt("0x" + address), code, text, place, flags, instructions, deliveries, kind, follower: 0 };
    shape.accesses = accesses.map(([of, size, by_address, by_page, by_value]) => {
      const access = { flags: of, size, address: column(by_address) };
      if (of & DATA) access.page = column(by_page);
      if ((of & WRITE) && size <= 8) access.value = column(by_value);
      return access;
    });
    shape.ports = ports.map(([write, size, by_port, by_value]) => ({ write: write === 1, size, port: column(by_port), value: column(by_value) }));
    shape.registers = registers.map(([number, by_low, by_high]) => ({ number, low: column(by_low), high: this.registers[number].digits > 16 ? column(by_high) : null }));
    return shape;
  }

  make_arrays() {
    const n = this.count + 1;
    this.shape_of = new Uint32Array(n);
    this.instruction = new Float64Array(n);
    this.iteration = new Uint32Array(n);
    this.deliveries = new Float64Array(n);
    this.change_at = new Uint32Array(n + 1);
    this.changed = new Growing(Uint8Array);
    this.change_old = new Growing(BigUint64Array);
    this.change_new = new Growing(BigUint64Array);
    this.change_high = new Map();  // of registers of more than 64 bits
    this.access_at = new Uint32Array(n + 1);
    this.access_address = new Growing(BigUint64Array);
    this.access_physical = new Growing(Float64Array);
    this.access_bytes = new Growing(Uint32Array);  // where its bytes are: of a write new, old and known
    this.pool = new Growing(Uint8Array, 1 << 20);
    this.ports = [];  // {step, port, write, size, value}
    this.last_frames = new Map();  // of linear pages
  }

  // ---- once through all steps

  run_through() {
    const low = this.low = new BigUint64Array(this.registers.length);
    this.high = new BigUint64Array(this.registers.length);
    this.registers.forEach((r, i) => {
      low[i] = BigInt.asUintN(64, r.value);
      this.high[i] = r.value >> 64n;
    });
    [this.instruction[0], this.iteration[0], this.deliveries[0]] = this.description.begin;
    const inputs = new Array(64).fill(0n);
    const of_registers = this.description.inputs;
    let token = 0, before = null;
    for (let step = 0; step < this.count; ++step) {
      const written = this.path.varint();
      token = written === 0 ? before.follower : written;
      if (before !== null) before.follower = token;
      const shape = before = this.shapes[token - 1];
      this.shape_of[step] = token - 1;
      for (let i = 0; i < of_registers.length; ++i) inputs[i] = low[of_registers[i]];
      // The instruction pointer is not written: the next instruction tells it.
      this.note_pointer(inputs, of_registers, shape);
      let count = of_registers.length;
      for (const access of shape.accesses) count = this.take_access(access, step, inputs, count);
      for (const port of shape.ports) {
        const number = Number(port.port.next(inputs, count));
        this.ports.push({ step, port: number, write: port.write, size: port.size, value: Number(port.value.next(inputs, count)) });
      }
      for (const register of shape.registers) this.take_register(register, step, inputs, count);
      this.instruction[step + 1] = this.instruction[step] + shape.instructions;
      this.iteration[step + 1] = shape.flags & ITERATES ? this.iteration[step] + 1 : 0;
      this.deliveries[step + 1] = this.deliveries[step] + shape.deliveries;
      this.change_at[step + 1] = this.changed.length;
      this.access_at[step + 1] = this.access_address.length;
    }
    this.change_at[this.count + 1] = this.changed.length;
    this.access_at[this.count + 1] = this.access_address.length;
    this.at = this.count;
  }

  note_pointer(inputs, of_registers, shape) {
    for (let i = 0; i < of_registers.length; ++i) {
      if (this.registers[of_registers[i]].name.endsWith("ip")) inputs[i] = this.pointer_value(shape.linear);
    }
  }

  /// EIP, RIP or IP where the instruction at `linear` runs.
  pointer_value(linear) {
    const base = this.number_of.get("cs.base");
    const number = this.number_of.get("eip") ?? this.number_of.get("rip") ?? this.number_of.get("ip");
    return BigInt.asUintN(4 * this.registers[number].digits, linear - this.low[base]);
  }

  take_access(access, step, inputs, count) {
    const address = access.address.next(inputs, count);
    let physical = Number(address);
    if (access.page !== undefined) {
      const page = address >> 12n;
      const frame = Number(BigInt.asUintN(64, BigInt(this.last_frames.get(page) ?? 0) + access.page.next(inputs, 0)));
      this.last_frames.set(page, frame);
      physical = frame * PAGE + Number(address & 4095n);
    }
    this.access_address.push(address);
    this.access_physical.push(physical);
    this.access_bytes.push(this.pool.length);
    const { size } = access;
    let value = null;
    if (access.flags & WRITE) {
      value = access.value === undefined ? null : access.value.next(inputs, count);
      const bytes = value === null ? this.long_bytes.piece(size) : null;
      this.pool.reserve(3 * size);
      const pool = this.pool.items, at = this.pool.length;
      for (let i = 0; i < size; ++i) {
        pool[at + i] = bytes === null ? Number((value >> BigInt(8 * i)) & 255n) : bytes[i];
        this.old_byte(physical + i, pool, at + size + i, at + 2 * size + i);
      }
      this.pool.length += 3 * size;
      this.put(physical, pool, at, size, null);
    } else {
      this.pool.reserve(size);
      for (let i = 0; i < size; ++i) this.pool.items[this.pool.length + i] = this.byte(physical + i) ?? 0;
      if (size <= 8) {
        value = 0n;
        for (let i = size - 1; i >= 0; --i) value = value << 8n | BigInt(this.pool.items[this.pool.length + i]);
      }
      this.pool.length += size;
    }
    const most = this.description.inputs.length + this.description.values;
    if (value !== null && count < most) inputs[count++] = value;
    return count;
  }

  old_byte(physical, pool, at, known_at) {
    const frame = this.frames.get(Math.floor(physical / PAGE)), offset = physical % PAGE;
    pool[at] = frame === undefined ? 0 : frame.bytes[offset];
    pool[known_at] = frame === undefined ? 0 : frame.known[offset];
  }

  /// Bytes from the pool into memory; `known` is where the pool says whether they are, or null.
  put(physical, pool, at, size, known) {
    for (let i = 0; i < size; ++i) {
      const frame = this.frames.get(Math.floor((physical + i) / PAGE)), offset = (physical + i) % PAGE;
      if (frame === undefined) continue;
      frame.bytes[offset] = pool[at + i];
      frame.known[offset] = known === null ? 1 : pool[known + i];
    }
  }

  take_register({ number, low, high }, step, inputs, count) {
    const value = low.next(inputs, count);
    const upper = high === null ? 0n : high.next(inputs, count);
    if (value === this.low[number] && upper === this.high[number]) return;
    if (high !== null) this.change_high.set(this.changed.length, [this.high[number], upper]);
    this.changed.push(number);
    this.change_old.push(this.low[number]);
    this.change_new.push(value);
    this.low[number] = value;
    this.high[number] = upper;
    this.registers[number].first_change = Math.min(this.registers[number].first_change, step + 1);
  }

  // ---- to any step

  byte(physical) {
    const frame = this.frames.get(Math.floor(physical / PAGE));
    return frame === undefined || frame.known[physical % PAGE] === 0 ? undefined : frame.bytes[physical % PAGE];
  }

  go_to(step) {
    while (this.at < step) this.redo(this.at++);
    while (this.at > step) this.undo(--this.at);
  }

  redo(step) {
    for (let i = this.change_at[step]; i < this.change_at[step + 1]; ++i) {
      this.low[this.changed.items[i]] = this.change_new.items[i];
      const high = this.change_high.get(i);
      if (high !== undefined) this.high[this.changed.items[i]] = high[1];
    }
    const shape = this.shapes[this.shape_of[step]];
    shape.accesses.forEach((access, j) => {
      const i = this.access_at[step] + j;
      if (access.flags & WRITE) this.put(this.access_physical.items[i], this.pool.items, this.access_bytes.items[i], access.size, null);
    });
  }

  undo(step) {
    for (let i = this.change_at[step + 1] - 1; i >= this.change_at[step]; --i) {
      this.low[this.changed.items[i]] = this.change_old.items[i];
      const high = this.change_high.get(i);
      if (high !== undefined) this.high[this.changed.items[i]] = high[0];
    }
    const shape = this.shapes[this.shape_of[step]];
    for (let j = shape.accesses.length - 1; j >= 0; --j) {
      const access = shape.accesses[j], i = this.access_at[step] + j;
      if (!(access.flags & WRITE)) continue;
      const at = this.access_bytes.items[i] + access.size;
      this.put(this.access_physical.items[i], this.pool.items, at, access.size, at + access.size);
    }
  }

  /// Linear address of the instruction that is about to run.
  linear_at(step) {
    return step < this.count ? this.shapes[this.shape_of[step]].linear : BigInt("0x" + this.description.end_address);
  }

  /// The physical address of a linear one at the step where one is, by the page tables there (Intel SDM vol. 3, 4.3 to
  /// 4.5); undefined where nothing is mapped, or the page does not hold the tables.
  find(linear) {
    const a20 = this.register("a20_mask");
    const masked = (physical) => Number(a20 === undefined ? physical & 0xfffffn : physical & (a20 | ~0xffffffffn));
    if (((this.register("cr0") ?? 0n) & 0x80000000n) === 0n) return masked(BigInt.asUintN(32, linear));
    const cr4 = this.register("cr4") ?? 0n, is_long = ((this.register("efer") ?? 0n) & 0x400n) !== 0n, is_pae = (cr4 & 0x20n) !== 0n;
    const wide = is_long || is_pae, root = this.register("cr3");
    let table = root & (is_long ? ADDRESS : is_pae ? 0xffffffe0n : 0xfffff000n);
    for (let shift = is_long ? 39n : is_pae ? 30n : 22n; ; shift -= wide ? 9n : 10n) {
      const bits = wide ? (is_pae && !is_long && shift === 30n ? 2n : 9n) : 10n, bytes = wide ? 8 : 4;
      const entry = this.number_at(Number(table) + bytes * Number((linear >> shift) & ((1n << bits) - 1n)), bytes);
      if (entry === undefined || (entry & 1n) === 0n) return undefined;
      const is_large = (entry & 0x80n) !== 0n && (wide ? shift === 21n || (is_long && shift === 30n) : shift === 22n && (cr4 & 0x10n) !== 0n);
      if (shift === 12n || is_large) {
        const within = (1n << shift) - 1n;
        // Of a page of 4 MiB, bits 13 to 20 are bits 32 to 39 of the address.
        const high = is_large && !wide ? (entry & 0x1fe000n) << 19n : 0n;
        return masked((entry & ADDRESS & ~within) | high | (linear & within));
      }
      table = entry & ADDRESS;
    }
  }

  /// The number in memory there; undefined where some byte of it is not known.
  number_at(physical, bytes) {
    let value = 0n;
    for (let i = bytes - 1; i >= 0; --i) {
      const byte = this.byte(physical + i);
      if (byte === undefined) return undefined;
      value = (value << 8n) | BigInt(byte);
    }
    return value;
  }

  register(name) {
    const number = this.number_of.get(name);
    return number === undefined ? undefined : this.low[number];
  }
}
