#pragma once
// A tool answers a question about a replayed run. The host (tool_host.h) shows it each piece of
// code once, then each execution or their number, and the events, and prints its report.
//
// A tool is one file with one row (ToolRow), named in tool_list.cc. It sees only the part of the
// run that the scope and the windows of the command select. If tables are split (`--by`), the host
// makes a tool for each group.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "events/position.h"
#include "events/recording.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "replay/machine/observer.h"
#include "replay/machine/walk_observer.h"
#include "tools/host/context.h"
#include "tools/host/report.h"
#include "tools/host/tool_options.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {
class BusTurns;
}

namespace citcat::tools {

/// What a tool receives; the host takes the cheapest path that serves all tools of a run.
struct Wants {
  bool counts = false;      ///< counted(): how often each piece of code ran
  bool executions = false;  ///< run(), in program order
  /// Execution::references() of code that is not Execution::is_ordinary().
  bool accesses = false;
  bool references = false;  ///< Execution::references(), without page walks
  bool walks = false;       ///< page walks among them
  /// run() gets one instruction at a time, and Context::machine() is the state after it. Slow.
  bool registers = false;
  /// Reference::value is set. Slow.
  bool values = false;
  bool events = false;  ///< event()
  /// With `executions` alone: ordinary code may be reported by Tool::passed() in place of run().
  bool passes = false;
  /// How many of the last passed instructions, before anything else is reported, come by run() all
  /// the same; at most Interest::kMostTrail.
  std::uint32_t trail = 0;

  constexpr Wants operator|(const Wants& o) const {
    return {counts || o.counts,     executions || o.executions,
            accesses || o.accesses, references || o.references,
            walks || o.walks,       registers || o.registers,
            values || o.values,     events || o.events,
            passes || o.passes,     trail > o.trail ? trail : o.trail};
  }
  /// The tool needs executions in their order.
  constexpr bool any_execution() const {
    return executions || accesses || references || walks || registers || values;
  }
};

/// An instruction of a StaticBlock.
struct StaticInstruction {
  DecodedInstruction info;
  LinearAddr linear;         ///< of its first byte
  std::uint64_t offset = 0;  ///< in CS, of its first byte: segments of 64-bit mode begin at 0
  PhysAddr physical;         ///< of its first byte
  PhysAddr physical_rest;    ///< of its bytes in the next page, if there are any
  std::uint32_t addresses_before = 0;  ///< Execution::addresses of the instructions before it
  /// The number of its bytes that lie in the page of the first one.
  std::uint32_t bytes_in_first_page() const;
  /// The address of its byte `n`; outside 64-bit mode 0 follows the last address of 32 bits.
  LinearAddr byte(std::uint32_t n) const {
    return info.bits64 ? LinearAddr{linear.value + n} : linear.plus32(n);
  }
  LinearAddr behind() const { return byte(info.length); }
};

/// Adjacent instructions that run one after another; only the last may transfer control. The
/// machine decides how a run is cut into blocks, and results must not depend on it.
class StaticBlock {
 public:
  explicit StaticBlock(std::vector<StaticInstruction> instructions)
      : instructions_(std::move(instructions)) {}
  std::span<const StaticInstruction> instructions() const { return instructions_; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(instructions_.size()); }
  const StaticInstruction& operator[](std::size_t i) const { return instructions_[i]; }
  const StaticInstruction& front() const { return instructions_.front(); }
  const StaticInstruction& back() const { return instructions_.back(); }

