// tenet: registers and memory that change, instruction by instruction, for the trace explorer
// Tenet. Format and source: docs/export/tenet.md.

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "events/machine/cpu_traits.h"
#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"
#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {
namespace {

constexpr std::size_t kWideCount = 16, kNarrowCount = 8;
constexpr const char* kTenetRegisters[kNarrowCount] = {"eax", "ecx", "edx", "ebx",
                                                       "esp", "ebp", "esi", "edi"};
constexpr const char* kTenetWideRegisters[kWideCount] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                         "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                         "r12", "r13", "r14", "r15"};

/// Registers at one moment.
struct Registers {
  std::array<std::uint64_t, kWideCount> general{};
  LinearAddr ip;
};

Registers registers_of(const Engine& engine, std::size_t count) {
  Registers r;
  for (std::size_t i = 0; i < count; ++i) r.general[i] = whole_gpr(engine, static_cast<int>(i));
  r.ip = code_address(engine);
  return r;
}

std::uint64_t msr_of(const Machine& machine, std::uint32_t index) {
  for (const Msr& msr : machine.save().msrs) {
    if (msr.index == index) return msr.value;
  }
  return 0;
}

/// SYSENTER, SYSCALL and their returns are told before they change registers: `r` gets what they
/// leave (Intel SDM vol. 2).
void complete_system_call(Registers& r, const StaticInstruction& code, const Machine& machine) {
  constexpr std::size_t kRcx = 1, kRdx = 2, kRsp = 4, kR11 = 11;
  constexpr std::uint32_t kSysenterEsp = 0x175, kSysenterEip = 0x176, kLongTarget = 0xc0000082,
                          kCompatibilityTarget = 0xc0000083, kResumeFlag = 1u << 16;
  const DecodedInstruction& info = code.info;
  const std::uint64_t mask = (info.rex & kRexW) != 0 ? ~std::uint64_t{0} : 0xffffffff;
  switch (info.kind) {
    case InstructionClass::sysenter:
      r.general[kRsp] = msr_of(machine, kSysenterEsp);
      r.ip = LinearAddr{msr_of(machine, kSysenterEip)};
      break;
    case InstructionClass::sysexit:
      r.general[kRsp] = r.general[kRcx] & mask;
      r.ip = LinearAddr{r.general[kRdx] & mask};
      break;
    case InstructionClass::syscall:
      r.general[kRcx] = code.offset + info.length;
      r.general[kR11] = machine.engine().eflags() & ~kResumeFlag;
      r.ip = LinearAddr{msr_of(machine, info.bits64 ? kLongTarget : kCompatibilityTarget)};
      break;
    case InstructionClass::sysret:
      r.ip = LinearAddr{r.general[kRcx] & mask};
      break;
    default:
      break;
  }
}

/// ",mr=ADDRESS:BYTES" of each access; `memory` has the bytes of those that are larger than values.
std::string accesses_text(std::span<const Reference> references, const Memory& memory) {
  std::string text;
  for (const Reference& r : references) {
    const bool has_value = r.size <= sizeof r.value;
    const std::uint8_t* const bytes = has_value ? nullptr : memory.host(r.physical);
    if (r.kind != AccessKind::data || (!has_value && bytes == nullptr)) continue;
    fmt::format_to(std::back_inserter(text), ",{}={:#x}:", r.write ? "mw" : "mr", r.linear.value);
    for (std::size_t i = 0; i < r.size; ++i) {
      const auto byte = has_value ? static_cast<std::uint8_t>(r.value >> (8 * i)) : bytes[i];
      fmt::format_to(std::back_inserter(text), "{:02x}", byte);
    }
  }
  return text;
}

class TenetTool final : public StepTool {
 public:
  TenetTool(ExportFile file, bool wide)
      : StepTool(std::move(file)), wide_(wide), count_(wide ? kWideCount : kNarrowCount) {}
  Wants wants() const override {
    Wants wants = StepTool::wants();
    wants.references = wants.registers = wants.values = true;
    return wants;
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<TenetTool>(file().anew(), wide_);
  }

 private:
  bool has_facts() const override { return true; }
  /// Registers, then the text of the accesses. It is told one instruction at a time, nearly always
  /// with the machine right after it.
  std::string facts(const Execution& execution, const Context& context) const override {
    Registers now = registers_of(context.machine().engine(), count_);
    complete_system_call(now, execution.block().back(), context.machine());
    return text_of(now) + accesses_text(execution.references(), context.machine().memory());
  }
  std::string facts(const MachineEvent& event, const Context& context) const override {
    if (event.kind != MachineEvent::Kind::delivered) return {};
    return text_of(registers_of(context.machine().engine(), count_));
  }
  static std::string text_of(const Registers& registers) {
    return {reinterpret_cast<const char*>(&registers), sizeof registers};
  }
  static Registers registers_in(std::string_view facts) {
    Registers r;
    std::memcpy(&r, facts.data(), sizeof r);
    return r;
  }
  void step(const Step& step) override {
    const Registers behind = registers_in(step.facts);
    // Where the run begins, and where a stretch is left out.
    if (step.code->linear != ip_) line(step.code->linear, {}, {});
    // The engine may still be at a REP whose last iteration it has made; of the last step of all
    // nobody else knows.
    line(step.is_last ? behind.ip : step.next, behind, step.facts.substr(sizeof behind));
  }
  void happened(const StepEvent& event, const std::string& facts) override {
    if (event.event.kind != MachineEvent::Kind::delivered) return;
    // The line of an INT itself ends at the handler.
    if (event.event.delivery.kind == DeliveredEvent::Kind::software) return;
    const Registers before = registers_in(facts);
    line(before.ip, before, {});
  }
  /// Registers that have changed, the instruction pointer, accesses.
  void line(LinearAddr ip, const std::optional<Registers>& registers, std::string_view accesses) {
    text_.clear();
    auto out = std::back_inserter(text_);
    for (std::size_t i = 0; registers && i < count_; ++i) {
      const std::uint64_t value = registers->general[i];
      if (written_ && written_->general[i] == value) continue;
      fmt::format_to(out, "{}={:#x},", wide_ ? kTenetWideRegisters[i] : kTenetRegisters[i], value);
    }
    if (registers) written_ = registers;
    fmt::format_to(out, "{}={:#x}{}\n", wide_ ? "rip" : "eip", ip.value, accesses);
    file().write(text_);
    ip_ = ip;
  }
  void end() override { file().finish(); }

  bool wide_;
  std::size_t count_;  ///< of registers
  std::optional<Registers> written_;
  std::optional<LinearAddr> ip_;  ///< that the last line ends with
  std::string text_;
};

std::unique_ptr<Tool> make_tenet(ToolOptions& options, const Setup& setup) {
  return std::make_unique<TenetTool>(ExportFile(options, setup),
                                     cpu_traits(setup.machine.model).has_long_mode);
}

}  // namespace

extern const ToolRow kTenetTool{"tenet",
                                "Write changes of registers and memory for the explorer Tenet",
                                "to=FILE  output file",
                                "citcat replay boot.citcat -o boot.tenet --to 1000000",
                                ToolRow::Merging::exact,
                                make_tenet};

}  // namespace citcat::tools
