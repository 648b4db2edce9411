#include "tools/report/kept_moments.h"

#include <algorithm>
#include <bit>

#include "replay/machine/iteration_address.h"

namespace citcat::tools {

KeptMoments::KeptMoments(std::uint64_t edge, std::uint64_t around)
    : edge_(edge),
      around_(around),
      ring_(std::bit_ceil(std::max<std::uint64_t>({edge, around, 1}))) {
  stretches_.emplace_back().reasons.push_back({"the beginning", 0, 0, true});
  keep_until_ = edge;
}

KeptMoments::Told& KeptMoments::next_told(std::uint64_t records) {
  Told& told = in_ring(next_++);
  told_ += records;
  told.end = told_;
  return told;
}

void KeptMoments::append(const Told& told, std::uint64_t from, std::uint64_t until,
                         std::vector<ToldRecord>& to) {
  if (told.block == nullptr) {
    ToldRecord& record = to.emplace_back();
    record.position = told.first;
    record.event = told.event;
    return;
  }
  const StaticBlock& block = *told.block;
  const std::uint64_t begin = told.end - block.count();
  for (std::size_t i = from > begin ? from - begin : 0; i < block.count() && begin + i < until;
       ++i) {
    ToldRecord& record = to.emplace_back();
    record.code = &block[i];
    record.position = {told.first.instruction + i, i == 0 ? told.first.iteration : 0};
    record.address_count = told.does_nothing ? std::uint8_t{0} : block[i].info.ea_count;
    for (unsigned a = 0; a < record.address_count; ++a) {
      record.addresses[a] = told.addresses[block[i].addresses_before + a];
    }
    record.iterations = told.iterations;
    record.step = told.step;
  }
}

/// What was told after the first `from` records, which the ring still holds.
void KeptMoments::append_ring(KeptStretch& to, std::uint64_t from) const {
  const std::uint64_t held = std::min<std::uint64_t>(next_, ring_.size());
  for (std::uint64_t n = next_ - held; n < next_; ++n) {
    const Told& told = in_ring(n);
    if (told.end > from) append(told, from, told.end, to.records);
  }
}

void KeptMoments::take(const Told& told) {
  append(told, kept_, keep_until_, stretches_.back().records);
  kept_ = std::min(told_, keep_until_);
}

/// The bytes from one iteration to the next where `execution` is further iterations of what was
/// told last, which may be told together or not; nullopt: it is not.
std::optional<std::uint32_t> KeptMoments::step_to(const Execution& execution) const {
  if (next_ == 0) return std::nullopt;
  const Told& last = in_ring(next_ - 1);
  std::vector<LinearAddr> addresses;
  execution.append_addresses(addresses);
  const bool follows = last.block != nullptr && last.block->count() == 1 &&
                       last.first.instruction == execution.first().instruction &&
                       last.first.iteration + last.iterations == execution.first().iteration &&
                       !last.does_nothing && !execution.does_nothing() &&
                       last.addresses.size() == addresses.size();
  if (!follows) return std::nullopt;
  std::uint32_t step = last.step;
  if (last.iterations == 1) step = addresses.empty() ? 0 : addresses[0].minus32(last.addresses[0]);
  for (std::size_t a = 0; a < addresses.size(); ++a) {
    if (address_after(last.addresses[a], last.iterations, step) != addresses[a])
      return std::nullopt;
  }
  if (execution.iterations() > 1 && execution.step() != step) return std::nullopt;
  return step;
}

/// So many more iterations of what was told last.
void KeptMoments::told_further(std::uint32_t iterations, std::uint32_t step) {
  Told& last = in_ring(next_ - 1);
  last.iterations += iterations;
  last.step = step;
  if (kept_ != told_ || stretches_.back().records.empty()) return;
  stretches_.back().records.back().iterations = last.iterations;
  stretches_.back().records.back().step = last.step;
}

void KeptMoments::told(const Execution& execution) {
  const StaticBlock& block = execution.block();
  if (block.count() == 1 && block.front().info.is_repeated()) {
    if (const auto step = step_to(execution)) return told_further(execution.iterations(), *step);
  }
  Told& told = next_told(block.count());
  told.block = &block;
  told.first = execution.first();
  told.iterations = execution.iterations();
  told.step = execution.iterations() > 1 ? execution.step() : 0;
  told.does_nothing = execution.does_nothing();
  told.addresses.clear();
  execution.append_addresses(told.addresses);
  if (kept_ < keep_until_) take(told);
}

void KeptMoments::told(const KtNote& event) {
  Told& told = next_told(1);
  told.block = nullptr;
  told.first = {event.place.instruction, event.place.iteration};
  told.event = event;
  if (kept_ < keep_until_) take(told);
}

void KeptMoments::skipped(std::uint64_t records) {
  told_ += records;
  // What was to follow is not known.
  if (goes_on()) keep_until_ = kept_;
}

void KeptMoments::keep(const MomentReason& reason) {
  const std::uint64_t before = told_ - std::min(told_, around_);
  if (kept_ < before) stretches_.emplace_back();
  KeptStretch& stretch = stretches_.back();
  append_ring(stretch, std::max(kept_, before));
  kept_ = told_;
  keep_until_ = std::max(keep_until_, told_ + around_);
  stretch.reasons.push_back(reason);
}

void KeptMoments::thin(std::size_t kind, std::uint64_t stride) {
  for (KeptStretch& stretch : stretches_) {
    std::erase_if(stretch.reasons, [&](const MomentReason& r) {
      return !r.pinned && r.kind == kind && r.ordinal % stride != 0;
    });
  }
  // The last one may still be open.
  for (std::size_t i = 0; i + 1 < stretches_.size();) {
    if (stretches_[i].reasons.empty()) {
      stretches_.erase(stretches_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

std::vector<KeptStretch> KeptMoments::all() const {
  std::vector<KeptStretch> all(stretches_.begin(), stretches_.end());
  const std::uint64_t last = told_ - std::min(told_, edge_);
  if (kept_ < last) all.emplace_back();
  append_ring(all.back(), std::max(kept_, last));
  all.back().reasons.push_back({"the end", 0, 0, true});
  std::erase_if(all, [](const KeptStretch& s) { return s.records.empty(); });
  return all;
}

}  // namespace citcat::tools