 private:
  std::vector<StaticInstruction> instructions_;
};

/// The address `a` in a further iteration, `by` bytes higher than in the first. Only outside 64-bit
/// mode are iterations reported together with their references.
constexpr LinearAddr further(LinearAddr a, std::uint32_t by) { return by == 0 ? a : a.plus32(by); }

/// An access to memory within one page frame; `value` is set with Wants::values.
using Reference = DataReference;

/// An access that no completed instruction made.
struct OtherAccess : Reference {
  bool code = false;  ///< bytes of an instruction
};

/// One complete execution of a piece of code; or iterations of a REP string instruction, which is
/// then a block of its own. Valid during the call.
class Execution {
 public:
  Execution(const StaticBlock& block, Position first, const LinearAddr* addresses,
            std::span<const Reference> references, std::uint32_t iterations = 1,
            std::uint32_t step = 0, bool does_nothing = false)
      : block_(&block),
        first_(first),
        addresses_(addresses),
        references_(references),
        iterations_(iterations),
        step_(step),
        does_nothing_(does_nothing) {}
  /// Of ordinary code.
  static Execution ordinary(const StaticBlock& block, Position first, const LinearAddr* addresses,
                            std::span<const Reference> references) {
    Execution execution(block, first, addresses, references);
    execution.is_ordinary_ = true;
    return execution;
  }

  const StaticBlock& block() const { return *block_; }
  /// The position of the first instruction, or iteration.
  Position first() const { return first_; }
  /// The number of iterations reported together; 1 without REP. The addresses and references are
  /// those of the first one; for each further one they are `step()` bytes higher, linear and
  /// physical.
  std::uint32_t iterations() const { return iterations_; }
  std::uint32_t step() const { return step_; }
  /// A REP whose count was 0: no addresses, no references.
  bool does_nothing() const { return does_nothing_; }
  /// KT's effective addresses of instruction `i` (docs/formats/kt.md), DecodedInstruction::ea_count
  /// of them; none with does_nothing().
  LinearAddr address(std::uint32_t i, unsigned number = 0) const {
    return addresses_[(*block_)[i].addresses_before + number];
  }
  /// All of them, one instruction after the other; null if they are not known.
  const LinearAddr* addresses() const { return addresses_; }
  /// Appends all of them to `to`, one instruction after the other, to be kept for later; none with
  /// does_nothing().
  void append_addresses(std::vector<LinearAddr>& to) const {
    if (does_nothing_ || addresses_ == nullptr) return;
    const StaticInstruction& last = block_->back();
    to.insert(to.end(), addresses_, addresses_ + last.addresses_before + last.info.ea_count);
  }
  /// In program order.
  std::span<const Reference> references() const { return references_; }
  /// Ordinary code ran, as a block or as a part of one. With Wants::accesses alone, its accesses
  /// are not in references(): they follow from its addresses (x86/decode/addressed_accesses.h).
  bool is_ordinary() const { return is_ordinary_; }
  /// Instruction `i` as if it had been reported alone, as `block`, with these references.
  Execution instruction(const StaticBlock& block, std::uint32_t i,
                        std::span<const Reference> references) const {
    const std::uint32_t before = (*block_)[i].addresses_before;
    const Position at{first_.instruction + i, i == 0 ? first_.iteration : 0};
    Execution one(block, at, addresses_ != nullptr ? addresses_ + before : nullptr, references);
    one.is_ordinary_ = is_ordinary_;
    return one;
  }

 private:
  const StaticBlock* block_;
  Position first_;
  const LinearAddr* addresses_ = nullptr;
  std::span<const Reference> references_;
  std::uint32_t iterations_ = 1;
  std::uint32_t step_ = 0;
  bool does_nothing_;
  bool is_ordinary_ = false;
};

/// Calls visit(const Reference&) for every access, iteration by iteration.
template <class F>
void for_each_access(const Execution& execution, F&& visit) {
  for (const Reference& r : execution.references()) visit(r);
  for (std::uint32_t i = 1; i < execution.iterations(); ++i) {
    for (Reference r : execution.references()) {
      r.physical = r.physical.plus32(i * execution.step());
      r.linear = further(r.linear, i * execution.step());
      visit(r);
    }
  }
}

struct SystemCall;

/// What happens besides instructions.
struct MachineEvent {
  enum class Kind : std::uint8_t {
    delivered,    ///< exception, interrupt or software interrupt: `delivery`
    returned,     ///< IRET or RSM completed; `value`: 0 if it ends no handler (Context::returned())
    fast_call,    ///< SYSENTER or SYSCALL completed; `value`: 1 for SYSCALL
    fast_return,  ///< SYSEXIT or SYSRET completed; `value`: 1 for SYSRET
    address_space,   ///< CR3 was loaded: `value`
    port_read,       ///< `port`, `size`, `value`
    port_write,      ///< the same
    external_write,  ///< by another bus master: `physical`, `size`
    halted,
    shutdown,
    cache_flushed,  ///< `value`: 1 with write-back
    mapping,        ///< first use of a translation: `linear`, `physical` (with Wants::registers)
    call_began,     ///< `call`, a system call, from the follower of the recorded system
    call_ended,     ///< the same, for one whose beginning was reported
    window_opened,  ///< the tool sees the run again
    window_closed,
    translation_dropped,  ///< the processor loses a page's translation by itself: `linear`
  };
  Kind kind = Kind::delivered;
  Position position;  ///< instructions completed before it
  DeliveredEvent delivery;
  std::uint16_t port = 0;
  std::uint32_t size = 0;
  std::uint64_t value = 0;
  AddressSpaceId before = 0;         ///< for address_space: CR3 until then
  std::uint32_t level = 0;           ///< for returned, fast_call and fast_return: before it
  const SystemCall* call = nullptr;  ///< tools/guest/system_call.h; valid during event()
  std::uint64_t number = 0;          ///< of the call: distinguishes calls that are open at once
  PhysAddr physical;
  LinearAddr linear;

