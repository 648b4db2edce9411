#include "replay/machine/units/extended_state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "events/machine/control_bits.h"
#include "formats/io/error.h"
#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/floating_point.h"
#include "replay/machine/units/model_registers.h"
#include "replay/machine/units/operands.h"
#include "x86/fx_image.h"
#include "x86/instruction_features.h"

namespace citcat {

using namespace fx_image;

namespace {

/// State components, and what is executed of them (SDM vol. 1, 13.1).
constexpr std::uint64_t kX87 = 1, kSse = 2, kAvx = 4, kExecuted = kX87 | kSse;
/// Where the header of an XSAVE area is, how much of it XRSTOR reads (SDM vol. 1, 13.4.2 and
/// 13.8.1), and the bit of XCOMP_BV that stands for the compacted format.
constexpr std::uint16_t kHeader = 512, kHeaderRead = 24, kHeaderBytes = 64;
constexpr std::uint64_t kCompacted = std::uint64_t{1} << 63;
constexpr std::uint16_t kPointersEnd = 24, kMxcsrBytes = 4, kAlignment = 64, kSlots = 8;
constexpr std::uint16_t kInitialControl = 0x37f;
constexpr std::uint32_t kInitialMxcsr = 0x1f80;

bool all_zero(const FxImage& image, std::size_t first, std::size_t count) {
  const auto at = image.begin() + static_cast<std::ptrdiff_t>(first);
  return std::all_of(at, at + static_cast<std::ptrdiff_t>(count),
                     [](std::uint8_t b) { return b == 0; });
}

/// Not in its initial configuration (SDM vol. 1, 13.6).
bool x87_in_use(const FxImage& image) {
  if (load16(&image[kControl]) != kInitialControl || load16(&image[kStatus]) != 0) return true;
  if (image[kTags] != 0) return true;
  if (!all_zero(image, kCodeOffset, kPointersEnd - kCodeOffset)) return true;
  return !all_zero(image, kRegisters, fx_image::kXmm - kRegisters);
}

[[noreturn]] void refuse_operand() { throw CpuException{13, 0u, 0}; }

}  // namespace

/// Bytes of the area.
struct ExtendedState::Range {
  std::uint16_t first, size;
};

void ExtendedState::load(const CpuState& state) {
  const bool enabled = (cpu_.engine.wide().cr(4) & kCr4OsXsave) != 0;
  const auto& unknown = state.unknown;
  const bool told = std::find(unknown.begin(), unknown.end(), "xcr0") == unknown.end();
  components_ = told || !enabled ? state.long_mode->xcr0 : supported();
  if (!enabled || (components_ & ~kExecuted) == 0) return;
  throw UsageError(
      "the recording begins with AVX or newer components enabled in XCR0, which are not executed "
      "(docs/long-mode.md)");
}

/// Bits that XCR0 may have. A dump without their leaf has those that its features need.
std::uint64_t ExtendedState::supported() const {
  const CpuidLeaf* const leaf = model_registers_.cpuid_leaf(kExtendedStateLeaf);
  if (leaf != nullptr) return std::uint64_t{leaf->edx} << 32 | leaf->eax;
  return kX87 | kSse | (model_registers_.has(kFeatureAvx) ? kAvx : 0);
}

void ExtendedState::require_enabled() const {
  if ((cpu_.engine.cr(4) & kCr4OsXsave) == 0) throw CpuException{6, std::nullopt, 0};
}

void ExtendedState::require_available() const {
  constexpr std::uint32_t kTaskSwitched = 8;
  require_enabled();
  if ((cpu_.engine.cr(0) & kTaskSwitched) != 0) throw CpuException{7, std::nullopt, 0};
}

void ExtendedState::get() {
  require_enabled();
  const std::uint32_t number = cpu_.engine.gpr(kEcx);
  if (number == 1 && model_registers_.has(kFeatureXgetbv1)) {
    throw ReplayStopped{cpu_.position, std::string(kFeatureXgetbv1.name) +
                                           ", which is not executed (docs/long-mode.md)"};
  }
  if (number != 0) refuse_operand();
  cpu_.engine.set_gpr(kEax, static_cast<std::uint32_t>(components_));
  cpu_.engine.set_gpr(kEdx, static_cast<std::uint32_t>(components_ >> 32));
}

void ExtendedState::set() {
  require_enabled();
  cpu_.require_ring0();
  const Engine& engine = cpu_.engine;
  const std::uint64_t value = std::uint64_t{engine.gpr(kEdx)} << 32 | engine.gpr(kEax);
  const bool avx_alone = (value & kAvx) != 0 && (value & kSse) == 0;
  if (engine.gpr(kEcx) != 0 || (value & ~supported()) != 0 || (value & kX87) == 0 || avx_alone) {
    refuse_operand();
  }
  if ((value & ~kExecuted) != 0) {
    throw ReplayStopped{cpu_.position,
                        "XSETBV enables AVX or newer components, which are not executed "
                        "(docs/long-mode.md)"};
  }
  components_ = value;
}

std::uint32_t ExtendedState::requested() const {
  return static_cast<std::uint32_t>(components_) & cpu_.engine.gpr(kEax);
}

void ExtendedState::find_area() {
  area_ = cpu_.linear_of(flight_.info->operands[0]);
  header_ = cpu_.onward(area_, kHeader);
  if (area_.offset_in(kAlignment) != 0) refuse_operand();
}

void ExtendedState::access(Range range, bool write) {
  MemoryOperand operand = flight_.info->operands[0];
  operand.size = range.size;
  operand.read = !write;
  operand.write = write;
  DataAccess a;
  a.linear = cpu_.onward(area_, range.first);
  a.offset = cpu_.offset_of(operand) + range.first;
  a.size = range.size;
  a.write = write;
  operands_.access(a, operand);
}

void ExtendedState::read(Range range, std::uint8_t* to) {
  access(range, false);
  operands_.read(cpu_.onward(area_, range.first), {to, range.size});
}

ExtendedState::Range ExtendedState::xmm_registers() const {
  const std::size_t end = cpu_.bits64() ? kEnd64 : kEnd;
  return {fx_image::kXmm, static_cast<std::uint16_t>(end - fx_image::kXmm)};
}

/// XSAVES and XRSTORS are the supervisor's; what IA32_XSS enables is not executed.
void ExtendedState::require_supervisor() const {
  constexpr std::uint32_t kMsrXss = 0xda0;
  if (cpu_.cpl() != 0) refuse_operand();
  if (model_registers_.value_of(kMsrXss) == 0) return;
  throw ReplayStopped{cpu_.position,
                      "XSAVES or XRSTORS with components in IA32_XSS, which are not executed "
                      "(docs/long-mode.md)"};
}

void ExtendedState::save() {
  require_available();
  if (is_xsaves(*flight_.info)) require_supervisor();
  find_area();
  const FxImage image = fpu_.shown((flight_.info->rex & kRexW) != 0);
  const Range xmm = xmm_registers();
  const std::uint32_t wanted = requested();
  const bool compacts = flight_.info->is(Operation::xsavec);
  std::uint32_t in_use = all_zero(image, xmm.first, xmm.size) ? 0 : kSse;
  if (compacts && load32(&image[kMxcsr]) != kInitialMxcsr) in_use |= kSse;
  if (x87_in_use(image)) in_use |= kX87;
  // XSAVEOPT and XSAVEC leave out what is in its initial configuration.
  const bool saves_all = flight_.info->is(Operation::xsave);
  const std::uint32_t written = saves_all ? wanted : wanted & in_use;

  std::vector<std::uint8_t> stored;
  const auto store = [&](Range range) {
    access(range, true);
    stored.insert(stored.end(), &image[range.first], &image[range.first] + range.size);
  };
  if ((written & kX87) != 0) store({0, kPointersEnd});
  if (((compacts ? written : wanted) & kSse) != 0)
    store({kMxcsr, 2 * kMxcsrBytes});  // with the mask
  if ((written & kX87) != 0) store({kRegisters, fx_image::kXmm - kRegisters});
  if ((written & kSse) != 0) store(xmm);
  store_header(wanted, in_use, stored);
  free_bits_ = wanted & ~in_use;
  operands_.write_stores(stored);
}

/// XSTATE_BV, whose other bits XSAVEC clears; of its compacted format, which for these components
/// is the standard one, XCOMP_BV tells (SDM vol. 1, 13.10).
void ExtendedState::store_header(std::uint32_t wanted, std::uint32_t in_use,
                                 std::vector<std::uint8_t>& stored) {
  constexpr Range kNames{kHeader, 8}, kFormat{kHeader + 8, 8};
  const auto append = [&](std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) stored.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  access(kNames, true);
  if (flight_.info->is(Operation::xsavec)) {
    access(kFormat, true);
    append(wanted & in_use);
    return append(kCompacted | wanted);
  }
  std::uint64_t names = 0;
  std::array<std::uint8_t, kNames.size> before{};
  read(kNames, before.data());
  std::memcpy(&names, before.data(), before.size());
  append((names & ~std::uint64_t{wanted}) | (wanted & in_use));
}

std::uint32_t ExtendedState::reserved_bits() const {
  const bool saves = flight_.active && flight_.info->kind == InstructionClass::xsave;
  return saves && flight_.accessed == header_ ? free_bits_ : 0;
}

/// SDM vol. 1, 13.8: components have to be enabled and in the format, and the rest of the header 0.
void ExtendedState::check_compacted(const std::array<std::uint64_t, 3>& header) {
  std::array<std::uint8_t, kHeaderBytes - kHeaderRead> rest{};
  read({kHeader + kHeaderRead, rest.size()}, rest.data());
  const std::uint64_t format = header[1] & ~kCompacted;
  const bool zero = std::all_of(rest.begin(), rest.end(), [](std::uint8_t b) { return b == 0; });
  if ((format & ~components_) != 0 || (header[0] & ~format) != 0 || header[2] != 0 || !zero) {
    refuse_operand();
  }
}

void ExtendedState::restore() {
  require_available();
  const bool supervisor = is_xsaves(*flight_.info);
  if (supervisor) require_supervisor();
  find_area();
  std::array<std::uint64_t, kHeaderRead / 8> header{};
  std::array<std::uint8_t, kHeaderRead> bytes{};
  read({kHeader, kHeaderRead}, bytes.data());
  std::memcpy(header.data(), bytes.data(), bytes.size());
  const bool compacted =
      (header[1] & kCompacted) != 0 && (supervisor || model_registers_.has(kFeatureXsavec));
  if (supervisor && !compacted) refuse_operand();
  if (compacted) {
    check_compacted(header);
  } else if ((header[0] & ~components_) != 0 || header[1] != 0 || header[2] != 0) {
    refuse_operand();
  }

  const std::uint32_t wanted = requested();
  const auto there = static_cast<std::uint32_t>(header[0]) & wanted;
  // Pointers that stay are shown and taken with their upper halves.
  const bool initial_x87 = (wanted & ~there & kX87) != 0;
  const bool wide_pointers =
      (wanted & kX87) == 0 || ((flight_.info->rex & kRexW) != 0 && !initial_x87);
  FxImage image = fpu_.shown(wide_pointers);
  if (initial_x87) {
    std::fill_n(image.begin(), kPointersEnd, std::uint8_t{0});
    std::fill_n(image.begin() + kRegisters, fx_image::kXmm - kRegisters, std::uint8_t{0});
    store16(&image[kControl], kInitialControl);
  } else if ((wanted & kX87) != 0) {
    read({0, kPointersEnd}, image.data());
    for (std::uint16_t i = 0; i < kSlots; ++i) {
      const auto at = static_cast<std::uint16_t>(kRegisters + kSlot * i);
      read({at, kRegisterBytes}, &image[at]);
    }
  }
  if ((wanted & kSse) != 0) {
    // The compacted format has it among what may be left out.
    if (compacted && (there & kSse) == 0) {
      store32(&image[kMxcsr], kInitialMxcsr);
    } else {
      read({kMxcsr, kMxcsrBytes}, &image[kMxcsr]);
    }
    if ((load32(&image[kMxcsr]) & ~fpu_.accepted_mxcsr()) != 0) refuse_operand();
    const Range xmm = xmm_registers();
    if ((there & kSse) != 0) {
      read(xmm, &image[xmm.first]);
    } else {
      std::fill_n(image.begin() + xmm.first, xmm.size, std::uint8_t{0});
    }
  }
  fpu_.take(image, wide_pointers);
}

}  // namespace citcat
