#pragma once
// Counts of instructions that do not fit their neighbours: a record whose count is far above that
// of the next record of its processor, or far below that of the previous one, may be another
// processor's. The import ignores such a count and uses all others.

#include <cstdint>
#include <deque>
#include <vector>

#include "capture/import/processor_records.h"

namespace citcat {

/// Passes on one processor's records, and holds as many as are needed to decide.
class LoneCounts {
 public:
  void add(const ProcessorRecord& record, std::uint64_t number);
  /// Nothing comes any more.
  void end() { ended_ = true; }
  /// The next one that is settled; false where there is none yet.
  bool take(ProcessorRecord& out);
  /// Numbers in the file of records whose counts were taken away since the last question.
  std::vector<std::uint64_t> take_lone();

 private:
  struct Held {
    ProcessorRecord record;
    std::uint64_t number = 0;
  };
  std::size_t same_count() const;
  bool is_lone(std::size_t parts) const;

  std::deque<Held> held_;
  std::uint64_t reached_ = 0;  ///< the highest count that was believed
  std::vector<std::uint64_t> lone_;
  bool ended_ = false;
};

}  // namespace citcat
