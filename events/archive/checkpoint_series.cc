#include "events/archive/checkpoint_series.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "events/archive/container.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/memory_limit.h"
#include "formats/io/zstd_stream.h"

namespace citcat {

namespace {

using Page = MemoryImage::Page;

constexpr std::size_t kMaskBytes = kPageSize / 8;
constexpr std::size_t kFlatBytes = kPageSize + kMaskBytes;
/// Frames compressed together: more are smaller, fewer spare a reader what it does not need.
constexpr std::size_t kGroupPages = 64;
/// Differences followed at most to get one frame.
constexpr unsigned kMaxDepth = 16;
constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 24;
constexpr ZstdOptions kPageCompression{9, 0};

/// A frame as bytes: its data, then a bit for each byte that is known.
using FlatPage = std::array<std::uint8_t, kFlatBytes>;

void flatten(const Page& page, FlatPage& flat) {
  std::memcpy(flat.data(), page.data.data(), kPageSize);
  if (page.valid.all()) {
    std::fill(flat.begin() + kPageSize, flat.end(), std::uint8_t{0xff});
    return;
  }
  for (std::size_t i = 0; i < kMaskBytes; ++i) {
    unsigned bits = 0;
    for (std::size_t bit = 0; bit < 8; ++bit) bits |= unsigned{page.valid[8 * i + bit]} << bit;
    flat[kPageSize + i] = static_cast<std::uint8_t>(bits);
  }
}

void unflatten(const FlatPage& flat, Page& page) {
  std::memcpy(page.data.data(), flat.data(), kPageSize);
  if (std::all_of(flat.begin() + kPageSize, flat.end(),
                  [](std::uint8_t bits) { return bits == 0xff; })) {
    page.valid.set();
    return;
  }
  page.valid = {};
  for (std::size_t i = 0; i < kPageSize; ++i) {
    if ((flat[kPageSize + i / 8] >> (i % 8) & 1) != 0) page.valid.set(i);
  }
}

void combine(FlatPage& page, std::span<const std::uint8_t> difference) {
  for (std::size_t i = 0; i < kFlatBytes; ++i) page[i] ^= difference[i];
}

/// `page` as a difference to `base`, which may be null.
void difference_to(const Page* base, const Page& page, FlatPage& out) {
  flatten(page, out);
  if (base == nullptr) return;
  FlatPage flat;
  flatten(*base, flat);
  combine(out, flat);
}

std::size_t nonzero(const FlatPage& page) {
  return static_cast<std::size_t>(
      std::count_if(page.begin(), page.end(), [](std::uint8_t b) { return b != 0; }));
}

/// A frame's difference, and what it is to.
struct Difference {
  FlatPage bytes;
  PageBase base = PageBase::none;
};

/// The difference that promises to be smallest. What no base resembles is better kept as it is:
/// text combined with other text compresses badly.
Difference best_difference(const Page& page, const Page* initial, const Page* previous) {
  Difference best;
  difference_to(nullptr, page, best.bytes);
  std::size_t best_cost = nonzero(best.bytes) / 2;
  const auto consider = [&](const Page* base, PageBase kind) {
    if (base == nullptr) return;
    Difference candidate;
    difference_to(base, page, candidate.bytes);
    candidate.base = kind;
    const std::size_t cost = nonzero(candidate.bytes);
    if (cost >= best_cost) return;
    best = candidate;
    best_cost = cost;
  };
  consider(initial, PageBase::initial);
  consider(previous, PageBase::previous);
  return best;
}

void write_frame(ByteWriter& out, std::span<const std::uint8_t> plain) {
  const std::vector<std::uint8_t> frame = zstd_compress(plain, kPageCompression);
  out.varint(frame.size());
  out.bytes(frame);
}

/// Differences of up to kGroupPages frames: all data, then all masks, so that like is by like.
std::vector<std::uint8_t> flat_group(std::span<const Difference> group) {
  std::vector<std::uint8_t> plain;
  plain.reserve(group.size() * kFlatBytes);
  for (const Difference& d : group) {
    plain.insert(plain.end(), d.bytes.begin(), d.bytes.begin() + kPageSize);
  }
  for (const Difference& d : group) {
    plain.insert(plain.end(), d.bytes.begin() + kPageSize, d.bytes.end());
  }
  return plain;
}

/// The frames in a checkpoint's payload, decompressed as they are asked for.
class Payload {
 public:
  Payload(ByteReader in, std::size_t pages) : pages_(pages), in_(std::move(in)) {
    require_memory(pages * kFlatBytes, in_.name(), in_.offset(), "a checkpoint");
    state_bytes_ = in_.count("state bytes", kMaxStateBytes);
    state_ = frame();
    for (std::size_t first = 0; first < pages; first += kGroupPages)
      groups_.push_back({frame(), {}});
    in_.expect_end("the checkpoint");
  }

