#pragma once
// Lines whose flags a plain comparison cannot explain.
//
// A processor leaves some flags undefined, programs keep images of them, and a line written back
// shows the processor's. The full comparison follows each store of such an image; a plain one runs
// whole blocks and does not. It therefore accepts such a line, notes the doubt, and goes on. Then
// the run is compared once more in a stretch before each doubt, instruction by instruction, which
// shows whether the doubt can be explained. Doubts that remain get a longer stretch after that.

#include <cstdint>
#include <optional>
#include <vector>

#include "events/position.h"

namespace citcat {

class Doubts {
 public:
  /// Instructions before a doubt that are looked at first: as many as keep all of the stretches to
  /// kShare of the run, but between these two. Each further comparison looks at kLonger times as
  /// many. Images of flags leave a cache soon: most are found in the first.
  static constexpr std::uint64_t kShortest = std::uint64_t{1} << 15,
                                 kLongest = std::uint64_t{1} << 18, kShare = 16, kLonger = 16;
  /// With more of them a full comparison costs less than the stretches do.
  static constexpr std::size_t kMost = 4096;

  struct Stretch {
    std::uint64_t first = 0, end = 0;  ///< numbers of instructions, the last not part of it
  };

  /// Those that were put off are to be looked at once more. Returns where: disjoint stretches in
  /// the order of the run, to be run in this order.
  const std::vector<Stretch>& look_again();
  /// Whether the last comparison has put a doubt off: then it does not count.
  bool remain() const;
  std::size_t count() const { return doubts_.size(); }

  /// Whether each instruction is looked at from `instruction` on. Never goes back.
  bool is_close(std::uint64_t instruction);
  /// The first instruction not before `instruction`, as last given to is_close(), from which on
  /// each is looked at.
  std::uint64_t next_stretch() const;

  /// Numbers the stretches that is_close() meets, from 1.
  std::size_t stretch() const { return next_ + 1; }

  /// The line differs in flags, at `now`. False where the doubt cannot be put off any more.
  bool put_off(std::uint64_t transaction, Position now);
  /// The line is settled, and these of its bytes were taken over. False where it was put off, and
  /// others were then: all that came later was compared without them.
  bool decide(std::uint64_t transaction, std::uint32_t taken_over);

 private:
  struct Doubt {
    std::uint64_t transaction = 0;            ///< number of the line's
    std::uint64_t instruction = 0;            ///< where it was noticed
    std::uint64_t length = 0;                 ///< of the stretch before it
    bool open = true;                         ///< put off by the comparison in progress
    std::optional<std::uint32_t> taken_over;  ///< bytes of the line, when it was first put off
    std::uint64_t first() const { return instruction > length ? instruction - length : 0; }
  };
  std::vector<Doubt>::iterator find(std::uint64_t transaction);
  void lay_stretches();

  std::vector<Doubt> doubts_;       ///< by transaction
  std::vector<Stretch> stretches_;  ///< disjoint, ordered
  std::size_t next_ = 0;            ///< the first stretch that has not been passed
};

}  // namespace citcat
