#include "replay/verify/cache_accesses.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "events/machine/control_bits.h"
#include "replay/verify/repeated_lines.h"

namespace citcat {

CacheAccesses::CacheAccesses(const Recording& recording, const CacheDescriptor& descriptor)
    : model_(descriptor, CachedMemory(recording.initial.ram_bytes)),
      address_mask_(recording.bus.address_mask),
      ignores_cd_(recording.initial.ignore_cr0_cd) {}

void CacheAccesses::watch(const Machine& machine) {
  machine_ = &machine;
  model_.set_disabled(cache_disabled());
}

bool CacheAccesses::cache_disabled() const {
  return !ignores_cd_ && (machine_->engine().cr(0) & kCr0Cd) != 0;
}

void CacheAccesses::learn_from(const BusTransaction& t) {
  if (!t.is_memory()) return;
  if (t.has(kUncacheable)) model_.learn_uncacheable(t.address.page());
  const bool fill = t.has(kLine) && t.op != BusOp::data_write && !t.has(kUncacheable);
  if (fill && cache_disabled()) ignore_cd();
}

void CacheAccesses::ignore_cd() {
  ignores_cd_ = true;
  model_.set_disabled(false);
}

void CacheAccesses::restore_state(const State& state) {
  model_ = state.model;
  ignores_cd_ = state.ignores_cd;
  restarts_ = state.restarts;
}

void CacheAccesses::tell(const CacheOp& op) {
  apply(op, model_);
  if (log_ != nullptr) log_->push_back(op);
}

void CacheAccesses::refer(PhysAddr a, const DataReference& r, Position now) {
  before_access(now);
  tell({r.write ? CacheOp::Kind::write : CacheOp::Kind::read, captured(a), r.size});
}

/// Finds the lines of a block that runs for the first time, or keeps no notes.
const CodeLines& CacheAccesses::find_lines(const ExecutedBlock& block) {
  auto made = std::make_unique<LinesNote>();
  const BlockCode& code = block.code();
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const std::uint32_t begin = code.begin_of(i), length = code.begin_of(i + 1) - begin;
    const PhysAddr at = code.physical(begin);
    const std::uint32_t here = std::min(length, kPageSize - at.offset_in_page());
    const PhysAddr rest = here != length ? captured(code.physical(begin + here)) : PhysAddr{};
    made->lines.add(captured(at), here, rest, length - here,
                    [this](PhysAddr a) { return model_.line_of(a); });
  }
  if (block.note() == nullptr) return lines_ = std::move(made->lines);
  *block.note() = std::move(made);
  return static_cast<LinesNote&>(**block.note()).lines;
}

/// Line by line: what is heard twice in a row is heard once.
inline void CacheAccesses::hear_whole(const ExecutedBlock& block, std::uint64_t first) {
  const CodeLines& code = lines_of(block);
  const auto at = [&](std::uint32_t i) { return Position{first + i, 0}; };
  code.run(
      block.references(),
      [&](PhysAddr line, std::uint32_t number) {
        if (model_.fetch_line(line)) [[unlikely]]
          look_for_moved(at(code.instruction_of(number)));
      },
      [&](const DataReference& r, std::uint32_t i) {
        const PhysAddr a = captured(r.physical);
        if (r.write ? model_.write(a, r.size) : model_.read(a, r.size)) [[unlikely]]
          look_for_moved(at(i));
      });
}

void CacheAccesses::ran(std::span<const ExecutedBlock> blocks, Position first,
                        std::uint32_t count) {
  if (log_ == nullptr && hears_whole(first, count)) {
    restarts_ = false;
    for (const ExecutedBlock& b : blocks) {
      hear_whole(b, first.instruction);
      first.instruction += b.count();
    }
    return;
  }
  for (const ExecutedBlock& b : blocks) {
    hear(b, first);
    first.instruction += b.count();
  }
}

