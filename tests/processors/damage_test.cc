// Damage to a capture of two processors that each of them alone might not notice: an access given
// to the other one, two conflicting transactions exchanged, an invalidation dropped or given to the
// other one, an interrupt given to the other one or moved. It is noticed, or has no effect on what
// either of them did, nor on memory at the end.
//
// CITCAT_DAMAGE=N: so many of each kind, of each capture; CITCAT_DAMAGE_SEED: from which number on.
// CITCAT_ACCEPTANCE=full: of all captures.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "capture/processors/machine_import.h"
#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"
#include "formats/io/error.h"
#include "formats/kt/kt.h"
#include "processors/sample_records.h"
#include "replay/machine/machine.h"
#include "replay/machine/memory.h"
#include "replay/processors/unshown_stores.h"
#include "replay/run/replay_session.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/verifier.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"
#include "unit/vector_sink.h"

namespace citcat::test {
namespace {

using Records = std::vector<MonitorRecord>;

constexpr std::uint8_t kInval = 12, kApicInterrupt = 16, kWrite = 3, kDriver = 16, kLineFlag = 1;
constexpr std::uint8_t kRead = 2, kLockFlag = 128, kHitFlag = 64, kStoreFlag = 32, kSnoopFlag = 8;
constexpr std::uint8_t kFlush = 9, kApicMessage = 17, kInitRecord = 18, kSipiRecord = 19;

enum class DamageKind {
  given_away,
  exchanged,
  not_invalidated,
  invalidated_by_other,
  interrupts_other,
  interrupts_elsewhere,
  interrupts_not,
  interrupts_otherwise,
  exchanged_twice,
  out_of_lock,
  other_message,
  no_message,
  miscounted_invalidation,
  no_init,
  sipi_elsewhere,
  unlocked,
  not_shared,
  shared_by_nobody,
  for_a_store,
  fills_exchanged,
  no_fill,
  no_snoop,
  no_flushed_line,
  no_write_back,
  out_of_turn,
};
constexpr std::array kDamageKinds{DamageKind::given_away,
                                  DamageKind::exchanged,
                                  DamageKind::not_invalidated,
                                  DamageKind::invalidated_by_other,
                                  DamageKind::interrupts_other,
                                  DamageKind::interrupts_elsewhere,
                                  DamageKind::interrupts_not,
                                  DamageKind::interrupts_otherwise,
                                  DamageKind::exchanged_twice,
                                  DamageKind::out_of_lock,
                                  DamageKind::other_message,
                                  DamageKind::no_message,
                                  DamageKind::miscounted_invalidation,
                                  DamageKind::no_init,
                                  DamageKind::sipi_elsewhere,
                                  DamageKind::unlocked,
                                  DamageKind::not_shared,
                                  DamageKind::shared_by_nobody,
                                  DamageKind::for_a_store,
                                  DamageKind::fills_exchanged,
                                  DamageKind::no_fill,
                                  DamageKind::no_snoop,
                                  DamageKind::no_flushed_line,
                                  DamageKind::no_write_back,
                                  DamageKind::out_of_turn};

std::uint8_t processor_of(const MonitorRecord& r) { return r.burst >> 4; }
bool is_access(const MonitorRecord& r) {
  return (r.type >= 1 && r.type <= kWrite) && (r.flags & kDriver) == 0;
}
/// Records of one transaction: a line goes in two.
std::size_t parts(const Records& all, std::size_t i) {
  return is_access(all[i]) && (all[i].flags & kLineFlag) != 0 && (all[i].burst & 15) == 0 ? 2 : 1;
}

/// One of the places where `is` holds; nullopt where there is none.
template <typename Is>
std::optional<std::size_t> some_place(const Records& all, std::mt19937& random, Is is) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is(i)) places.push_back(i);
  }
  if (places.empty()) return std::nullopt;
  return places[random() % places.size()];
}

/// The other processor's count at a place.
std::uint64_t count_at(const Records& all, std::size_t at, std::uint8_t processor) {
  for (std::size_t i = at; i-- > 0;) {
    if (processor_of(all[i]) == processor) return all[i].icount;
  }
  return 0;
}

