#include "view/exported/exported_stretch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "events/machine/address_space.h"
#include "events/machine/cpu_place.h"
#include "formats/io/byte_reader.h"
#include "view/model/answer_text.h"
#include "view/model/text_screen.h"
#include "x86/disassembler.h"

namespace citcat::view {

using Json = nlohmann::ordered_json;

namespace {

/// Values of one step that foresee others, at most.
constexpr std::size_t kMostValues = 6;
/// The greatest size of another bus master's write in an answer to `events`.
constexpr std::uint32_t kMostOutside = 255;
constexpr unsigned kPageBits = 12;
/// Numbers of more bytes are as they are.
constexpr std::uint32_t kNumberBytes = 8;

std::uint64_t number_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

bool is_kept(const StepAccess& access) { return access.write || access.kind != AccessKind::walk; }

/// The page holds it: what was read is what memory held.
bool has_value(const StepAccess& access) { return access.write; }

bool has_linear(const StepAccess& access) {
  return access.kind == AccessKind::data && !access.outside;
}

std::uint64_t whole_cr3(const CpuState& state) {
  return state.cr3 | (state.long_mode ? std::uint64_t{state.long_mode->cr3_high} << 32 : 0);
}

std::vector<StepAccess> kept_accesses(const RecordedStep& step) {
  std::vector<StepAccess> kept;
  std::copy_if(step.accesses.begin(), step.accesses.end(), std::back_inserter(kept), is_kept);
  return kept;
}

}  // namespace

/// An instruction together with how it ran: what it accessed, how it ended.
struct ExportedStretch::Shape {
  std::size_t number = 0;
  LinearAddr linear;
  std::vector<std::uint8_t> code;
  std::string text, place;
  std::uint8_t bits = 32;
  bool completed = true, repeated = false;
  std::uint8_t kind = 0;  ///< as docs/formats/view-page.md has it
  std::uint64_t instructions = 1, deliveries = 0;
  bool iterates = false;  ///< the next moment is the next iteration
  bool has_events = false;
  std::vector<StepAccess> accesses;
  std::vector<StepPort> ports;
  std::size_t follower = 0;  ///< what ran after it last

  struct AccessColumns {
    Column address, value, page;
    std::uint64_t last_address = 0, last_value = 0;  ///< of the steps that wait
  };
  std::vector<AccessColumns> access_columns;
  std::vector<Column> port_columns;
  struct RegisterColumns {
    Column low, high;
  };
  std::map<std::size_t, RegisterColumns> registers;  ///< that it changes, by number in the table
};

/// The numbers of one step.
struct ExportedStretch::Values {
  struct Access {
    std::uint64_t address = 0;
    std::uint64_t frame = 0;  ///< less the one that its page had last
    std::uint64_t value = 0;
  };
  std::vector<Access> accesses;
  std::vector<std::uint64_t> ports;  ///< of each its number and its value
  struct Change {
    std::size_t number = 0;  ///< in the table of registers
    RegisterValue now;
  };
  std::vector<Change> changes;
};

class ExportedStretch::Steps final : public StepSink {
 public:
  explicit Steps(ExportedStretch& stretch) : stretch_(stretch) {}
  void begins(const Moment& moment, const CpuState& state) override {
    stretch_.begin_at(moment, state);
    stretch_.calls_.begin();
  }
  void step(const RecordedStep& step) override { stretch_.take_step(step); }
  void ends(const Moment& /*moment*/) override {
    RunView& view = stretch_.view_;
    const LinearAddr next = view.machine().next_linear();
    const CodeHere code = code_at(view, next);
    stretch_.end_line_ = {bytes_text(code.bytes), code.text, view.place(next), ending_text(view)};
  }

