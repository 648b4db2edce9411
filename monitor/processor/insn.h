#pragma once
// An instruction that the emulator has translated.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "monitor/bus/bus_model.h"
#include "monitor/instructions/insn_class.h"
#include "monitor/walk/page_walker.h"

namespace citcat::monitor {

/// The first four bytes of `value`, or as many as it has.
inline std::uint32_t dword_of(std::span<const std::uint8_t> value) {
  std::uint32_t dword = 0;
  std::memcpy(&dword, value.data(), std::min<std::size_t>(value.size(), sizeof dword));
  return dword;
}

template <typename T>
std::array<std::uint8_t, sizeof(T)> bytes_of(T value) {
  std::array<std::uint8_t, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Lives as long as the emulator. There are many, and much time is spent loading them from memory.
/// So each is in one line of the host's cache.
struct alignas(64) Insn {
  std::uint64_t linear = 0;  ///< where it was translated
  /// The machine's address of its first byte, or GuestMemory::kNotInRam.
  std::uint64_t physical = 0;
  std::uint8_t size = 0;
  CodeSize code : 2 = CodeSize::bits32;
  bool first_in_block : 1 = false;
  bool user : 1 = false;  ///< at privilege level 3: blocks are translated for one level
  /// Nothing is to be done when it has ended: registers have not to be looked at.
  bool ends_plainly : 1 = false;
  /// Its accesses are those of a processor.
  bool accesses_plainly : 1 = false;
  /// All of it is in the line (without caches: the dword) where the instruction before it in its
  /// block ends.
  bool continues_line : 1 = false;
  /// The recorder may be told later that it began: nothing is looked at then.
  bool waits : 1 = false;
  bool waits_for_stop : 1 = false;  ///< the recording may end before it for what it is
  /// What is seen of its accesses is what the caches let through.
  bool accesses_unseen : 1 = false;
  bool loads_unseen : 1 = false;  ///< the same of what it loads
  /// All of it, and all before it in its block, is in one page.
  bool in_first_page : 1 = false;
  /// The number of instructions after it in its block that continue its line and wait.
  std::uint8_t alike_behind = 0;
  /// The segments that may refuse its accesses, a bit for each; none in 64-bit mode.
  std::uint8_t segments = 0;
  InsnClass what;
  std::array<std::uint8_t, 15> bytes{};

  /// It reads what it is going to store to, as a processor does.
  bool updates_plainly() const { return accesses_plainly && what.updates_memory; }
  /// An offset or a linear address of its mode: of 32 bits outside 64-bit mode.
  std::uint64_t narrowed(std::uint64_t address) const {
    return code == CodeSize::bits64 ? address : static_cast<std::uint32_t>(address);
  }
  InsnDetails details() const { return classify({bytes.data(), size}, code); }
  /// The last byte of its opcode, and the byte behind it: ModRM, where it has one.
  std::uint8_t opcode() const { return bytes[what.modrm_offset - 1u]; }
  std::uint8_t modrm() const { return bytes[what.modrm_offset]; }
  unsigned modrm_reg() const { return modrm() >> 3 & 7; }
  /// MOV to SS or POP SS, which put off debug exceptions.
  bool loads_stack_segment() const {
    const bool has_one_byte = what.modrm_offset < 2 || bytes[what.modrm_offset - 2u] != 0x0f;
    return has_one_byte && (opcode() == 0x17 || (opcode() == 0x8e && modrm_reg() == 2));
  }
};

static_assert(sizeof(Insn) == 64);

/// An instruction as callbacks of its accesses get it. What they ask first is in the upper bits of
/// its address, which are free on x86-64: they need not wait until it is loaded.
class TaggedInsn {
 public:
  explicit TaggedInsn(void* word) : word_(reinterpret_cast<std::uintptr_t>(word)) {}
  explicit TaggedInsn(const Insn& insn)
      : word_(reinterpret_cast<std::uintptr_t>(&insn) |
              (insn.segments | flag(insn.loads_unseen, kLoads) |
               flag(insn.accesses_unseen, kStores) |
               flag(insn.what.kind == InsnKind::plain, kPlain) |
               flag(insn.in_first_page, kInFirstPage) | flag(insn.updates_plainly(), kUpdates) |
               sure_for_load_of(insn) << kSure)
                  << kShift) {}
  void* word() const { return reinterpret_cast<void*>(word_); }
  const Insn* insn() const {
    return reinterpret_cast<const Insn*>(word_ & ((std::uintptr_t{1} << kShift) - 1));
  }
  // The instruction has more about these.
  std::uint8_t segments() const { return static_cast<std::uint8_t>(word_ >> kShift & 0x3f); }
  bool loads_unseen() const { return has(kLoads); }
  bool accesses_unseen() const { return has(kStores); }
  bool is_plain() const { return has(kPlain); }
  bool in_first_page() const { return has(kInFirstPage); }
  /// What HeldPage::sure_for has where the emulator certainly goes to the page of a load.
  unsigned sure_for_load() const { return static_cast<unsigned>(word_ >> (kShift + kSure)); }
  /// The same of a store.
  unsigned sure_for_store() const { return sure_for_load() & 3; }
  bool updates_plainly() const { return has(kUpdates); }

 private:
  static constexpr unsigned kShift = 48;
  /// Bits after those of the segments.
  enum Bit : unsigned { kLoads = 6, kStores, kPlain, kInFirstPage, kUpdates, kSure };
  static std::uintptr_t sure_for_load_of(const Insn& insn) {
    const unsigned may_store = insn.updates_plainly() ? HeldPage::sure_bit(insn.user, true) : 0;
    return HeldPage::sure_bit(insn.user, false) | may_store;
  }
  static std::uintptr_t flag(bool set, Bit bit) { return std::uintptr_t{set} << bit; }
  bool has(Bit bit) const { return (word_ >> (kShift + bit) & 1) != 0; }

  std::uintptr_t word_;
};

/// Completes what is known of an instruction by what it is. `before`: in its block, or nullptr.
void complete(Insn& insn, const Insn* before, CacheModel model);
/// Completes what is known of a whole block, all of whose instructions are complete otherwise.
void complete_block(std::span<Insn> block);

}  // namespace citcat::monitor