bool conflict(const MonitorRecord& a, const MonitorRecord& b) {
  const auto touches = [](const MonitorRecord& r) {
    return (is_access(r) || r.type == kInval) && (r.flags & kDriver) == 0;
  };
  const auto writes = [](const MonitorRecord& r) { return r.type == kWrite || r.type == kInval; };
  if (!touches(a) || !touches(b) || processor_of(a) == processor_of(b)) return false;
  const bool lines = ((a.flags | b.flags) & kLineFlag) != 0 || a.type == kInval || b.type == kInval;
  const bool same =
      lines ? a.addr / 32 == b.addr / 32 : a.addr < b.addr + b.size && b.addr < a.addr + a.size;
  return same && (writes(a) || writes(b));
}

/// The end of a conflict that begins at `i`, not far from there; 0 where there is none.
std::size_t conflict_end(const Records& all, std::size_t i) {
  constexpr std::size_t kFar = 40;
  if ((all[i].burst & 15) != 0) return 0;
  for (std::size_t j = i + 1; j < std::min(all.size(), i + kFar); ++j) {
    if ((all[j].burst & 15) == 0 && conflict(all[i], all[j])) return j + parts(all, j);
  }
  return 0;
}

/// Exchanges two transactions, with what their processors did in between, each in its own order.
/// Clocks stay where they are.
void exchange_until(Records& all, std::size_t i, std::size_t end) {
  std::vector<std::uint32_t> clocks;
  for (std::size_t k = i; k < end; ++k) clocks.push_back(all[k].clk);
  const std::uint8_t first = processor_of(all[i]);
  std::stable_partition(all.begin() + static_cast<std::ptrdiff_t>(i),
                        all.begin() + static_cast<std::ptrdiff_t>(end),
                        [first](const MonitorRecord& r) { return processor_of(r) != first; });
  for (std::size_t k = 0; k < clocks.size(); ++k) all[i + k].clk = clocks[k];
}
void exchange(Records& all, std::size_t i) { exchange_until(all, i, conflict_end(all, i)); }

/// The other processor did what stands there.
void give_away(Records& all, std::size_t at) {
  const std::size_t end = at + parts(all, at);
  const auto other = static_cast<std::uint8_t>(1 - processor_of(all[at]));
  const std::uint64_t count = count_at(all, at, other);
  for (std::size_t i = at; i < end; ++i) {
    all[i].icount = count;
    all[i].rep = 0;
    all[i].burst = static_cast<std::uint8_t>((all[i].burst & 15) | other << 4);
  }
}

/// By up to 19 instructions.
void shift(MonitorRecord& interrupt, std::mt19937& random) {
  const std::uint64_t by = 1 + random() % 19;
  const bool back = random() % 2 != 0 && interrupt.icount >= by;
  interrupt.icount = back ? interrupt.icount - by : interrupt.icount + by;
  interrupt.rep = 0;
}

/// Two conflicts, the second at most a few transactions from the first: perhaps the same ones.
bool exchange_twice(Records& all, std::mt19937& random) {
  constexpr std::size_t kFar = 60;
  const auto at = some_place(all, random, [&](std::size_t i) { return conflict_end(all, i) != 0; });
  if (!at) return false;
  exchange(all, *at);
  const auto second = some_place(all, random, [&](std::size_t i) {
    return i + kFar > *at && i < *at + kFar && conflict_end(all, i) != 0;
  });
  if (second) exchange(all, *second);
  return true;
}

/// A locked write comes behind what the other processor does next.
bool move_out_of_lock(Records& all, std::mt19937& random) {
  constexpr std::size_t kFar = 2000;
  const auto end = [&](std::size_t i) {
    for (std::size_t j = i + 1; j < std::min(all.size(), i + kFar); ++j)
      if (is_access(all[j]) && processor_of(all[j]) == 1 - processor_of(all[i]) &&
          (all[j].burst & 15) == 0)
        return j + parts(all, j);
    return std::size_t{0};
  };
  const auto at = some_place(all, random, [&](std::size_t i) {
    return all[i].type == kWrite && is_access(all[i]) && (all[i].flags & kLockFlag) != 0 &&
           end(i) != 0;
  });
  if (at) exchange_until(all, *at, end(*at));
  return at.has_value();
}

/// Another vector, which some processor takes too.
bool change_vector(Records& all, std::mt19937& random) {
  const auto is = [&](std::size_t i) {
    return all[i].type == kApicInterrupt && all[i].data[1] == 0;
  };
  const auto at = some_place(all, random, is);
  if (!at) return false;
  const auto other = some_place(
      all, random, [&](std::size_t i) { return is(i) && all[i].data[0] != all[*at].data[0]; });
  all[*at].data[0] = other ? all[*other].data[0] : static_cast<std::uint8_t>(random() % 256);
  return true;
}

