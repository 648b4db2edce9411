#pragma once
// Write-backs that wait to be found in memory: the bus shows a line as it was when the cache
// evicted it. Where the capture counts instructions, that was within one instruction; without
// counts, between two events.
//
// As the replay goes on, each byte of a line is noted once memory has held it.

#include <cstdint>
#include <deque>
#include <unordered_map>

#include "formats/memory/short_queue.h"
#include "replay/machine/memory.h"
#include "replay/verify/transaction_bytes.h"

namespace citcat {

class LineMatcher {
 public:
  struct Pending {
    BusTransaction t;
    std::uint32_t unmatched = 0;  ///< bit i: byte i has not been seen equal yet
    std::uint8_t parts = 1;       ///< transactions of the capture that it is
    /// Bytes of what could be images of EFLAGS: memory has held them with other arithmetic flags.
    std::uint32_t other_flags = 0;
    std::uint32_t overwritten = 0;  ///< those among these that something else was stored over
    std::uint32_t taken_over = 0;   ///< bytes that memory was corrected by
  };

  /// `t` is so many transactions of the capture, joined.
  void expect(const BusTransaction& t, std::uint8_t parts) {
    if (t.has(kPositionKnown)) {
      lines_.push_back({t, all_bytes(t.size), parts});
    } else {
      windows_[window_of(t.address)].push_back(t);
    }
  }

  /// Compares a line with memory as it is: true when every byte has been seen equal.
  static bool observe(Pending& line, const Memory& memory) {
    if (line.t.address.offset_in_page() + line.t.size <= kPageSize &&
        memory.holds(line.t.address, line.t.bytes())) {
      line.unmatched = 0;
      return true;
    }
    return observe_bytes(line, memory);
  }

  // With counts, in the order of the bus.
  bool empty() const { return lines_.empty(); }
  std::size_t waiting() const { return lines_.size(); }
  Pending& operator[](std::size_t i) { return lines_[i]; }
  const Pending& operator[](std::size_t i) const { return lines_[i]; }
  /// Compares what may have been given up before `next`; `agreed` is called for each that is right,
  /// which is then forgotten.
  template <class Agreed>
  void observe_through(Position next, const Memory& memory, Agreed agreed) {
    for (std::size_t i = 0; i < lines_.size();) {
      Pending& line = lines_[i];
      if (line.t.position > next) return;
      if (!observe(line, memory)) {
        ++i;
        continue;
      }
      agreed(line);
      lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  /// How many, the first ones, were given up by the end of the instruction or iteration
  /// `completed`. `in_repeat`: an interrupted REP counts its iterations from zero again, and a line
  /// of it may have been given up after those that are still to come.
  std::size_t due(Position completed, bool in_repeat) const;
  /// How many, the first ones, were given up by instructions up to this one.
  std::size_t through(std::uint64_t instruction) const {
    std::size_t n = 0;
    while (n < lines_.size() && lines_[n].t.position.instruction <= instruction) ++n;
    return n;
  }
  void drop_front(std::size_t count) { lines_.drop_front(count); }
  /// `size` bytes at `a`, all in one line, are about to be overwritten by the instruction at `now`.
  /// Lines given up before may show them: where these differ from `value` only in `undefined` bits
  /// they cannot be adopted any more, and are no contradiction.
  struct Overwritten {
    PhysAddr address;
    std::uint32_t size = 1, value = 0, undefined = 0;
  };
  void excuse(const Overwritten& bytes, Position now);
  /// So many bytes have just been stored by the instruction at `now`.
  void overwrite(PhysAddr a, std::uint32_t size, Position now);

  // Without counts, by window_of() their addresses.
  bool has_windows() const { return !windows_.empty(); }
  /// One of those that wait, and the first of its window.
  const BusTransaction& any_in_windows() const { return windows_.begin()->second.front(); }
  /// Compares the lines of a window, to be called when one was announced and after every store to
  /// it. True where some are right: `agreed` was called, and they are forgotten.
  template <class Agreed>
  bool observe_window(std::uint64_t window, const Memory& memory, Agreed agreed) {
    const auto it = windows_.find(window);
    if (it == windows_.end()) return false;
    // Several write-backs in a row may show the same contents: the line was modified and restored,
    // or given up again unchanged.
    bool any = false;
    while (!it->second.empty()) {
      Pending pending = pending_of(it->second.front());
      if (!observe(pending, memory)) return any;
      agreed(pending);
      it->second.pop_front();
      any = true;
    }
    windows_.erase(it);
    return any;
  }
  static Pending pending_of(const BusTransaction& t) { return {t, all_bytes(t.size)}; }
  /// A write-back of the line with this byte is taken for right, whatever it shows.
  void forgive(PhysAddr a);

 private:
  static bool observe_bytes(Pending& line, const Memory& memory);
  static void note_other_flags(Pending& line, const Memory& memory);

  ShortQueue<Pending> lines_;
  /// Write-backs up to the next port access or interrupt, by window_of() their address, in order.
  std::unordered_map<std::uint64_t, std::deque<BusTransaction>> windows_;
};

}  // namespace citcat