 private:
  ExportedStretch& stretch_;
};

ExportedStretch::ExportedStretch(RunView& view) : view_(view), calls_(view) {
  const RegisterTable& table = view.registers();
  for (std::size_t i = 0; i < table.count(); ++i) {
    if (table.group(i) == RegisterTable::Group::general) numbers_in_table_.push_back(i);
  }
}

ExportedStretch::~ExportedStretch() = default;

bool ExportedStretch::take(std::uint64_t from, std::uint64_t to) {
  Steps steps(*this);
  // However long that takes: a page that ends early would say that the run does.
  const ReplayTimeline::Interrupt& interrupt = view_.options().interrupted;
  const WantedMoment begin{{from, 0}, std::nullopt};
  view_.go_to(begin);
  const bool whole = view_.look_back(calls_.scan(), ExportedCalls::kReach, interrupt) &&
                     view_.record(begin, {0, {to, 0}}, steps, interrupt, &calls_.scan());
  if (whole) {
    for (const auto& shape : shapes_) choose(*shape);
    write_steps();
    view_.timeline().return_to(beginning_);
    add_screen();
    copy_frames();
  }
  view_.timeline().forget(beginning_);
  return whole;
}

void ExportedStretch::choose(Shape& shape) {
  for (Shape::AccessColumns& c : shape.access_columns) {
    c.address.choose();
    c.value.choose();
    c.page.choose();
    c.last_address = c.last_value = 0;
  }
  for (Column& c : shape.port_columns) c.choose();
  for (auto& [i, c] : shape.registers) {
    c.low.choose();
    c.high.choose();
  }
}

// ---------------------------------------------------------------------------------------------
// The beginning

void ExportedStretch::begin_at(const Moment& moment, const CpuState& state) {
  begin_ = end_ = moment;
  state_ = state;
  beginning_ = view_.timeline().mark();
  const RegisterTable& table = view_.registers();
  const CpuState known = view_.state();
  registers_ = Json::array();
  for (std::size_t i = 0; i < table.count(); ++i) {
    values_.push_back(table.value(i, state));
    registers_.push_back({table.name(i), RegisterTable::group_name(table.group(i)), table.digits(i),
                          table.text(i, values_[i]), table.unknown(i, known) ? 1 : 0});
  }
  values_at_beginning_ = values_;
}

/// What is on the screen may have been written before.
void ExportedStretch::add_screen() {
  const Memory& memory = view_.machine().memory();
  for (FrameNumber frame = kFirstScreenFrame; frame <= kLastScreenFrame; ++frame) {
    if (memory.is_mapped(frame) && memory.has_defined(frame)) frames_.insert(frame);
  }
}

/// For each frame that is touched: its number, which of its bytes are known, and these bytes.
void ExportedStretch::copy_frames() {
  const Memory& memory = view_.machine().memory();
  for (const FrameNumber frame : frames_) {
    const PhysAddr first{frame * kPageSize};
    const bool is_there = memory.is_mapped(frame);
    const bool all = is_there && memory.is_defined(first, kPageSize);
    memory_.varint(frame);
    memory_.u8(all ? 1 : 0);
    for (std::uint32_t i = 0; i < kPageSize && !all; i += 8) {
      unsigned mask = 0;
      for (std::uint32_t j = 0; j < 8; ++j) {
        if (is_there && memory.is_defined(first.plus32(i + j), 1)) mask |= 1u << j;
      }
      memory_.u8(static_cast<std::uint8_t>(mask));
    }
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      const auto byte = memory.defined_byte(first.plus32(i));
      memory_.u8(byte.value_or(0));
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Steps

ExportedStretch::Shape& ExportedStretch::shape_of(const RecordedStep& step,
                                                  std::span<const StepAccess> accesses) {
  const std::uint64_t instructions =
      step.after.position.instruction - step.before.position.instruction;
  const std::uint64_t deliveries = step.after.deliveries - step.before.deliveries;
  const bool iterates = instructions == 0 && step.after.position.iteration != 0;
  ShapeKey key{step.linear.value, step.bits, step.completed,    instructions,
               deliveries,        iterates,  step.events.size()};
  for (unsigned i = 0; i < step.length; i += 8) {
    key.push_back(number_of(std::span(step.code).subspan(i, std::min(8u, 15u - i))));
  }
  for (const StepAccess& a : accesses) {
    key.push_back(a.size | std::uint64_t{a.write} << 32 | std::uint64_t{a.outside} << 33 |
                  std::uint64_t{a.known} << 34 | static_cast<std::uint64_t>(a.kind) << 35);
  }
  for (const StepPort& p : step.ports) key.push_back(p.size | std::uint64_t{p.write} << 32);
  const auto [found, is_new] = numbers_.emplace(std::move(key), shapes_.size());
  if (!is_new) return *shapes_[found->second];
  auto shape = std::make_unique<Shape>();
  shape->number = shapes_.size();
  shape->linear = step.linear;
  shape->code.assign(step.code.begin(), step.code.begin() + step.length);
  shape->bits = step.bits;
  shape->text = step.length == 0 ? code_at(view_, step.linear).text
                                 : Disassembler(step.bits).text(shape->code, step.linear.value);
  shape->place = view_.place_in(
      step.linear, view_.index().process_name(address_space_of(state_.cr3, state_.cr4)));
  shape->completed = step.completed;
  shape->repeated = step.repeated;
  const InstructionClass kind = step.kind;
  if (kind == InstructionClass::call || kind == InstructionClass::far_call) shape->kind = 1;
  if (kind == InstructionClass::ret || kind == InstructionClass::far_return) shape->kind = 2;
  if (kind == InstructionClass::iret || kind == InstructionClass::sysexit ||
      kind == InstructionClass::sysret) {
    shape->kind = 3;
  }
  if (kind == InstructionClass::sysenter || kind == InstructionClass::syscall) shape->kind = 4;
  shape->instructions = instructions;
  shape->deliveries = deliveries;
  shape->iterates = iterates;
  shape->has_events = !step.events.empty();
  shape->accesses.assign(accesses.begin(), accesses.end());
  shape->ports.assign(step.ports.begin(), step.ports.end());
  shape->access_columns.resize(accesses.size());
  shape->port_columns.resize(2 * step.ports.size());
  shapes_.push_back(std::move(shape));
  return *shapes_.back();
}

void ExportedStretch::take_path(Shape& shape) {
  if (steps_ == 0) {
    path_.varint(shape.number + 1);
  } else {
    Shape& before = *shapes_[last_shape_];
    const std::size_t token = shape.number + 1;
    path_.varint(before.follower == token ? 0 : token);
    before.follower = token;
  }
  last_shape_ = shape.number;
}

void ExportedStretch::take_access(const StepAccess& access, const RecordedStep& step,
                                  Values& taken) {
  Values::Access values;
  const std::uint64_t physical = access.physical.value;
  for (std::uint64_t page = physical / kPageSize;
       page <= (physical + std::max(access.size, 1u) - 1) / kPageSize; ++page) {
    frames_.insert(page);
  }
  values.address = physical;
  if (has_linear(access)) {
    values.address = access.linear.value;
    std::uint64_t& frame = pages_[access.linear.value / kPageSize];
    const std::uint64_t now = physical / kPageSize;
    values.frame = now - frame;
    frame = now;
  }
  const auto bytes = step.bytes.subspan(access.bytes, access.size);
  if (access.size <= kNumberBytes) {
    values.value = number_of(bytes);
  } else if (has_value(access)) {
    bytes_.bytes(bytes);
  }
  taken.accesses.push_back(values);
}

void ExportedStretch::take_events(const RecordedStep& step) {
  for (const StepEvent& event : step.events) {
    Json json = {steps_, event_text(event), event.at.instruction};
    if (event.kind == StepEvent::Kind::delivered) {
      constexpr unsigned kPageFault = 14;
      const DeliveredEvent& delivery = event.delivery;
      json.push_back(static_cast<unsigned>(delivery.kind));
      json.push_back(delivery.vector);
      if (delivery.kind == DeliveredEvent::Kind::exception && delivery.vector == kPageFault) {
        json.push_back(linear_text(view_, LinearAddr{delivery.cr2}));
      }
    }
    events_.push_back(std::move(json));
  }
  for (const OutsideWrite& write : step.outside) {
    outside_.push_back({steps_, write.at.instruction, physical_text(view_, write.physical),
                        std::min(write.size, kMostOutside)});
  }
}

/// Notes where the page lies according to all page tables used in the stretch: those of programs
/// and kernels may differ in the upper half of the addresses, too.
void ExportedStretch::take_table(LinearAddr at) {
  constexpr std::uint32_t kPaging = 1u << 31;
  if ((state_.cr0 & kPaging) == 0) return;
  const std::uint64_t root = whole_cr3(state_);
  const auto page = std::pair(root, at.page());
  if (page == last_walked_) return;
  last_walked_ = page;
  if (!walked_.insert(page).second) return;
  walk(root, at);
  if (roots_.insert(root).second) {
    for (const LinearAddr upper : upper_pages_) walk(root, upper);
  }
  if (at.value >> 63 == 0 || !upper_pages_.insert(at.page_begin()).second) return;
  for (const std::uint64_t other : roots_) walk(other, at);
}

/// Keeps the frames of the page's tables (Intel SDM vol. 3, 4.3 to 4.5), from which one can tell at
/// any moment where the page lies.
void ExportedStretch::walk(std::uint64_t root, LinearAddr at) {
  constexpr std::uint32_t kPae = 1u << 5;
  constexpr std::uint64_t kPresent = 1, kLarge = 0x80, kAddress = 0x000ffffffffff000;
  const bool is_wide = is_in_long_mode(state_), is_pae = (state_.cr4 & kPae) != 0;
  const unsigned bytes = is_wide || is_pae ? 8 : 4, index_bits = bytes == 8 ? 9 : 10;
  const Memory& memory = view_.machine().memory();
  std::uint64_t table = root & (is_wide ? kAddress : is_pae ? 0xffffffe0 : 0xfffff000);
  unsigned shift = kPageBits + index_bits * (is_wide ? 4 : is_pae ? 3 : 2);
  for (bool is_root = true; shift > kPageBits; is_root = false) {
    shift -= index_bits;
    const bool is_pointer = is_pae && !is_wide && is_root;
    const std::uint64_t index = at.value >> shift & ((1u << (is_pointer ? 2 : index_bits)) - 1);
    const PhysAddr entry_at{table + bytes * index};
    frames_.insert(entry_at.page());
    std::uint64_t entry = 0;
    for (unsigned i = bytes; i-- > 0;) {
      entry = entry << 8 | memory.defined_byte(entry_at.plus32(i)).value_or(0);
    }
    const bool may_be_large = !is_root || bytes == 4;
    if ((entry & kPresent) == 0 || (may_be_large && (entry & kLarge) != 0)) return;
    table = entry & kAddress;
  }
}

void ExportedStretch::take_step(const RecordedStep& step) {
  const std::vector<StepAccess> accesses = kept_accesses(step);
  Shape& shape = shape_of(step, accesses);
  frames_.insert(step.physical.page());
  take_table(step.linear);
  take_path(shape);
  take_events(step);
  Values values;
  for (const StepAccess& access : accesses) take_access(access, step, values);
  for (const StepAccess& access : step.accesses) {
    if (access.kind == AccessKind::walk) frames_.insert(access.physical.page());
    if (has_linear(access)) take_table(access.linear);
  }
  for (const StepPort& port : step.ports) {
    values.ports.insert(values.ports.end(), {port.port, port.value});
  }
  const RegisterTable& table = view_.registers();
  table.for_each_change(state_, *step.state_after, [&](std::size_t i) {
    values.changes.push_back({i, table.value(i, *step.state_after)});
    const std::string& name = table.name(i);
    if (name != "eip" && name != "rip" && name != "ip") shape.registers[i];
  });
  keep_waiting(shape, values);
  put(shape, values, false);
  calls_.take(step, steps_);
  state_ = *step.state_after;
  end_ = step.after;
  ++steps_;
}

/// Gives each number of a step to its column.
void ExportedStretch::put(Shape& shape, const Values& values, bool writes) {
  const auto put_one = [writes](Column& column, std::uint64_t value,
                                std::span<const std::uint64_t> inputs) {
    if (writes) {
      column.write(value, inputs);
    } else {
      column.weigh(value, inputs);
    }
  };
  inputs_.clear();
  for (const std::size_t i : numbers_in_table_) inputs_.push_back(values_[i].low);
  for (std::size_t i = 0; i < shape.accesses.size(); ++i) {
    const StepAccess& access = shape.accesses[i];
    Shape::AccessColumns& columns = shape.access_columns[i];
    put_one(columns.address, values.accesses[i].address, inputs_);
    if (has_linear(access)) put_one(columns.page, values.accesses[i].frame, {});
    if (access.size > kNumberBytes) continue;
    if (has_value(access)) put_one(columns.value, values.accesses[i].value, inputs_);
    if (inputs_.size() < numbers_in_table_.size() + kMostValues) {
      inputs_.push_back(values.accesses[i].value);
    }
  }
  for (std::size_t i = 0; i < values.ports.size(); ++i) {
    put_one(shape.port_columns[i], values.ports[i], inputs_);
  }
  for (const Values::Change& change : values.changes) values_[change.number] = change.now;
  for (auto& [i, columns] : shape.registers) {
    put_one(columns.low, values_[i].low, inputs_);
    if (view_.registers().digits(i) > 16) put_one(columns.high, values_[i].high, inputs_);
  }
}

// ---------------------------------------------------------------------------------------------
// Steps that wait until it is known what foresees their numbers: each number as far from where it
// was last.

void ExportedStretch::keep_waiting(Shape& shape, const Values& values) {
  const auto keep = [this](std::uint64_t value, std::uint64_t last) {
    waiting_.signed_varint(static_cast<std::int64_t>(value - last));
    return value;
  };
  waiting_.varint(shape.number);
  for (std::size_t i = 0; i < values.accesses.size(); ++i) {
    const Values::Access& access = values.accesses[i];
    Shape::AccessColumns& columns = shape.access_columns[i];
    columns.last_address = keep(access.address, columns.last_address);
    keep(access.frame, 0);
    columns.last_value = keep(access.value, columns.last_value);
  }
  for (const std::uint64_t number : values.ports) keep(number, 0);
  waiting_.varint(values.changes.size());
  for (const Values::Change& change : values.changes) {
    waiting_.varint(change.number);
    keep(change.now.low, values_[change.number].low);
    keep(change.now.high, values_[change.number].high);
  }
}

void ExportedStretch::write_steps() {
  const std::vector<std::uint8_t> waiting = waiting_.take();
  ByteReader in(waiting, "steps");
  const auto next = [&in](std::uint64_t last) {
    return last + static_cast<std::uint64_t>(in.signed_varint("number"));
  };
  values_ = values_at_beginning_;
  Values values;
  while (!in.at_end()) {
    Shape& shape = *shapes_[in.varint("shape")];
    values.accesses.resize(shape.accesses.size());
    for (std::size_t i = 0; i < values.accesses.size(); ++i) {
      Values::Access& access = values.accesses[i];
      Shape::AccessColumns& columns = shape.access_columns[i];
      access.address = columns.last_address = next(columns.last_address);
      access.frame = next(0);
      access.value = columns.last_value = next(columns.last_value);
    }
    values.ports.resize(shape.port_columns.size());
    for (std::uint64_t& number : values.ports) number = next(0);
    values.changes.resize(in.varint("changes"));
    for (Values::Change& change : values.changes) {
      change.number = in.varint("register");
      change.now.low = next(values_[change.number].low);
      change.now.high = next(values_[change.number].high);
    }
    put(shape, values, true);
  }
}

// ---------------------------------------------------------------------------------------------
// What becomes of it

Json ExportedStretch::shape_json(const Shape& shape) const {
  Json accesses = Json::array();
  for (std::size_t i = 0; i < shape.accesses.size(); ++i) {
    const StepAccess& a = shape.accesses[i];
    const Shape::AccessColumns& c = shape.access_columns[i];
    // Flags: 1 write, 2 by another bus master, 4 not known, 8 data, 16 by the processor itself.
    const unsigned flags = (a.write ? 1u : 0) | (a.outside ? 2u : 0) | (a.known ? 0 : 4u) |
                           (has_linear(a) ? 8u : 0) | (a.kind == AccessKind::system ? 16u : 0) |
                           (a.kind == AccessKind::walk ? 32u : 0);
    accesses.push_back(
        {flags, a.size, c.address.foresight(), c.page.foresight(), c.value.foresight()});
  }
  Json ports = Json::array();
  for (std::size_t i = 0; i < shape.ports.size(); ++i) {
    ports.push_back({shape.ports[i].write ? 1 : 0, shape.ports[i].size,
                     shape.port_columns[2 * i].foresight(),
                     shape.port_columns[2 * i + 1].foresight()});
  }
  Json registers = Json::array();
  for (const auto& [i, c] : shape.registers) {
    registers.push_back({i, c.low.foresight(), c.high.foresight()});
  }
  // Flags: 1 completed, 2 repeated, 4 the next moment is the next iteration, 8 has events.
  const unsigned flags = (shape.completed ? 1u : 0) | (shape.repeated ? 2u : 0) |
                         (shape.iterates ? 4u : 0) | (shape.has_events ? 8u : 0);
  return {linear_text(view_, shape.linear),
          bytes_text(shape.code),
          shape.text,
          shape.place,
          flags,
          shape.instructions,
          shape.deliveries,
          shape.kind,
          std::move(accesses),
          std::move(ports),
          std::move(registers)};
}

Json ExportedStretch::description() const {
  Json shapes = Json::array();
  for (const auto& shape : shapes_) shapes.push_back(shape_json(*shape));
  Json inputs = Json::array();
  for (const std::size_t i : numbers_in_table_) inputs.push_back(i);
  return {{"steps", steps_},
          {"begin", {begin_.position.instruction, begin_.position.iteration, begin_.deliveries}},
          {"end_address", linear_text(view_, next_instruction(state_))},
          {"end_line", end_line_},
          {"values", kMostValues},
          {"registers", registers_},
          {"inputs", std::move(inputs)},
          {"frames", frames_.size()},
          {"events", events_},
          {"outside", outside_},
          {"calls", {{"reach", ExportedCalls::kReach}, {"lines", calls_.lines()}}},
          {"shapes", std::move(shapes)}};
}

std::vector<std::uint8_t> ExportedStretch::columns() const {
  ByteWriter out;
  const auto add = [&](std::span<const std::uint8_t> bytes) {
    out.varint(bytes.size());
    out.bytes(bytes);
  };
  add(path_.view());
  add(bytes_.view());
  add(memory_.view());
  add(calls_.column());
  for (const auto& shape : shapes_) {
    for (std::size_t i = 0; i < shape->accesses.size(); ++i) {
      const Shape::AccessColumns& c = shape->access_columns[i];
      add(c.address.written());
      if (has_linear(shape->accesses[i])) add(c.page.written());
      if (has_value(shape->accesses[i]) && shape->accesses[i].size <= kNumberBytes) {
        add(c.value.written());
      }
    }
    for (const Column& c : shape->port_columns) add(c.written());
    for (const auto& [i, c] : shape->registers) {
      add(c.low.written());
      if (view_.registers().digits(i) > 16) add(c.high.written());
    }
  }
  return out.take();
}

}  // namespace citcat::view