bool is_fill(const Records& all, std::size_t i) {
  const MonitorRecord& r = all[i];
  return is_access(r) && r.type <= kRead && (r.flags & kLineFlag) != 0 && (r.burst & 15) == 0;
}

/// Changes flags of a fill that has all of `with` and none of `without`.
bool change_fill(Records& all, std::mt19937& random, std::uint8_t with, std::uint8_t without,
                 std::uint8_t set, std::uint8_t clear) {
  const auto at = some_place(all, random, [&](std::size_t i) {
    return is_fill(all, i) && (all[i].flags & with) == with && (all[i].flags & without) == 0;
  });
  if (!at) return false;
  for (std::size_t i = *at; i < *at + 2; ++i)
    all[i].flags = static_cast<std::uint8_t>((all[i].flags | set) & ~clear);
  return true;
}

/// Two fills by different processors, one soon after the other.
bool exchange_fills(Records& all, std::mt19937& random) {
  constexpr std::size_t kFar = 20;
  const auto end = [&](std::size_t i) {
    for (std::size_t j = i + 2; j < std::min(all.size(), i + kFar); ++j)
      if (is_fill(all, j) && processor_of(all[j]) != processor_of(all[i])) return j + 2;
    return std::size_t{0};
  };
  const auto at =
      some_place(all, random, [&](std::size_t i) { return is_fill(all, i) && end(i) != 0; });
  if (at) exchange_until(all, *at, end(*at));
  return at.has_value();
}

/// Removes an event, which may be one record or two.
template <typename Is>
bool lose(Records& all, std::mt19937& random, Is is) {
  const auto at = some_place(all, random, is);
  if (!at) return false;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(*at);
  all.erase(begin, begin + static_cast<std::ptrdiff_t>(parts(all, *at)));
  return true;
}

/// The first part of a line that leaves a cache.
bool is_write_back(const Records& all, std::size_t i) {
  const MonitorRecord& r = all[i];
  return is_access(r) && r.type == kWrite && (r.flags & kLineFlag) != 0 && (r.burst & 15) == 0;
}

/// A write-back of WBINVD, behind which the flush is shown.
bool is_flushed_line(const Records& all, std::size_t i) {
  if (!is_write_back(all, i)) return false;
  std::size_t end = i;
  while (end < all.size() && is_access(all[end]) && all[end].type == kWrite &&
         all[end].icount == all[i].icount)
    ++end;
  return end < all.size() && all[end].type == kFlush && (all[end].flags & kDriver) == 0;
}

/// An invalidation, an interrupt or a message comes up to 30 records earlier or later.
bool move_out_of_turn(Records& all, std::mt19937& random) {
  const auto at = some_place(all, random, [&](std::size_t i) {
    return all[i].type == kInval || all[i].type == kApicInterrupt || all[i].type == kApicMessage;
  });
  if (!at) return false;
  const auto by = static_cast<std::ptrdiff_t>(1 + random() % 30);
  const auto from = static_cast<std::ptrdiff_t>(*at);
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(all.size()) - 1;
  std::ptrdiff_t to =
      random() % 2 != 0 ? std::max(from - by, std::ptrdiff_t{0}) : std::min(from + by, last);
  // Not between the parts of a line.
  while (to < last && (all[static_cast<std::size_t>(to)].burst & 15) != 0) ++to;
  if (to > from && parts(all, static_cast<std::size_t>(to)) == 2) --to;
  if ((all[static_cast<std::size_t>(to)].flags & kDriver) != 0 || to == from) return false;
  std::vector<std::uint32_t> clocks;
  const std::ptrdiff_t begin = std::min(from, to), end = std::max(from, to) + 1;
  for (std::ptrdiff_t i = begin; i < end; ++i)
    clocks.push_back(all[static_cast<std::size_t>(i)].clk);
  if (to < from)
    std::rotate(all.begin() + to, all.begin() + from, all.begin() + from + 1);
  else
    std::rotate(all.begin() + from, all.begin() + from + 1, all.begin() + to + 1);
  for (std::ptrdiff_t i = begin; i < end; ++i)
    all[static_cast<std::size_t>(i)].clk = clocks[static_cast<std::size_t>(i - begin)];
  return true;
}

