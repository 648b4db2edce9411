#include "events/processors/shared_bus.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <utility>

#include "events/processors/bus_parts.h"
#include "events/processors/device_addresses.h"

namespace citcat {
namespace {

/// What a processor knows memory to hold: its image, its own writes, and what it was shown.
class KnownMemory {
 public:
  explicit KnownMemory(const MemoryImage& image) : image_(image) {}

  void write(PhysAddr address, std::span<const std::uint8_t> bytes) {
    for_bus_parts(address, bytes.size(),
                  [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                    std::memcpy(part(number).data() + at, bytes.data() + i, n);
                  });
  }

  void read(PhysAddr address, std::span<std::uint8_t> bytes) {
    for_bus_parts(address, bytes.size(),
                  [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                    std::memcpy(bytes.data() + i, part(number).data() + at, n);
                  });
  }

 private:
  using Bytes = std::array<std::uint8_t, kBusPart>;

  Bytes& part(std::uint64_t number) {
    return parts_.find_or_make(number, [&](Bytes& made) {
      const PhysAddr begin{number * kBusPart};
      if (const MemoryImage::Page* const initial = image_.find(begin.page()))
        std::memcpy(made.data(), initial->data.data() + begin.offset_in_page(), kBusPart);
    });
  }

  const MemoryImage& image_;
  BusParts<Bytes> parts_;
};

}  // namespace

/// What the bus has shown of memory.
class SharedBus::Memory {
 public:
  /// Those of `bytes` that it has shown, which `known` then tells.
  void get(PhysAddr address, std::span<std::uint8_t> bytes,
           std::bitset<kMaxTransactionBytes>& known) const {
    for_bus_parts(address, bytes.size(),
                  [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                    const Part* const part = parts_.find(number);
                    if (part == nullptr) return;
                    for (std::size_t k = 0; k < n; ++k) {
                      if (!part->known[at + k]) continue;
                      bytes[i + k] = part->value[at + k];
                      known.set(i + k);
                    }
                  });
  }
  void set(PhysAddr address, std::span<const std::uint8_t> bytes) {
    for_bus_parts(address, bytes.size(),
                  [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                    Part& part = parts_.find_or_make(number);
                    std::memcpy(part.value.data() + at, bytes.data() + i, n);
                    for (std::size_t k = at; k < at + n; ++k) part.known.set(k);
                  });
  }

 private:
  struct Part {
    std::array<std::uint8_t, kBusPart> value{};
    std::bitset<kBusPart> known;
  };
  BusParts<Part> parts_;
};

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

  /// `shared`: null where nothing is left out.
  void take(SharedEvent& out, Memory* shared, std::uint32_t ram_bytes) {
    out.t = t_;
    const bool plain = shared != nullptr && t_.is_memory() && !is_device(t_, ram_bytes);
    if (t_.op == BusOp::code_read || t_.op == BusOp::data_read) {
      out.changed = take_external(out);
      if (plain) derive(out, out.changed, *shared);
      memory_.read(t_.address, std::span(out.t.data).first(t_.size));
    } else if (t_.op == BusOp::data_write) {
      memory_.write(t_.address, t_.bytes());
    }
    if (plain) shared->set(t_.address, out.t.bytes());
    advance();
    if (!at_end_) out.next = {t_.position, t_.clock};
  }

 private:
  /// What the recording tells; returns which bytes of the read it is of.
  std::bitset<kMaxTransactionBytes> take_external(SharedEvent& out) {
    std::bitset<kMaxTransactionBytes> told;
    while (external_ != recording_.external_writes.end() && (*external_).transaction == t_.index) {
      const ExternalWrite write = *external_;
      memory_.write(write.address, write.data);
      if (!out.external) out.external = next_external_;
      ++next_external_;
      ++external_;
      for (std::uint32_t i = 0; i < t_.size; ++i) {
        if (t_.address.plus32(i).minus32(write.address) < write.data.size()) told.set(i);
      }
    }
    return told;
  }

  /// What the processor knows is no longer what memory holds: another one wrote it.
  void derive(SharedEvent& out, const std::bitset<kMaxTransactionBytes>& told,
              const Memory& shared) {
    std::array<std::uint8_t, kMaxTransactionBytes> known{};
    memory_.read(t_.address, std::span(known).first(t_.size));
    std::array<std::uint8_t, kMaxTransactionBytes> now{};
    std::bitset<kMaxTransactionBytes> shown;
    shared.get(t_.address, std::span(now).first(t_.size), shown);
    std::uint32_t first = t_.size, last = 0;
    for (std::uint32_t i = 0; i < t_.size; ++i) {
      if (!shown[i] || told[i] || now[i] == known[i]) continue;
      known[i] = now[i];
      first = std::min(first, i);
      last = i;
    }
    if (first == t_.size) return;
    ExternalWrite write;
    write.address = t_.address.plus32(first);
    write.data.assign(known.begin() + first, known.begin() + last + 1);
    write.position_known = t_.has(kPositionKnown);
    write.position = t_.position;
    write.transaction = t_.index;
    memory_.write(write.address, write.data);
    out.derived = std::move(write);
  }

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

SharedBus::SharedBus(std::vector<ProcessorShare> shares, std::vector<BusNote> notes,
                     std::uint32_t ram_bytes)
    : SharedBus(std::move(shares), std::move(notes)) {
  memory_ = std::make_unique<Memory>();
  ram_bytes_ = ram_bytes;
}

SharedBus::SharedBus(SharedBus&&) noexcept = default;
SharedBus::~SharedBus() = default;

bool SharedBus::next(SharedEvent& out) {
  out = {};
  // If two are at one clock, the processor whose turn it is continues.
  std::size_t first = shares_.size();
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (shares_[i]->at_end()) continue;
    const bool sooner = first == shares_.size() || shares_[i]->clock() < shares_[first]->clock() ||
                        (shares_[i]->clock() == shares_[first]->clock() && i == last_);
    if (sooner) first = i;
  }
  if (next_note_ < notes_.size()) {
    const BusNote& note = notes_[next_note_];
    if (first == shares_.size() || note.clock <= shares_[first]->clock()) {
      out.processor = note.processor;
      out.note = note;
      if (memory_ && note.kind == BusNote::Kind::device_write) {
        std::array<std::uint8_t, sizeof note.data> bytes{};
        std::memcpy(bytes.data(), &note.data, sizeof note.data);
        memory_->set(note.address, std::span(bytes).first(note.size));
      }
      ++next_note_;
      return true;
    }
  }
  if (first == shares_.size()) return false;
  out.processor = last_ = static_cast<std::uint8_t>(first);
  shares_[first]->take(out, memory_.get(), ram_bytes_);
  return true;
}

}  // namespace citcat
