#pragma once

#include <vector>

#include "events/recording.h"

namespace citcat::test {

/// Evidence that goes into a vector, which must outlive it.
class KeptEvidence final : public EvidenceWriter {
 public:
  explicit KeptEvidence(std::vector<BusTransaction>& to) : to_(to) {}
  void write(const BusTransaction& t) override { to_.push_back(t); }

 private:
  std::vector<BusTransaction>& to_;
};

}  // namespace citcat::test