bool move_sipi(Records& all, std::mt19937& random) {
  const auto at =
      some_place(all, random, [&](std::size_t i) { return all[i].type == kSipiRecord; });
  if (!at) return false;
  MonitorRecord sipi = all[*at];
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(*at));
  const std::size_t most = std::min<std::size_t>(all.size() - 1, *at + 2000);
  const std::size_t to = *at + 1 + random() % (most - *at);
  sipi.clk = all[to].clk;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(to), sipi);
  return true;
}

/// Damages what only captures of several processors have. False if there is no place for it.
bool damage_sharing(Records& all, DamageKind kind, std::mt19937& random) {
  switch (kind) {
    case DamageKind::miscounted_invalidation: {
      const auto at = some_place(all, random, [&](std::size_t i) { return all[i].type == kInval; });
      if (at) all[*at].icount += 1000 + random() % 1000;
      return at.has_value();
    }
    case DamageKind::no_init:
      return lose(all, random, [&](std::size_t i) { return all[i].type == kInitRecord; });
    case DamageKind::sipi_elsewhere:
      return move_sipi(all, random);
    case DamageKind::unlocked: {
      const auto at = some_place(all, random, [&](std::size_t i) {
        return is_access(all[i]) && (all[i].flags & kLockFlag) != 0;
      });
      if (at) all[*at].flags &= static_cast<std::uint8_t>(~kLockFlag);
      return at.has_value();
    }
    case DamageKind::not_shared:
      return change_fill(all, random, kHitFlag, 0, 0, kHitFlag);
    case DamageKind::shared_by_nobody:
      return change_fill(all, random, 0, kHitFlag | kStoreFlag, kHitFlag, 0);
    case DamageKind::for_a_store:
      return change_fill(all, random, 0, kStoreFlag, kStoreFlag, kHitFlag);
    case DamageKind::fills_exchanged:
      return exchange_fills(all, random);
    case DamageKind::no_fill:
      return lose(all, random, [&](std::size_t i) { return is_fill(all, i); });
    case DamageKind::no_snoop:
      return lose(all, random, [&](std::size_t i) {
        return is_access(all[i]) && all[i].type == kWrite && (all[i].burst & 15) == 0 &&
               (all[i].flags & kSnoopFlag) != 0;
      });
    case DamageKind::no_write_back:
      return lose(all, random, [&](std::size_t i) { return is_write_back(all, i); });
    case DamageKind::no_flushed_line:
      return lose(all, random, [&](std::size_t i) { return is_flushed_line(all, i); });
    case DamageKind::out_of_turn:
      return move_out_of_turn(all, random);
    default:
      return false;
  }
}

/// False where there is no place for it.
bool damage(Records& all, DamageKind kind, std::mt19937& random) {
  switch (kind) {
    case DamageKind::given_away: {
      const auto at = some_place(all, random, [&](std::size_t i) {
        return is_access(all[i]) && (all[i].burst & 15) == 0 && processor_of(all[i]) < 2;
      });
      if (!at) return false;
      give_away(all, *at);
      return true;
    }
    case DamageKind::exchanged: {
      const auto at =
          some_place(all, random, [&](std::size_t i) { return conflict_end(all, i) != 0; });
      if (at) exchange(all, *at);
      return at.has_value();
    }
    case DamageKind::not_invalidated: {
      const auto at = some_place(all, random, [&](std::size_t i) { return all[i].type == kInval; });
      if (at) all.erase(all.begin() + static_cast<std::ptrdiff_t>(*at));
      return at.has_value();
    }
    case DamageKind::invalidated_by_other: {
      const auto at = some_place(all, random, [&](std::size_t i) { return all[i].type == kInval; });
      if (at) give_away(all, *at);
      return at.has_value();
    }
    case DamageKind::interrupts_other:
    case DamageKind::interrupts_elsewhere: {
      const auto at =
          some_place(all, random, [&](std::size_t i) { return all[i].type == kApicInterrupt; });
      if (at && kind == DamageKind::interrupts_other) give_away(all, *at);
      if (at && kind == DamageKind::interrupts_elsewhere) shift(all[*at], random);
      return at.has_value();
    }
    case DamageKind::interrupts_not: {
      const auto at =
          some_place(all, random, [&](std::size_t i) { return all[i].type == kApicInterrupt; });
      if (at) all.erase(all.begin() + static_cast<std::ptrdiff_t>(*at));
      return at.has_value();
    }
    case DamageKind::interrupts_otherwise:
      return change_vector(all, random);
    case DamageKind::exchanged_twice:
      return exchange_twice(all, random);
    case DamageKind::out_of_lock:
      return move_out_of_lock(all, random);
    case DamageKind::other_message:
    case DamageKind::no_message: {
      const auto at =
          some_place(all, random, [&](std::size_t i) { return all[i].type == kApicMessage; });
      if (at && kind == DamageKind::no_message)
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(*at));
      if (at && kind == DamageKind::other_message) {
        // Vector, mode or destination, which a shorthand replaces.
        const bool shorthand = all[*at].data[3] >> 4 != 0;
        all[*at].data[random() % (shorthand ? 2 : 3)] ^= 1;
      }
      return at.has_value();
    }
    default:
      return damage_sharing(all, kind, random);
  }
}

