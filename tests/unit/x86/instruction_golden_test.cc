// The decoder's operands against an independent machine: for every instruction of the captures'
// ground truth, the accesses predicted from the registers before it must be those that happened.
//
// Left out, because the accesses depend on more than registers (the machine makes them, not the
// decoder): INT n, IRET, far transfers and task-register loads in protected mode, instructions
// that end in an event, descriptor reads of segment loads, and the first instruction after an event
// (the delivery moved ESP, and the truth tells registers only after instructions).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "unit/x86/golden_trace.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {
namespace {

using test::GoldenAccess;
using test::GoldenStep;
using test::GoldenTrace;
using Kind = InstructionClass;

/// One byte of one access; comparing bytes makes the result independent of how a machine splits
/// long or unaligned accesses.
struct AccessByte {
  std::uint32_t linear;
  bool write;
  bool operator==(const AccessByte&) const = default;
  auto operator<=>(const AccessByte&) const = default;
};

/// What the test itself must follow from the ground truth: mode, segment bases, stack width.
class FollowedState {
 public:
  explicit FollowedState(std::map<std::string, std::uint32_t> state) {
    constexpr std::array<const char*, 8> kGpr = {"eax", "ecx", "edx", "ebx",
                                                 "esp", "ebp", "esi", "edi"};
    constexpr std::array<const char*, 6> kSegments = {"es", "cs", "ss", "ds", "fs", "gs"};
    for (std::size_t i = 0; i < 8; ++i) gpr[i] = state[kGpr[i]];
    for (std::size_t i = 0; i < 6; ++i) base[i] = state[std::string(kSegments[i]) + "_base"];
    bits32 = (state["cs_attr"] >> 14 & 1) != 0;
    stack32 = (state["ss_attr"] >> 14 & 1) != 0;
    cr0 = state["cr0"];
    gdt_base = state["gdtr_base"];
    gdt_limit = state["gdtr_limit"];
    eflags = state["eflags"];
  }

  bool protected_mode() const { return (cr0 & 1) != 0 && (eflags >> 17 & 1) == 0; }
  CodeMode mode() const { return CodeMode{bits32, !protected_mode()}; }
  bool in_gdt(std::uint32_t linear) const { return linear - gdt_base <= gdt_limit; }

  void take_registers(const GoldenStep& step) {
    for (std::size_t i = 0; i < 8; ++i) gpr[i] = step.gpr[i];
    eflags = step.eflags;
  }

  void load_segment(unsigned segment, std::uint16_t selector, const GoldenStep& step) {
    if (!protected_mode()) {
      base[segment] = std::uint32_t{selector} << 4;
      if (segment == kCs) bits32 = false;
      return;
    }
    if ((selector & 0xfffc) == 0) {
      base[segment] = 0;
      return;
    }
    for (const GoldenAccess& access : step.accesses) {
      if (access.write || access.size != 8 || !in_gdt(access.linear)) continue;
      const auto& d = access.data;
      base[segment] = static_cast<std::uint32_t>(d[2]) | static_cast<std::uint32_t>(d[3]) << 8 |
                      static_cast<std::uint32_t>(d[4]) << 16 |
                      static_cast<std::uint32_t>(d[7]) << 24;
      const bool wide = (d[6] & 0x40) != 0;
      if (segment == kSs) stack32 = wide;
      if (segment == kCs) bits32 = wide;
    }
  }

  std::array<std::uint64_t, 8> gpr{};
  std::array<std::uint64_t, 6> base{};
  bool bits32 = false, stack32 = false;
  std::uint32_t cr0 = 0, gdt_base = 0, gdt_limit = 0, eflags = 0;
};

/// Bytes of the ground truth's accesses at increasing position, for reading values across splits.
std::uint32_t read_value(const GoldenStep& step, unsigned skip, unsigned size) {
  std::vector<std::uint8_t> bytes;
  for (const GoldenAccess& access : step.accesses) {
    if (!access.write)
      bytes.insert(bytes.end(), access.data.begin(), access.data.begin() + access.size);
  }
  std::uint32_t value = 0;
  for (unsigned i = 0; i < size && skip + i < bytes.size(); ++i) {
    value |= static_cast<std::uint32_t>(bytes[skip + i]) << (8 * i);
  }
  return value;
}

class GoldenComparison {
 public:
  GoldenComparison(const std::string& folder, CpuModel model)
      : state_(test::load_machine_state(folder + "/initial_state.csv")),
        trace_(folder + "/golden.bin.zst"),
        model_(model) {}

