#pragma once
// A tool asks something of a replayed run. The host (tool_host.h) shows it the code once, then each
// execution or their number, and the events, and prints what it reports.
//
// A tool is one file with one row (ToolRow), named in tool_list.cc. It sees of the run only what the
// scope and the windows of the command leave, and of one group where tables are split (`--by`): the
// host makes a tool for each.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "events/address.h"
#include "events/position.h"
#include "events/recording.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "replay/machine/observer.h"
#include "replay/x86/decoded_instruction.h"
#include "tools/host/context.h"
#include "tools/host/report.h"
#include "tools/host/tool_options.h"

namespace citcat::tools {

/// What a tool is to be told; the host takes the cheapest path that serves all tools of a run.
struct Wants {
  bool counts = false;      ///< counted(): how often each piece of code ran
  bool executions = false;  ///< run(), in program order
  bool references = false;  ///< Execution::references(), without page walks
  bool walks = false;       ///< page walks among them
  /// run() is told one instruction at a time, and Context::machine() stands right behind it. Slow.
  bool registers = false;
  /// Reference::value is there. Slow.
  bool values = false;
  bool events = false;  ///< event()

  constexpr Wants operator|(const Wants& o) const {
    return {counts || o.counts,         executions || o.executions, references || o.references,
            walks || o.walks,           registers || o.registers,   values || o.values,
            events || o.events};
  }
  /// Executions in their order are needed.
  constexpr bool any_execution() const {
    return executions || references || walks || registers || values;
  }
};

/// An instruction of a StaticBlock.
struct StaticInstruction {
  DecodedInstruction info;
  LinearAddr linear;                ///< of its first byte
  std::uint32_t eip = 0;            ///< offset in CS
  PhysAddr physical;                ///< of its first byte
  PhysAddr physical_rest;           ///< of its bytes behind the end of the page, if there are any
  std::uint32_t first_address = 0;  ///< Execution::addresses of the instructions before it
  /// Bytes of it that lie in the page of its first.
  std::uint32_t bytes_in_first_page() const;
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

/// An access to memory within one page frame, as the processor made it; of more than one frame there
/// are several.
struct Reference {
  PhysAddr physical;
  LinearAddr linear;  ///< 0 of page walks and system tables
  std::uint64_t value = 0;  ///< its bytes, the first lowest, with Wants::values and at most 8 of them
  std::uint16_t size = 0;         ///< bytes
  std::uint16_t instruction = 0;  ///< number in the block
  AccessKind kind = AccessKind::data;
  bool write = false;
};

/// A piece of code ran once, as a whole; or iterations of a REP string instruction, which is a block of
/// its own then. Valid while it is told.
class Execution {
 public:
  Execution(const StaticBlock& block, Position first, const std::uint32_t* addresses,
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
  /// Of the first instruction, or iteration.
  Position first() const { return first_; }
  /// Iterations told together: 1 of whatever is not repeated. The addresses and references are those
  /// of the first one; of each further one they are `step()` bytes higher, linear and physical.
  std::uint32_t iterations() const { return iterations_; }
  std::uint32_t step() const { return step_; }
  /// A REP whose count was 0: no addresses, no references.
  bool does_nothing() const { return does_nothing_; }
  /// KT's effective addresses of instruction `i` (docs/formats/kt.md), DecodedInstruction::ea_count of
  /// them but for does_nothing().
  LinearAddr address(std::uint32_t i, unsigned number = 0) const {
    return LinearAddr{addresses_[(*block_)[i].first_address + number]};
  }
  /// In program order.
  std::span<const Reference> references() const { return references_; }

 private:
  const StaticBlock* block_;
  Position first_;
  const std::uint32_t* addresses_;
  std::span<const Reference> references_;
  std::uint32_t iterations_;
  std::uint32_t step_;
  bool does_nothing_;
};

/// What happens besides instructions.
struct MachineEvent {
  enum class Kind : std::uint8_t {
    delivered,       ///< exception, interrupt or software interrupt: `delivery`
    returned,        ///< IRET or RSM completed
    fast_call,       ///< SYSENTER completed
    fast_return,     ///< SYSEXIT completed
    address_space,   ///< CR3 was loaded: `value`
    port_read,       ///< `port`, `size`, `value`
    port_write,      ///< the same
    external_write,  ///< by another bus master: `physical`, `size`
    halted,
    shutdown,
    cache_flushed,   ///< `value`: 1 with write-back
    mapping,         ///< first use of a translation: `linear`, `physical` (with Wants::walks)
    window_opened,   ///< the tool is told again
    window_closed,
  };
  Kind kind = Kind::delivered;
  Position position;  ///< instructions completed before it
  DeliveredEvent delivery;
  std::uint16_t port = 0;
  std::uint32_t size = 0;
  std::uint32_t value = 0;
  PhysAddr physical;
  LinearAddr linear;
};

/// What a tool may know of the run when it is made.
struct Setup {
  const Recording* recording = nullptr;  ///< outlives the tool
  std::uint64_t from = 0;                ///< first instruction that is told
  /// Nothing is told before this part of the run. Else the tool is a part (Tool::part()), and what its
  /// model holds at the beginning is not known to it.
  bool begins = true;
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual Wants wants() const = 0;

  /// Called once for a piece of code, which lives as long as the tool; what it returns is handed to
  /// run() and counted(). The tool owns it.
  virtual void* code(const StaticBlock&) { return nullptr; }
  virtual void run(void* /*mine*/, const Execution&, const Context&) {}
  /// So many more executions of a piece of code, each of them whole: in place of run() where
  /// Wants::counts is all that is wanted. Iterations of a REP are told by iterated() then.
  virtual void counted(void* /*mine*/, std::uint64_t /*executions*/) {}
  /// With Wants::counts: a REP string instruction, the only one of its block, began anew so many times,
  /// and did so many further iterations.
  virtual void iterated(void* /*mine*/, std::uint64_t /*begun*/, std::uint64_t /*further*/) {}
  virtual void event(const MachineEvent&, const Context&) {}

  /// Of the same options; knows nothing of the past.
  virtual std::unique_ptr<Tool> part() const = 0;
  /// `later`, of the same options, was told what comes next: afterwards this one is as if it had been
  /// told both. Not called where ToolRow::merging says serial.
  virtual void follow(Tool&& later) = 0;
  /// All that follow() and report() need.
  virtual void save(ByteWriter&) const = 0;
  /// Into a part(). Throws FormatError for what save() never writes.
  virtual void load(ByteReader&) = 0;
  /// Results. Called once, at the end.
  virtual void report(Report&) const = 0;
};

/// One tool of the list.
struct ToolRow {
  enum class Merging : std::uint8_t {
    exact,   ///< parts of the run can be told to parts of the tool
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