/// The traces and the memory that a capture leads to.
struct Made {
  std::vector<std::vector<std::uint8_t>> traces;  ///< by processor
  std::vector<std::uint64_t> instructions;
  std::map<std::uint64_t, std::uint8_t> memory;  ///< at the end, as far as it is known
};

/// The replay of one processor, with its trace.
struct TracedReplay {
  explicit TracedReplay(const RecordingFile& file) : session(file, &sink, {}) {}
  VectorSink out;
  KtWriter writer{out, KtForm::wide};
  KtSink sink{writer, {}};
  ReplaySession session;
};
using Replays = std::vector<std::unique_ptr<TracedReplay>>;

/// Memory of the machine at the end: a line has the bytes of the processor that owns it, or those
/// that the bus showed last.
std::map<std::uint64_t, std::uint8_t> memory_at_end(const CrossCheck& check,
                                                    const Replays& replays) {
  constexpr std::uint32_t kPageBytes = 4096;
  std::map<std::uint64_t, std::uint8_t> memory;
  for (const auto& each : replays) {
    for (const auto frame : each->session.machine().memory().changed_frames()) {
      for (std::uint32_t i = 0; i < kPageBytes; ++i) {
        const PhysAddr a{frame * kPageBytes + i};
        const auto owner = check.owner(a);
        const auto byte = owner ? replays[*owner]->session.byte(a) : check.byte(a);
        if (byte) memory[a.value] = *byte;
      }
    }
  }
  return memory;
}

/// nullopt if the bus has a contradiction or a replay diverges.
std::optional<Made> made_of(const MachineFile& machine) {
  const std::vector<RecordingFile> files = open_processors(machine);
  CrossCheck check = cross_check_of(machine, files);
  SharedBus bus = shared_bus_of(machine, files);
  CrossCheckResult result = check_shared_bus(bus, check);
  if (!result.clean()) return std::nullopt;
  Made made;
  Replays replays;
  for (std::size_t p = 0; p < files.size(); ++p) {
    replays.push_back(std::make_unique<TracedReplay>(files[p]));
    ReplaySession& session = replays.back()->session;
    const ReplayReport report = session.run();
    if (report.end != ReplayReport::End::complete) return std::nullopt;
    check_changed_lines(machine, check, p, lines_changed_in_cache(files[p], session.machine()), {},
                        result);
    if (!result.clean() || session.compare_final(nullptr).different != 0) return std::nullopt;
    replays.back()->writer.flush();
    made.traces.push_back(std::move(replays.back()->out.all));
    made.instructions.push_back(report.instructions);
  }
  made.memory = memory_at_end(check, replays);
  return made;
}

constexpr const char* kSample = "sample";

class DamagedBus : public TemporaryFolder,
                   public ::testing::WithParamInterface<std::pair<std::string, char>> {
 protected:
  static std::vector<MonitorRecord> records() {
    const auto& [name, form] = GetParam();
    return name == kSample ? sample_records() : data().records(form);
  }

  std::optional<Made> verified(const Records& all) const {
    std::string bytes(all.size() * sizeof(MonitorRecord), '\0');
    std::memcpy(bytes.data(), all.data(), bytes.size());
    store("bus.bin", bytes);
    MachineImportOptions options;
    options.internal_paths = internal_paths();
    try {
      (void)::citcat::import_machine({path("bus.bin")}, options, path("rec.citcat"));
      return made_of(*MachineFile::find(path("rec.citcat")));
    } catch (const FormatError&) {
      return std::nullopt;
    }
  }

 private:
  static MachineData data() { return MachineData(shared_file("smp") + "/" + GetParam().first); }
  static std::vector<std::string> internal_paths() {
    if (GetParam().first != kSample)
      return {data().path("side.0.csv.zst"), data().path("side.1.csv.zst")};
    const std::string sample = CITCAT_SOURCE_DIR "/samples/two-processors/queue.side.";
    return {sample + "0.csv", sample + "1.csv"};
  }
};

