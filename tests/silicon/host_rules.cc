#include "silicon/host_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace citcat::silicon {
namespace {

constexpr std::uint32_t kCf = 0x001, kPf = 0x004, kAf = 0x010, kZf = 0x040, kSf = 0x080,
                        kTf = 0x100, kOf = 0x800, kRf = 0x10000, kId = 0x200000;
constexpr std::uint32_t kArithmetic = kCf | kPf | kAf | kZf | kSf | kOf;

const char* kGprNames[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
const char* kSegmentNames[] = {"es", "cs", "ss", "ds", "fs", "gs"};

unsigned width_of(const StepInstruction& i, bool byte) { return byte ? 8 : i.wide ? 32 : 16; }

/// Flags of shifts and rotates (SDM vol. 2, SAL/SAR/SHL/SHR and RCL/RCR/ROL/ROR, "Flags Affected").
std::uint32_t undefined_of_shift(const StepInstruction& i, unsigned count, unsigned width) {
  count &= 31;
  if (count == 0) return 0;
  std::uint32_t undefined = count == 1 ? 0 : kOf;
  if (i.reg() < 4) return undefined;
  undefined |= kAf;
  if (i.reg() != 7 && count >= width) undefined |= kCf;
  return undefined;
}

/// Flags of SHLD and SHRD; all, where the count exceeds the operand (SDM vol. 2).
std::uint32_t undefined_of_double_shift(unsigned count, unsigned width) {
  count &= 31;
  if (count == 0) return 0;
  if (count > width) return kArithmetic;
  return count == 1 ? kAf : kAf | kOf;
}

std::uint32_t undefined_in_group3(const StepInstruction& i) {
  switch (i.reg()) {
    case 0:
    case 1:
      return kAf;  // TEST
    case 4:
    case 5:
      return kSf | kZf | kAf | kPf;  // MUL, IMUL
    case 6:
    case 7:
      return kArithmetic;  // DIV, IDIV
    default:
      return 0;
  }
}

std::uint32_t undefined_one_byte(const StepInstruction& i, const CpuState& before,
                                 std::uint8_t immediate) {
  const std::uint8_t op = i.opcode;
  if (op < 0x40 && (op & 7) < 6) {
    const unsigned operation = op >> 3;
    return operation == 1 || operation == 4 || operation == 6 ? kAf : 0;  // OR, AND, XOR
  }
  switch (op) {
    case 0x27:
    case 0x2f:
      return kOf;  // DAA, DAS
    case 0x37:
    case 0x3f:
      return kOf | kSf | kZf | kPf;  // AAA, AAS
    case 0xd4:
    case 0xd5:
      return kOf | kAf | kCf;  // AAM, AAD
    case 0x69:
    case 0x6b:
      return kSf | kZf | kAf | kPf;  // IMUL
    case 0x80:
    case 0x81:
    case 0x82:
    case 0x83:
      return i.reg() == 1 || i.reg() == 4 || i.reg() == 6 ? kAf : 0;
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9:
      return kAf;  // TEST
    case 0xc0:
    case 0xc1:
      return undefined_of_shift(i, immediate, width_of(i, op == 0xc0));
    case 0xd0:
    case 0xd1:
      return undefined_of_shift(i, 1, width_of(i, op == 0xd0));
    case 0xd2:
    case 0xd3:
      return undefined_of_shift(i, before.gpr[kEcx], width_of(i, op == 0xd2));
    case 0xf6:
    case 0xf7:
      return undefined_in_group3(i);
    default:
      return 0;
  }
}

std::uint32_t undefined_two_byte(const StepInstruction& i, const CpuState& before,
                                 std::uint8_t immediate) {
  switch (i.opcode) {
    case 0xa3:
    case 0xab:
    case 0xb3:
    case 0xbb:
    case 0xba:
      return kOf | kSf | kAf | kPf;  // BT and its kin
    case 0xa4:
    case 0xac:
      return undefined_of_double_shift(immediate, width_of(i, false));
    case 0xa5:
    case 0xad:
      return undefined_of_double_shift(before.gpr[kEcx], width_of(i, false));
    case 0xaf:
      return kSf | kZf | kAf | kPf;  // IMUL
    case 0xbc:
    case 0xbd:
      return kArithmetic & ~kZf;  // BSF, BSR
    default:
      return 0;
  }
}

class Judge {
 public:
  explicit Judge(const StepComparison& c) : c_(c) {}

  StepVerdict run() {
    compare_ends();
    if (verdict_.differences.empty() && verdict_.rules.empty()) {
      compare_registers();
      compare_flags();
      compare_segments();
      if (c_.floating_point) compare_floating_point();
    }
    if (verdict_.rules.empty()) compare_memory();
    describe();
    return std::move(verdict_);
  }

 private:
  void differs(const std::string& kind, const std::string& text) {
    kinds_.insert(kind);
    verdict_.differences.push_back(text);
  }
  void rule(const std::string& name) {
    if (std::find(verdict_.rules.begin(), verdict_.rules.end(), name) == verdict_.rules.end()) {
      verdict_.rules.push_back(name);
    }
  }
  bool retired() const { return c_.host.kind == StepEnd::Kind::retired; }

  bool one_byte(std::initializer_list<int> opcodes) const {
    return !c_.instruction.two_byte &&
           std::find(opcodes.begin(), opcodes.end(), c_.instruction.opcode) != opcodes.end();
  }
  bool two_byte(std::initializer_list<int> opcodes) const {
    return c_.instruction.two_byte &&
           std::find(opcodes.begin(), opcodes.end(), c_.instruction.opcode) != opcodes.end();
  }
  bool faults(std::uint8_t vector) const { return !retired() && c_.host.vector == vector; }

  /// PUSH of a segment register with 32-bit operand: newer processors write two bytes of the four
  /// (SDM vol. 2, PUSH), AMD's write zeros above (APM vol. 3, PUSH).
  bool is_upper_half_of_segment_push() const {
    if (!retired() || !c_.instruction.wide || c_.memory.empty() || c_.memory.size() > 2) {
      return false;
    }
    if (!one_byte({0x06, 0x0e, 0x16, 0x1e}) && !two_byte({0xa0, 0xa8})) return false;
    return std::all_of(c_.memory.begin(), c_.memory.end(),
                       [&](std::uint32_t at) { return c_.host_ram[at] == 0; });
  }

  /// An access or a fetch that goes on at 0 behind the last byte of a segment of 4 GiB: SDM vol. 3,
  /// 5.3, leaves it to the implementation; AMD's refuse it.
  bool goes_beyond_4_gib() const {
    const auto near_the_end = [](std::uint32_t offset) { return offset + 0x80 < 0x100; };
    const CpuState& s = c_.before;
    // Or of an operand that is longer than what one access takes, part by part.
    const bool x87 = !c_.instruction.two_byte && (c_.instruction.opcode & 0xf8) == 0xd8;
    if (x87 && near_the_end(c_.instruction.address)) return true;
    if ((c_.host.vector != 12 && c_.host.vector != 13) || c_.host.error_code != 0) return false;
    // A page fault is of the part that stands at 0, a divide error of what was read there.
    const bool later = c_.replay.vector == 14 || c_.replay.vector == 0;
    if (c_.replay.kind == StepEnd::Kind::exception && !later) return false;
    return s.eip > 0xfffffff0 || near_the_end(s.gpr[kEsp]) || near_the_end(s.gpr[kEsi]) ||
           near_the_end(s.gpr[kEdi]) || near_the_end(s.gpr[kEbp]) ||
           near_the_end(c_.instruction.address);
  }

  /// Which fault comes first in instructions that read or write more than one place. No manual
  /// says; the replay has the order of the machines that its recordings are of (docs/fidelity.md).
  const char* rule_of_order() const {
    const StepEnd &a = c_.replay, &b = c_.host;
    if (pushes_too_early() && a.kind == b.kind && a.vector == 13) return "far-call-partial";
    // POP of a segment register with 32-bit operand reads all four bytes.
    if (faults(12) && c_.instruction.wide &&
        (one_byte({0x07, 0x17, 0x1f}) || two_byte({0xa1, 0xa9}))) {
      return "segment-pop";
    }
    // An instruction that LOCK is refused on is refused after its operand.
    if (c_.instruction.lock && two_byte({0x00}) && a.vector == 6) return "lock-order";
    // ARPL reads its operand before it asks for the right to write it, and only if it does.
    if (one_byte({0x63})) return "arpl-order";
    if (retired() || a.kind != b.kind) return nullptr;
    // Far returns look at the outer stack before they look at the selector.
    if (one_byte({0xca, 0xcb}) && (b.vector == 12 || b.vector == 14)) return "far-return-order";
    if (one_byte({0xcf}) && (b.vector == 12 || b.vector == 14)) return "iret-order";
    if (one_byte({0xa6, 0xa7})) return "cmps-order";
    if (a.vector != 14 || b.vector != 14) return nullptr;
    if (one_byte({0xc4, 0xc5}) || two_byte({0xb2, 0xb4, 0xb5})) return "far-pointer-order";
    return nullptr;
  }

  /// How many bytes of an undefined instruction are fetched: one that ends behind the end of the
  /// segment or of a page is refused for that.
  bool is_undefined_at_an_end() const {
    const StepEnd &a = c_.replay, &b = c_.host;
    if (retired() || a.kind != b.kind || (a.vector != 6 && b.vector != 6)) return false;
    const std::uint32_t limit = c_.before.segment[kCs].limit;
    const bool ends = limit - c_.before.eip < 15 || c_.instruction.available < 15;
    return ends && (a.vector == 13 || b.vector == 13 || a.vector == 14 || b.vector == 14);
  }

  /// The last descriptor of Linux's own table has another limit on each processor (arch/x86,
  /// GDT_ENTRY_CPUNODE).
  bool is_descriptor_of_the_processor() const {
    constexpr std::uint32_t kCpuNode = 0x78;
    if (c_.replay.kind == StepEnd::Kind::exception && c_.replay.error_code == kCpuNode) return true;
    return retired() && two_byte({0x02, 0x03}) && c_.host.cpu.segment == c_.replay.cpu.segment &&
           ((c_.host.cpu.eflags & ~c_.replay.cpu.eflags) & kZf) != 0;
  }

  bool pushes_too_early() const {
    const bool call = one_byte({0x9a}) || (one_byte({0xff}) && c_.instruction.reg() == 3);
    return call && !retired() && (faults(12) || faults(14) || c_.host.error_code == 0);
  }

  /// What was done before a fault and is done again when the instruction is restarted.
  const char* rule_of_partial_effects() const {
    // AMD's far CALL pushes before it finds that the offset lies beyond the limit.
    if (pushes_too_early()) return "far-call-partial";
    if (!faults(14) && !faults(12)) return nullptr;
    if (one_byte({0x60})) return "pusha-partial";
    if (one_byte({0x61})) return "popa-partial";
    if (one_byte({0xc8})) return "enter-partial";
    return nullptr;
  }

  /// AMD's own reading of prefixes.
  /// F2 and F3 before one instruction: the engine goes by F2, the host by the last. Undefined (SDM
  /// vol. 2, 2.1.1: one of each group).
  bool repeats_twice() const {
    const auto& b = c_.instruction.bytes;
    const auto end = std::find(b.begin(), b.end(), c_.instruction.opcode);
    return std::find(b.begin(), end, 0xf2) != end && std::find(b.begin(), end, 0xf3) != end;
  }

  bool same_end() const {
    constexpr std::uint32_t kFetch = 0x10;  // of a page fault: told by processors that have NX
    const StepEnd &a = c_.replay, &b = c_.host;
    if (a.kind != b.kind) return false;
    if (a.kind == StepEnd::Kind::retired) return true;
    const bool page = b.vector == 14;
    return a.vector == b.vector && a.error_code == (page ? b.error_code & ~kFetch : b.error_code) &&
           (!page || a.cr2 == b.cr2);
  }
  bool same_outcome() const {
    const StepEnd &a = c_.replay, &b = c_.host;
    return same_end() && a.cpu.eip == b.cpu.eip && a.cpu.gpr == b.cpu.gpr &&
           std::equal(a.cpu.fx.begin(), a.cpu.fx.begin() + 5, b.cpu.fx.begin());
  }

  /// FLDENV, FSTENV, FRSTOR and FSAVE: long operands.
  const char* rule_of_images() const {
    const auto& i = c_.instruction;
    const bool image = (one_byte({0xd9, 0xdd}) && (i.reg() == 4 || i.reg() == 6));
    if (!image || i.register_form()) return nullptr;
    const auto refuses = [](const StepEnd& end) {
      return end.kind == StepEnd::Kind::exception && end.vector >= 12 && end.vector <= 14;
    };
    return refuses(c_.replay) && refuses(c_.host) ? "image-order" : nullptr;
  }

  const char* rule_of_x87() const {
    // Undocumented doubles: FSTPNCE, FFREEP and their kin.
    const auto& i = c_.instruction;
    if (i.two_byte || !i.register_form() || !retired()) return nullptr;
    const bool fstp = i.opcode == 0xd9 && i.reg() == 3, ffreep = i.opcode == 0xdf && i.reg() == 0;
    return fstp || ffreep ? "undocumented-x87" : nullptr;
  }

  /// One branches and the other does not, or to beyond the limit.
  bool goes_elsewhere() const {
    if (retired()) return c_.replay.cpu.eip != c_.host.cpu.eip;
    const StepEnd &a = c_.replay, &b = c_.host;
    return a.kind != b.kind && (a.kind == StepEnd::Kind::exception ? a : b).vector == 13;
  }

  const char* rule_of_prefixes() const {
    // LOOPE and LOOPNE behind a repeat prefix look for what the prefix says.
    if (c_.instruction.repeat && one_byte({0xe0, 0xe1}) && goes_elsewhere()) return "repeat-loop";
    // A repeated port access with a count of 0 still asks for the port's permission.
    if (faults(13) && c_.instruction.repeat && one_byte({0x6c, 0x6d, 0x6e, 0x6f}) &&
        (c_.before.gpr[kEcx] & 0xffff) == 0) {
      return "repeat-port-order";
    }
    // LOCK MOV CR0 is MOV CR8 (APM vol. 3, MOV CRn).
    if (faults(13) && c_.instruction.lock && two_byte({0x20, 0x22})) return "lock-mov-cr";
    return nullptr;
  }

  void compare_ends() {
    const StepEnd &a = c_.replay, &b = c_.host;
    const bool same = same_end();
    if (!same && goes_beyond_4_gib()) return rule("beyond-4-gib");
    if (repeats_twice() && one_byte({0xa6, 0xa7, 0xae, 0xaf}) && !same_outcome()) {
      return rule("repeat-twice");
    }
    if (is_undefined_at_an_end()) return rule("undefined-length");
    if (is_descriptor_of_the_processor()) return rule("cpu-descriptor");
    if (one_byte({0x06, 0x0e, 0x16, 0x1e}) || two_byte({0xa0, 0xa8})) {
      if (c_.instruction.wide && faults(12) && !same) return rule("segment-push");
    }
    if (const char* const name = rule_of_images(); name != nullptr && !same_outcome()) {
      return rule(name);
    }
    if (const char* const name = rule_of_order(); name != nullptr && !same) return rule(name);
    if (const char* const name = rule_of_prefixes()) return rule(name);
    if (a.kind != b.kind || (!retired() && a.vector != b.vector)) {
      differs("ends", fmt::format("replay {} {:x}, host {} {:x}", end_name(a), a.error_code,
                                  end_name(b), b.error_code));
      return;
    }
    if (retired()) return;
    constexpr std::uint32_t kFetch = 0x10;  // told by processors that have NX
    const std::uint32_t of_host = b.vector == 14 ? b.error_code & ~kFetch : b.error_code;
    if (a.error_code != of_host) {
      differs("error code", fmt::format("error code {:x}/{:x}", a.error_code, b.error_code));
    }
    if (b.vector == 14 && a.cr2 != b.cr2) {
      differs("cr2", fmt::format("cr2 {:08x}/{:08x}", a.cr2, b.cr2));
    }
    if (!a.why.empty()) differs(a.why, "the frame is not what was told");
  }

  /// ENTER with a 16-bit stack and 32-bit operand: AMD's put all of ESP into EBP, the engine its
  /// low half, and SDM vol. 2 has zeros above that.
  bool only_upper_half_of_ebp() const {
    const auto &a = c_.replay.cpu.gpr, &b = c_.host.cpu.gpr;
    return a[kEbp] != b[kEbp] && (a[kEbp] & 0xffff) == (b[kEbp] & 0xffff);
  }

  /// LAR leaves bits 16 to 19 undefined (SDM vol. 2, LAR); AMD's show those of the limit.
  bool only_limit_bits_of_lar() const {
    constexpr std::uint32_t kLimit = 0xf0000;
    bool other = false, any = false;
    for (std::size_t r = 0; r < 8; ++r) {
      const std::uint32_t d = c_.replay.cpu.gpr[r] ^ c_.host.cpu.gpr[r];
      any = any || d != 0;
      other = other || (d & ~kLimit) != 0;
    }
    return any && !other;
  }

  bool same_registers() const { return c_.replay.cpu.gpr == c_.host.cpu.gpr; }

  /// SHLD and SHRD by more than the operand has bits: the result is undefined too (SDM vol. 2).
  bool result_is_undefined() const {
    if (!two_byte({0xa4, 0xa5, 0xac, 0xad}) || c_.instruction.wide) return false;
    const bool by_cl = (c_.instruction.opcode & 1) != 0;
    return ((by_cl ? c_.before.gpr[kEcx] : immediate()) & 31) > 16;
  }

  void compare_registers() {
    if (const char* const name = rule_of_partial_effects(); name != nullptr && !same_registers()) {
      return rule(name);
    }
    if (retired() && one_byte({0xc8}) && c_.instruction.wide && only_upper_half_of_ebp()) {
      return rule("enter-frame");
    }
    if (retired() && two_byte({0x02}) && only_limit_bits_of_lar()) return rule("lar-limit-bits");
    for (std::size_t r = 0; r < 8; ++r) {
      if (c_.replay.cpu.gpr[r] == c_.host.cpu.gpr[r]) continue;
      if (result_is_undefined() && r == c_.instruction.rm()) continue;
      differs(kGprNames[r], fmt::format("{} {:08x}/{:08x}", kGprNames[r], c_.replay.cpu.gpr[r],
                                        c_.host.cpu.gpr[r]));
    }
    if (c_.replay.cpu.eip != c_.host.cpu.eip) {
      differs("eip", fmt::format("eip {:08x}/{:08x}", c_.replay.cpu.eip, c_.host.cpu.eip));
    }
  }

  std::uint8_t immediate() const {
    // The count of a shift by an immediate: the last byte of the instruction.
    const std::uint32_t length = c_.host.cpu.eip - c_.before.eip;
    if (length == 0 || length > c_.instruction.available) return 0;
    return c_.instruction.bytes[length - 1];
  }
  std::uint32_t undefined_flags() const {
    if (c_.host.kind != StepEnd::Kind::retired) return 0;
    return c_.instruction.two_byte ? undefined_two_byte(c_.instruction, c_.before, immediate())
                                   : undefined_one_byte(c_.instruction, c_.before, immediate());
  }

  /// #GP of an instruction that lies beyond the limit. SDM vol. 3, 17.3.1.1: faults push RF set;
  /// AMD's leave it for this one.
  bool is_fetch_fault() const {
    return faults(13) && c_.host.error_code == 0 &&
           (c_.before.eip > c_.before.segment[kCs].limit ||
            c_.before.segment[kCs].limit - c_.before.eip < 15);
  }

  void compare_flags() {
    if (is_fetch_fault() && (c_.replay.cpu.eflags & ~c_.host.cpu.eflags & kRf) != 0) {
      return rule("fetch-fault-rf");
    }
    // TF is the single step's own. Of a retired instruction RF is never seen by software.
    const std::uint32_t ignored = kTf | kId | undefined_flags() | (retired() ? kRf : 0);
    const std::uint32_t difference = (c_.replay.cpu.eflags ^ c_.host.cpu.eflags) & ~ignored;
    if (difference == 0) return;
    differs(fmt::format("flags {:x}", difference),
            fmt::format("eflags {:08x}/{:08x}", c_.replay.cpu.eflags, c_.host.cpu.eflags));
  }

  void compare_segments() {
    for (std::size_t s = 0; s < 6; ++s) {
      const Segment &a = c_.replay.cpu.segment[s], &b = c_.host.cpu.segment[s];
      const bool based = (s == kFs || s == kGs) && !a.unusable && retired();
      if (a.selector == b.selector && (!based || a.base == b.base)) continue;
      differs(kSegmentNames[s], fmt::format("{} {:04x} {:x}/{:04x} {:x}", kSegmentNames[s],
                                            a.selector, a.base, b.selector, b.base));
    }
  }

  void compare_floating_point() {
    // AMD's MASKMOVQ enters MMX state before it looks at its operand.
    if (!retired() && two_byte({0xf7})) return rule("mmx-before-fault");
    const bool image = one_byte({0xd9, 0xdd}) && (c_.instruction.reg() & 5) == 4;
    if (!retired() && image && c_.replay.cpu.fx != c_.host.cpu.fx) return rule("image-partial");
    if (const char* const name = rule_of_x87();
        name != nullptr && c_.replay.cpu.fx != c_.host.cpu.fx) {
      return rule(name);
    }
    const auto &a = c_.replay.cpu.fx, &b = c_.host.cpu.fx;
    // Last opcode, pointers and the mask of MXCSR are not shown as in 32-bit mode.
    const auto compared = [](std::size_t at) {
      return at < 5 || (at >= 24 && at < 28) ||
             (at >= 32 && at < 288 && (at >= 160 || at % 16 < 10));
    };
    for (std::size_t at = 0; at < a.size(); ++at) {
      if (!compared(at) || a[at] == b[at]) continue;
      const char* const kind = at < 2     ? "cw"
                               : at < 4   ? "sw"
                               : at < 5   ? "tw"
                               : at < 28  ? "mxcsr"
                               : at < 160 ? "st"
                                          : "xmm";
      differs(kind, fmt::format("fx[{}] {:02x}/{:02x}", at, a[at], b[at]));
    }
  }

  void compare_memory() {
    if (is_upper_half_of_segment_push()) return rule("segment-push");
    if (result_is_undefined() && !c_.instruction.register_form()) return;
    if (const char* const name = rule_of_partial_effects(); name != nullptr && !c_.memory.empty()) {
      return rule(name);
    }
    for (const std::uint32_t at : c_.memory) {
      const std::uint8_t mine = c_.replay_byte(at), real = c_.host_ram[at];
      differs("memory", fmt::format("[{:05x}] {:02x}/{:02x}", at, mine, real));
    }
  }

  void describe() {
    if (verdict_.differences.empty()) return;
    const StepInstruction& i = c_.instruction;
    verdict_.key = fmt::format("{}{:02X}", i.two_byte ? "0F" : "", i.opcode);
    const bool group = !i.two_byte && (i.opcode == 0xf6 || i.opcode == 0xf7 || i.opcode == 0xff ||
                                       (i.opcode & 0xfc) == 0xd0 || (i.opcode & 0xfe) == 0xc0 ||
                                       i.opcode == 0x8e || i.opcode == 0x8c || i.opcode == 0xfe);
    const bool group2 = i.two_byte && (i.opcode < 2 || i.opcode == 0xba || i.opcode == 0xc7);
    if (group || group2) verdict_.key += fmt::format("/{}", i.reg());
    if (i.lock) verdict_.key += " lock";
    verdict_.key += " " + end_name(c_.host);
    for (const std::string& kind : kinds_) verdict_.key += ", " + kind;
    std::string& s = verdict_.state;
    s = "bytes";
    for (unsigned b = 0; b < i.available; ++b) s += fmt::format(" {:02x}", i.bytes[b]);
    const CpuState& cpu = c_.before;
    for (std::size_t r = 0; r < 8; ++r) s += fmt::format(" {}={:x}", kGprNames[r], cpu.gpr[r]);
    s += fmt::format(" eip={:x} eflags={:x} cr0={:x}", cpu.eip, cpu.eflags, cpu.cr0);
    for (std::size_t g = 0; g < 6; ++g) {
      const Segment& seg = cpu.segment[g];
      s += fmt::format(" {}={:x}:{:x}+{:x}.{:x}{}", kSegmentNames[g], seg.selector, seg.base,
                       seg.limit, seg.attributes, seg.unusable ? "!" : "");
    }
  }

  const StepComparison& c_;
  StepVerdict verdict_;
  std::set<std::string> kinds_;
};

}  // namespace

std::string StepVerdict::text() const {
  std::string out;
  for (std::size_t i = 0; i < differences.size() && i < 12; ++i) out += differences[i] + "; ";
  return out + "\n      before: " + state;
}

std::string end_name(const StepEnd& end) {
  return end.kind == StepEnd::Kind::retired ? "retired" : "vector " + std::to_string(end.vector);
}

StepVerdict judge(const StepComparison& comparison) { return Judge(comparison).run(); }

}  // namespace citcat::silicon
