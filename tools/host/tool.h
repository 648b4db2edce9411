#pragma once
// A tool asks something of a replayed run. The host (tool_host.h) shows it the code once, then each
// execution or their number, and the events, and prints what it reports.
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
  bool references = false;  ///< Execution::references(), without page walks
  bool walks = false;       ///< page walks among them
  /// run() is told one instruction at a time, and Context::machine() is right after it. Slow.
  bool registers = false;
  /// Reference::value is there. Slow.
  bool values = false;
  bool events = false;  ///< event()
  /// With `executions` alone: ordinary code may be told by Tool::passed() in place of run().
  bool passes = false;
  /// The last so many passed instructions before anything else come by run() all the same;
  /// Interest::kMostTrail at most.
  std::uint32_t trail = 0;

  constexpr Wants operator|(const Wants& o) const {
    return {counts || o.counts, executions || o.executions, references || o.references,
            walks || o.walks,   registers || o.registers,   values || o.values,
            events || o.events, passes || o.passes,         trail > o.trail ? trail : o.trail};
  }
  /// Executions in their order are needed.
  constexpr bool any_execution() const {
    return executions || references || walks || registers || values;
  }
};

/// An instruction of a StaticBlock.
struct StaticInstruction {
  DecodedInstruction info;
  LinearAddr linear;         ///< of its first byte
  std::uint64_t offset = 0;  ///< in CS, of its first byte: segments of 64-bit mode begin at 0
  PhysAddr physical;         ///< of its first byte
  PhysAddr physical_rest;    ///< of its bytes after the end of the page, if there are any
  std::uint32_t addresses_before = 0;  ///< Execution::addresses of the instructions before it
  /// Bytes of it that lie in the page of its first.
  std::uint32_t bytes_in_first_page() const;
  /// Where its byte number `n` lies; outside 64-bit mode 0 follows the last address of 32 bits.
  LinearAddr byte(std::uint32_t n) const {
    return info.bits64 ? LinearAddr{linear.value + n} : linear.plus32(n);
  }
  LinearAddr behind() const { return byte(info.length); }
};

/// Instructions that lie, and run, one after another; only the last may transfer control. How a run
/// is cut into blocks is the machine's affair: results must not depend on it.
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

/// `a` of a further iteration, `by` bytes higher than that of the first. Only machines of 32
/// address bits tell iterations together.
constexpr LinearAddr further(LinearAddr a, std::uint32_t by) { return by == 0 ? a : a.plus32(by); }

/// An access to memory within one page frame; `value` is there with Wants::values.
using Reference = DataReference;

/// One that no completed instruction made.
struct OtherAccess : Reference {
  bool code = false;  ///< bytes of an instruction
};

