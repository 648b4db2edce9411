#include "events/processors/shared_bus.h"

#include <algorithm>
#include <utility>

namespace citcat {
namespace {

/// What a processor knows memory to hold: its image, its own writes, and what it was shown.
class KnownMemory {
 public:
  explicit KnownMemory(const MemoryImage& image) : image_(image) {}

  void write(PhysAddr address, std::span<const std::uint8_t> bytes) {
    for_parts(address, bytes.size(),
              [&](Bytes& page, std::uint32_t at, std::size_t i, std::size_t n) {
                std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(i), n, page.begin() + at);
              });
  }

  void read(PhysAddr address, std::span<std::uint8_t> bytes) {
    for_parts(address, bytes.size(),
              [&](Bytes& page, std::uint32_t at, std::size_t i, std::size_t n) {
                std::copy_n(page.begin() + at, n, bytes.begin() + static_cast<std::ptrdiff_t>(i));
              });
  }

 private:
  using Bytes = std::array<std::uint8_t, kPageSize>;

  template <typename Fn>
  void for_parts(PhysAddr address, std::size_t size, Fn fn) {
    for (std::size_t i = 0; i < size;) {
      const PhysAddr here = address.plus32(static_cast<std::uint32_t>(i));
      const std::size_t n = std::min<std::size_t>(size - i, kPageSize - here.offset_in_page());
      fn(page(here.page()), here.offset_in_page(), i, n);
      i += n;
    }
  }

  Bytes& page(std::uint32_t number) {
    std::unique_ptr<Bytes>& its = pages_[number];
    if (its) return *its;
    its = std::make_unique<Bytes>();
    if (const MemoryImage::Page* const initial = image_.find(number)) *its = initial->data;
    return *its;
  }

  const MemoryImage& image_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Bytes>> pages_;
};

}  // namespace

/// One processor's transactions, the data of reads put back.
class SharedBus::Share {
 public:
  explicit Share(ProcessorShare share)
      : recording_(*share.recording),
        evidence_(std::move(share.evidence)),
        memory_(recording_.image),
        external_(recording_.external_writes.begin()) {
    advance();
  }

  bool at_end() const { return at_end_; }
  std::uint64_t clock() const { return t_.clock; }
  std::uint64_t index() const { return t_.index; }

  void take(SharedEvent& out) {
    out.t = t_;
    if (t_.op == BusOp::code_read || t_.op == BusOp::data_read) {
      while (external_ != recording_.external_writes.end() &&
             (*external_).transaction == t_.index) {
        const ExternalWrite write = *external_;
        memory_.write(write.address, write.data);
        if (!out.external) out.external = next_external_;
        ++next_external_;
        ++external_;
      }
      memory_.read(t_.address, std::span(out.t.data).first(t_.size));
    } else if (t_.op == BusOp::data_write) {
      memory_.write(t_.address, t_.bytes());
    }
    advance();
  }

 private:
  void advance() {
    const std::uint64_t before = t_.clock;
    at_end_ = !evidence_->next(t_);
    // What has no clock of its own goes with what its processor did before.
    if (!t_.has(kClockKnown)) t_.clock = before;
  }

  const Recording& recording_;
  std::unique_ptr<EvidenceReader> evidence_;
  KnownMemory memory_;
  decltype(std::declval<const ExternalWrites&>().begin()) external_;
  std::size_t next_external_ = 0;
  BusTransaction t_;
  bool at_end_ = false;
};

SharedBus::SharedBus(std::vector<ProcessorShare> shares, std::vector<BusNote> notes)
    : notes_(std::move(notes)) {
  for (ProcessorShare& share : shares) shares_.push_back(std::make_unique<Share>(std::move(share)));
}

SharedBus::SharedBus(SharedBus&&) noexcept = default;
SharedBus::~SharedBus() = default;

bool SharedBus::next(SharedEvent& out) {
  out = {};
  // Of two at one clock the processor goes on that was at it.
  std::size_t first = shares_.size();
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i]->at_end()) continue;
    const bool sooner = first == shares_.size() || shares_[i]->clock() < shares_[first]->clock() ||
                        (shares_[i]->clock() == shares_[first]->clock() && i == last_);
    if (sooner) first = i;
  }
  if (next_note_ < notes_.size()) {
    const BusNote& note = notes_[next_note_];
    const bool own = first < shares_.size() && note.processor == first;
    const bool due =
        first == shares_.size() || note.clock < shares_[first]->clock() ||
        (note.clock == shares_[first]->clock() && (!own || note.index <= shares_[first]->index()));
    if (due) {
      out.processor = note.processor;
      out.note = note;
      ++next_note_;
      return true;
    }
  }
  if (first == shares_.size()) return false;
  out.processor = last_ = static_cast<std::uint8_t>(first);
  shares_[first]->take(out);
  return true;
}

}  // namespace citcat
