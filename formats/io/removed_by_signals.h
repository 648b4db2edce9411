#pragma once
// A file of a name of its own that goes with the temporaries (temporary.h).

#include <string>

namespace citcat {

/// As long as it lives, the file goes where a signal ends the program.
class RemovedBySignals {
 public:
  explicit RemovedBySignals(const std::string& path);
  ~RemovedBySignals();
  RemovedBySignals(const RemovedBySignals&) = delete;
  RemovedBySignals& operator=(const RemovedBySignals&) = delete;

 private:
  int slot_;
};

}  // namespace citcat