  std::vector<std::uint8_t> state() const {
    return zstd_decompress(state_, state_bytes_, in_.name(), in_.offset());
  }
  /// The difference of the frame with this ordinal in the checkpoint.
  FlatPage difference(std::size_t ordinal) {
    Group& group = groups_[ordinal / kGroupPages];
    const std::size_t first = ordinal / kGroupPages * kGroupPages;
    const std::size_t count = std::min(kGroupPages, pages_ - first);
    if (group.plain.empty()) {
      group.plain = zstd_decompress(group.stored, count * kFlatBytes, in_.name(), in_.offset());
    }
    const std::size_t at = ordinal - first;
    FlatPage page;
    std::memcpy(page.data(), group.plain.data() + at * kPageSize, kPageSize);
    std::memcpy(page.data() + kPageSize, group.plain.data() + count * kPageSize + at * kMaskBytes,
                kMaskBytes);
    return page;
  }

  /// Its group is decompressed anew when it is asked for again.
  void drop(std::size_t ordinal) { groups_[ordinal / kGroupPages].plain = {}; }

 private:
  struct Group {
    std::span<const std::uint8_t> stored;
    std::vector<std::uint8_t> plain;
  };
  std::span<const std::uint8_t> frame() {
    const std::uint64_t bytes = in_.varint("frame bytes");
    return in_.bytes(bytes, "frame");
  }

  std::size_t pages_;
  ByteReader in_;
  std::size_t state_bytes_ = 0;
  std::span<const std::uint8_t> state_;
  std::vector<Group> groups_;
};

void write_entry(ByteWriter& out, const CheckpointEntry& entry) {
  out.varint(entry.instruction);
  out.u64(entry.chunk_hash);
  out.varint(entry.pages.size());
  FrameNumber next = 0;
  for (const CheckpointEntry::ChangedPage& page : entry.pages) {
    out.varint((page.number - next) << 2 | static_cast<std::uint8_t>(page.base));
    next = page.number + 1;
  }
}

CheckpointEntry read_entry(ByteReader& in) {
  CheckpointEntry entry;
  entry.instruction = in.varint("instruction of a checkpoint");
  entry.chunk_hash = in.u64("hash of a checkpoint");
  const std::size_t pages = in.count("pages of a checkpoint", in.remaining());
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < pages; ++i) {
    const std::uint64_t value = in.varint("page of a checkpoint");
    const std::uint64_t base = value & 3;
    const std::uint64_t number = next + (value >> 2);
    if (base > static_cast<std::uint64_t>(PageBase::previous) || number >= kFrameNumbers) {
      in.fail("page of a checkpoint: expected a frame of memory and one of three bases, found " +
              std::to_string(value));
    }
    entry.pages.push_back({number, static_cast<PageBase>(base)});
    next = number + 1;
  }
  return entry;
}

ByteReader reader_of(const std::vector<std::uint8_t>& bytes, const RecordingFile& file,
                     const ChunkInfo& chunk) {
  return ByteReader(bytes, file.container().path(), chunk.offset);
}

}  // namespace

CheckpointIndex decode_checkpoint_index(ByteReader& in) {
  constexpr std::uint64_t kMaxText = 1000;
  CheckpointIndex index;
  index.run.engine = in.string("engine identity", kMaxText);
  index.run.end.instruction = in.varint("instruction of the end");
  index.run.end.iteration =
      static_cast<std::uint32_t>(in.count("iteration of the end", ~std::uint32_t{0}));
  index.run.adoptions = read_adoptions(in);
  const std::size_t count = in.count("number of checkpoints", in.remaining());
  for (std::size_t i = 0; i < count; ++i) index.entries.push_back(read_entry(in));
  in.expect_end("the index of checkpoints");
  return index;
}

