// Intel SDM vol. 3, 5.8.5 (stacks of call gates) and 7.3 (tasks).

#include "replay/slice/far_flow.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "replay/slice/pushed_frame.h"

namespace citcat {
namespace {

using Span = ValueSpan;

Span loaded(std::size_t first, std::size_t count) {
  return {Span::Of::loads, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)};
}
Span stored(std::size_t first, std::size_t count) {
  return {Span::Of::stores, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(count)};
}
Span placed(PlaceRange range) { return {Span::Of::places, range.first, range.count}; }

// ---- tasks

/// EIP, EFLAGS and eight registers lie one after the other in a task segment.
constexpr std::size_t kTaskWords = 10, kFirstRegister = 2;

/// Where that begins among accesses of one direction; nullopt where nothing is so.
std::optional<std::size_t> task_among(const std::vector<LoggedAccess>& accesses) {
  std::size_t run = 0;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const bool goes_on = i != 0 && accesses[i - 1].size == accesses[i].size &&
                         ((accesses[i - 1].physical.low32() + accesses[i].size) & kPageMask) ==
                             accesses[i].physical.offset_in_page();
    run = goes_on ? run + 1 : 1;
    if (run == kTaskWords && (accesses[i].size == 2 || accesses[i].size == 4)) {
      // CR3 lies before them, and is read with them.
      const bool more = accesses[i].size == 4 && i + 1 < accesses.size() &&
                        accesses[i + 1].size == 4 && !accesses[i].write &&
                        accesses[i + 1].physical == accesses[i].physical.plus32(4);
      return i + 1 - kTaskWords + (more ? 1 : 0);
    }
  }
  return std::nullopt;
}

std::vector<LoggedAccess> of_system(std::span<const LoggedAccess> accesses, bool writes) {
  std::vector<LoggedAccess> found;
  std::copy_if(
      accesses.begin(), accesses.end(), std::back_inserter(found),
      [&](const LoggedAccess& a) { return a.write == writes && a.kind == AccessKind::system; });
  return found;
}

constexpr std::array<unsigned, 6> kSegmentsInOrder{kEs, kCs, kSs, kDs, kFs, kGs};

/// The task that is left: what of it is stored where.
void add_saved(std::size_t width, std::size_t segments, ValueFlow& flow) {
  flow.effects.push_back({{stored(0, width)}, {}, {}});  // where it goes on is no input
  for (unsigned bit = 0; bit < 8 * width; ++bit) {
    ValueEffect saved{{stored(width + bit / 8, 1)}, {}, {placed(place::flag(bit))}};
    saved.to_bits = static_cast<std::uint8_t>(1u << bit % 8);
    flow.effects.push_back(std::move(saved));
  }
  for (unsigned r = 0; r < 8; ++r) {
    flow.effects.push_back({{stored((kFirstRegister + r) * width, width)},
                            {placed(place::gpr(r, 0, static_cast<unsigned>(width)))},
                            {}});
  }
  for (std::size_t s = 0; s < segments; ++s) {
    flow.effects.push_back({{stored(kTaskWords * width + 2 * s, 2)},
                            {},
                            {placed(place::segment(kSegmentsInOrder[s]))}});
  }
}

/// The task that is entered.
void add_entered(std::size_t width, std::size_t segments, ValueFlow& flow) {
  for (unsigned bit = 0; bit < 32; ++bit) {
    ValueEffect taken{{placed(place::flag(bit))}, {}, {}};
    if (bit < 8 * width) taken.lanes.push_back(loaded(width + bit / 8, 1));
    taken.from_bits = static_cast<std::uint8_t>(1u << bit % 8);
    flow.effects.push_back(std::move(taken));
  }
  for (unsigned r = 0; r < 8; ++r) {
    const Span from = loaded((kFirstRegister + r) * width, width);
    flow.effects.push_back({{placed(place::gpr(r, 0, static_cast<unsigned>(width)))}, {from}, {}});
    if (width < 8) {
      flow.effects.push_back(
          {{placed(place::gpr(r, static_cast<unsigned>(width), static_cast<unsigned>(8 - width)))},
           {},
           {}});
    }
  }
  for (std::size_t s = 0; s < kSegmentsInOrder.size(); ++s) {
    std::vector<Span> from;
    if (s < segments) from.push_back(loaded(kTaskWords * width + 2 * s, 2));
    flow.effects.push_back({{placed(place::segment(kSegmentsInOrder[s]))}, {}, from});
  }
  // LDTR and CR3 are among the rest of what was read; TR says the descriptor.
  flow.effects.push_back(
      {{placed(place::one(place::kTables + 2)), placed(place::one(place::kTables + 3)),
        placed(place::one(place::kControl + 2))},
       {},
       {loaded(kTaskWords * width + 2 * segments, 64)}});
}

/// Moves what lies together in a task segment into a stream: the words, then the selectors.
std::size_t take_task(std::vector<LoggedAccess>& accesses, std::size_t begin,
                      AccessStream& stream) {
  for (std::size_t i = 0; i < kTaskWords; ++i) stream.add(accessed_memory(accesses[begin + i], 0));
  std::size_t end = begin + kTaskWords;
  const std::size_t most = accesses[begin].size == 4 ? 6 : 4;
  std::size_t selectors = 0;
  while (selectors < most && end < accesses.size() && accesses[end].size == 2) {
    stream.add(accessed_memory(accesses[end++], 0));
    ++selectors;
  }
  accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(begin),
                 accesses.begin() + static_cast<std::ptrdiff_t>(end));
  return selectors;
}

