#pragma once
// What a machine's processors communicate, as rows: one replay of all of them together, in the
// order of their bus, collects these when they are first needed.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "events/archive/machine_file.h"
#include "replay/verify/comparison_policy.h"
#include "tools/processors/sharing_tool.h"

namespace citcat::sql {

class SharedRows {
 public:
  /// `machine`, which must outlive this, is null if there is one processor, which shares nothing.
  /// `check`: compare with the evidence on the way. `poll` may throw to end the replay.
  SharedRows(const MachineFile* machine, bool check, std::function<void()> poll)
      : machine_(machine), check_(check), poll_(std::move(poll)) {}

  /// What a processor read, in the order of its positions.
  const std::vector<tools::Communication>& of(std::size_t reader);
  /// Processors whose replay did not come to its end.
  const std::vector<std::size_t>& stopped() const { return stopped_; }

 private:
  void collect();

  const MachineFile* machine_;
  bool check_;
  std::function<void()> poll_;
  bool collected_ = false;
  std::vector<std::vector<tools::Communication>> rows_;  ///< by reader
  std::vector<std::size_t> stopped_;
};

}  // namespace citcat::sql
