#pragma once
// Puts one fault into a capture or a recording and finds out whether a checked replay notices it.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/import.h"
#include "events/machine/cpu_state.h"
#include "replay/diagnose/cause.h"

namespace citcat::test {

enum class FaultKind : std::uint8_t {
  read_bit,           ///< one bit of a memory read or fetch
  port_bit,           ///< one bit of a port read
  write_bit,          ///< one bit of a memory write
  write_missing,      ///< a memory write is not in the capture
  interrupt_missing,  ///< an interrupt acknowledge is not in the capture
  interrupt_vector,   ///< one bit of its vector
  interrupt_shifted,  ///< it is up to 20 instructions away from where it was
  external_missing,   ///< a write by another bus master is not in the recording
  register_bit,       ///< one bit of a register of the state dump
  internal_bit,       ///< one bit of EDX:EAX of an RDTSC or RDMSR, which cross no bus
  interrupt_extra,    ///< an interrupt acknowledge of the capture is at another place once more
  write_extra,        ///< a memory write of the capture is at another place once more
  read_byte,          ///< one byte of a memory read or fetch is any other
  port_value,         ///< a port read gave any other value
  write_byte,         ///< one byte of a memory write is any other
  register_value,     ///< a register of the state dump holds any other value
  register_mistyped,  ///< bytes swapped, off by one or two, a digit shifted, or negated
  registers_swapped,  ///< two registers of the state dump are exchanged
  samples_cut,        ///< up to 200 consecutive transactions are not in the capture
  start_late,         ///< the first 1 to 40 transactions behind the state are not in the capture
  start_early,        ///< the recording begins 1 to 40 transactions before the state holds
  transfer_twice,     ///< a read, fetch, fill or write-back stands in the capture twice in a row
  writes_swapped,     ///< two writes in a row of one counted instruction have changed places
  code_bit,           ///< one bit of an instruction fetch, or of a line that a fetch filled
};
inline constexpr int kFaultKinds = 24;
std::string_view fault_name(FaultKind kind);

/// What `explain` makes of a fault that was noticed.
struct Diagnosis {
  unsigned rank = 0;      ///< of the true cause among those named, from 1; 0: not named
  bool tied = false;      ///< nothing tells it from the one ranked first
  bool repaired = false;  ///< with the hints proposed the run is what it is without the fault
  std::string best;       ///< the cause ranked first
};

struct FaultOutcome {
  enum class Result : std::uint8_t {
    impossible,  ///< the capture has nothing to put such a fault into
    refused,     ///< the import found it
    noticed,     ///< the replay diverged
    suspected,   ///< it did not, but counts a change of a single bit more than without the fault
    no_effect,   ///< same instructions, addresses and writes, same registers at the end
    crashed,     ///< an exception that is no error message
    latent,      ///< what is different at the end never reached the bus
  };
  Result result = Result::impossible;
  std::int64_t distance = 0;           ///< instructions from the fault to where it was noticed
  std::string text;                    ///< what was changed and what was said
  std::optional<Diagnosis> diagnosis;  ///< where asked for, of what was noticed
};

class FaultInjector {
 public:
  /// Reads the capture and replays it once as it is. Throws when that does not match.
  FaultInjector(const std::vector<std::string>& paths, ImportOptions options);
  /// With `diagnose` a fault that is noticed is also explained.
  FaultOutcome inject(FaultKind kind, std::mt19937& random, bool diagnose = false);
  std::uint64_t instructions() const { return baseline_.instructions; }

 private:
  struct Signature {
    std::uint64_t instructions = 0;
    std::uint64_t stream = 0;  ///< hash of instructions, addresses and bytes written
    CpuState registers;
    std::uint64_t single_bit_changes = 0;
  };
  struct Fault {
    std::uint64_t position = 0;
    std::string text;
    std::string register_name = {};
    std::string other_register = {};  ///< of those that are exchanged
    FaultKind kind = FaultKind::read_bit;
    std::uint64_t transaction = ~std::uint64_t{0};
    PhysAddr address = {};   ///< of external writes
    std::uint32_t size = 0;  ///< of those
    /// Vector, register or instruction as it was; of internal values the place among them.
    std::uint64_t original = 0;
  };

  std::optional<Fault> insert_copy(BusOp op, std::mt19937& random);
  std::optional<Fault> cut(FaultKind kind, std::mt19937& random);
  std::optional<Fault> repeat_transfer(std::mt19937& random);
  std::optional<Fault> swap_writes(std::mt19937& random);
  void undo_swap();
  std::optional<Fault> begin_early(std::mt19937& random);
  static std::optional<Fault> change_register(FaultKind kind, std::mt19937& random,
                                              CpuState& state);
  std::optional<Fault> change_capture(FaultKind kind, std::mt19937& random);
  static std::optional<Fault> change_recording(FaultKind kind, std::mt19937& random,
                                               Recording& recording);
  std::optional<std::size_t> pick(std::mt19937& random, BusOp op, BusOp other) const;
  ImportedRecording import() const;
  FaultOutcome replay(const ImportedRecording& imported, const Fault& fault, bool baseline);
  Diagnosis diagnose(ImportedRecording& imported, const Fault& fault) const;
  bool is_true_cause(const Cause& cause, const Fault& fault) const;
  bool runs_as_before(const ImportedRecording& imported, const std::vector<Hint>& hints) const;

  ImportOptions options_;
  std::optional<Where> start_;  ///< of options_, without a fault
  CaptureInfo info_;
  std::vector<BusTransaction> transactions_;
  std::vector<std::uint64_t> positions_;  ///< of each transaction, since the start
  std::size_t first_ = 0;                 ///< transaction behind the start
  std::optional<std::pair<std::size_t, std::size_t>> left_out_;  ///< of transactions_, and the end
  /// Before that one, which does not belong there.
  std::optional<std::pair<std::size_t, BusTransaction>> inserted_;
  std::optional<std::pair<std::size_t, BusTransaction>> changed_;  ///< as it was
  std::optional<std::size_t> swapped_;  ///< of transactions_, with the one behind it
  Signature baseline_;
  std::vector<Interrupt> interrupts_;  ///< without a fault
};

/// A capture of ../shared/data/machine that faults are put into, and its form.
using InjectedCapture = std::pair<const char*, char>;
inline constexpr std::array<InjectedCapture, 7> kInjectedCaptures{{{"lin_user_tiny", 'A'},
                                                                   {"lin_user_tiny", 'B'},
                                                                   {"lin_user_tiny", 'C'},
                                                                   {"bios486_tiny", 'A'},
                                                                   {"lin_procs_small", 'B'},
                                                                   {"lin_disk_small", 'B'},
                                                                   {"lin_disk_small", 'C'}}};
/// Those of a million instructions and more are left to the full run.
bool is_large(const InjectedCapture& capture);
FaultInjector open_machine(const InjectedCapture& capture);
/// The sample of the IBM 5150 from its first interrupt on.
FaultInjector open_ibm5150();

}  // namespace citcat::test
