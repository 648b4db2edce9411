#include "capture/import/where.h"

#include <algorithm>
#include <array>

#include "capture/bus/text_fields.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

struct KindName {
  Where::Kind kind;
  std::string_view name;
};
constexpr std::array<KindName, 5> kKindNames{{
    {Where::Kind::interrupt, "interrupt"},
    {Where::Kind::transaction, "transaction"},
    {Where::Kind::sample, "sample"},
    {Where::Kind::instruction, "instruction"},
    {Where::Kind::clock, "clock"},
}};

}  // namespace

Where parse_where(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto* const row =
      std::find_if(kKindNames.begin(), kKindNames.end(),
                   [&](const KindName& k) { return k.name == text.substr(0, colon); });
  const auto number =
      colon == std::string_view::npos ? std::nullopt : parse_number(text.substr(colon + 1), 10);
  if (row == kKindNames.end() || !number) {
    throw UsageError(
        "expected interrupt:N, transaction:N, sample:N, instruction:N or clock:N, "
        "found \"" +
        std::string(text) + "\"");
  }
  return {row->kind, *number};
}

std::string where_text(const Where& where) {
  const auto* const row = std::find_if(kKindNames.begin(), kKindNames.end(),
                                       [&](const KindName& k) { return k.kind == where.kind; });
  return std::string(row->name) + ":" + std::to_string(where.number);
}

bool WhereFinder::reached_place(const BusTransaction& t) {
  const bool interrupt = t.op == BusOp::interrupt_acknowledge;
  const std::uint64_t interrupts_before = interrupts_;
  if (interrupt) ++interrupts_;
  switch (where_->kind) {
    case Where::Kind::interrupt:
      return interrupt && interrupts_before >= where_->number;
    case Where::Kind::transaction:
      return t.index >= where_->number;
    case Where::Kind::sample:
    case Where::Kind::clock:
      return t.has(kClockKnown) && t.clock >= where_->number;
    case Where::Kind::instruction:
      return t.has(kPositionKnown) && t.position.instruction >= where_->number;
  }
  return false;
}

}  // namespace citcat
