// champsim: fixed records of instructions for ChampSim. Format and source: docs/export/champsim.md.

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "replay/trace/kt_sink.h"
#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"
#include "x86/register_use.h"

namespace citcat::tools {
namespace {

constexpr std::size_t kDestinations = 2, kSources = 4;

/// What a record has of the instruction alone, whichever execution of it is told.
struct RecordHead {
  std::uint8_t is_branch = 0, branch_taken = 0;
  std::array<std::uint8_t, kDestinations> destination_registers{};
  std::array<std::uint8_t, kSources> source_registers{};
};

/// input_instr of ChampSim's inc/trace_instruction.h: 64 bytes without a hole.
struct Record {
  std::uint64_t ip = 0;
  RecordHead head;
  std::array<std::uint64_t, kDestinations> destination_memory{};
  std::array<std::uint64_t, kSources> source_memory{};
};
static_assert(sizeof(Record) == 64 && sizeof(RecordHead) == sizeof(StepCode::known));

/// ChampSim knows these by number (inc/trace_instruction.h, champsim::REG_*); kinds of branches
/// follow from which of them are read and written.
constexpr std::uint8_t kStackPointer = 6, kFlags = 25, kInstructionPointer = 26;
/// Pin's numbers, as ChampSim's own tracer writes them: EAX ECX EDX EBX ESP EBP ESI EDI.
constexpr std::array<std::uint8_t, 8> kGprNumbers{10, 9, 8, 7, kStackPointer, 5, 4, 3};
/// R8 to R15, as in Pin for 64 bits.
constexpr std::uint8_t kFirstExtendedGpr = 11;
/// Stands for what is read that has no number of a general register.
constexpr std::uint8_t kOther = 64;

/// The first places of a record that are not taken yet.
template <class T, std::size_t N>
class Slots {
 public:
  explicit Slots(std::array<T, N>& slots) : slots_(slots) {}
  /// What does not fit is left out, and counted.
  void add(T value, std::uint64_t& left_out) {
    if (used_ < N) {
      slots_[used_++] = value;
    } else {
      ++left_out;
    }
  }

 private:
  std::array<T, N>& slots_;
  std::size_t used_ = 0;
};

class ChampsimTool final : public StepTool {
 public:
  using StepTool::StepTool;
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<ChampsimTool>(file().anew());
  }

 private:
  RecordHead make_head(const StaticInstruction& code) {
    RecordHead record;
    const DecodedInstruction& info = code.info;
    Slots sources(record.source_registers);
    Slots destinations(record.destination_registers);
    if (is_branch(info)) {
      record.is_branch = 1;
      add_branch(info, sources, destinations);
      return record;
    }
    const RegisterUse use = register_use({info.bytes.data(), info.length}, code_bits(info));
    for (std::size_t g = 0; g < kGprNumbers.size(); ++g) {
      if ((use.read >> g & 1) != 0) sources.add(kGprNumbers[g], registers_left_out_);
      if ((use.written >> g & 1) != 0) destinations.add(kGprNumbers[g], registers_left_out_);
    }
    for (unsigned g = 0; g < 8; ++g) {
      const std::uint64_t bit = kUsesExtendedGpr << g;
      const auto number = static_cast<std::uint8_t>(kFirstExtendedGpr + g);
      if ((use.read & bit) != 0) sources.add(number, registers_left_out_);
      if ((use.written & bit) != 0) destinations.add(number, registers_left_out_);
    }
    if ((use.read & kUsesFlags) != 0) sources.add(kFlags, registers_left_out_);
    if ((use.written & kUsesFlags) != 0) destinations.add(kFlags, registers_left_out_);
    return record;
  }

  static bool is_branch(const DecodedInstruction& info) {
    switch (info.kind) {
      case InstructionClass::jcc:
      case InstructionClass::loop:
      case InstructionClass::jump:
      case InstructionClass::far_jump:
      case InstructionClass::call:
      case InstructionClass::far_call:
      case InstructionClass::ret:
      case InstructionClass::far_return:
      case InstructionClass::iret:
      case InstructionClass::int_n:
      case InstructionClass::int3:
      case InstructionClass::into:
      case InstructionClass::icebp:
      case InstructionClass::rsm:
      case InstructionClass::sysenter:
      case InstructionClass::sysexit:
      case InstructionClass::syscall:
      case InstructionClass::sysret:
        return true;
      default:
        return false;
    }
  }

