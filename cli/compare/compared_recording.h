#pragma once
// A recording that is compared with something else.

#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/placed_recording.h"
#include "events/names/symbols.h"
#include "sql/rows/row_source.h"

namespace citcat {

class ComparedRecording {
 public:
  ComparedRecording(const std::string& path, bool check, const Console& console);
  sql::RowSource& source() { return *source_; }
  /// Warns where the replay is not the recorded run; true then.
  bool warn(const Console& console) const;

 private:
  PlacedRecording placed_;
  Symbols symbols_;
  std::unique_ptr<sql::RowSource> source_;
};

}  // namespace citcat
