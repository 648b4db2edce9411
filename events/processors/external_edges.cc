#include "events/processors/external_edges.h"

#include <utility>

namespace citcat {
namespace {

/// The external writes of one processor as they come.
struct Series {
  std::vector<ExternalWrite> writes;
  std::uint64_t behind = kNoTransaction;  ///< the transaction after the one the last is of
  ExternalWrites::const_iterator stored;

  /// As RecordingBuilder puts those of reads together that follow each other directly.
  void add(ExternalWrite write, std::uint64_t transaction) {
    if (!writes.empty() && behind == transaction) {
      ExternalWrite& last = writes.back();
      if (last.address.plus32(static_cast<std::uint32_t>(last.data.size())) == write.address) {
        last.data.insert(last.data.end(), write.data.begin(), write.data.end());
        behind = transaction + 1;
        return;
      }
    }
    writes.push_back(std::move(write));
    behind = transaction + 1;
  }
};

}  // namespace

std::vector<std::vector<ExternalWrite>> derive_external_writes(std::vector<ProcessorShare> shares,
                                                               std::vector<BusNote> notes,
                                                               std::uint32_t ram_bytes) {
  std::vector<Series> all;
  for (const ProcessorShare& share : shares) {
    all.emplace_back();
    all.back().stored = share.recording->external_writes.begin();
  }
  SharedBus bus(std::move(shares), std::move(notes), ram_bytes);
  for (SharedEvent event; bus.next(event);) {
    if (event.note) continue;
    Series& its = all[event.processor];
    if (event.external) {
      its.writes.push_back(*its.stored);
      ++its.stored;
      its.behind = kNoTransaction;
    }
    if (event.derived) its.add(std::move(*event.derived), event.t.index);
  }
  std::vector<std::vector<ExternalWrite>> writes;
  for (Series& its : all) writes.push_back(std::move(its.writes));
  return writes;
}

bool is_same_change(const ExternalWrite& a, const ExternalWrite& b) {
  return a.address == b.address && a.data == b.data && a.position_known == b.position_known &&
         a.position == b.position && a.transaction == b.transaction;
}

}  // namespace citcat