std::vector<std::uint8_t> decode_checkpoint(ByteReader& in, std::size_t pages) {
  Payload payload(in, pages);
  for (std::size_t p = 0; p < pages; ++p) {
    payload.difference(p);
    if (p % kGroupPages == kGroupPages - 1) payload.drop(p);
  }
  return payload.state();
}

InitialPages initial_pages_of(const Recording& recording) {
  return [&image = recording.image, mask = recording.bus.address_mask](FrameNumber number) {
    return image.find(PhysAddr{number * kPageSize}.masked32(mask).page());
  };
}

// ---- Writing ------------------------------------------------------------------------------------

CheckpointSeriesWriter::CheckpointSeriesWriter(InitialPages initial)
    : initial_(std::move(initial)) {}

void CheckpointSeriesWriter::add(std::uint64_t instruction, std::span<const std::uint8_t> state,
                                 const SavedPageMap& pages) {
  Entry entry;
  entry.index.instruction = instruction;
  ByteWriter out;
  out.varint(state.size());
  write_frame(out, state);
  std::vector<Difference> group;
  const auto finish_group = [&] {
    if (!group.empty()) write_frame(out, flat_group(group));
    group.clear();
  };
  for (const auto& [number, page] : pages) {
    Known& known = known_[number];
    const Page* const previous = known.page.get();
    if (previous != nullptr && previous->data == page->data && previous->valid == page->valid) {
      continue;
    }
    const Page* const near = known.depth < kMaxDepth ? previous : nullptr;
    group.push_back(best_difference(*page, initial_(number), near));
    const PageBase base = group.back().base;
    entry.index.pages.push_back({number, base});
    known = {page, base == PageBase::previous ? known.depth + 1 : 0};
    if (group.size() == kGroupPages) finish_group();
  }
  finish_group();
  entry.payload = out.take();
  stored_bytes_ += entry.payload.size();
  entries_.push_back(std::move(entry));
}

void CheckpointSeriesWriter::thin_out() {
  CheckpointSeriesWriter kept(initial_);
  SavedPageMap now, changed;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const CheckpointEntry& entry = entries_[i].index;
    Payload payload(ByteReader(entries_[i].payload, "checkpoint"), entry.pages.size());
    for (std::size_t p = 0; p < entry.pages.size(); ++p) {
      const auto [number, base] = entry.pages[p];
      FlatPage flat = payload.difference(p);
      const Page* const to = base == PageBase::previous  ? now.at(number).get()
                             : base == PageBase::initial ? initial_(number)
                                                         : nullptr;
      if (to != nullptr) {
        FlatPage other;
        flatten(*to, other);
        combine(flat, other);
      }
      auto page = std::make_shared<Page>();
      unflatten(flat, *page);
      changed[number] = now[number] = std::move(page);
    }
    if (i % 2 == 0) continue;
    kept.add(entry.instruction, payload.state(), changed);
    changed.clear();
    entries_[i].payload = {};
  }
  *this = std::move(kept);
}

void CheckpointSeriesWriter::append_to(RecordingAppender& archive, const CheckpointRun& run) {
  ByteWriter out;
  out.string(run.engine);
  out.varint(run.end.instruction);
  out.varint(run.end.iteration);
  write_adoptions(out, run.adoptions);
  out.varint(entries_.size());
  for (Entry& entry : entries_) {
    entry.index.chunk_hash = archive.add_checkpoint(std::move(entry.payload)).hash.low;
    write_entry(out, entry.index);
  }
  archive.add_checkpoint_index(out.take());
}

// ---- Reading ------------------------------------------------------------------------------------