  void run() {
    while (std::optional<GoldenStep> step = trace_.next()) {
      entered_by_event_ = step->event_before || left_by_event_;
      if (entered_by_event_) follow_event();
      state_.base[kCs] = step->linear - step->eip;
      ++seen;
      check(*step);
      if (!step->completed && !step->event) break;  // ground truth goes on without registers
      follow(*step);
      left_by_event_ = step->event && !step->completed;
      if (failures > 3) break;
    }
  }

  std::uint64_t seen = 0, compared = 0, with_memory = 0, bytes = 0, excluded = 0, failures = 0;
  std::map<std::string, std::uint64_t> excluded_by;

 private:
  void check(const GoldenStep& step) {
    info_ = decode_instruction(std::span(step.bytes).first(15), state_.mode(), model_);
    if (info_.state != DecodeState::ok) {
      if (!step.event) fail(step, "decoded as invalid");
      return exclude("raises an exception");
    }
    if (info_.length != step.length && step.completed) return fail(step, "length");
    if (step.event && !info_.is_repeated()) return exclude("ends in an event");
    if (entered_by_event_) return exclude("first after an event");
    if (made_by_machine()) return exclude("system transfer in protected mode");
    compare(step);
  }

  bool made_by_machine() const {
    switch (info_.kind) {
      case Kind::iret:
      case Kind::far_call:
      case Kind::far_jump:
      case Kind::far_return:
      case Kind::ltr:
      case Kind::lldt:
        return state_.protected_mode();
      case Kind::int_n:
      case Kind::int3:
      case Kind::into:
      case Kind::icebp:
      case Kind::sysenter:
      case Kind::sysexit:
      case Kind::rsm:
        return true;
      default:
        return false;
    }
  }

  void exclude(const std::string& why) {
    ++excluded;
    ++excluded_by[why];
  }

  std::vector<AccessByte> happened(const GoldenStep& step) const {
    const bool loads_segment = info_.kind == Kind::pop_segment ||
                               info_.kind == Kind::mov_to_segment ||
                               info_.kind == Kind::load_far_pointer;
    std::vector<AccessByte> list;
    for (const GoldenAccess& access : step.accesses) {
      if (loads_segment && state_.protected_mode() && state_.in_gdt(access.linear)) continue;
      for (std::uint32_t i = 0; i < access.size; ++i)
        list.push_back({access.linear + i, access.write});
    }
    return list;
  }

  /// One iteration from the registers given.
  void predict(const std::array<std::uint64_t, 8>& regs, bool writes_happen,
               std::vector<AccessByte>& list) const {
    for_each_access(info_, regs.data(), state_.base.data(), state_.stack32,
                    [&](const DataAccess& access) {
                      const MemoryOperand& operand = info_.operands[access.operand];
                      if (access.write && operand.conditional_write && !writes_happen) return;
                      for (std::uint32_t i = 0; i < access.size; ++i) {
                        list.push_back({access.linear.plus32(i).low32(), access.write});
                      }
                    });
  }

