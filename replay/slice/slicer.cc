#include "replay/slice/slicer.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "events/position_text.h"
#include "formats/io/error.h"
#include "replay/slice/slice_log.h"
#include "replay/slice/slice_walk.h"
#include "x86/disassembler.h"

namespace citcat {
namespace {

/// Lengths of stretches, in instructions: short at first, because most slices are.
constexpr std::uint64_t kFirstStretch = std::uint64_t{1} << 13,
                        kLongestStretch = std::uint64_t{1} << 19;

std::string address_text(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%08llx", static_cast<unsigned long long>(number));
  return text;
}

/// Bytes beside one another, of one way, as one.
void add_memory_input(std::vector<SliceInput>& inputs, SliceInput::Kind kind, PhysAddr a,
                      SliceWay way) {
  if (!inputs.empty()) {
    SliceInput& last = inputs.back();
    const bool goes_on =
        last.kind == kind && last.way == way && last.address.value + last.size == a.value;
    if (goes_on) {
      ++last.size;
      return;
    }
  }
  SliceInput input;
  input.kind = kind;
  input.way = way;
  input.address = a;
  inputs.push_back(std::move(input));
}

}  // namespace

const char* slice_input_name(SliceInput::Kind kind) {
  switch (kind) {
    case SliceInput::Kind::image:
      return "image";
    case SliceInput::Kind::unknown:
      return "unknown";
    case SliceInput::Kind::reg:
      return "register";
    case SliceInput::Kind::port:
      return "port";
    case SliceInput::Kind::dma:
      return "dma";
    case SliceInput::Kind::processor:
      return "processor";
    case SliceInput::Kind::interrupt:
      return "interrupt";
    case SliceInput::Kind::exception:
      return "exception";
    case SliceInput::Kind::clock:
      return "clock";
    case SliceInput::Kind::unfinished:
      return "unfinished";
    case SliceInput::Kind::code:
      return "code";
  }
  return "?";
}

const char* slice_way_name(SliceWay way) {
  switch (way) {
    case SliceWay::value:
      return "value";
    case SliceWay::address:
      return "address";
    case SliceWay::control:
      return "control";
  }
  return "?";
}

Slicer::Slicer(const RecordingFile& file, TimelineOptions options, ForeignReads* foreign)
    : file_(file), foreign_(foreign) {
  log_ = std::make_unique<SliceLog>([this] {
    const Replayer& replayer = timeline_->replayer();
    return SliceLog::Used{replayer.next_port_read(), replayer.next_external_write()};
  });
  timeline_ = std::make_unique<ReplayTimeline>(file, log_.get(), std::move(options));
}

Slicer::~Slicer() = default;

Slice Slicer::slice(const SliceQuery& query) {
  Slice slice;
  SliceWalk walk(query, file_.recording(), slice, foreign_);
  stored_.clear();
  begin(query, walk);
  Position to = query.at;
  bool whole = true;
  for (std::uint64_t stretch = kFirstStretch; whole && !walk.done() && to != Position{};) {
    const std::size_t steps = slice.steps.size();
    const std::uint64_t end = to.instruction + (to.iteration != 0 ? 1 : 0);
    // Long stretches begin where checkpoints are laid.
    std::uint64_t from = end > stretch ? end - stretch : 0;
    if (stretch >= kLongestStretch) from = (end - 1) / stretch * stretch;
    whole = go_back({from, 0}, to, walk);
    to = {from, 0};
    if (whole) walk.pass_foreign(to);
    stretch = std::min(stretch * 4, kLongestStretch);
    const bool is_sparse = stretch == kLongestStretch && slice.steps.size() == steps;
    if (!whole || walk.done() || !is_sparse || query.control) continue;
    if (const std::optional<Position> stored = last_store(to, walk)) {
      to = *stored;
      walk.pass_foreign(to);
      stretch = kFirstStretch;
    }
  }
  if (whole) {
    take_beginning(walk, slice);
  } else {
    take_open(walk, slice);
  }
  name_clocks(slice);
  connect(query, slice);
  // Digests in place of the evidence do not keep what the transactions were numbered by.
  if (file_.meta().evidence != EvidenceMode::full) {
    for (SliceInput& input : slice.inputs) input.transaction.reset();
  }
  return slice;
}

void Slicer::begin(const SliceQuery& query, SliceWalk& walk) {
  log_->skip_to(~std::uint64_t{0});
  timeline_->seek(query.at);
  if (timeline_->position() < query.at) {
    throw UsageError("--at " + position_text(query.at) + ": the run ends at " +
                     position_text(timeline_->position()));
  }
  for (unsigned i = 0; i < place::kCount; ++i) {
    if (query.places[i]) walk.live().want_place(i, SliceWay::value);
  }
  want_mmx(query, walk);
  for (const SliceQuery::Bytes& bytes : query.memory) want_memory(bytes, walk);
}

/// MMn is register n of the stack, whichever is its top (SDM vol. 1, 9.2.1).
void Slicer::want_mmx(const SliceQuery& query, SliceWalk& walk) const {
  if (query.mmx.none()) return;
  const unsigned top = timeline_->machine().save().fx[3] >> 3 & 7u;
  for (unsigned i = 0; i < 8 * place::kStackBytes; ++i) {
    if (!query.mmx[place::kStack + i]) continue;
    const unsigned number = (i / place::kStackBytes + 8 - top) % 8;
    walk.live().want_place(place::stack(number).first + i % place::kStackBytes, SliceWay::value);
  }
}

void Slicer::want_memory(const SliceQuery::Bytes& bytes, SliceWalk& walk) const {
  for (std::uint32_t i = 0; i < bytes.size; ++i) {
    const LinearAddr linear{bytes.linear.value + i};
    const std::optional<PhysAddr> place =
        bytes.physical ? PhysAddr{bytes.physical->value + i} : timeline_->machine().find(linear);
    if (!place) {
      throw UsageError("--memory " +
                       address_text(bytes.physical ? bytes.physical->value + i : linear.value) +
                       ": nothing is mapped there at " + position_text(timeline_->position()));
    }
    walk.live().want_memory(*place, SliceWay::value);
  }
}

/// Where nothing but memory is looked for, in few pieces: after the last store to it at or before
/// `to`, or the beginning of the run. That is found without writing down what runs.
std::optional<Position> Slicer::last_store(Position to, const SliceWalk& walk) {
  // A run for each, several times as fast as one that is written down.
  constexpr std::size_t kMostPieces = 4;
  if (walk.live().places().any()) return std::nullopt;
  std::map<PhysAddr, SliceWay> bytes;
  walk.live().each_byte([&](PhysAddr a, SliceWay way) { bytes.emplace(a, way); });
  std::vector<MemoryWatch> pieces;
  for (const auto& [address, way] : bytes) {
    if (!pieces.empty() && address.offset_in_page() != 0 &&
        pieces.back().address.value + pieces.back().size == address.value) {
      ++pieces.back().size;
    } else {
      pieces.push_back({address, 1, false, true});
    }
  }
  if (pieces.size() > kMostPieces) return std::nullopt;
  Position last;
  for (const MemoryWatch& piece : pieces) {
    Stored& known = stored_[piece.address];
    if (known.size != piece.size || known.behind > to) known = {piece.size, last_store(to, piece)};
    last = std::max(last, known.behind);
  }
  return last;
}

Position Slicer::last_store(Position to, const MemoryWatch& watch) {
  log_->skip_to(~std::uint64_t{0});
  timeline_->seek(to);
  const ReplayTimeline::Stop stop = timeline_->run_back_to_stop({{}, {watch}});
  if (stop.why == ReplayTimeline::Stop::Why::end) return {};
  return std::min(to, Position{timeline_->position().instruction + 1, 0});
}

/// Replays a stretch, and goes back through it.
bool Slicer::go_back(Position from, Position to, SliceWalk& walk) {
  log_->skip_to(from.instruction);
  if (from == Position{}) {
    timeline_->rewind();
  } else {
    timeline_->seek(from);
  }
  log_->begin();
  timeline_->go_on(to);
  log_->end();
  return walk.go_back(*log_);
}

// ---------------------------------------------------------------------------------------------
// What is left where the run begins

void Slicer::take_memory_at_beginning(SliceWalk& walk, Slice& slice) const {
  std::map<PhysAddr, SliceWay> bytes;
  walk.live().each_byte([&](PhysAddr a, SliceWay way) { bytes.emplace(a, way); });
  const Memory& memory = timeline_->machine().memory();
  const MemoryImage& image = file_.recording().image;
  for (const auto& [address, way] : bytes) {
    const PhysAddr captured = memory.captured(address);
    const bool known = image.byte(captured).has_value();
    add_memory_input(slice.inputs, known ? SliceInput::Kind::image : SliceInput::Kind::unknown,
                     captured, way);
  }
}

void Slicer::take_registers_at_beginning(const SliceWalk& walk, Slice& slice) const {
  for (const SliceWay way : {SliceWay::value, SliceWay::address, SliceWay::control}) {
    PlaceSet places;
    for (unsigned i = 0; i < place::kCount; ++i) {
      if (walk.live().place(i) == static_cast<std::uint8_t>(way)) places.set(i);
    }
    const bool wide = file_.recording().initial.long_mode.has_value();
    for (std::string& name : place_names(places, wide ? NameWidth::bits64 : NameWidth::bits32)) {
      SliceInput input;
      input.kind = SliceInput::Kind::reg;
      input.way = way;
      input.name = std::move(name);
      slice.inputs.push_back(std::move(input));
    }
  }
}

void Slicer::take_beginning(SliceWalk& walk, Slice& slice) const {
  take_memory_at_beginning(walk, slice);
  take_registers_at_beginning(walk, slice);
}

void Slicer::take_open(const SliceWalk& walk, Slice& slice) {
  slice.open_places = walk.live().places();
  std::map<PhysAddr, SliceWay> bytes;
  walk.live().each_byte([&](PhysAddr a, SliceWay way) { bytes.emplace(a, way); });
  for (const auto& [address, way] : bytes) {
    if (!slice.open_memory.empty()) {
      SliceMemory& last = slice.open_memory.back();
      if (last.physical.value + last.size == address.value) {
        ++last.size;
        continue;
      }
    }
    slice.open_memory.push_back({address, {}, 1});
  }
}

// ---------------------------------------------------------------------------------------------

/// Clocks are named for the instruction that read them.
void Slicer::name_clocks(Slice& slice) const {
  for (SliceInput& input : slice.inputs) {
    if (input.kind != SliceInput::Kind::clock) continue;
    const auto step = std::find_if(slice.steps.begin(), slice.steps.end(), [&](const SliceStep& s) {
      return s.kind == SliceStep::Kind::instruction && s.position == input.position;
    });
    if (step == slice.steps.end()) continue;
    input.address = step->physical;
    input.size = static_cast<std::uint32_t>(step->code.size());
    input.name = Disassembler(step->bits).text(step->code, step->linear.value);
  }
}

/// Finds which steps use what each one wrote, forwards from the oldest.
void Slicer::connect(const SliceQuery& query, Slice& slice) {
  std::unordered_map<std::uint64_t, std::size_t> memory;
  std::unordered_map<std::size_t, std::size_t> places;
  const auto used = [&](std::size_t by_step, std::size_t of_step) {
    std::vector<std::size_t>& by = slice.steps[of_step].used_by;
    if (by.empty() || by.back() != by_step) by.push_back(by_step);
  };
  for (std::size_t n = slice.steps.size(); n-- != 0;) {
    const SliceStep& step = slice.steps[n];
    for (unsigned p = 0; p < place::kCount; ++p) {
      const auto from = step.reads[p] ? places.find(p) : places.end();
      if (from != places.end()) used(n, from->second);
    }
    for (const SliceMemory& m : step.loads) {
      for (std::uint32_t i = 0; i < m.size; ++i) {
        const auto from = memory.find(m.physical.value + i);
        if (from != memory.end()) used(n, from->second);
      }
    }
    for (unsigned p = 0; p < place::kCount; ++p) {
      if (step.writes[p]) places[p] = n;
    }
    for (const SliceMemory& m : step.stores) {
      for (std::uint32_t i = 0; i < m.size; ++i) memory[m.physical.value + i] = n;
    }
  }
  for (unsigned p = 0; p < place::kCount; ++p) {
    const auto from = query.places[p] ? places.find(p) : places.end();
    if (from != places.end()) used(SliceStep::kResult, from->second);
  }
}

}  // namespace citcat
