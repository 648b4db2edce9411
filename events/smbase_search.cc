#include "events/smbase_search.h"

#include <algorithm>

namespace citcat {
namespace {

/// Enough for the state in words, its lines with their victims, and code fetched ahead.
constexpr std::uint32_t kMaxTransactions = 1024;
constexpr std::uint32_t kHandlerOffset = 0x8000, kLowestSaved = 0xfe00, kHighestSaved = 0xffff;
constexpr std::uint32_t kSavedArea = kHighestSaved + 1 - kLowestSaved;

}  // namespace

void SmbaseSearch::begin() {
  left_ = kMaxTransactions;
  lowest_ = ~0U;
  highest_ = 0;
}

std::optional<std::uint32_t> SmbaseSearch::add(const BusTransaction& t) {
  --left_;
  if (t.address.value >> 32 != 0) return std::nullopt;  // SMBASE has 32 bits
  const bool stores = (t.op == BusOp::data_write && !t.has(kWriteBack)) ||
                      (t.op == BusOp::data_read && t.has(kStoreFill));
  if (stores) {
    lowest_ = std::min(lowest_, t.address.low32());
    highest_ = std::max(highest_, t.address.low32() + t.size - 1U);
    if (highest_ - lowest_ >= kSavedArea) left_ = 0;
    return std::nullopt;
  }
  const bool fetches = t.op == BusOp::code_read || t.op == BusOp::instruction_start;
  if (!fetches) {
    if (t.op == BusOp::smi || t.op == BusOp::nmi || t.op == BusOp::interrupt_acknowledge) left_ = 0;
    return std::nullopt;
  }
  const std::uint32_t base = t.address.low32() - kHandlerOffset;
  const bool saved = lowest_ <= highest_ && lowest_ - base >= kLowestSaved &&
                     lowest_ - base <= kHighestSaved && highest_ - base <= kHighestSaved;
  if (!saved) return std::nullopt;
  left_ = 0;
  return base;
}

}  // namespace citcat
