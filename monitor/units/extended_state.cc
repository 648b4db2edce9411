#include "monitor/units/extended_state.h"

#include <algorithm>
#include <cstring>

#include "driver-kmod/uapi/citcat_dump.h"

namespace citcat::monitor {
namespace {

constexpr unsigned kAlignment = 64;
constexpr unsigned kHeaderRead = 24;  // XSTATE_BV, XCOMP_BV and what has to be zero

std::uint64_t qword_at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// What a dump without XCR0 is taken for: all components that CPUID has in leaf 0Dh, without which
/// they are those of FXSAVE.
std::uint64_t dumped_components(std::span<const std::uint32_t> words) {
  constexpr std::size_t kWords = CITCAT_CPUID_BYTES / 4;
  const std::size_t count = words[CITCAT_STATE_CPUID_COUNT / 4];
  for (std::size_t n = 0; n < count; ++n) {
    const auto leaf = words.subspan(CITCAT_STATE_CPUID(0) / 4 + n * kWords, kWords);
    if (leaf[0] == CITCAT_CPUID_XSTATE) return std::uint64_t{leaf[4]} << 32 | leaf[1];
  }
  return kX87State | kSseState;
}

}  // namespace

void ExtendedState::check_dump(std::span<const std::uint32_t> words) {
  if ((cpu_.registers.control().cr4 & kCr4OsXsave) == 0 || !cpu_.has_long_mode()) return;
  if (cpu_.facts.xcr0 != dumped_components(words))
    recording_.give_up(
        "XCR0 leaves out components that the processor has, which the driver's dump does not show; "
        "begin with another trigger");
}

void ExtendedState::prepare(const Insn& insn) {
  const auto low = [this](unsigned n) { return static_cast<std::uint32_t>(cpu_.registers.gpr(n)); };
  operand_ = std::uint64_t{low(2)} << 32 | low(0);
  number_ = low(1);
  there_ = 0;
  const InsnKind kind = insn.what.kind;
  if (kind != InsnKind::xsave && kind != InsnKind::xsaveopt && kind != InsnKind::xrstor) return;
  seen_.flight.operand = seen_.code.effective_address(insn, cpu_.registers.state());
  if (kind == InsnKind::xrstor)
    read(insn);
  else
    in_ram_ = linear_.peek(*seen_.flight.operand, area_);
}

void ExtendedState::finish(const Insn& insn) {
  if (!cpu_.has_long_mode()) {
    recording_.give_up(
        "XSAVE or one of its relatives is used by a processor without long mode, which no replayer "
        "supports; choose one without it, such as -cpu pentium3, or qemu-system-x86_64");
    return;
  }
  constexpr std::uint32_t kCr0Ts = 8;
  const bool moves = seen_.flight.operand.has_value();
  if (moves && (cpu_.walker.cr0() & kCr0Ts) != 0)
    return recording_.give_up(
        "XSAVE or XRSTOR was executed with CR0.TS set, which processors refuse with #NM");
  switch (insn.what.kind) {
    case InsnKind::xsave:
    case InsnKind::xsaveopt:
      save(insn);
      break;
    case InsnKind::xrstor:
      if ((there_ & kX87State) != 0) {
        x87_.load_image(insn);
      } else if ((components() & kX87State) != 0) {
        x87_.initialise();
      }
      break;
    case InsnKind::xgetbv:
      if (number_ != 0)
        recording_.give_up(
            "XGETBV of the components in use is executed, which no replayer supports");
      break;
    case InsnKind::xsetbv:
      cpu_.facts.xcr0 = operand_;
      seen_.control.refuse_unheld();
      break;
    default:
      recording_.give_up("XSAVEC, XSAVES or XRSTORS is used, which this monitor does not record");
      break;
  }
}

/// XSAVE and XSAVEOPT, which leaves out what is in its initial configuration.
void ExtendedState::save(const Insn& insn) {
  const std::uint64_t linear = *seen_.flight.operand, wanted = components();
  std::array<std::uint8_t, kAreaBytes> stored{};
  if (!in_ram_ || !linear_.peek(linear, stored)) {
    recording_.give_up(
        "XSAVE stores to memory that is not RAM, which this monitor does not record");
    return;
  }
  for (unsigned at = 0; at < kXmmAt; at += kSlotBytes) {
    const auto block = x87_.stored_block(insn, at, &stored[at]);
    std::copy(block.begin(), block.end(), &stored[at]);
  }
  const std::uint64_t in_use = components_in_use(stored, insn.code);
  const std::uint64_t written = insn.what.kind == InsnKind::xsave ? wanted : wanted & in_use;

  // From here on RAM is what it was, but for what the bus shows.
  for (unsigned at = 0; at < kAreaBytes; at += 8)
    if (const auto physical = cpu_.walker.locate(linear + at))
      cpu_.memory.correct(*physical, std::span(area_).subspan(at, 8));
  linear_.show(linear + kHeaderAt, 8, false);
  const auto store = [&](unsigned first, unsigned end) {
    linear_.store_blocks(linear + first, std::span(stored).subspan(first, end - first));
  };
  if ((written & kX87State) != 0) store(0, kMxcsrAt);
  if ((wanted & kSseState) != 0) store(kMxcsrAt, kX87RegistersAt);
  if ((written & kX87State) != 0) store(kX87RegistersAt, kXmmAt);
  if ((written & kSseState) != 0) store(kXmmAt, image_bytes(insn.code));
  const std::uint64_t before = qword_at(area_, kHeaderAt);
  linear_.store_blocks(linear + kHeaderAt, bytes_of((before & ~wanted) | (wanted & in_use)));
}

/// What XRSTOR reads before it loads anything: the header, and unless that is refused what it
/// names. MXCSR is read whether it does or not.
void ExtendedState::read(const Insn& insn) {
  const std::uint64_t linear = *seen_.flight.operand, wanted = components();
  if ((cpu_.registers.control().cr4 & kCr4OsXsave) == 0 || linear % kAlignment != 0) return;
  std::array<std::uint8_t, kHeaderRead> header{};
  if (!linear_.peek(linear + kHeaderAt, header)) return;
  linear_.show(linear + kHeaderAt, kHeaderRead, false);
  const std::uint64_t names = qword_at(header, 0);
  if ((names & ~cpu_.facts.xcr0) != 0 || qword_at(header, 8) != 0 || qword_at(header, 16) != 0)
    return;
  there_ = names & wanted;
  if ((there_ & kX87State) != 0) {
    linear_.show(linear, kMxcsrAt, false);
    for (unsigned at = kX87RegistersAt; at < kXmmAt; at += kSlotBytes)
      linear_.show(linear + at, kX87RegisterBytes, false);
  }
  if ((wanted & kSseState) != 0) linear_.show(linear + kMxcsrAt, 4, false);
  if ((there_ & kSseState) != 0)
    linear_.show(linear + kXmmAt, image_bytes(insn.code) - kXmmAt, false);
}

}  // namespace citcat::monitor