  static MachineEvent at(Kind kind, Position position) {
    MachineEvent event;
    event.kind = kind;
    event.position = position;
    return event;
  }
};

/// The properties of the recorded machine that matter without the recording.
struct MachineFacts {
  CpuModel model = CpuModel::unknown;
  std::uint32_t ram_bytes = 0;              ///< 0: not known
  std::uint32_t address_mask = 0xffffffff;  ///< address lines captured
  bool ignores_cd = false;                  ///< lines are filled although CR0.CD is set

  static MachineFacts of(const Recording& recording) {
    return {recording.initial.model, recording.initial.ram_bytes, recording.bus.address_mask,
            recording.initial.ignore_cr0_cd};
  }
};

class NameSource;
class PartSpool;

/// What a tool can know about the run when it is made.
struct Setup {
  /// Outlives the tool. Null if parts are only put together: tools that merge do without it.
  const Recording* recording = nullptr;
  MachineFacts machine;
  std::uint64_t from = 0;                ///< first instruction that the tool sees
  std::uint64_t to = ~std::uint64_t{0};  ///< first one that it does not see
  /// Tools that need executions in their order see only some windows of the run; all others see all
  /// of it.
  bool sampled = false;
  /// The tool sees the run from its beginning. Else it sees a later part, and follows another tool
  /// (Tool::follow()): the state of its model at the beginning of the part is not known.
  bool begins = true;
  /// Outlives the tool; null as `recording` is.
  const NameSource* names = nullptr;
  /// In a machine with several processors: the number of this one, how many there are, and a
  /// function that finds the order of their runs on the bus, which takes a pass over the evidence
  /// of all; else empty.
  std::size_t processor = 0, processors = 1;
  std::function<std::shared_ptr<const BusTurns>()> bus_turns;
  std::string output;  ///< where a tool whose result is a file puts it (tool_output.h)
  /// The group that the tool is for, such as "process=sh,level=3"; empty without --by.
  std::string group;
  /// For a part of the run: where a tool that writes a stream keeps what it receives, for the
  /// process that joins the parts. Null if the tool sees the run as a whole.
  std::shared_ptr<PartSpool> spool;
  /// Set: tools in shared objects run in processes of their own, which must answer in this time.
  std::optional<std::chrono::milliseconds> isolate;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual Wants wants() const = 0;
  /// The key of its results, if that is not the name on the command line; else empty.
  virtual std::string name() const { return {}; }

  /// How the processor that the tool models fills its TLB; all tools of a run must agree. The tool
  /// then needs the run from the beginning.
  virtual std::optional<WalkPolicy> walks() const { return std::nullopt; }

  /// True if the tool has a model that the run changes: with --window and --sample it may then see
  /// the run before a window.
  virtual bool warms() const { return false; }
  /// While true, the run changes the model and is not counted.
  virtual void set_warming(bool) {}

