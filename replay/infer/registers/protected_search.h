#pragma once
// The search after protected_recovery.h: a state is guessed and replayed; where it diverges from
// the bus, something in the state is changed.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/infer/registers/address_space.h"
#include "replay/infer/registers/given_registers.h"
#include "replay/infer/registers/page_map.h"
#include "replay/infer/registers/protected_entry.h"
#include "replay/infer/registers/recovery_trial.h"
#include "replay/infer/registers/state_recovery.h"

namespace citcat {

// MSRs (Intel SDM vol. 2, SYSENTER, SYSCALL and SWAPGS).
inline constexpr std::uint32_t kSysenterCs = 0x174, kSysenterEsp = 0x175, kSysenterEip = 0x176,
                               kStar = 0xc0000081, kLongTarget = 0xc0000082,
                               kSyscallMask = 0xc0000084, kKernelGsBase = 0xc0000102;

/// A register with these bits changed is another one in whatever is done with it.
inline constexpr std::uint64_t kOtherValue = 0x5a31a5c3;

/// One thing that may be guessed.
struct ProtectedUnknown {
  /// `base` is that of FS or GS in long mode, where no descriptor tells it.
  enum class Kind : std::uint8_t { general, segment, base, task, msr };
  std::string name;
  Kind kind = Kind::general;
  std::uint32_t number = 0;  ///< Gpr, SegmentRegister or index of the MSR
  std::uint64_t value = 0;   ///< of a segment: its selector
  std::uint32_t base = 0;    ///< of a segment whose descriptor is not known
  bool has_base = false;     ///< it was solved
  RegisterSource source = RegisterSource::free;
  std::uint64_t transaction = kNoTransaction;
  bool is_open() const { return source == RegisterSource::free; }
  /// Its base is known, and so it is not the null selector that it is taken for.
  bool wants_selector() const { return kind == Kind::segment && has_base && value == 0; }
  bool operator==(const ProtectedUnknown&) const = default;
};

class ProtectedRecovery {
 public:
  ProtectedRecovery(Recording recording, const EvidenceSource& evidence,
                    const ProtectedEntry& entry, TimeBudget* time)
      : recording_(std::move(recording)),
        evidence_(evidence),
        entry_(entry),
        time_(time),
        tables_(tables_of(entry)),
        given_(entry.long_mode ? GivenRegisters(recording_.initial) : GivenRegisters()) {}
  RecoveredState run();

 private:
  void supply_entry_pages();
  bool may_be_another_space() const;
  bool read_tables();
  bool find_tables();
  bool choose(PhysAddr at, std::uint32_t below, std::uint64_t& value, const char* name);
  std::vector<LinearAddr> addresses_of(PhysAddr at) const;
  std::optional<Segment> descriptor(std::uint16_t selector) const;
  Segment segment_of(const ProtectedUnknown& u) const;
  void prepare_unknowns();
  std::uint16_t stack_selector() const;
  void fill_state();
  void fill_system_state(CpuState& state) const;
  void fill_unknown(CpuState& state, const ProtectedUnknown& u) const;
  std::uint64_t system_call_selectors() const;
  Segment pushed_stack_segment() const;
  std::uint64_t cut(std::uint64_t value) const;

  RecoveryOutcome replay(bool strict = false);
  bool take_saves(const RecoveryOutcome& now);
  bool take_image(const RecoveryOutcome& now);
  bool allow_xsave(const RecoveryOutcome& now);
  bool improve(const RecoveryOutcome& now);
  bool explain(const RecoveryOutcome& now);
  bool supply_shared(AddressSpaceId cr3, LinearAddr linear);
  bool share_entries(const RecoveryOutcome& now);
  void supply(const TableEntry& entry);
  std::optional<PageEntry> known_entry(PhysAddr at) const;
  std::optional<PageEntry> shared_entry(unsigned level, AddressSpaceId cr3, LinearAddr page,
                                        PhysAddr lies_at) const;
  std::vector<TableEntry> missing_entries(const RecoveryOutcome& now) const;
  void guess_entry(AddressSpaceId cr3, LinearAddr page, PhysAddr lies_at,
                   std::vector<TableEntry>& out) const;
  bool supply_entry(const RecoveryOutcome& now);
  struct Guess {
    ProtectedUnknown* unknown;
    ProtectedUnknown with;
  };
  std::vector<Guess> guesses(const RecoveryOutcome& now);
  std::vector<Guess> likely_guesses(const RecoveryOutcome& now);
  bool changes(ProtectedUnknown& u, const RecoveryOutcome& now);
  void guess_addresses(const RecoveryOutcome& now, std::vector<Guess>& out);
  void guess_values(const RecoveryOutcome& now, std::vector<Guess>& out);
  void guess_segments(std::vector<Guess>& out);
  void guess_task(const RecoveryOutcome& now, std::vector<Guess>& out);
  void guess_system_call(const RecoveryOutcome& now, std::vector<Guess>& out);
  std::vector<PhysAddr> fetches_near(std::uint64_t transaction) const;
  void solve();
  void solve_all();
  void find_free();
  bool depends_on(ProtectedUnknown& u, const RecoveryOutcome& now);
  bool attempt(const AddressSpace& space);
  void try_address_spaces();
  std::uint32_t memory_reached() const;
  void require_frame_as_given() const;
  std::vector<RecoveredRegister> frame_registers() const;
  std::vector<RecoveredRegister> system_registers(const CpuState& state) const;
  void report_vectors(RecoveredState& out) const;
  void report_unknowns(RecoveredState& out, std::vector<std::string>& unknown);
  std::vector<Hint> supplied_memory() const;
  RecoveredState result();

  Recording recording_;  ///< as guessed so far
  const EvidenceSource& evidence_;
  const ProtectedEntry& entry_;
  TimeBudget* const time_;
  const PageTables tables_;
  const GivenRegisters given_;        ///< in long mode
  std::vector<AddressSpace> spaces_;  ///< that the interrupt may have been taken in
  AddressSpace space_;
  MemoryImage image_;  ///< without what is supplied
  std::vector<TableEntry> supplied_;
  std::optional<TableEntry> tried_;
  PageMap pages_;
  std::map<std::uint64_t, std::uint64_t> walked_;  ///< walked_pages()
  std::uint64_t gdt_ = 0, idt_ = 0, stack_ = 0;
  std::optional<std::uint64_t> task_;
  std::vector<RecoveredRegister> found_;  ///< by the interrupt itself
  std::vector<ProtectedUnknown> unknown_;
  std::optional<SavedFx> fx_;
  struct LearntByte {
    std::uint8_t value = 0;
    std::uint64_t transaction = kNoTransaction;
  };
  std::map<std::size_t, LearntByte>
      learnt_;                      ///< of the floating-point state, by place in its image
  std::bitset<kFxBytes> is_other_;  ///< bytes of it that are tried with other values
  bool uses_xsave_ = false;         ///< CR4.OSXSAVE and XCR0
  std::vector<bool> counted_;
  std::uint32_t ram_bytes_ = 0;
  std::optional<Divergence> failure_;
  std::uint64_t agreed_ = 0;  ///< of the attempt that failed last
  std::uint64_t replays_ = 0;
};

}  // namespace citcat