/// Adds what else a switch of tasks stores: the link back, and an error code. It reads descriptors
/// before it stores them, and changes one bit.
void add_other_stores(const std::vector<LoggedAccess>& writes,
                      const std::vector<LoggedAccess>& reads, AccessStream& stores,
                      ValueFlow& flow) {
  for (const LoggedAccess& w : writes) {
    const bool changed = std::any_of(reads.begin(), reads.end(), [&](const LoggedAccess& r) {
      return overlap(r.physical, r.size, w.physical, w.size);
    });
    if (changed) continue;
    flow.effects.push_back(
        {{stored(stores.size, w.size)}, {}, {placed(place::one(place::kTables + 3))}});
    stores.add(accessed_memory(w, 0));
  }
}

std::optional<ValueFlow> task_flow(std::span<const LoggedAccess> accesses, AccessStream& loads,
                                   AccessStream& stores) {
  std::vector<LoggedAccess> writes = of_system(accesses, true), reads = of_system(accesses, false);
  const auto left = task_among(writes), entered = task_among(reads);
  if (!left) return std::nullopt;
  ValueFlow flow;
  loads.clear();
  stores.clear();
  const std::size_t width = writes[*left].size;
  add_saved(width, take_task(writes, *left, stores), flow);
  if (entered) {
    const std::size_t wide = reads[*entered].size;
    add_entered(wide, take_task(reads, *entered, loads), flow);
  } else {
    flow.approximate = true;
    flow.effects.push_back({{{Span::Of::places, 0, place::kVectors},
                             {Span::Of::places, place::kFlags, place::kFpuStatus - place::kFlags}},
                            {},
                            {loaded(0, Span::kAll)}});
  }
  add_other_stores(writes, reads, stores, flow);
  for (const LoggedAccess& r : reads) loads.add(accessed_memory(r, 0));
  return flow;
}

// ---- calls

void set_stores(const std::vector<PushedWord>& frame, AccessStream& stores) {
  stores.clear();
  for (const PushedWord& word : frame) {
    for (std::uint32_t i = 0; i < word.size; ++i) stores.add({word.bytes[i], {}, 1});
  }
}

/// The stack of an inner level, and where it begins, come from the task segment.
void add_inner_stack(std::size_t first_of_system, ValueFlow& flow) {
  const Span from = loaded(first_of_system, Span::kAll);
  flow.effects.push_back({{placed(place::segment(kSs))}, {}, {from}});
  flow.effects.push_back({{placed(place::gpr(kEsp, 0, 8))}, {}, {from}});
}

/// SS, the stack pointer, parameters, CS and the place that is returned to.
std::optional<ValueFlow> call_flow(const DecodedInstruction& info,
                                   std::span<const LoggedAccess> accesses, AccessStream& loads,
                                   AccessStream& stores) {
  const std::vector<PushedWord> frame = frame_among(accesses);
  constexpr std::size_t kOuter = 2, kReturn = 2;
  if (frame.size() < kReturn || frame.front().size < 2) return std::nullopt;
  ValueFlow flow = value_flow(info);
  const bool inner = frame.size() >= kOuter + kReturn;
  const std::size_t width = frame.front().size;
  fill_streams(info, accesses, 0, loads, stores);
  set_stores(frame, stores);
  if (!inner) return flow;
  std::erase_if(flow.effects, [](const ValueEffect& e) {
    return e.to.front().of == Span::Of::stores || e.to.front() == placed(place::gpr(kEsp, 0, 8));
  });
  const std::size_t parameters = frame.size() - kOuter - kReturn;
  flow.effects.push_back({{stored(0, width)}, {}, {placed(place::segment(kSs))}});
  flow.effects.push_back(
      {{stored(width, width)}, {placed(place::gpr(kEsp, 0, static_cast<unsigned>(width)))}, {}});
  // A pointer in memory that it calls by is read before them.
  const std::size_t pointer =
      loads.size >= parameters * width ? loads.size - parameters * width : 0;
  flow.effects.push_back(
      {{stored(kOuter * width, parameters * width)}, {loaded(pointer, parameters * width)}, {}});
  flow.effects.push_back(
      {{stored((kOuter + parameters) * width, width)}, {}, {placed(place::segment(kCs))}});
  flow.effects.push_back({{stored((kOuter + parameters + 1) * width, width)}, {}, {}});
  add_inner_stack(loads.size, flow);
  for (const LoggedAccess& r : of_system(accesses, false)) loads.add(accessed_memory(r, 0));
  return flow;
}

bool is_by_system(std::span<const LoggedAccess> accesses) {
  return std::any_of(accesses.begin(), accesses.end(),
                     [](const LoggedAccess& a) { return a.write && a.kind == AccessKind::system; });
}

/// All that its effects write in registers.
void summarise(ValueFlow& flow) {
  for (const ValueEffect& e : flow.effects) {
    for (const Span& span : e.to) {
      if (span.of == Span::Of::stores) flow.stores = true;
      if (span.of != Span::Of::places) continue;
      for (unsigned i = 0; i < span.count; ++i) flow.written.set(span.first + i);
    }
  }
}

}  // namespace

std::optional<ValueFlow> far_flow(const DecodedInstruction* info,
                                  std::span<const LoggedAccess> accesses, AccessStream& loads,
                                  AccessStream& stores) {
  const bool far = info == nullptr || info->kind == InstructionClass::far_call ||
                   info->kind == InstructionClass::far_jump || info->kind == InstructionClass::iret;
  if (!far || !is_by_system(accesses)) return std::nullopt;
  std::optional<ValueFlow> flow = task_flow(accesses, loads, stores);
  if (!flow && info != nullptr && info->kind == InstructionClass::far_call) {
    flow = call_flow(*info, accesses, loads, stores);
  }
  if (flow) summarise(*flow);
  return flow;
}

}  // namespace citcat