/// A piece of code ran once, as a whole; or iterations of a REP string instruction, which is then a
/// block of its own. Valid during the call.
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

  const StaticBlock& block() const { return *block_; }
  /// The position of the first instruction, or iteration.
  Position first() const { return first_; }
  /// Iterations told together: 1 of whatever is not repeated. The addresses and references are
  /// those of the first one; of each further one they are `step()` bytes higher, linear and
  /// physical.
  std::uint32_t iterations() const { return iterations_; }
  std::uint32_t step() const { return step_; }
  /// A REP whose count was 0: no addresses, no references.
  bool does_nothing() const { return does_nothing_; }
  /// KT's effective addresses of instruction `i` (docs/formats/kt.md), DecodedInstruction::ea_count
  /// of them but for does_nothing().
  LinearAddr address(std::uint32_t i, unsigned number = 0) const {
    return addresses_[(*block_)[i].addresses_before + number];
  }
  /// All of them, one instruction after the other, appended to `to`, to be kept for later; none of
  /// does_nothing().
  void append_addresses(std::vector<LinearAddr>& to) const {
    if (does_nothing_ || addresses_ == nullptr) return;
    const StaticInstruction& last = block_->back();
    to.insert(to.end(), addresses_, addresses_ + last.addresses_before + last.info.ea_count);
  }
  /// In program order.
  std::span<const Reference> references() const { return references_; }
  /// Instruction `i` as if it had been told alone, as `block`, with these references.
  Execution instruction(const StaticBlock& block, std::uint32_t i,
                        std::span<const Reference> references) const {
    const std::uint32_t before = (*block_)[i].addresses_before;
    const Position at{first_.instruction + i, i == 0 ? first_.iteration : 0};
    return {block, at, addresses_ != nullptr ? addresses_ + before : nullptr, references};
  }

 private:
  const StaticBlock* block_;
  Position first_;
  const LinearAddr* addresses_ = nullptr;
  std::span<const Reference> references_;
  std::uint32_t iterations_ = 1;
  std::uint32_t step_ = 0;
  bool does_nothing_;
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
    delivered,       ///< exception, interrupt or software interrupt: `delivery`
    returned,        ///< IRET or RSM completed
    fast_call,       ///< SYSENTER or SYSCALL completed; `value`: 1 of SYSCALL
    fast_return,     ///< SYSEXIT or SYSRET completed; `value`: 1 of SYSRET
    address_space,   ///< CR3 was loaded: `value`
    port_read,       ///< `port`, `size`, `value`
    port_write,      ///< the same
    external_write,  ///< by another bus master: `physical`, `size`
    halted,
    shutdown,
    cache_flushed,  ///< `value`: 1 with write-back
    mapping,        ///< first use of a translation: `linear`, `physical` (with Wants::registers)
    call_began,     ///< `call`, a system call, by who follows the recorded system
    call_ended,     ///< the same, of one whose beginning was told
    window_opened,  ///< the tool is told again
    window_closed,
    translation_dropped,  ///< the processor loses what it holds of a page by itself: `linear`
  };
  Kind kind = Kind::delivered;
  Position position;  ///< instructions completed before it
  DeliveredEvent delivery;
  std::uint16_t port = 0;
  std::uint32_t size = 0;
  std::uint64_t value = 0;
  AddressSpaceId before = 0;         ///< of address_space: CR3 until then
  std::uint32_t level = 0;           ///< of returned, fast_call and fast_return: before it
  const SystemCall* call = nullptr;  ///< tools/guest/system_call.h; valid while it is told
  std::uint64_t number = 0;          ///< of the call: tells those apart that are open at once
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

/// What a tool may know about the run when it is made.
struct Setup {
  /// Outlives the tool. Null where parts are only put together: tools that merge do without it.
  const Recording* recording = nullptr;
  MachineFacts machine;
  std::uint64_t from = 0;                ///< first instruction that is told
  std::uint64_t to = ~std::uint64_t{0};  ///< first one that is not
  /// What needs executions in their order is told of them in some windows of the run, all else of
  /// all.
  bool sampled = false;
  /// What is told first is what comes first. Else the tool is told a part of it, and follows
  /// another (Tool::follow()): what its model holds at the beginning is not known to it.
  bool begins = true;
  /// Outlives the tool; null as `recording` is.
  const NameSource* names = nullptr;
  /// Whose run it is, of a machine with several processors, and how the bus that they share orders
  /// their runs, which takes a pass over the evidence of all. Empty where there is one processor.
  std::size_t processor = 0;
  std::function<std::shared_ptr<const BusTurns>()> bus_turns;
  std::string output;  ///< where a tool whose result is a file puts it (tool_output.h)
  /// The group it is one tool of several for, as "process=sh,level=3"; empty without --by.
  std::string group;
  /// For a part of the run: where a tool that writes a stream keeps what it receives, for the
  /// process that joins the parts. Null if the tool sees the run as a whole.
  std::shared_ptr<PartSpool> spool;
  /// Tools of shared objects run in processes of their own, which may take so long to answer.
  std::optional<std::chrono::milliseconds> isolate;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual Wants wants() const = 0;
  /// Key of its results where that is not the name on the command line; else empty.
  virtual std::string name() const { return {}; }

  /// How the processor it models fills its TLB; all tools of a run must agree. It then needs the
  /// run from the beginning.
  virtual std::optional<WalkPolicy> walks() const { return std::nullopt; }

