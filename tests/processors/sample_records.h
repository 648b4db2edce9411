#pragma once
// The capture of samples/two-processors as headerless records.

#include <vector>

#include "unit/capture/machine_data.h"

namespace citcat::test {

std::vector<MonitorRecord> sample_records();

}  // namespace citcat::test
