// Causes for which the capture is right: the processor computed another result than the replay.

#include <fmt/format.h>

#include <algorithm>

#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_prices.h"

namespace citcat {

void stale_code(const CauseContext& context, CauseList& out) {
  const auto& steps = context.history().steps();
  constexpr std::size_t kWindow = 64;
  const std::size_t begin = steps.size() - std::min(kWindow, steps.size());
  for (std::size_t i = begin; i < steps.size(); ++i) {
    for (std::size_t w = begin; w < i; ++w) {
      for (const HistoryAccess& a : context.history().accesses(steps[w])) {
        const bool overwrites = a.kind == HistoryAccess::Kind::write &&
                                a.address.is_within32(steps[i].physical, steps[i].length);
        const auto old = context.recording().image.byte(a.address);
        if (!overwrites || !old) continue;
        std::vector<std::uint8_t> now, before;
        for (std::uint32_t b = 0; b < a.size; ++b) {
          now.push_back(context.memory_byte(a.address.plus32(b)));
          before.push_back(
              context.recording().image.byte(a.address.plus32(b)).value_or(now.back()));
        }
        Hint stale, fresh;
        stale.kind = fresh.kind = Hint::Kind::external_write;
        stale.address = fresh.address = a.address;
        stale.position = steps[i].position;
        fresh.position = {steps[i].position.instruction + 1, 0};
        stale.data = before;
        fresh.data = now;
        stale.transaction = fresh.transaction = context.divergence().transaction;
        fresh.transaction += 1;
        out.add(
            {CauseKind::stale_code,
             fmt::format("the instruction at {:08x} had been fetched before instruction {} wrote "
                         "to it",
                         steps[i].linear.value, steps[w].position.instruction),
             {stale, fresh},
             {steps[w].position, kNowhere},
             std::nullopt,
             1.5});
      }
    }
  }
}

void uncertain_results(const CauseContext& context, CauseList& out) {
  if (context.mismatches().empty()) return;
  const BusTransaction& t = *context.divergence().shown;
  const bool uncertain = std::any_of(context.lineage().begin(), context.lineage().end(),
                                     [](const LineageSource& s) { return s.uncertain; });
  Hint hint;
  hint.kind = Hint::Kind::result;
  hint.transaction = t.index;
  hint.position = context.divergence().position;
  hint.address = t.address;
  hint.data.assign(t.data.begin(), t.data.begin() + t.size);
  hint.write_back = t.has(kWriteBack);
  out.add({CauseKind::uncertain_result,
           fmt::format("the processor computes another value than the replay, and wrote it in "
                       "transaction {}",
                       t.index),
           {hint},
           {context.divergence().position, t.index},
           std::nullopt,
           uncertain ? 1.8 : 7.0});
}

}  // namespace citcat