  /// It has a model that what is told changes: --window and --sample may have it follow the run
  /// before a window.
  virtual bool warms() const { return false; }
  /// While true, what is told changes the model and is not counted.
  virtual void set_warming(bool) {}

  /// Called once for a piece of code, which lives as long as the tool; what it returns is handed to
  /// run() and counted(). The tool owns it.
  virtual void* code(const StaticBlock&) { return nullptr; }
  virtual void run(void* /*mine*/, const Execution&, const Context&) {}
  /// With Wants::passes: these instructions completed, one of them after the other, in the context.
  virtual void passed(std::uint64_t /*first*/, std::uint64_t /*end*/, const Context&) {}
  /// The same: from which instruction on, that one or a later one, it has to be told by run().
  virtual std::uint64_t needs(std::uint64_t /*instruction*/) const { return ~std::uint64_t{0}; }
  /// The run goes on outside of the tool's scope or group; what is told next may lie elsewhere.
  virtual void left_scope(const Context&) {}
  /// With Setup::sampled: between what was told and what is told next lies code that is not told.
  virtual void gap() {}
  /// The same: which of its figures are samples, and not of the whole run: all that it reports,
  /// some, with their names, or none.
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
  /// With Wants::references: what was accessed, but not by an instruction that completed: tables
  /// and frames of a delivery, walks for code, and what an instruction did that was then refused,
  /// its own bytes among it.
  virtual void accesses(std::span<const OtherAccess>, const Context&) {}
  /// So many more executions of a piece of code, each of them whole: in place of run() where
  /// Wants::counts is all that is wanted. Iterations of a REP are told by iterated() then.
  virtual void counted(void* /*mine*/, std::uint64_t /*executions*/) {}
  /// With Wants::counts: a REP string instruction, the only one of its block, began anew so many
  /// times, and did so many further iterations.
  virtual void iterated(void* /*mine*/, std::uint64_t /*begun*/, std::uint64_t /*further*/) {}
  /// So many of those begun were interrupted between two iterations, and did not complete.
  virtual void interrupted(void* /*mine*/, std::uint64_t /*times*/) {}
  virtual void event(const MachineEvent&, const Context&) {}
  /// The REP that was told last did not complete: the run ends at the position, within it, or is
  /// interrupted there.
  virtual void unfinished(Position /*at*/) {}

  /// A tool with the same options and Setup that has observed nothing.
  virtual std::unique_ptr<Tool> part() const = 0;
  /// Its options allow what ToolRow::merging says.
  virtual bool merges() const { return true; }
  /// `later`, of the same options, was told what comes next: afterwards this one is as if it had
  /// been told both. Not called where ToolRow::merging says serial.
  virtual void follow(Tool&& later) = 0;
  /// All that follow() and report() need.
  virtual void save(ByteWriter&) const = 0;
  /// Into a part(). Throws FormatError for what save() never writes.
  virtual void load(ByteReader&) = 0;
  /// Results. Called once, at the end.
  virtual void report(Report&) const = 0;
  /// Why it has not done what it was to do, in one line; asked after report(). Empty where it has.
  virtual std::string failure() const { return {}; }
};

/// One tool of the list.
struct ToolRow {
  enum class Merging : std::uint8_t {
    exact,   ///< parts of the run can be known to parts of the tool
    serial,  ///< the run must be told as a whole
  };
  const char* name;
  const char* summary;  ///< one line, imperative, no full stop
  /// Options as lines "key=VALUE  what it means"; empty where there are none.
  const char* options;
  const char* example;  ///< one line to paste
  Merging merging;
  /// Reads the options; the host refuses those that were not read.
  std::unique_ptr<Tool> (*make)(ToolOptions&, const Setup&);
};

inline std::uint32_t StaticInstruction::bytes_in_first_page() const {
  const std::uint32_t room = kPageSize - linear.offset_in_page();
  return info.length < room ? info.length : room;
}

}  // namespace citcat::tools
