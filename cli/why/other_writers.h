#pragma once
// What other processors stored of a slice's inputs, where the recording is of one of several.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/archive/machine_file.h"
#include "replay/processors/foreign_read_search.h"
#include "replay/slice/slice.h"

namespace citcat {

class OtherWriters {
 public:
  explicit OtherWriters(const std::string& recording);

  /// For the Slicer; null where there is one processor, or the evidence does not say enough.
  ForeignReads* reads() { return search_.get(); }
  /// Finishes the inputs of a slice: which processors wrote them, by which of their transactions,
  /// and whether all of that is known.
  void name(Slice& slice) const;

 private:
  void find(Slice& slice, const std::vector<RecordingFile>& files) const;

  std::optional<MachineFile> machine_;
  std::uint8_t reader_ = 0;
  std::unique_ptr<ForeignReadSearch> search_;
};

}  // namespace citcat
