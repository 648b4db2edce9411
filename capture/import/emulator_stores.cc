#include "capture/import/emulator_stores.h"

#include <algorithm>

namespace citcat {

EmulatorStores::EmulatorStores(const std::string& path) : sorted_(load_emulator_stores(path)) {
  std::sort(sorted_.begin(), sorted_.end());
}

std::vector<std::uint64_t> EmulatorStores::shown_by(const ExternalWrites& writes,
                                                    Position base) const {
  std::vector<std::uint64_t> shown;
  for (const ExternalWrite& write : writes) {
    if (write.data.size() != 1 || !write.position_known) continue;
    const EmulatorStore store{write.position.instruction + base.instruction, write.address,
                              write.data.front()};
    if (std::binary_search(sorted_.begin(), sorted_.end(), store))
      shown.push_back(write.transaction);
  }
  return shown;
}

}  // namespace citcat
