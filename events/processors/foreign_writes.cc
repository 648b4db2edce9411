#include "events/processors/foreign_writes.h"

#include <map>
#include <utility>

namespace citcat {
namespace {

bool covers(PhysAddr begin, std::size_t size, PhysAddr byte) {
  return byte.value - begin.value < size;
}

class ForeignWriteSearch {
 public:
  ForeignWriteSearch(std::uint8_t reader, std::span<const ShownByte> bytes)
      : reader_(reader), bytes_(bytes), found_(bytes.size()) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      last_.try_emplace(bytes[i].address);
      if (bytes[i].transaction) {
        shown_by_.emplace(*bytes[i].transaction, i);
      } else {
        not_read_.emplace(bytes[i].address, i);
      }
    }
  }

  void take(const SharedEvent& event) {
    if (event.note) {
      const BusNote& note = *event.note;
      if (note.kind == BusNote::Kind::device_write) write(note.address, note.size, std::nullopt);
      return;
    }
    if (event.processor == reader_) show(event.t);
    if (event.t.is_memory() && event.t.op == BusOp::data_write) write_of(event);
  }

  std::vector<std::optional<ForeignWrite>> found() { return std::move(found_); }

 private:
  /// Writes of a byte that is asked about.
  struct Last {
    std::optional<ForeignWrite> of_all;
    std::map<std::uint8_t, ForeignWrite> of;  ///< by processor
  };

  void find(std::size_t number) {
    const ShownByte& byte = bytes_[number];
    const Last& last = last_[byte.address];
    if (!byte.writer) {
      found_[number] = last.of_all;
    } else if (const auto its = last.of.find(*byte.writer); its != last.of.end()) {
      found_[number] = its->second;
    }
  }
  void show(const BusTransaction& t) {
    const auto [begin, end] = shown_by_.equal_range(t.index);
    for (auto i = begin; i != end; ++i) find(i->second);
    if (!t.is_memory() || t.op == BusOp::data_write) return;
    auto byte = not_read_.lower_bound(t.address);
    while (byte != not_read_.end() && covers(t.address, t.size, byte->first)) {
      find(byte->second);
      byte = not_read_.erase(byte);
    }
  }
  void write_of(const SharedEvent& event) {
    const BusTransaction& t = event.t;
    if (event.processor == reader_) return write(t.address, t.size, std::nullopt);
    ForeignWrite by;
    by.processor = event.processor;
    by.transaction = t.index;
    if (t.has(kPositionKnown)) by.position = t.position;
    write(t.address, t.size, by);
  }
  /// Notes who wrote the bytes that are asked about.
  void write(PhysAddr begin, std::size_t size, const std::optional<ForeignWrite>& by) {
    auto i = last_.lower_bound(begin);
    for (; i != last_.end() && covers(begin, size, i->first); ++i) {
      i->second.of_all = by;
      if (by) i->second.of[by->processor] = *by;
    }
  }

  std::uint8_t reader_;
  std::span<const ShownByte> bytes_;
  std::vector<std::optional<ForeignWrite>> found_;
  std::multimap<std::uint64_t, std::size_t> shown_by_;
  std::multimap<PhysAddr, std::size_t> not_read_;
  std::map<PhysAddr, Last> last_;
};

}  // namespace

std::vector<std::optional<ForeignWrite>> find_foreign_writes(SharedBus& bus, std::uint8_t reader,
                                                             std::span<const ShownByte> bytes) {
  ForeignWriteSearch search(reader, bytes);
  for (SharedEvent event; bus.next(event);) search.take(event);
  return search.found();
}

}  // namespace citcat