std::vector<CheckpointSeries> CheckpointSeries::read(const RecordingFile& file) {
  std::unordered_map<std::uint64_t, ChunkInfo> by_hash;
  for (const ChunkInfo& chunk : file.checkpoints()) by_hash[chunk.hash.low] = chunk;
  std::vector<CheckpointSeries> all;
  for (const ChunkInfo& chunk : file.checkpoint_indexes()) {
    const std::vector<std::uint8_t> bytes = file.checkpoint(chunk);
    ByteReader in = reader_of(bytes, file, chunk);
    CheckpointIndex index = decode_checkpoint_index(in);
    CheckpointSeries series;
    series.index_bytes_ = chunk.stored_bytes;
    series.run_ = std::move(index.run);
    for (Adoption& a : series.run_.adoptions) a.address = file.meant(a.address);
    for (CheckpointEntry& entry : index.entries) {
      for (CheckpointEntry::ChangedPage& page : entry.pages)
        page.number = file.meant(PhysAddr{page.number * kPageSize}).page();
      const auto found = by_hash.find(entry.chunk_hash);
      if (found == by_hash.end()) break;  // later ones are differences to the lost one
      series.chunks_.push_back(found->second);
      series.entries_.push_back(std::move(entry));
    }
    all.push_back(std::move(series));
  }
  return all;
}

std::vector<std::uint8_t> CheckpointSeries::load_state(const RecordingFile& file,
                                                       std::size_t ordinal) const {
  const std::vector<std::uint8_t> bytes = file.checkpoint(chunks_.at(ordinal));
  return Payload(reader_of(bytes, file, chunks_[ordinal]), entries_[ordinal].pages.size()).state();
}

void CheckpointSeries::check(const RecordingFile& file) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::vector<std::uint8_t> bytes = file.checkpoint(chunks_[i]);
    ByteReader in = reader_of(bytes, file, chunks_[i]);
    decode_checkpoint(in, entries_[i].pages.size());
  }
}

StoredCheckpoint CheckpointSeries::load(const RecordingFile& file, std::size_t ordinal,
                                        const Known* known) const {
  /// What is known of a frame on the way back to older checkpoints.
  struct Progress {
    FlatPage flat{};
    PageBase base = PageBase::previous;
  };
  StoredCheckpoint result;
  result.instruction = entries_.at(ordinal).instruction;
  if (known != nullptr) result.pages = known->pages;
  const std::size_t first = known != nullptr ? known->ordinal + 1 : 0;
  std::map<FrameNumber, Progress> frames;
  for (std::size_t i = ordinal + 1; i-- > first;) {
    const CheckpointEntry& entry = entries_[i];
    const auto wanted = [&](FrameNumber number) {
      const auto found = frames.find(number);
      return found == frames.end() || found->second.base == PageBase::previous;
    };
    const bool needed =
        i == ordinal || std::any_of(entry.pages.begin(), entry.pages.end(),
                                    [&](const auto& p) { return wanted(p.number); });
    if (!needed) continue;
    const std::vector<std::uint8_t> bytes = file.checkpoint(chunks_[i]);
    Payload payload(reader_of(bytes, file, chunks_[i]), entry.pages.size());
    if (i == ordinal) result.state = payload.state();
    for (std::size_t p = 0; p < entry.pages.size(); ++p) {
      if (!wanted(entry.pages[p].number)) continue;
      Progress& frame = frames[entry.pages[p].number];
      combine(frame.flat, payload.difference(p));
      frame.base = entry.pages[p].base;
    }
  }
  const InitialPages initial = initial_pages_of(file.recording());
  for (auto& [number, frame] : frames) {
    const Page* base = frame.base == PageBase::initial ? initial(number) : nullptr;
    std::shared_ptr<const Page>& page = result.pages[number];
    if (frame.base == PageBase::previous) {
      base = page.get();
      if (base == nullptr) {
        throw FormatError(file.container().path(), chunks_[ordinal].offset,
                          "checkpoint: expected a frame to be complete, found only differences");
      }
    }
    if (base != nullptr) {
      FlatPage flat;
      flatten(*base, flat);
      combine(frame.flat, flat);
    }
    auto complete = std::make_shared<Page>();
    unflatten(frame.flat, *complete);
    page = std::move(complete);
  }
  return result;
}

std::uint64_t CheckpointSeries::stored_bytes() const {
  std::uint64_t bytes = index_bytes_;
  for (const ChunkInfo& chunk : chunks_) bytes += chunk.stored_bytes;
  return bytes;
}

}  // namespace citcat
