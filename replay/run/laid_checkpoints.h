#pragma once
// Checkpoints that a replay takes on the way and keeps in memory. Frames that are the same in two
// of them are kept once, because little changes from one to the next.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "replay/session/moment.h"
#include "replay/session/replayer.h"

namespace citcat {

class LaidCheckpoints {
 public:
  /// More than `max_frames` frames of 4 KiB are not held for long: then every other checkpoint
  /// goes, except for the first two.
  explicit LaidCheckpoints(std::size_t max_frames) : max_frames_(max_frames) {}

  /// Keeps where the replayer is. True where others had to go for it.
  bool lay(const Replayer& replayer);
  /// The last one before `moment`; nullopt where there is none.
  std::optional<Moment> before(Moment moment) const;
  /// The last one before instruction `instruction`; nullopt where there is none.
  std::optional<Moment> before_instruction(std::uint64_t instruction) const;
  /// The one at `moment`, which must be there; and the first of all.
  const Replayer::Checkpoint& at(Moment moment) const { return laid_.at(moment); }
  const Replayer::Checkpoint& first() const { return laid_.begin()->second; }
  Moment first_moment() const { return laid_.begin()->first; }
  void clear() { laid_.clear(); }
  std::size_t size() const { return laid_.size(); }
  /// Frames held.
  std::size_t frames() const;

 private:
  bool thin_out();

  std::size_t max_frames_;
  std::map<Moment, Replayer::Checkpoint> laid_;
  std::size_t added_ = 0;  ///< frames since frames() was counted last
  std::size_t counted_ = 0;
};

}  // namespace citcat
