#pragma once
// The contents of memory that the capture has shown so far.

#include <cstddef>
#include <cstdint>
#include <span>

#include "events/bus_transaction.h"
#include "events/machine/memory_image.h"
#include "events/packed_events.h"
#include "events/recording.h"
#include "formats/memory/number_set.h"

namespace citcat {

/// Fills in the data of a read with what `image` holds. Bit i of what it returns: byte i is known.
std::uint32_t show(const MemoryImage& image, BusTransaction& read);

/// The first-read image, and what the captured processor and other bus masters have written since.
class CapturedMemory {
 public:
  /// `schedule` must outlive the object.
  CapturedMemory(const MemoryImage& image, const Schedule& schedule)
      : schedule_(schedule), external_writes_(schedule.external_writes), image_(image.clone()) {}

  /// Calls write(const ExternalWrite&) for each write by another bus master up to the captured
  /// transaction of this number that has not been handed out yet.
  template <class Write>
  void take_external_writes(std::uint64_t transaction, Write&& write) {
    for (; next_external_ < schedule_.external_writes.size(); ++next_external_) {
      const ExternalWrite& next = external_writes_[next_external_];
      if (next.transaction > transaction) return;
      write(next);
    }
  }
  /// Calls `first(frame)` before a frame is written to for the first time.
  template <class First>
  void set(PhysAddr a, std::span<const std::uint8_t> bytes, First&& first) {
    const auto end = a.offset_in_page() + static_cast<std::uint32_t>(bytes.size());
    for (std::uint32_t at = 0; at < end; at += kPageSize) {
      const FrameNumber frame = a.page_begin().plus32(at).page();
      if (written_.contains(frame)) continue;
      first(frame);
      written_.insert(frame);
    }
    image_.set(a, bytes);
  }
  void set(PhysAddr a, std::span<const std::uint8_t> bytes) {
    set(a, bytes, [](FrameNumber) {});
  }
  /// Something was written to the frame: it need not be what the image holds any more.
  bool is_written(FrameNumber frame) const { return written_.contains(frame); }
  const MemoryImage& image() const { return image_; }
  /// `t` comes before long: what is needed for it is fetched from the host's memory ahead.
  void prefetch(const BusTransaction& t) const {
    const MemoryImage::Page* const page = image_.find(t.address.page());
    if (page == nullptr) return;
    __builtin_prefetch(&page->data[t.address.offset_in_page()]);
    page->valid.prefetch(t.address.offset_in_page());
  }

  /// What it holds at one moment, to come back to.
  struct Checkpoint {
    std::size_t next_external = 0;
    NumberSet written;
    MemoryImage image;
  };
  Checkpoint checkpoint() const { return {next_external_, written_, image_.clone()}; }
  void restore(const Checkpoint& checkpoint) {
    next_external_ = checkpoint.next_external;
    written_ = checkpoint.written;
    image_ = checkpoint.image.clone();
  }

 private:
  const Schedule& schedule_;
  PackedCursor<ExternalWrites> external_writes_;  ///< of the schedule
  std::size_t next_external_ = 0;
  NumberSet written_;  ///< frames
  MemoryImage image_;
};

}  // namespace citcat
