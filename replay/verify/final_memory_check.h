#pragma once
// Memory at the end of a replay, against what the writes on the bus leave there or against an image
// captured at the end.

#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "events/recording.h"
#include "formats/memory/number_set.h"
#include "replay/machine/memory.h"
#include "replay/verify/transaction_bytes.h"

namespace citcat {

/// Final memory compared with an image captured at the end.
struct FinalMemory {
  std::uint64_t bytes = 0;  ///< compared
  std::uint64_t different = 0;
  /// Bytes that differ where no manual defines the value and no bus showed it (x87 transcendentals,
  /// RCPPS, undefined flags, still in a write-back cache): the captured image's are right.
  std::uint64_t adopted = 0;
  /// Bytes that differ although the bus confirmed what the processor last left there: another bus
  /// master wrote them after the processor's last access.
  std::uint64_t external_unseen = 0;
  /// Written by the processor to uncacheable addresses and never read back: devices, not memory.
  std::uint64_t device = 0;
  std::vector<PhysAddr> differences;  ///< the first few thousand
};

/// Follows a comparison from its beginning. All addresses are as captured.
class FinalMemoryCheck {
 public:
  struct Options {
    bool keeps_model = false;  ///< of what the writes on the bus leave; not for write-back caches
    /// Every line is told of that is stored to and not on the bus yet: a difference elsewhere is
    /// another bus master's.
    bool knows_lines = false;
  };
  /// `schedule` must outlive the check; `before` is what memory holds before the run.
  FinalMemoryCheck(const MemoryImage& before, const Schedule& schedule, Options options);

  // What the bus shows.
  void write_agreed(const BusTransaction& t) {
    if (options_.keeps_model) {
      const bool others_wrote = progress_.next_external < schedule_.external_writes.size();
      if (others_wrote) model_external_writes(t.index);
      model_.set(t.address, t.bytes());
    }
    if (t.has(kUncacheable)) note_device(t);
  }
  /// A device address that is read again is judged by what the bus shows.
  void captured_read(const BusTransaction& t) {
    if (t.has(kUncacheable) && !progress_.device_bytes.empty()) forget_device(t);
  }
  void line_agreed(const BusTransaction& t) {
    if (options_.knows_lines) confirm(t);
  }
  /// The capture ends: what other masters wrote last is modelled too.
  void end();

  // What the replay does.
  /// It stores to a line that the bus does not show now.
  void stored(PhysAddr a) { progress_.unconfirmed_lines.insert(line_of(a)); }
  /// It stores what lies after the end of the capture, within the instruction that it ends in.
  void stored_beyond_end(PhysAddr a) { progress_.beyond_end.insert(a.value); }

  /// Something was stored to the line, and not given up since.
  bool is_unconfirmed(PhysAddr a) const { return progress_.unconfirmed_lines.contains(line_of(a)); }
  /// Some byte of it was written as to a device, and has not been read since.
  bool is_device(const BusTransaction& t) const;
  bool ended_within_instruction() const { return !progress_.beyond_end.empty(); }

  /// The model, kept elsewhere with writes that were not reported here.
  void take_model(const MemoryImage& model) { model_ = model.clone(); }

  /// Whether memory at an address may differ from this byte of a captured image.
  using MayDiffer = std::function<bool(PhysAddr, std::uint8_t)>;
  /// `captured` null: compares with the model, or with nothing where there is none.
  FinalMemory compare(const Memory& memory, const MemoryImage* captured,
                      const MayDiffer& may_differ) const;

  /// How far it has come, to come back to; without the model.
  struct Progress {
    std::size_t next_external = 0;  ///< not in the model yet
    NumberSet unconfirmed_lines;    ///< line_of() what was written since the bus showed them
    std::unordered_set<std::uint64_t> device_bytes;
    std::unordered_set<std::uint64_t> beyond_end;
  };
  const Progress& progress() const { return progress_; }
  void restore(const Progress& progress) { progress_ = progress; }

 private:
  void confirm(const BusTransaction& line);
  void note_device(const BusTransaction& t);
  void forget_device(const BusTransaction& t);
  void model_external_writes(std::uint64_t transaction);
  void compare_byte(PhysAddr at, std::uint8_t byte, const Memory& memory, bool with_image,
                    const MayDiffer& may_differ, FinalMemory& result) const;

  const Schedule& schedule_;
  PackedCursor<ExternalWrites> external_writes_;  ///< of the schedule
  Options options_;
  Progress progress_;
  MemoryImage model_;  ///< what the bus says memory holds
};

}  // namespace citcat
