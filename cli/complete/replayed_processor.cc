#include "cli/complete/replayed_processor.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "replay/machine/machine.h"
#include "replay/machine/missing_memory.h"
#include "replay/machine/observer.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {
namespace {

/// Arithmetic flags: manuals leave some undefined after some instructions.
constexpr std::uint16_t kFreeFlags = 0x08d5;
constexpr std::uint32_t kPagesOfMemory = (1u << 20) / kPageSize;
/// An instruction reads memory in no more pieces than this: what asks for more makes no progress.
constexpr int kMostPieces = 64;

class ReplayedProcessor final : public GuidedProcessor, private Environment, private Observer {
 public:
  ReplayedProcessor(const CpuState& state, const BusModel& bus)
      : model_(state.model),
        machine_(state.model, bus, *this, Listeners(static_cast<Observer*>(this))) {
    machine_.load(state, nothing_);
    for (std::uint32_t page = 0; page < kPagesOfMemory; ++page)
      machine_.memory().ensure_mapped(page);
  }

  CodePlace place() const override {
    return {machine_.engine().segment(kCs).selector,
            static_cast<std::uint16_t>(machine_.engine().eip())};
  }
  bool in_repeat() const override { return in_repeat_; }
  bool halted() const override { return machine_.halted(); }

  Step step(GuidingBus& bus) override {
    if (machine_.halted())
      throw Contradiction{"the processor is halted, and no interrupt is acknowledged"};
    Step step;
    step.begun = !in_repeat_;
    const CodePlace from = place();
    if (step.begun) fetch(from, bus);
    step.length = info_.length;
    step.prefix_bytes = info_.prefix_bytes;
    define_code(from);
    const Position before = machine_.position();
    run(bus, [&] { machine_.run({before.instruction, before.iteration + 1}); });
    const Position after = machine_.position();
    step.completed = after.instruction != before.instruction;
    step.halted = machine_.halted();
    in_repeat_ = !step.completed && after.iteration != 0;
    step.jump = jump_after(from, step);
    return step;
  }

  void interrupt(std::uint8_t vector, GuidingBus& bus) override {
    run(bus, [&] { machine_.interrupt(vector, DeliveredEvent::Kind::external); });
    in_repeat_ = false;
  }

  struct MachineMark final : Mark {
    Machine::Snapshot machine;
    DecodedInstruction info;
    bool in_repeat = false;
  };
  std::unique_ptr<Mark> mark() const override {
    auto mark = std::make_unique<MachineMark>();
    mark->machine = machine_.snapshot();
    // Memory is the bus.
    mark->machine.pages.clear();
    mark->info = info_;
    mark->in_repeat = in_repeat_;
    return mark;
  }
  void return_to(const Mark& mark) override {
    const auto& to = static_cast<const MachineMark&>(mark);
    machine_.restore(to.machine, nothing_);
    info_ = to.info;
    in_repeat_ = to.in_repeat;
  }

 private:
  struct Range {
    PhysAddr address;
    std::uint32_t size = 0;
  };
  struct Store {
    PhysAddr address;
    std::vector<std::uint8_t> bytes;
    bool system = false;
  };

  void fetch(CodePlace from, GuidingBus& bus) {
    std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
    for (std::uint32_t n = 0; n < bytes.size();) {
      bytes[n] = bus.code(n);
      ++n;
      info_ = decode_instruction(std::span(bytes).first(n), CodeMode{}, model_);
      if (info_.state == DecodeState::needs_more_bytes) continue;
      if (info_.state == DecodeState::ok) return;
      break;
    }
    throw Contradiction{"the code at " + std::to_string(from.address().value) +
                        " is not an instruction of this processor"};
  }

  void define_code(CodePlace from) {
    for (std::uint32_t i = 0; i < info_.length; ++i) define(from.plus(i), {&info_.bytes[i], 1});
  }

  /// Does it, with what it lacks given to it, and tells the bus what it stored. Nothing is left in
  /// memory.
  template <class Do>
  void run(GuidingBus& bus, const Do& act) {
    bus_ = &bus;
    refused_.reset();
    try {
      for (int pieces = 0;; ++pieces) {
        stores_.clear();
        try {
          act();
          break;
        } catch (const MissingMemory& stop) {
          if (pieces == kMostPieces) throw Contradiction{stop.reason};
          supply(stop.address, stop.size);
        } catch (const ReplayStopped& stop) {
          throw refused_.value_or(Contradiction{stop.reason});
        }
      }
      tell_stores();
    } catch (...) {
      forget();
      throw;
    }
    forget();
  }

