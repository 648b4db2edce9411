#include "cli/read_data.h"

#include <algorithm>

namespace citcat {

ReadData::ReadData(const Recording& recording) : memory_(recording.image.clone()) {
  for (const ExternalWrite& write : recording.external_writes) external_.push_back(&write);
  std::stable_sort(external_.begin(), external_.end(),
                   [](const ExternalWrite* a, const ExternalWrite* b) {
                     return a->transaction < b->transaction;
                   });
}

void ReadData::take_external_writes(std::uint64_t transaction) {
  for (; next_ < external_.size() && external_[next_]->transaction <= transaction; ++next_) {
    memory_.set(external_[next_]->address, external_[next_]->data);
  }
}

bool ReadData::complete(BusTransaction& t) {
  if (!t.is_memory()) return true;
  take_external_writes(t.index);
  if (t.op == BusOp::data_write) {
    memory_.set(t.address, t.bytes());
    return true;
  }
  bool known = true;
  for (std::uint32_t i = 0; i < t.size; ++i) {
    const auto byte = memory_.byte(t.address.plus32(i));
    known &= byte.has_value();
    t.data[i] = byte.value_or(0);
  }
  return known;
}

}  // namespace citcat