  void compare(const GoldenStep& step) {
    const std::vector<AccessByte> truth = happened(step);
    std::vector<AccessByte> prediction;
    if (info_.kind == Kind::string || info_.kind == Kind::ins || info_.kind == Kind::outs) {
      predict_string(truth.size(), prediction);
    } else {
      const bool any_write =
          std::any_of(truth.begin(), truth.end(), [](AccessByte b) { return b.write; });
      predict(state_.gpr, any_write, prediction);
    }
    ++compared;
    with_memory += truth.empty() ? 0 : 1;
    bytes += truth.size();
    const bool partial = step.event && prediction.size() > truth.size();
    if (partial) prediction.resize(truth.size());
    if (loads_image()) {
      std::sort(prediction.begin(), prediction.end());
      std::vector<AccessByte> sorted = truth;
      std::sort(sorted.begin(), sorted.end());
      const bool inside =
          std::includes(prediction.begin(), prediction.end(), sorted.begin(), sorted.end());
      if (!inside || sorted.front() != prediction.front() || sorted.back() != prediction.back()) {
        report(step, truth, prediction, "image");
      }
    } else if (prediction != truth) {
      std::vector<AccessByte> a = prediction, b = truth;
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      report(step, truth, prediction, a == b ? "order" : "accesses");
    }
  }

  /// FLDENV, FRSTOR, FXRSTOR: one operand to us. The machine of the captures reads the environment
  /// backwards and skips reserved bytes, so order and completeness are not compared.
  bool loads_image() const {
    if (info_.kind == Kind::fxrstor) return true;
    const bool is_x87_load =
        info_.kind == Kind::x87 && !info_.register_form && info_.reg_field == 4;
    return is_x87_load && (info_.opcode == 0xd9 || info_.opcode == 0xdd);
  }

  /// Iterations until as many bytes are predicted as the truth has: the count itself follows from
  /// flags and data, which are the engine's business.
  void predict_string(std::size_t wanted, std::vector<AccessByte>& prediction) const {
    std::array<std::uint64_t, 8> regs = state_.gpr;
    const std::uint32_t step = info_.operand_bytes * ((state_.eflags >> 10 & 1) != 0 ? ~0u : 1u);
    const std::uint64_t limit = info_.is_repeated() ? ~std::uint64_t{0} : 1;
    for (std::uint64_t i = 0; i < limit && prediction.size() < wanted; ++i) {
      predict(regs, true, prediction);
      for (const Gpr reg : {kEsi, kEdi}) {
        const auto next = static_cast<std::uint32_t>(regs[reg]) + step;
        regs[reg] = info_.address_bits == 32 ? next : (regs[reg] & 0xffff0000) | (next & 0xffff);
      }
    }
  }

  void fail(const GoldenStep& step, const char* what) { report(step, {}, {}, what); }

  void report(const GoldenStep& step, const std::vector<AccessByte>& truth,
              const std::vector<AccessByte>& prediction, const char* what) {
    ++failures;
    std::string text = std::string(what) + " at icount " + std::to_string(step.icount) + " bytes";
    char buffer[32];
    for (unsigned i = 0; i < step.length; ++i) {
      std::snprintf(buffer, sizeof buffer, " %02x", step.bytes[i]);
      text += buffer;
    }
    const auto list = [&](const char* title, const std::vector<AccessByte>& bytes_list) {
      text += title;
      for (std::size_t i = 0; i < bytes_list.size() && i < 12; ++i) {
        std::snprintf(buffer, sizeof buffer, " %c%x", bytes_list[i].write ? 'W' : 'R',
                      bytes_list[i].linear);
        text += buffer;
      }
    };
    list("\n  happened: ", truth);
    list("\n  predicted:", prediction);
    ADD_FAILURE() << text;
  }

  // --- following the machine ---------------------------------------------------------------------

  /// After interrupts: flat Linux segments, or a real-mode handler. CS's base is in the truth.
  void follow_event() {
    if (state_.protected_mode()) {
      state_.base[kSs] = 0;
      state_.stack32 = state_.bits32 = true;
    }
  }

