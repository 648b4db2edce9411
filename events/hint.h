#pragma once
// Corrections of a recording that somebody has reviewed: what a capture showed wrongly or not at
// all. `citcat explain` proposes them, `--hints` passes them back (docs/explain.md).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "events/recording.h"

namespace citcat {

struct Hint {
  enum class Kind : std::uint8_t {
    memory,                ///< bytes at `address` before the run are `data`
    register_value,        ///< `name` was `value` before the run
    external_write,        ///< another bus master wrote `data`; replaces one of that transaction
    no_external_write,     ///< the change that `transaction` showed at `address` was none
    port_read,             ///< the port read of `transaction` gave `value`
    internal_read,         ///< an RDTSC or the like gave `value` (EDX:EAX): that of `number`, or at
                           ///< `position`
    interrupt,             ///< that of `transaction` was at `position`, with vector `value`
    added_interrupt,       ///< one that the capture does not show: `name` intr, nmi or smi
    no_interrupt,          ///< that of `transaction` was none
    captured_write,        ///< the write of `transaction` was of `data` to `address`
    added_captured_write,  ///< one, before `transaction`, that the capture does not show
    no_captured_write,     ///< that of `transaction` was none
    result,  ///< what the instruction stored is right in the capture, not in the replay
  };
  Kind kind = Kind::memory;
  Position position;
  /// The transaction's number in the capture. All ones where none is concerned.
  std::uint64_t transaction = ~std::uint64_t{0};
  PhysAddr address;
  std::vector<std::uint8_t> data;
  std::string name;
  std::uint64_t value = 0;
  /// internal_read: its place among the recording's values that cross no bus, from 0.
  std::optional<std::uint64_t> number;
  bool write_back = false;  ///< added_captured_write: of a line
  std::string because;      ///< for people

  bool operator==(const Hint&) const = default;
  /// It changes what the replay is compared with, not what it is made from.
  bool concerns_evidence() const;
  /// Its transaction is to be believed although the replay alone does not explain it.
  bool is_reviewed_transaction() const {
    return kind == Kind::result || kind == Kind::external_write;
  }
};
std::string_view hint_kind_name(Hint::Kind kind);
/// The transactions of reviewed hints (Hint::is_reviewed_transaction()) and those given, ascending.
std::vector<std::uint64_t> reviewed_transactions(const std::vector<Hint>& hints,
                                                 std::vector<std::uint64_t> given = {});

struct HintFile {
  /// RecordingFile::identity() of the recording the hints are for, without hints; may be empty.
  std::string recording;
  std::vector<Hint> hints;
};
/// Throws FormatError with `source`, the byte offset where JSON ends to be JSON, and the key.
HintFile parse_hints(const std::string& text, const std::string& source);
HintFile load_hints(const std::string& path);
std::string hints_text(const HintFile& file);

/// Makes the schedule what the hint says, as far as it concerns events. Returns what takes that
/// back again: hints must be taken back in reverse order. Throws UsageError when the schedule has
/// nothing the hint could mean.
std::function<void(Schedule&)> apply_hint(const Hint& hint, Schedule& schedule);
/// The same for a recording that is being read or worked on: also what it holds before the run.
std::function<void(Recording&)> apply_hint(const Hint& hint, Recording& recording);

/// Evidence as the hints correct it. `source` is read ahead by one transaction at most.
class HintedEvidence final : public EvidenceReader {
 public:
  HintedEvidence(std::unique_ptr<EvidenceReader> source, const std::vector<Hint>& hints)
      : source_(std::move(source)) {
    for (const Hint& hint : hints) add(hint);
  }
  bool next(BusTransaction& out) override;

  /// For trials: other hints from here on. Nothing may be held back.
  void set_hints(const std::vector<Hint>& hints);

 private:
  struct Edit {
    std::optional<Hint> change;  ///< captured_write or no_captured_write
    std::vector<Hint> before;    ///< to be inserted
  };
  void add(const Hint& hint);

  std::unique_ptr<EvidenceReader> source_;
  std::unordered_map<std::uint64_t, Edit> edits_;
  std::optional<BusTransaction> held_;
  std::size_t inserted_ = 0;  ///< of those before held_
};

}  // namespace citcat