  /// Called once for each piece of code, which lives as long as the tool. The return value is
  /// passed to run() and counted(), and the tool owns it.
  virtual void* code(const StaticBlock&) { return nullptr; }
  virtual void run(void* /*mine*/, const Execution&, const Context&) {}
  /// With Wants::passes: these instructions completed, one of them after the other, in the context.
  virtual void passed(std::uint64_t /*first*/, std::uint64_t /*end*/, const Context&) {}
  /// The same: the first instruction, this one or a later one, from which run() has to be called.
  virtual std::uint64_t needs(std::uint64_t /*instruction*/) const { return ~std::uint64_t{0}; }
  /// The run goes on outside the tool's scope or group; what it receives next may lie elsewhere.
  virtual void left_scope(const Context&) {}
  /// With Setup::sampled: the tool does not see the code between the last call and the next.
  virtual void gap() {}
  /// The same: which of its figures are from samples and not from the whole run: all, some, with
  /// their names, or none.
  struct Sampled {
    enum class Which : std::uint8_t { none, some, all } which = Which::none;
    std::string names{};
  };
  virtual Sampled sampled() const {
    const Wants w = wants();
    return {w.any_execution() && !w.passes ? Sampled::Which::all : Sampled::Which::none};
  }
  /// The same: the run has ended, and these page frames were stored to since the recording's
  /// beginning.
  virtual void stored_to(std::span<const FrameNumber> /*frames*/) {}
  /// With Wants::references: accesses that belong to no completed instruction: tables and frames of
  /// a delivery, page walks for code, and those of an instruction that faulted, including its own
  /// bytes.
  virtual void accesses(std::span<const OtherAccess>, const Context&) {}
  /// This many more complete executions of a piece of code; replaces run() if the tool wants only
  /// Wants::counts. iterated() then reports iterations of a REP.
  virtual void counted(void* /*mine*/, std::uint64_t /*executions*/) {}
  /// With Wants::counts: a REP string instruction, the only one of its block, was begun this many
  /// times, and did this many further iterations.
  virtual void iterated(void* /*mine*/, std::uint64_t /*begun*/, std::uint64_t /*further*/) {}
  /// This many of those begun were interrupted between two iterations, and did not complete.
  virtual void interrupted(void* /*mine*/, std::uint64_t /*times*/) {}
  virtual void event(const MachineEvent&, const Context&) {}
  /// The last reported REP did not complete: the run ends at this position within it, or is
  /// interrupted there.
  virtual void unfinished(Position /*at*/) {}

  /// A tool with the same options and Setup that has observed nothing.
  virtual std::unique_ptr<Tool> part() const = 0;
  /// True if its options allow what ToolRow::merging says.
  virtual bool merges() const { return true; }
  /// `later`, with the same options, saw the next part of the run; afterwards this tool is as if it
  /// had seen both. Not called if ToolRow::merging says serial.
  virtual void follow(Tool&& later) = 0;
  /// Writes everything that follow() and report() need.
  virtual void save(ByteWriter&) const = 0;
  /// Reads it into a part(). Throws FormatError for bytes that save() never writes.
  virtual void load(ByteReader&) = 0;
  /// Results. Called once, at the end.
  virtual void report(Report&) const = 0;
  /// Why the tool has failed, in one line; called after report(). Empty if it has not failed.
  virtual std::string failure() const { return {}; }
};

/// One tool of the list.
struct ToolRow {
  enum class Merging : std::uint8_t {
    exact,   ///< the run may be split among several tools
    serial,  ///< one tool must see the whole run
  };
  const char* name;
  const char* summary;  ///< one line, imperative, no full stop
  /// Options as lines "key=VALUE  what it means"; empty if there are none.
  const char* options;
  const char* example;  ///< one line to paste
  Merging merging;
  /// Makes a tool and reads its options; the host refuses those that were not read.
  std::unique_ptr<Tool> (*make)(ToolOptions&, const Setup&);
};

inline std::uint32_t StaticInstruction::bytes_in_first_page() const {
  const std::uint32_t room = kPageSize - linear.offset_in_page();
  return info.length < room ? info.length : room;
}

}  // namespace citcat::tools
