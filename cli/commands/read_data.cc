#include "cli/commands/read_data.h"

#include <algorithm>
#include <numeric>

namespace citcat {

ReadData::ReadData(const Recording& recording)
    : memory_(recording.image.clone()),
      external_(recording.external_writes),
      count_(recording.external_writes.size()) {
  std::vector<std::uint64_t> transactions;
  for (const ExternalWrite& write : recording.external_writes) {
    transactions.push_back(write.transaction);
  }
  if (std::is_sorted(transactions.begin(), transactions.end())) return;
  order_.resize(count_);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return transactions[a] < transactions[b]; });
}

void ReadData::take_external_writes(std::uint64_t transaction) {
  for (; next_ < count_; ++next_) {
    const ExternalWrite& write = external_[order_.empty() ? next_ : order_[next_]];
    if (write.transaction > transaction) return;
    memory_.set(write.address, write.data);
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