  /// The registers by which ChampSim tells the kind of branch.
  void add_branch(const DecodedInstruction& info, Slots<std::uint8_t, kSources>& sources,
                  Slots<std::uint8_t, kDestinations>& destinations) {
    std::uint64_t& none = registers_left_out_;
    const bool calls =
        info.kind == InstructionClass::call || info.kind == InstructionClass::far_call ||
        info.kind == InstructionClass::int_n || info.kind == InstructionClass::int3 ||
        info.kind == InstructionClass::into || info.kind == InstructionClass::icebp;
    const bool returns = info.kind == InstructionClass::ret ||
                         info.kind == InstructionClass::far_return ||
                         info.kind == InstructionClass::iret || info.kind == InstructionClass::rsm;
    const bool conditional =
        info.kind == InstructionClass::jcc || info.kind == InstructionClass::loop;
    destinations.add(kInstructionPointer, none);
    if (calls || returns) {
      destinations.add(kStackPointer, none);
      sources.add(kStackPointer, none);
    }
    if (calls || conditional) sources.add(kInstructionPointer, none);
    if (conditional) sources.add(kFlags, none);
    const bool by_register = info.indirect || info.kind == InstructionClass::sysenter ||
                             info.kind == InstructionClass::sysexit ||
                             info.kind == InstructionClass::syscall ||
                             info.kind == InstructionClass::sysret;
    if (by_register) sources.add(kOther, none);
  }

  std::uint64_t know(const StaticInstruction& code) override {
    return std::bit_cast<std::uint64_t>(make_head(code));
  }
  static Record begin_record(const StepCode& code) {
    Record record;
    record.ip = code.linear.value;
    record.head = std::bit_cast<RecordHead>(code.known);
    return record;
  }
  /// Writes the record of an instruction of ordinary code, number by number: a record that was just
  /// put together is slow to copy.
  void write_record(const StepCode& code, const RunAccesses& accesses, LinearAddr next,
                    std::uint8_t* to) {
    constexpr std::size_t kHead = offsetof(Record, head);
    constexpr std::size_t kTaken = kHead + offsetof(RecordHead, branch_taken);
    constexpr std::size_t kStored = offsetof(Record, destination_memory);
    constexpr std::size_t kRead = offsetof(Record, source_memory);
    std::memcpy(to, &code.linear.value, sizeof code.linear.value);
    std::memcpy(to + kHead, &code.known, sizeof code.known);
    std::memset(to + kStored, 0, sizeof(Record) - kStored);
    if (code.control_flow && to[kHead] != 0) to[kTaken] = is_taken(code, next, true) ? 1 : 0;
    std::size_t stored = 0, read = 0;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      const StepAccess a = accesses[i];
      const std::size_t number = a.write ? stored++ : read++;
      if (number < (a.write ? kDestinations : kSources)) {
        std::memcpy(to + (a.write ? kStored : kRead) + 8 * number, &a.linear.value, 8);
      } else {
        leave_out(1);
      }
    }
  }

  /// What always goes somewhere is taken, also to the instruction behind it.
  static bool is_taken(const StepCode& code, LinearAddr next, bool completes) {
    if (next != code.behind()) return true;
    const InstructionClass kind = code.instruction->info.kind;
    return completes && kind != InstructionClass::jcc && kind != InstructionClass::loop &&
           kind != InstructionClass::into;
  }

  void step(const Step& step) override {
    Record record = begin_record(*step.code);
    const bool taken =
        record.head.is_branch != 0 && is_taken(*step.code, step.next, step.completes);
    record.head.branch_taken = taken ? 1 : 0;
    Slots sources(record.source_memory);
    Slots destinations(record.destination_memory);
    std::uint64_t left_out = 0;
    for (const StepAccess& a : step.accesses) {
      if (a.write) {
        destinations.add(a.linear.value, left_out);
      } else {
        sources.add(a.linear.value, left_out);
      }
    }
    leave_out(left_out);
    std::memcpy(file().room(sizeof record), &record, sizeof record);
    file().wrote(sizeof record);
  }
  void steps(const StepRun& run) override {
    const std::size_t bytes = run.code.size() * sizeof(Record);
    std::uint8_t* to = file().room(bytes);
    run.for_each([&](const StepCode& code, const RunAccesses& accesses) {
      write_record(code, accesses, run.next, to);
      to += sizeof(Record);
    });
    file().wrote(bytes);
  }
  bool stands_alone() const override { return true; }
  void end() override { file().finish(); }
  void report_more(Report& out) const override {
    out.value("accesses_left_out", "accesses for which a record has no place", totals().left_out);
  }

  std::uint64_t registers_left_out_ = 0;  ///< of distinct instructions
};

std::unique_ptr<Tool> make_champsim(ToolOptions& options, const Setup& setup) {
  return std::make_unique<ChampsimTool>(ExportFile(options, setup));
}

}  // namespace

extern const ToolRow kChampsimTool{"champsim",
                                   "Write a trace for ChampSim",
                                   "to=FILE  output file",
                                   "citcat replay boot.citcat -o boot.champsim",
                                   ToolRow::Merging::exact,
                                   make_champsim};

}  // namespace citcat::tools
