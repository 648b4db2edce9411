#pragma once
// A capture that is small, as the list of its transactions.

#include <string>
#include <vector>

#include "capture/bus/source.h"

namespace citcat::test {

inline std::vector<BusTransaction> read_all(CaptureReader& capture) {
  std::vector<BusTransaction> all;
  BusTransaction transaction;
  while (capture.next(transaction)) all.push_back(transaction);
  return all;
}

inline std::vector<BusTransaction> read_all(const std::string& path,
                                            const CaptureOptions& options = {}) {
  return read_all(*open_capture({path}, options));
}

}  // namespace citcat::test
