#pragma once
// Rows that a replay gives, in the form in which they are collected: what comes in great numbers is
// kept as runs of code and of accesses, and becomes rows when it is read.

#include <cstdint>
#include <string>
#include <vector>

#include "events/machine/address.h"
#include "events/position.h"
#include "replay/machine/observer.h"
#include "sql/rows/code_piece.h"
#include "sql/rows/run_context.h"
#include "tools/guest/system_call.h"
#include "tools/processors/sharing_tool.h"

namespace citcat::sql {

/// Instructions that completed one after the other.
struct InstructionRun {
  const CodePiece* code = nullptr;
  std::uint64_t first = 0;  ///< position of the first one
  ContextNumber context = 0;
  std::uint32_t iterations = 0;  ///< of a REP string instruction
  std::uint32_t interrupts = 0;  ///< from outside, NMIs or SMIs, whose handlers it is within
  std::uint64_t end() const { return first + code->count(); }
};

/// Why memory was accessed, and by what.
enum class AccessClass : std::uint8_t {
  data,      ///< an operand of an instruction, stack included
  system,    ///< descriptor tables and task segments, by an instruction
  delivery,  ///< tables and frames of a delivery, or what a refused instruction did before
};

/// The linear addresses of accesses to tables and frames are not reported.
constexpr bool has_linear(LinearAddr linear, AccessKind kind) {
  return kind == AccessKind::data || linear.value != 0;
}

struct Access {
  LinearAddr linear;
  PhysAddr physical;
  std::uint64_t value = 0;
  std::uint16_t size = 0;
  std::uint16_t instruction = 0;  ///< number in its run
  std::uint16_t number = 0;       ///< of those of the instruction, of all that there are, from 0
  AccessClass kind = AccessClass::data;
  bool write = false;
};

/// Accesses of a piece of code, or of iterations of a string: as many times over, each time `step`
/// bytes higher and one iteration later.
struct AccessRun {
  Position first;
  ContextNumber context = 0;
  std::uint32_t begin = 0, end = 0;  ///< in the accesses that are kept
  std::uint32_t times = 1, step = 0;
  std::uint32_t each = 0;    ///< accesses of an iteration, of all that there are
  std::uint64_t before = 0;  ///< how many were made at the first position before these
};

/// An exception, interrupt, halt or shutdown.
struct EventRow {
  enum class Kind : std::uint8_t { exception, software, external, nmi, smi, halt, shutdown };
  Position at;
  Kind kind = Kind::exception;
  std::uint8_t vector = 0;
  std::uint32_t error_code = 0;
  std::uint64_t offset = 0, cr2 = 0;
  std::uint32_t cs = 0;
  ContextNumber context = 0;  ///< that it came from
  bool is_delivery() const { return kind < Kind::halt; }
  bool has_vector() const { return kind <= Kind::nmi; }
};

/// A change of level or of page tables other than a delivery, a flush of the caches, or a dropped
/// translation.
struct SystemRow {
  Position at;
  const char* kind = "";
  std::uint64_t value = 0;
  bool has_value = false;
  ContextNumber context = 0;
};

struct PortRow {
  Position at;
  std::uint32_t port = 0, size = 0, value = 0;
  bool write = false;
  ContextNumber context = 0;
};

/// Another bus master stored something.
struct ExternalWriteRow {
  Position at;
  PhysAddr physical;
  std::uint32_t size = 0;
};

struct SystemCallRow {
  tools::SystemCall call;
  const std::string* process = nullptr;
};

/// A call of a procedure.
struct ProcedureCallRow {
  std::uint64_t at = 0;  ///< position of the first instruction of the procedure
  std::uint64_t instructions = 0;
  std::uint32_t caller = 0, procedure = 0, depth = 0;
  std::uint32_t jumped = 0;  ///< number, from 1, of the row whose procedure jumped here
  ContextNumber context = 0;
  bool ended = false;
  bool is_call = false;  ///< else it ran without having been called, and is no row
};

/// What ran in one address space under one name.
struct ProcessRow {
  const std::string* process = nullptr;
  AddressSpaceId address_space = 0;
  std::uint64_t first = 0, last = 0;
  std::uint64_t instructions = 0, of_level_3 = 0;
  std::uint64_t switches = 0;  ///< how often the processor came to it
};

/// What one replay, or a stretch of it, gave.
struct RunRows {
  std::vector<InstructionRun> instructions;
  std::vector<AccessRun> access_runs;
  std::vector<Access> accesses;
  std::vector<EventRow> events;
  std::vector<SystemRow> system;
  std::vector<PortRow> ports;
  std::vector<ExternalWriteRow> external_writes;
  std::vector<SystemCallRow> system_calls;
  std::vector<ProcedureCallRow> calls;
  std::vector<ProcessRow> processes;
  std::vector<tools::Communication> sharing;

  /// Bytes of memory that they take, more or less.
  std::uint64_t bytes() const;
};

/// Which of them are requested.
struct RowNeeds {
  bool instructions = false, accesses = false, values = false;
  bool events = false, system = false, ports = false, external_writes = false;
  bool system_calls = false, calls = false, processes = false;
  bool sharing = false;        ///< needs a replay of all processors together
  bool process_names = false;  ///< names of processes are followed from the beginning on

  RowNeeds operator|(const RowNeeds& o) const;
  /// All that `o` has is here as well.
  bool cover(const RowNeeds& o) const { return (*this | o) == *this; }
  bool operator==(const RowNeeds&) const = default;
  /// Something that comes with every instruction, and is read stretch by stretch.
  bool streams() const { return instructions || accesses; }
  /// Something that is collected of the run as a whole.
  bool whole() const {
    return events || system || ports || external_writes || system_calls || calls || processes ||
           sharing;
  }
};

}  // namespace citcat::sql
