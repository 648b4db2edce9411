#pragma once
// Places of a plainly compared run, so that parts of it can be replayed and compared once more.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "replay/session/replayer.h"
#include "replay/verify/comparison.h"

namespace citcat {

class Verifier;

struct PlainPlace {
  Replayer::Checkpoint replayer;
  ComparisonPlace comparison;
  std::uint64_t instruction() const { return replayer.machine.position.instruction; }
};

/// A few places, evenly spaced over the run so far.
class PlainPlaces {
 public:
  /// Instructions between the first ones. One place costs some milliseconds.
  static constexpr std::uint64_t kSpacing = std::uint64_t{1} << 22;
  static constexpr std::size_t kMost = 8;
  /// Page frames that all places together may keep, 256 MiB: with more, every other place goes.
  static constexpr std::size_t kMostFrames = std::size_t{1} << 16;

  /// The instruction before which the next is to be taken.
  std::uint64_t next() const { return next_; }
  void take(const Replayer& replayer, Verifier& verifier);
  /// The last at this instruction or before; null: the beginning of the run.
  const PlainPlace* before(std::uint64_t instruction) const;
  void clear() { *this = {}; }

 private:
  std::size_t frames() const;

  std::vector<std::unique_ptr<const PlainPlace>> places_;
  std::uint64_t spacing_ = kSpacing;
  std::uint64_t next_ = kSpacing;
};

}  // namespace citcat