/// The end of a capture may be another: what one lost at its end the trace has not.
bool agree(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  const std::size_t n = std::min(a.size(), b.size());
  return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin());
}

/// Compares traces as far as both go.
void expect_same_memory(const Made& found, const Made& right) {
  if (found.instructions != right.instructions) return;
  for (const auto& [address, byte] : found.memory) {
    const auto its = right.memory.find(address);
    if (its == right.memory.end() || its->second == byte) continue;
    ADD_FAILURE() << "memory at " << std::hex << address
                  << " is something else at the end, and nobody noticed";
    return;
  }
}

unsigned number_of(const char* variable, unsigned usual) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : usual;
}

bool is_full_damage() {
  const char* const wanted = std::getenv("CITCAT_ACCEPTANCE");
  return wanted != nullptr && std::strcmp(wanted, "full") == 0;
}

std::vector<std::pair<std::string, char>> damaged_captures() {
  const std::string folder = shared_file("smp");
  if (folder.empty()) return {{kSample, 'C'}};
  if (is_full_damage()) {
    std::vector<std::pair<std::string, char>> all{{kSample, 'C'}};
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (!entry.is_directory()) continue;
      for (const char form : {'A', 'C'}) all.emplace_back(entry.path().filename().string(), form);
    }
    return all;
  }
  return {
      {"smp_spin32_tiny", 'A'}, {"smp_spin32_tiny", 'C'}, {"smp_spin64_tiny", 'C'}, {kSample, 'C'}};
}

/// The ordinary run damages each capture in some of the ways.
bool is_damaged_so(const std::pair<std::string, char>& capture, DamageKind kind) {
  if (is_full_damage() || std::getenv("CITCAT_DAMAGE") != nullptr) return true;
  const bool is_main = kind == DamageKind::given_away || kind == DamageKind::exchanged ||
                       kind == DamageKind::not_invalidated;
  if (capture.first == kSample && is_main) return true;
  const auto all = damaged_captures();
  const auto number = std::find(all.begin(), all.end(), capture) - all.begin();
  return static_cast<std::size_t>(kind) % all.size() == static_cast<std::size_t>(number);
}

TEST_P(DamagedBus, IsNoticedOrHasNoEffect) {
  const std::vector<MonitorRecord> whole = records();
  const std::optional<Made> right = verified(whole);
  ASSERT_TRUE(right);
  const unsigned first = number_of("CITCAT_DAMAGE_SEED", 1), count = number_of("CITCAT_DAMAGE", 1);
  for (const DamageKind kind : kDamageKinds) {
    if (!is_damaged_so(GetParam(), kind)) continue;
    unsigned noticed = 0, without_effect = 0;
    for (unsigned seed = first; seed < first + count; ++seed) {
      std::mt19937 random(seed);
      Records damaged = whole;
      if (!damage(damaged, kind, random)) continue;
      const std::optional<Made> found = verified(damaged);
      ++(found ? without_effect : noticed);
      if (!found) continue;
      SCOPED_TRACE("damage of kind " + std::to_string(static_cast<int>(kind)) + " by seed " +
                   std::to_string(seed));
      for (std::size_t p = 0; p < right->traces.size(); ++p) {
        EXPECT_TRUE(agree(found->traces[p], right->traces[p]))
            << "processor " << p << " did something else, and nobody noticed";
      }
      expect_same_memory(*found, *right);
    }
    std::printf("  kind %d: %u noticed, %u without effect\n", static_cast<int>(kind), noticed,
                without_effect);
    // Every message is asked for by a register of its sender's.
    const bool of_message = kind == DamageKind::other_message || kind == DamageKind::no_message;
    if (of_message && GetParam().first != kSample) {
      EXPECT_EQ(without_effect, 0u);
    }
    // What WBINVD writes back is modified.
    if (kind == DamageKind::no_flushed_line) {
      EXPECT_EQ(without_effect, 0u);
    }
    // Every capture has accesses; the other kinds need what some captures do not have.
    if (kind == DamageKind::given_away) {
      EXPECT_GT(noticed + without_effect, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DamagedBus, ::testing::ValuesIn(damaged_captures()),
                         [](const auto& capture) {
                           return capture.param.first + "_" + capture.param.second;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DamagedBus);

}  // namespace
}  // namespace citcat::test
