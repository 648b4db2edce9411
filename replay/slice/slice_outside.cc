// Writes of other processors and bus masters, and of instructions that did not complete.

#include <algorithm>
#include <utility>

#include "replay/slice/slice_walk.h"

namespace citcat {

void SliceWalk::external(const SliceLog& log, const LogEntry& entry) {
  std::optional<std::uint64_t> transaction;
  if (entry.number < recording_.external_writes.size()) {
    transaction = recording_.external_writes[entry.number].transaction;
  }
  pass_foreign_behind(entry.first);
  if (transaction) pass_foreign_since(entry.first, *transaction);
  auto input = take_live(log.accesses(entry).front().physical, entry.count);
  if (!input) return;
  input->kind = SliceInput::Kind::dma;
  input->position = entry.first;
  input->transaction = transaction;
  slice_.inputs.push_back(std::move(*input));
}

/// The bytes that are looked for, of those that somebody else wrote; nullopt if there are none.
/// Nobody looks for them from then on.
std::optional<SliceInput> SliceWalk::take_live(PhysAddr address, std::uint32_t size) {
  SliceInput input;
  input.way = SliceWay::control;
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    const PhysAddr a = address.plus32(i);
    const std::uint8_t way = live_.memory(a);
    if (way == 0) continue;
    if (end == 0) input.address = a;
    end = i + 1;
    input.way = std::min(input.way, static_cast<SliceWay>(way));
    live_.forget_memory(a);
  }
  if (end == 0) return std::nullopt;
  input.size = address.plus32(end).minus32(input.address);
  return input;
}

void SliceWalk::unfinished(const SliceLog& log, const LogEntry& entry) {
  for (const LoggedAccess& a : log.accesses(entry)) {
    for (std::uint32_t i = 0; i < a.size; ++i) {
      const PhysAddr byte = a.physical.plus32(i);
      const std::uint8_t way = live_.memory(byte);
      if (way == 0) continue;
      live_.forget_memory(byte);
      SliceInput input;
      input.kind = SliceInput::Kind::unfinished;
      input.way = static_cast<SliceWay>(way);
      input.address = byte;
      input.position = entry.first;
      slice_.inputs.push_back(std::move(input));
    }
  }
}

// ---------------------------------------------------------------------------------------------
// What others had stored

/// `passes`: which of those at `to` it goes back over, newest first; a read at which it says no
/// ends that.
template <class Passes>
void SliceWalk::pass_foreign_while(Position to, Passes passes) {
  if (foreign_ == nullptr) return;
  for (;;) {
    if (!window_) {
      if (!live_.any_memory()) {
        foreign_before_ = std::min(foreign_before_, Position{to.instruction, to.iteration + 1});
        return;
      }
      window_ = foreign_->before(foreign_before_);
      foreign_left_ = window_->reads.size();
    }
    for (; foreign_left_ != 0; --foreign_left_) {
      const ForeignRead& read = window_->reads[foreign_left_ - 1];
      if (read.at < to || (read.at == to && !passes(read))) return;
      take_foreign(read);
    }
    if (window_->from == Position{} || to >= window_->from) return;
    foreign_before_ = window_->from;
    window_.reset();
  }
}

void SliceWalk::pass_foreign(Position to) {
  pass_foreign_while(to, [](const ForeignRead&) { return true; });
}

/// What the bus showed there may be older than what was delivered there: that is passed later.
void SliceWalk::pass_foreign_of(Position at) {
  pass_foreign_while(at, [](const ForeignRead& read) { return !read.transaction; });
}

void SliceWalk::pass_foreign_since(Position at, std::uint64_t transaction) {
  pass_foreign_while(at, [=](const ForeignRead& read) {
    return !read.transaction || *read.transaction >= transaction;
  });
}

void SliceWalk::take_foreign(const ForeignRead& read) {
  auto input = take_live(read.address, read.size);
  if (!input) return;
  input->kind = read.writer ? SliceInput::Kind::processor : SliceInput::Kind::dma;
  input->position = read.at;
  input->transaction = read.transaction;
  if (read.writer) {
    ForeignWrite by;
    by.processor = *read.writer;
    by.position = Position{read.stored_at, 0};
    by.is_store = true;
    input->writer = by;
  }
  slice_.inputs.push_back(std::move(*input));
}

}  // namespace citcat