  void supply(PhysAddr address, std::uint32_t size) {
    std::vector<std::uint8_t> bytes(size);
    bus_->read(address, bytes);
    define(address, bytes);
  }

  /// Bytes within a page. What is there already is only said to be known, so that code that was
  /// translated stays.
  void define(PhysAddr address, std::span<const std::uint8_t> bytes) {
    Memory& memory = machine_.memory();
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (std::equal(bytes.begin(), bytes.end(), memory.host(address))) {
      for (std::uint32_t i = 0; i < size; ++i) memory.mark_defined(address.plus32(i), 1);
    } else {
      memory.external_write(address, bytes);
    }
    defined_.push_back({address, size});
  }

  void forget() {
    for (const Range& range : defined_)
      for (std::uint32_t i = 0; i < range.size; ++i)
        machine_.memory().set_defined(range.address.plus32(i), 1, 0);
    defined_.clear();
  }

  /// The processor reads a word of an operand that an 8087 is going to store, to give it the
  /// address (8087 data sheet, "Processor interface").
  void read_for_coprocessor() {
    const bool escape = info_.opcode_map == 0 && (info_.opcode & 0xf8) == 0xd8;
    if (!escape || stores_.empty() || stores_.front().system) return;
    std::array<std::uint8_t, 2> ignored{};
    bus_->read(stores_.front().address, ignored);
  }

  /// In the order of the bus: the first word that PUSHF or an interrupt stores is flags.
  void tell_stores() {
    read_for_coprocessor();
    bool first = true;
    for (const Store& store : stores_) {
      defined_.push_back({store.address, static_cast<std::uint32_t>(store.bytes.size())});
      const bool flags = first && (store.system || info_.is(Operation::pushf));
      bus_->write(store.address, store.bytes, flags ? kFreeFlags : 0);
      first = false;
    }
  }

  Jump jump_after(CodePlace from, const Step& step) const {
    if (!step.completed) return Jump::no;
    if (place() != from.onward(info_.length)) return Jump::yes;
    if (!info_.control_flow) return Jump::no;
    // Jcc, LOOP, JCXZ and INTO may not have been taken.
    const bool conditional =
        info_.opcode_map == 0 && ((info_.opcode >= 0x60 && info_.opcode <= 0x7f) ||
                                  (info_.opcode >= 0xe0 && info_.opcode <= 0xe3));
    if (!conditional) return info_.opcode == 0xce ? Jump::no : Jump::yes;
    return info_.target_displacement == 0 ? Jump::perhaps : Jump::no;
  }

  // Observer
  Interest interest() const override { return {.stores = true}; }
  void write(PhysAddr address, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position) override {
    stores_.push_back({address, {bytes.begin(), bytes.end()}, kind == AccessKind::system});
  }

  // Environment. What the bus refuses stops the machine first.
  template <class F>
  auto asked_of_bus(const F& ask, Position now) {
    try {
      return ask();
    } catch (const Contradiction& why) {
      refused_ = why;
      throw ReplayStopped{now, why.text};
    }
  }
  std::uint32_t port_read(std::uint16_t port, std::uint32_t size, Position now) override {
    return asked_of_bus([&] { return bus_->port_read(port, size); }, now);
  }
  void port_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                  Position now) override {
    asked_of_bus(
        [&] {
          bus_->port_write(port, size, value);
          return 0;
        },
        now);
  }
  std::optional<InternalRead> internal_read(InternalRead::Op, Position) override {
    return std::nullopt;
  }
  std::optional<std::uint64_t> missing_pdpte(unsigned, LinearAddr, Position) override {
    return std::nullopt;
  }
  bool wants_stop(Position) override { return false; }

  CpuModel model_;
  MemoryImage nothing_;
  Machine machine_;
  DecodedInstruction info_;
  bool in_repeat_ = false;
  GuidingBus* bus_ = nullptr;  ///< of the call in progress
  std::optional<Contradiction> refused_;
  std::vector<Range> defined_;  ///< for the step in progress
  std::vector<Store> stores_;
};

}  // namespace

std::unique_ptr<GuidedProcessor> make_replayed_processor(const CpuState& state,
                                                         const BusModel& bus) {
  return std::make_unique<ReplayedProcessor>(state, bus);
}

}  // namespace citcat
