#include "replay/processors/foreign_read_search.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "events/processors/bus_parts.h"
#include "replay/processors/machine_session.h"

namespace citcat {
namespace {

/// Parts of memory that the bus shows to a processor: it can read no others.
std::unordered_set<std::uint64_t> shown_parts(const RecordingFile& file) {
  std::unordered_set<std::uint64_t> parts;
  const std::unique_ptr<EvidenceReader> evidence = file.evidence();
  for (BusTransaction t; evidence->next(t);) {
    if (!t.is_memory() || t.op == BusOp::data_write) continue;
    for_bus_parts(t.address, t.size,
                  [&](std::uint64_t number, std::uint32_t, std::size_t, std::size_t) {
                    parts.insert(number);
                  });
  }
  return parts;
}

bool has_known_positions(const RecordingFile& file) {
  const auto& interrupts = file.recording().interrupts;
  return std::all_of(interrupts.begin(), interrupts.end(),
                     [](const auto& interrupt) { return interrupt.position_known; });
}

}  // namespace

bool shows_order_of_stores(const MachineFile& machine) {
  for (std::size_t p = 0; p < machine.processors(); ++p) {
    const RecordingFile file = machine.open(p);
    const bool hides_lines =
        !machine.info().shows_sharing && file.recording().bus.form == CacheForm::write_back;
    if (file.meta().evidence != EvidenceMode::full || hides_lines || !has_known_positions(file))
      return false;
  }
  return true;
}

/// Keeps what others stored last and the reader has not seen.
class ForeignReadSearch::Listener final : public MachineListener {
 public:
  Listener(std::uint8_t reader, Position to, const Options& options,
           std::unordered_set<std::uint64_t> parts)
      : reader_(reader), to_(to), options_(options), readable_(std::move(parts)) {}

  void access(const ProcessorAccess& a) override {
    if (options_.poll) options_.poll();
    if (a.processor != reader_) {
      if (a.write) store(a.address, a.size, tag_of(a.processor, a.position.instruction));
      return;
    }
    if (a.position >= to_) at_end_ = true;
    if (at_end_) return;
    if (a.write) {
      for_parts(a.address, a.size, [](Tags& tags, std::uint32_t at, PhysAddr, std::size_t n) {
        std::fill_n(tags.begin() + at, n, 0);
      });
    } else {
      see(a.position, std::nullopt, a.address, a.size);
    }
  }
  void shown(std::uint8_t processor, const BusTransaction& t) override {
    if (processor != reader_) return;
    if (t.position >= to_) at_end_ = true;
    if (at_end_ || !t.is_memory() || t.op == BusOp::data_write) return;
    see(t.position, t.index, t.address, t.size);
  }
  void device_write(PhysAddr a, std::uint32_t size) override { store(a, size, tag_of(kDevice, 0)); }

  bool is_at_end() const { return at_end_; }
  Position from() const { return from_; }
  const std::deque<ForeignRead>& reads() const { return reads_; }

 private:
  /// Says for each byte who stored it, and by which instruction; 0 if the reader stored it, or has
  /// seen it.
  using Tags = std::array<std::uint64_t, kBusPart>;
  static constexpr std::uint8_t kDevice = 0xfe;
  static constexpr unsigned kWriterShift = 56;

  static std::uint64_t tag_of(std::uint8_t writer, std::uint64_t instruction) {
    return std::uint64_t{writer + 1U} << kWriterShift | instruction;
  }
  void store(PhysAddr a, std::size_t size, std::uint64_t tag) {
    for_bus_parts(a, size, [&](std::uint64_t number, std::uint32_t at, std::size_t, std::size_t n) {
      Tags* tags = unseen_.find(number);
      if (tags == nullptr && readable_.contains(number)) tags = &unseen_.find_or_make(number);
      if (tags != nullptr) std::fill_n(tags->begin() + at, n, tag);
    });
  }
  /// Calls fn with those parts of some bytes in which the reader has not seen all.
  template <typename Fn>
  void for_parts(PhysAddr a, std::size_t size, Fn fn) {
    for_bus_parts(a, size,
                  [&](std::uint64_t number, std::uint32_t at, std::size_t i, std::size_t n) {
                    Tags* const tags = unseen_.find(number);
                    if (tags != nullptr) fn(*tags, at, a.plus32(static_cast<std::uint32_t>(i)), n);
                  });
  }
  void see(Position at, std::optional<std::uint64_t> transaction, PhysAddr a, std::size_t size) {
    ForeignRead read;
    read.at = at;
    read.transaction = transaction;
    for_parts(a, size, [&](Tags& tags, std::uint32_t first, PhysAddr begin, std::size_t n) {
      for (std::uint32_t i = 0; i < n;) {
        const std::uint64_t tag = std::exchange(tags[first + i], 0);
        std::uint32_t end = i + 1;
        if (tag != 0) {
          while (end < n && tags[first + end] == tag) tags[first + end++] = 0;
          add(read, begin.plus32(i), end - i, tag);
        }
        i = end;
      }
    });
  }
  void add(ForeignRead read, PhysAddr address, std::uint32_t size, std::uint64_t tag) {
    const auto writer = static_cast<std::uint8_t>((tag >> kWriterShift) - 1);
    read.address = address;
    read.size = size;
    if (writer != kDevice) read.writer = writer;
    read.stored_at = tag & ((std::uint64_t{1} << kWriterShift) - 1);
    reads_.push_back(read);
    if (reads_.size() > options_.most) drop_oldest();
  }
  /// All of one position.
  void drop_oldest() {
    const Position oldest = reads_.front().at;
    if (oldest == reads_.back().at) return;
    while (reads_.front().at == oldest) reads_.pop_front();
    from_ = {oldest.instruction, oldest.iteration + 1};
  }

  std::uint8_t reader_;
  Position to_;
  const Options& options_;
  std::unordered_set<std::uint64_t> readable_;  ///< parts that the reader can read
  BusParts<Tags> unseen_;
  std::deque<ForeignRead> reads_;
  Position from_;
  bool at_end_ = false;
};

ForeignReadSearch::ForeignReadSearch(const MachineFile& machine, std::uint8_t reader,
                                     Options options)
    : machine_(machine), reader_(reader), options_(std::move(options)) {}

ForeignReadSearch::~ForeignReadSearch() = default;

void ForeignReadSearch::collect(Position to) {
  Listener listener(reader_, to, options_, shown_parts(machine_.open(reader_)));
  stopped_ =
      MachineSession(machine_, listener, std::nullopt).run([&] { return listener.is_at_end(); });
  reads_.assign(listener.reads().begin(), listener.reads().end());
  from_ = listener.from();
  to_ = to;
}

ForeignReads::Window ForeignReadSearch::before(Position to) {
  if (to > to_ || (to <= from_ && from_ != Position{})) collect(to);
  const auto end =
      std::lower_bound(reads_.begin(), reads_.end(), to,
                       [](const ForeignRead& read, Position at) { return read.at < at; });
  return {from_, std::span(reads_).first(static_cast<std::size_t>(end - reads_.begin()))};
}

}  // namespace citcat
