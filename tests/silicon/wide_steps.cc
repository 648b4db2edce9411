#include "silicon/wide_steps.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace citcat::silicon {
namespace {

constexpr std::array<const char*, 16> kWideRegisters{"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                     "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                     "r12", "r13", "r14", "r15"};
constexpr std::array<std::pair<int, const char*>, 6> kWideSelectors{
    {{kEs, "es"}, {kCs, "cs"}, {kSs, "ss"}, {kDs, "ds"}, {kFs, "fs"}, {kGs, "gs"}}};
constexpr std::uint32_t kWideArithmetic = 0x8d5;
/// TF makes the single step, RF is in frames alone, and ID is what it is in the child process.
constexpr std::uint32_t kCompared = ~((1u << 8) | (1u << 16) | (1u << 21));

std::uint64_t value(const CpuState& s, const char* name) {
  return get_register(s, name).value_or(0);
}

}  // namespace

/// The instruction as the other decoder has it.
struct WideLockStep::Facts {
  explicit Facts(const std::vector<std::uint8_t>& bytes) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    defined = ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(),
                                                  &instruction, operands.data()));
    if (!defined) {
      for (const std::uint8_t b : bytes) add_hex(b);
      return;
    }
    if (instruction.cpu_flags != nullptr)
      undefined = instruction.cpu_flags->undefined & kWideArithmetic;
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    char buffer[100];
    ZydisFormatterFormatInstruction(&formatter, &instruction, operands.data(),
                                    instruction.operand_count_visible, buffer, sizeof buffer,
                                    ZYDIS_RUNTIME_ADDRESS_NONE, nullptr);
    text = buffer;
    for (unsigned i = 0; i < instruction.length; ++i) add_hex(bytes[i]);
  }
  void add_hex(std::uint8_t byte) {
    char hex[4];
    std::snprintf(hex, sizeof hex, " %02x", byte);
    text += hex;
  }
  bool is(ZydisMnemonic m) const { return defined && instruction.mnemonic == m; }
  const char* mnemonic() const {
    return defined ? ZydisMnemonicGetString(instruction.mnemonic) : "undefined";
  }
  bool repeats() const {
    constexpr ZydisInstructionAttributes kRepeats =
        ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    return defined && (instruction.attributes & kRepeats) != 0;
  }
  bool is_of_vectors() const { return defined && instruction.meta.isa_ext != ZYDIS_ISA_EXT_BASE; }
  bool loads_segment(int segment) const {
    const ZydisRegister reg = segment == kFs   ? ZYDIS_REGISTER_FS
                              : segment == kGs ? ZYDIS_REGISTER_GS
                                               : ZYDIS_REGISTER_SS;
    for (unsigned i = 0; defined && i < instruction.operand_count; ++i) {
      const ZydisDecodedOperand& o = operands[i];
      if (o.type == ZYDIS_OPERAND_TYPE_REGISTER && o.reg.value == reg &&
          (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
        return true;
      }
    }
    return false;
  }

  bool defined = false;
  ZydisDecodedInstruction instruction{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands{};
  std::uint32_t undefined = 0;  ///< arithmetic flags
  std::string text = "undefined";
};

WideLockStep::WideLockStep(ExecutionPath path, std::uint64_t seed)
    : guest_(seed),
      host_(WideGuest::kRam, WideGuest::pages()),
      world_(path),
      machine_(std::make_unique<Machine>(CpuModel::x86_64, BusModel{}, world_, &world_, path)),
      seed_(seed) {
  machine_->set_polling(path == ExecutionPath::instructions);
}

WideLockStep::~WideLockStep() = default;

StepEnd WideLockStep::step_replay(unsigned instructions) {
  StepEnd end = replay_step(*machine_, world_, instructions);
  if (end.kind == StepEnd::Kind::exception) take_frame(end);
  return end;
}

/// The frame on the kernel's stack has the rest of the registers that the exception found (SDM vol.
/// 3, 6.14.2).
void WideLockStep::take_frame(StepEnd& end) const {
  const DeliveredEvent& event = world_.delivered().back();
  end.vector = event.vector;
  end.error_code = event.error_code;
  end.cr2 = value(end.cpu, "cr2");
  const bool software = event.kind == DeliveredEvent::Kind::software;
  const unsigned words = has_error_code(event.vector) && !software ? 6 : 5;
  const std::uint32_t frame = WideGuest::kKernelStack - 8 * words;
  if (world_.delivered().size() != 1 || value(end.cpu, "rsp") != WideGuest::kSystem + frame) {
    end.kind = StepEnd::Kind::not_comparable;
    end.why = "the replay delivers more than one exception";
    return;
  }
  std::array<std::uint64_t, 6> w{};
  std::memcpy(w.data() + (6 - words),
              machine_->memory().host(PhysAddr{WideGuest::kSystemFrames + frame}), 8 * words);
  set_register(end.cpu, "rip", w[1]);
  set_register(end.cpu, "cs", w[2]);
  set_register(end.cpu, "rflags", w[3]);
  set_register(end.cpu, "rsp", w[4]);
  set_register(end.cpu, "ss", w[5]);
}

StepEnd WideLockStep::step_host(const CpuState& before, const Facts& facts) {
  constexpr unsigned kMaxIterations = 0x4000;
  StepEnd end;
  end.cpu = before;
  const std::uint64_t rip = value(before, "rip");
  const std::uint32_t at = WideGuest::physical(rip);
  for (unsigned iteration = 0; iteration < kMaxIterations; ++iteration) {
    const HostProcessor::Step step = host_.step(end.cpu, true);
    end.vector = step.vector;
    end.error_code = step.error_code;
    end.cr2 = step.cr2;
    if (step.end == HostProcessor::Step::End::other) {
      end.why = "the host: " + step.why;
      return end;
    }
    const bool stepped = step.end == HostProcessor::Step::End::stepped;
    end.kind = stepped ? StepEnd::Kind::retired : StepEnd::Kind::exception;
    if (!stepped || !facts.repeats() || value(end.cpu, "rip") != rip) return end;
    if (at == WideGuest::kRam || std::memcmp(&host_.ram()[at], &guest_.ram()[at], 4) != 0) break;
  }
  end.kind = StepEnd::Kind::not_comparable;
  end.why = "a repeated string that is long or stores over itself";
  return end;
}

/// The single step is made with TF set, and ID is what it is in the child: PUSHF shows both.
void WideLockStep::clear_own_flags(const Facts& facts, const StepEnd& host) {
  if (host.kind != StepEnd::Kind::retired ||
      !(facts.is(ZYDIS_MNEMONIC_PUSHFQ) || facts.is(ZYDIS_MNEMONIC_PUSHF))) {
    return;
  }
  const std::uint64_t rsp = value(host.cpu, "rsp");
  const auto clear = [&](std::uint32_t byte, std::uint8_t bit) {
    const std::uint32_t at = WideGuest::physical(rsp + byte);
    if (at != WideGuest::kRam) host_.ram()[at] &= static_cast<std::uint8_t>(~bit);
  };
  clear(1, 0x01);
  if (facts.is(ZYDIS_MNEMONIC_PUSHFQ)) clear(2, 0x20);
}

/// What the replay changed without noting it.
bool WideLockStep::repair_memory() {
  bool changed = false;
  for (std::uint32_t at = 0; at < WideGuest::kRam; at += kPageSize) {
    std::uint8_t* const page = machine_->memory().host(PhysAddr{at});
    if (std::memcmp(page, &guest_.ram()[at], kPageSize) == 0) continue;
    changed = true;
    std::memcpy(page, &guest_.ram()[at], kPageSize);
  }
  return changed;
}

/// The state and the memory that is its own, on both sides.
void WideLockStep::begin(const CpuState& state) {
  const std::vector<std::uint8_t>& ram = guest_.ram();
  if (!loaded_) {
    base_ = ram;
    for (std::uint32_t at = 0; at < WideGuest::kMachineRam; at += kPageSize) {
      image_.set(PhysAddr{at}, std::span(base_).subspan(at, kPageSize));
    }
    machine_->load(state, image_);
    loaded_ = machine_->snapshot();
  }
  Machine::Snapshot start = *loaded_;
  start.cpu = state;
  for (std::uint32_t at = 0; at < WideGuest::kRam; at += kPageSize) {
    if (std::memcmp(&ram[at], &base_[at], kPageSize) == 0) continue;
    const auto page = std::make_shared<Memory::SavedPage>();
    page->number = at / kPageSize;
    std::memcpy(page->data.data(), &ram[at], kPageSize);
    page->defined.set();
    start.pages.push_back(page);
  }
  machine_->restore(start, image_);
  unnoticed_ = repair_memory();
  std::memcpy(host_.ram().data(), ram.data(), WideGuest::kRam);
}

std::vector<std::string> WideLockStep::differences(const Facts& facts, const StepEnd& replay,
                                                   const StepEnd& host) {
  std::vector<std::string> out;
  if (replay.kind != host.kind ||
      (host.kind == StepEnd::Kind::exception && replay.vector != host.vector)) {
    return {"end"};
  }
  if (host.kind == StepEnd::Kind::exception) {
    constexpr std::uint8_t kPageFault = 14;
    // Linux tells nobody which addresses beyond those of programs are there.
    constexpr std::uint64_t kProgramsEnd = 0x7ffffffff000;
    const std::uint32_t told = host.vector == kPageFault && host.cr2 >= kProgramsEnd ? ~1u : ~0u;
    if (has_error_code(host.vector) && ((replay.error_code ^ host.error_code) & told) != 0) {
      out.push_back("error code");
    }
    if (host.vector == kPageFault && replay.cr2 != host.cr2) out.push_back("cr2");
  }
  for (const char* const name : kWideRegisters) {
    if (value(replay.cpu, name) != value(host.cpu, name)) out.push_back("register");
  }
  if (value(replay.cpu, "rip") != value(host.cpu, "rip")) out.push_back("rip");
  const bool retired = host.kind == StepEnd::Kind::retired;
  const std::uint32_t flags = kCompared & ~(retired ? facts.undefined : 0);
  const auto eflags =
      static_cast<std::uint32_t>(value(replay.cpu, "rflags") ^ value(host.cpu, "rflags")) & flags;
  if (eflags != 0) {
    char text[20];
    std::snprintf(text, sizeof text, "flags %x", eflags);
    out.push_back(text);
  }
  for (const auto& [i, name] : kWideSelectors) {
    const auto at = static_cast<std::size_t>(i);
    if (replay.cpu.segment[at].selector != host.cpu.segment[at].selector) out.push_back(name);
  }
  for (const char* const name : {"fs.base", "gs.base"}) {
    // An AMD's processor leaves the base where it loads an empty selector.
    const bool loads = facts.loads_segment(name[0] == 'f' ? kFs : kGs);
    if (!loads && value(replay.cpu, name) != value(host.cpu, name)) out.push_back(name);
  }
  constexpr std::size_t kXmm = 160, kEnd = 416, kX87 = 32;
  if (!std::equal(replay.cpu.fx.begin() + kXmm, replay.cpu.fx.begin() + kEnd,
                  host.cpu.fx.begin() + kXmm)) {
    out.push_back("xmm");
  }
  for (std::size_t r = 0; r < 8; ++r) {
    const auto at = static_cast<std::ptrdiff_t>(kX87 + 16 * r);
    if (!std::equal(replay.cpu.fx.begin() + at, replay.cpu.fx.begin() + at + 10,
                    host.cpu.fx.begin() + at)) {
      out.push_back("st");
      break;
    }
  }
  constexpr std::size_t kTags = 5, kMxcsr = 24, kMxcsrEnd = 28;
  if (!std::equal(replay.cpu.fx.begin(), replay.cpu.fx.begin() + kTags, host.cpu.fx.begin())) {
    out.push_back("x87 words");
  }
  if (!std::equal(replay.cpu.fx.begin() + kMxcsr, replay.cpu.fx.begin() + kMxcsrEnd,
                  host.cpu.fx.begin() + kMxcsr)) {
    out.push_back("mxcsr");
  }
  for (std::uint32_t at = 0; at < WideGuest::kRam; at += kPageSize) {
    if (std::memcmp(machine_->memory().host(PhysAddr{at}), &host_.ram()[at], kPageSize) == 0) {
      continue;
    }
    out.push_back("memory");
    break;
  }
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string WideLockStep::text(const CpuState& before, const Facts& facts, const StepEnd& replay,
                               const StepEnd& host) {
  const auto hex = [](std::uint64_t v) {
    char text[20];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(v));
    return std::string(text);
  };
  std::string out = facts.text;
  const auto show_end = [&](const char* who, const StepEnd& end) {
    out += std::string("\n      ") + who;
    if (end.kind == StepEnd::Kind::exception) {
      out += " vector " + std::to_string(end.vector) + " error " + hex(end.error_code) + " cr2 " +
             hex(end.cr2);
    }
    for (const char* const name : kWideRegisters) {
      const std::uint64_t now = value(end.cpu, name);
      if (now != value(before, name)) out += std::string(" ") + name + "=" + hex(now);
    }
    out += " rip=" + hex(value(end.cpu, "rip")) + " rflags=" + hex(value(end.cpu, "rflags"));
  };
  out += "\n      before";
  for (const char* const name : kWideRegisters) {
    out += std::string(" ") + name + "=" + hex(value(before, name));
  }
  out += " rip=" + hex(value(before, "rip")) + " rflags=" + hex(value(before, "rflags"));
  show_end("replay", replay);
  show_end("host", host);
  return out;
}

/// The rule of docs/silicon.md that explains all of the difference; null where none does.
const char* WideLockStep::rule_of(const Facts& facts, const std::vector<std::string>& found,
                                  const StepEnd& host) {
  // The limit's upper bits are undefined (SDM vol. 2, LAR).
  if (facts.is(ZYDIS_MNEMONIC_LAR) && found.size() == 1 && found[0] == "register") {
    return "lar-limit-bits";
  }
  const bool double_shift = facts.is(ZYDIS_MNEMONIC_SHLD) || facts.is(ZYDIS_MNEMONIC_SHRD);
  if (double_shift && facts.instruction.operand_width == 16) return "double-shift-beyond-16";
  if (host.kind != StepEnd::Kind::exception || found.size() != 1) return nullptr;
  // The host fetches what follows an undefined instruction at the end of a page.
  constexpr std::uint32_t kFetch = 16;
  const bool fetches = host.vector == 14 && (host.error_code & kFetch) != 0;
  if (!facts.defined && fetches && found[0] == "end") return "undefined-length";
  const bool other_fault = found[0] == "end" || found[0] == "cr2" || found[0] == "error code";
  switch (facts.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CMPSB:
    case ZYDIS_MNEMONIC_CMPSW:
    case ZYDIS_MNEMONIC_CMPSD:
    case ZYDIS_MNEMONIC_CMPSQ:
      return other_fault ? "cmps-order" : nullptr;
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS:
      return other_fault ? "far-pointer-order" : nullptr;
    case ZYDIS_MNEMONIC_FRSTOR:
    case ZYDIS_MNEMONIC_FLDENV:
      return other_fault ? "image-order" : nullptr;
    case ZYDIS_MNEMONIC_ENTER:
      return found[0] == "memory" ? "enter-partial" : nullptr;
    default:
      return nullptr;
  }
}

void WideLockStep::step(const CpuState& state, const std::string& name, StepCounts& counts) {
  begin(state);
  if (unnoticed_) {
    StepCounts::Unexplained& all = counts.unexplained["memory changed unnoticed"];
    if (all.count++ == 0) all.first = last_;
  }
  const CpuState before = machine_->save();
  const Facts facts(guest_.instruction());
  last_ = name + ": " + facts.text;
  StepEnd replay = step_replay(1);
  // A load of SS holds the trap of the single step off until after the next instruction.
  if (replay.kind == StepEnd::Kind::retired && facts.is(ZYDIS_MNEMONIC_MOV) &&
      facts.loads_segment(kSs)) {
    replay = step_replay(1);
  }
  if (replay.kind == StepEnd::Kind::not_comparable) {
    ++counts.not_comparable[replay.why];
    return;
  }
  if (alter_) alter_(replay.cpu);
  const StepEnd host = step_host(before, facts);
  if (host.kind == StepEnd::Kind::not_comparable) {
    ++counts.not_comparable[host.why];
    return;
  }
  clear_own_flags(facts, host);
  ++counts.ends[host.kind == StepEnd::Kind::retired ? "retired"
                                                    : "vector " + std::to_string(host.vector)];
  const std::vector<std::string> found = differences(facts, replay, host);
  if (found.empty()) {
    ++counts.equal;
    return;
  }
  if (const char* const rule = rule_of(facts, found, host)) {
    ++counts.rules[rule];
    return;
  }
  std::string key = facts.mnemonic();
  for (const std::string& difference : found) key += " " + difference;
  StepCounts::Unexplained& all = counts.unexplained[key];
  if (all.count++ == 0) all.first = name + ": " + text(before, facts, replay, host);
}

void WideLockStep::run(WideMode mode, std::uint64_t steps, StepCounts& counts) {
  for (std::uint64_t n = 0; n < steps; ++n) {
    char name[60];
    std::snprintf(name, sizeof name, "seed %llu step %llu", static_cast<unsigned long long>(seed_),
                  static_cast<unsigned long long>(n));
    step(guest_.next(mode), name, counts);
  }
}

}  // namespace citcat::silicon