void CacheAccesses::hear(const ExecutedBlock& block, Position first) {
  if (log_ == nullptr) {
    restarts_ = false;
    if (hears_whole(first, block.count())) return hear_whole(block, first.instruction);
    return hear_each(block, first.instruction);
  }
  const BlockCode& code = block.code();
  const std::span<const DataReference> references = block.references();
  std::size_t r = 0;
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const Position now{first.instruction + i, 0};
    const std::uint32_t begin = code.begin_of(i), length = code.begin_of(i + 1) - begin;
    const PhysAddr at = code.physical(begin);
    const std::uint32_t here = std::min(length, kPageSize - at.offset_in_page());
    fetch(at, here, now);
    if (here != length) fetch(code.physical(begin + here), length - here, now);
    for (; r < references.size() && references[r].instruction == i; ++r) {
      refer(references[r].physical, references[r], now);
    }
  }
}

/// Instruction by instruction: before each something may be due.
void CacheAccesses::hear_each(const ExecutedBlock& block, std::uint64_t first) {
  const CodeLines& code = lines_of(block);
  const std::span<const DataReference> references = block.references();
  std::size_t r = 0;
  std::uint64_t due = 0;
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    const Position now{first + i, 0};
    const bool may_be_due = now.instruction >= due;
    if (may_be_due) due = before_access(now);
    code.fetch_instruction(i, [&](PhysAddr line, std::uint32_t) { model_.fetch_line(line); });
    for (; r < references.size() && references[r].instruction == i; ++r) {
      const PhysAddr a = captured(references[r].physical);
      references[r].write ? model_.write(a, references[r].size)
                          : model_.read(a, references[r].size);
    }
    if (model_.traffic().empty()) continue;
    if (may_be_due) {
      due = 0;
    } else {
      moved(now);
    }
  }
}

void CacheAccesses::instruction(const ExecutedInstruction& e, Position now) {
  for (const DataReference& r : e.references) refer(r.physical, r, now);
}

void CacheAccesses::iterations(const ExecutedInstruction& first, std::uint32_t count,
                               std::uint32_t step, Position now) {
  const std::span<const DataReference> references = first.references;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Position at{now.instruction, now.iteration + i};
    before_access(at);
    const std::size_t moved = model_.traffic().size();
    for (const DataReference& r : references) refer(r.physical.plus32(i * step), r, at);
    if (log_ != nullptr || model_.traffic().size() != moved) continue;
    // Once one has moved no line, those in the same lines do nothing more.
    i += std::min(iterations_in_lines(references, step, i, descriptor().line_bytes), count - 1 - i);
  }
}

void CacheAccesses::fetch(PhysAddr a, std::uint32_t size, Position now) {
  before_access(now);
  // A REP is fetched once, and again only when it was interrupted.
  if (now.iteration != 0 && !restarts_) return;
  restarts_ = false;
  tell({CacheOp::Kind::fetch, captured(a), size});
}

void CacheAccesses::read(PhysAddr a, std::uint32_t size, AccessKind, Position now) {
  before_access(now);
  tell({CacheOp::Kind::read, captured(a), size});
}

void CacheAccesses::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                          Position now) {
  before_access(now);
  const auto size = static_cast<std::uint32_t>(bytes.size());
  if (kind == AccessKind::data && descriptor().ins_reads_destination && machine_->in_port_input()) {
    tell({CacheOp::Kind::read, captured(a), size});
  }
  tell({CacheOp::Kind::write, captured(a), size});
}

void CacheAccesses::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  before_access(now);
  tell({CacheOp::Kind::snoop_write, a, static_cast<std::uint32_t>(bytes.size())});
}

void CacheAccesses::delivered(const DeliveredEvent&, Position) { restarts_ = true; }

void CacheAccesses::cache_flushed(bool, Position now) {
  before_access(now);
  tell({CacheOp::Kind::flush, {}, 0});
}

void CacheAccesses::address_space(AddressSpaceId, Position now) {
  before_access(now);
  tell({cache_disabled() ? CacheOp::Kind::disable : CacheOp::Kind::enable, {}, 0});
}

}  // namespace citcat