  void follow(const GoldenStep& step) {
    if (step.event && !step.completed) return follow_event();
    if (info_.state == DecodeState::ok) follow_segments(step);
    const std::array<std::uint64_t, 8> before = state_.gpr;
    if (step.completed) state_.take_registers(step);
    if (info_.state != DecodeState::ok) return;
    if (info_.kind == Kind::mov_to_cr && info_.reg_field == 0) {
      state_.cr0 = static_cast<std::uint32_t>(before[info_.rm_field]);
    }
    if (info_.kind == Kind::lmsw && info_.register_form) {
      state_.cr0 =
          (state_.cr0 & ~0xeu) | (static_cast<std::uint32_t>(before[info_.rm_field]) & 0xf);
    }
    if (info_.kind == Kind::lgdt) {
      state_.gdt_limit = read_value(step, 0, 2);
      state_.gdt_base = read_value(step, 2, 4);
    }
  }

  /// The upper word of the far pointer that was read, in whatever order.
  std::uint16_t pointer_selector(const GoldenStep& step) const {
    std::map<std::uint32_t, std::uint8_t> bytes_read;
    for (const GoldenAccess& access : step.accesses) {
      if (state_.protected_mode() && state_.in_gdt(access.linear)) continue;
      for (std::uint32_t i = 0; i < access.size; ++i)
        bytes_read[access.linear + i] = access.data[i];
    }
    if (bytes_read.size() < 2) return 0;
    const auto high = bytes_read.rbegin();
    return static_cast<std::uint16_t>(std::next(high)->second | high->second << 8);
  }

  void follow_segments(const GoldenStep& step) {
    const unsigned segment = info_.reg_field;
    switch (info_.kind) {
      case Kind::mov_to_segment:
        state_.load_segment(
            segment,
            static_cast<std::uint16_t>(info_.register_form ? state_.gpr[info_.rm_field]
                                                           : read_value(step, 0, 2)),
            step);
        break;
      case Kind::pop_segment:
        state_.load_segment(segment, static_cast<std::uint16_t>(read_value(step, 0, 2)), step);
        break;
      case Kind::load_far_pointer:
        state_.load_segment(segment, pointer_selector(step), step);
        break;
      case Kind::far_jump:
      case Kind::far_call:
        state_.load_segment(kCs, info_.far_selector, step);
        break;
      case Kind::iret:
      case Kind::int_n:
      case Kind::sysenter:
      case Kind::sysexit:
        follow_event();
        break;
      default:
        break;
    }
  }

  FollowedState state_;
  GoldenTrace trace_;
  CpuModel model_;
  DecodedInstruction info_;
  bool entered_by_event_ = false, left_by_event_ = false;
};

class InstructionGolden : public testing::TestWithParam<const char*> {};

TEST_P(InstructionGolden, PredictsEveryAccessFromTheRegistersBefore) {
  const std::string shared = test::shared_data_folder();
  const std::string folder = shared + "/data/machine/" + GetParam();
  if (shared.empty() || !std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no capture " << GetParam() << " (set CITCAT_SHARED)";
  }
  const bool is_486 = std::string(GetParam()).rfind("bios486", 0) == 0;
  GoldenComparison comparison(folder, is_486 ? CpuModel::i486 : CpuModel::p6);
  comparison.run();
  std::printf("%s: %llu instructions, %llu compared, %llu with memory, %llu bytes, %llu excluded\n",
              GetParam(), static_cast<unsigned long long>(comparison.seen),
              static_cast<unsigned long long>(comparison.compared),
              static_cast<unsigned long long>(comparison.with_memory),
              static_cast<unsigned long long>(comparison.bytes),
              static_cast<unsigned long long>(comparison.excluded));
  for (const auto& [why, count] : comparison.excluded_by) {
    std::printf("  excluded: %s %llu\n", why.c_str(), static_cast<unsigned long long>(count));
  }
  EXPECT_EQ(comparison.failures, 0u);
  EXPECT_GT(comparison.compared, comparison.seen * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Captures, InstructionGolden,
                         testing::Values("bios486_tiny", "p3_post_tiny", "lin_kentry_tiny",
                                         "lin_user_tiny", "lin_rcp_tiny", "p4_user_tiny",
                                         "bios486_small", "lin_procs_small", "lin_user_small",
                                         "lin_disk_small", "lin_fpu_small", "lin_kboot_small",
                                         "mt_start_small"));

}  // namespace
}  // namespace citcat
