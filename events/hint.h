#pragma once
// Reviewed corrections of what a capture shows wrongly or not at all. `citcat explain` proposes
// them, `--hints` passes them back (docs/explain.md).

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
    memory,             ///< bytes at `address` before the run are `data`
    register_value,     ///< `name` was `value` before the run
    external_write,     ///< another bus master wrote `data`; replaces the one of `transaction`
    no_external_write,  ///< there was no change at `address`, although `transaction` showed one
    port_read,          ///< the port read of `transaction` gave `value`
    internal_read,      ///< an RDTSC or the like gave `value` (EDX:EAX): the one with `number`, or
                        ///< the one at `position`
    interrupt,          ///< the one of `transaction` came at `position`, with vector `value`
    added_interrupt,    ///< an interrupt that the capture does not show; `name` is intr, nmi or smi
    no_interrupt,       ///< `transaction` was no interrupt
    captured_write,     ///< `transaction` wrote `data` to `address`
    added_captured_write,  ///< before `transaction`, a write that the capture does not show
    no_captured_write,     ///< `transaction` was no write
    result,  ///< the value that the instruction stored is right in the capture, not in the replay
  };
  Kind kind = Kind::memory;
  Position position;
  /// The transaction's number in the capture; all ones if the hint is not about a transaction.
  std::uint64_t transaction = ~std::uint64_t{0};
  PhysAddr address;
  std::vector<std::uint8_t> data;
  std::string name;
  std::uint64_t value = 0;
  /// For internal_read: its number among the recording's values that cross no bus, from 0.
  std::optional<std::uint64_t> number;
  bool write_back = false;  ///< for added_captured_write: the write-back of a line
  std::string because;      ///< for people

  bool operator==(const Hint&) const = default;
  /// True if it changes the evidence, not the input of the replay.
  bool concerns_evidence() const;
  /// True if the transaction is accepted although the replay alone does not explain it.
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
/// Throws FormatError with `source`, the byte offset where the text stops being JSON, and the key.
HintFile parse_hints(const std::string& text, const std::string& source);
HintFile load_hints(const std::string& path);
std::string hints_text(const HintFile& file);

/// Changes the schedule as the hint says, as far as it concerns events. Returns a function that
/// undoes the change; hints must be undone in reverse order. Throws UsageError if the schedule has
/// nothing that the hint could refer to.
std::function<void(Schedule&)> apply_hint(const Hint& hint, Schedule& schedule);
/// The same for a recording that is being read or changed, including its state before the run.
std::function<void(Recording&)> apply_hint(const Hint& hint, Recording& recording);

/// Evidence as corrected by the hints. `source` is read ahead by one transaction at most.
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
