// XSAVE, XSAVEOPT, XRSTOR, XGETBV and XSETBV (Intel SDM vol. 1, chapter 13). The emulator treats
// every component as in use, stores all requested ones, and sets their bits in XSTATE_BV. The
// monitor restores what a processor leaves unchanged.

#include <algorithm>
#include <cstring>

#include "driver-kmod/uapi/citcat_dump.h"
#include "monitor/recorder/recorder.h"

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

/// Ends the recording if it would begin with another XCR0 than readers of the driver's dump take.
void Recorder::check_dumped_components(std::span<const std::uint32_t> words) {
  if ((registers_.control().cr4 & kCr4OsXsave) == 0 || !registers_.long_mode_registers()) return;
  if (facts_.xcr0 != dumped_components(words))
    give_up(
        "XCR0 leaves out components that the processor has, which the driver's dump does not show; "
        "begin with another trigger");
}

void Recorder::prepare_extended_state(const Insn& insn) {
  const auto low = [this](unsigned n) { return static_cast<std::uint32_t>(registers_.gpr(n)); };
  extended_.operand = std::uint64_t{low(2)} << 32 | low(0);
  extended_.number = low(1);
  extended_.there = 0;
  const InsnKind kind = insn.what.kind;
  if (kind != InsnKind::xsave && kind != InsnKind::xsaveopt && kind != InsnKind::xrstor) return;
  block_address_ = effective_address(insn, registers_.state());
  if (kind == InsnKind::xrstor)
    read_components(insn);
  else
    extended_.in_ram = peek(*block_address_, extended_.area);
}

/// It was executed, not refused.
void Recorder::finish_extended_state(const Insn& insn) {
  if (!registers_.long_mode_registers()) {
    give_up(
        "XSAVE or one of its relatives is used by a processor without long mode, which no replayer "
        "holds; choose one without it, such as -cpu pentium3, or qemu-system-x86_64");
    return;
  }
  constexpr std::uint32_t kCr0Ts = 8;
  const bool moves = block_address_.has_value();
  if (moves && (walker_.cr0() & kCr0Ts) != 0)
    return give_up(
        "XSAVE or XRSTOR was executed with CR0.TS set, which processors refuse with #NM");
  switch (insn.what.kind) {
    case InsnKind::xsave:
    case InsnKind::xsaveopt:
      save_components(insn);
      break;
    case InsnKind::xrstor:
      if ((extended_.there & kX87State) != 0) {
        load_fpu_image(insn);
      } else if ((extended_.wanted(facts_) & kX87State) != 0) {
        fpu_.clear();
        tags_.clear();
      }
      break;
    case InsnKind::xgetbv:
      if (extended_.number != 0)
        give_up("XGETBV of the components in use, which no replayer holds, is used");
      break;
    case InsnKind::xsetbv:
      facts_.xcr0 = extended_.operand;
      refuse_unheld();
      break;
    default:
      give_up("XSAVEC, XSAVES or XRSTORS is used, which this monitor does not record");
      break;
  }
}

/// What RAM holds at a linear address, without a trace on the bus. False where a part of it is
/// elsewhere or nowhere.
bool Recorder::peek(std::uint64_t linear, std::span<std::uint8_t> bytes) const {
  while (!bytes.empty()) {
    const std::size_t part = std::min<std::size_t>(bytes.size(), left_in_page(linear));
    const auto physical = walker_.locate(linear);
    if (!physical || !memory_.is_ram(*physical, static_cast<std::uint32_t>(part))) return false;
    memory_.read(*physical, bytes.first(part));
    linear += part;
    bytes = bytes.subspan(part);
  }
  return true;
}

/// Stores that the emulator has made otherwise, block by block. Aligned by 8: none crosses a page.
void Recorder::store_as_own(std::uint64_t linear, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min<std::size_t>(bytes.size(), kSlotBytes));
    const auto physical = walker_.translate(linear, true);
    if (!physical) return;
    memory_.correct(*physical, block);
    bus_.write(*physical, block);
    linear += block.size();
    bytes = bytes.subspan(block.size());
  }
}

/// XSAVE and XSAVEOPT, which leaves out what is in its initial configuration.
void Recorder::save_components(const Insn& insn) {
  const std::uint64_t linear = *block_address_, wanted = extended_.wanted(facts_);
  std::array<std::uint8_t, kAreaBytes> stored{};
  if (!extended_.in_ram || !peek(linear, stored)) {
    give_up("XSAVE stores to what is no RAM, which this monitor does not record");
    return;
  }
  for (unsigned at = 0; at < kXmmAt; at += kSlotBytes) {
    const auto block = stored_fpu_block(insn, at, &stored[at]);
    std::copy(block.begin(), block.end(), &stored[at]);
  }
  const std::uint64_t in_use = components_in_use(stored, insn.code);
  const std::uint64_t written = insn.what.kind == InsnKind::xsave ? wanted : wanted & in_use;

  // From here on RAM is what it was, but for what the bus shows.
  for (unsigned at = 0; at < kAreaBytes; at += 8)
    if (const auto physical = walker_.locate(linear + at))
      memory_.correct(*physical, std::span(extended_.area).subspan(at, 8));
  block_access(linear + kHeaderAt, 8, false);
  const auto store = [&](unsigned first, unsigned end) {
    store_as_own(linear + first, std::span(stored).subspan(first, end - first));
  };
  if ((written & kX87State) != 0) store(0, kMxcsrAt);
  if ((wanted & kSseState) != 0) store(kMxcsrAt, kX87RegistersAt);
  if ((written & kX87State) != 0) store(kX87RegistersAt, kXmmAt);
  if ((written & kSseState) != 0) store(kXmmAt, image_bytes(insn.code));
  const std::uint64_t before = qword_at(extended_.area, kHeaderAt);
  store_as_own(linear + kHeaderAt, bytes_of((before & ~wanted) | (wanted & in_use)));
}

/// What XRSTOR reads before it loads anything: the header, and unless that is refused what it
/// names. MXCSR is read whether it does or not.
void Recorder::read_components(const Insn& insn) {
  const std::uint64_t linear = *block_address_, wanted = extended_.wanted(facts_);
  if ((registers_.control().cr4 & kCr4OsXsave) == 0 || linear % kAlignment != 0) return;
  std::array<std::uint8_t, kHeaderRead> header{};
  if (!peek(linear + kHeaderAt, header)) return;
  block_access(linear + kHeaderAt, kHeaderRead, false);
  const std::uint64_t names = qword_at(header, 0);
  if ((names & ~facts_.xcr0) != 0 || qword_at(header, 8) != 0 || qword_at(header, 16) != 0) return;
  extended_.there = names & wanted;
  if ((extended_.there & kX87State) != 0) {
    block_access(linear, kMxcsrAt, false);
    for (unsigned at = kX87RegistersAt; at < kXmmAt; at += kSlotBytes)
      block_access(linear + at, kX87RegisterBytes, false);
  }
  if ((wanted & kSseState) != 0) block_access(linear + kMxcsrAt, 4, false);
  if ((extended_.there & kSseState) != 0)
    block_access(linear + kXmmAt, image_bytes(insn.code) - kXmmAt, false);
}

}  // namespace citcat::monitor
