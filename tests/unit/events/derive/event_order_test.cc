#include "events/derive/event_order.h"

#include <gtest/gtest.h>

namespace citcat::test {
namespace {

TEST(EventOrder, StaysWhenTransactionsBecomeSmallNumbers) {
  Recording r;
  for (const std::uint64_t at : {70u, 90u, 91u, 400u}) {
    ExternalWrite write;
    write.transaction = at;
    r.external_writes.push_back(write);
  }
  for (const std::uint64_t at : {10u, 80u, 85u, 95u, 500u}) {
    r.interrupts.emplace_back();
    r.interrupts.back().transaction = at;
  }
  const auto interrupts = r.interrupts;
  const auto writes = r.external_writes;
  number_events_by_order(r);
  for (std::size_t i = 0; i < r.interrupts.size(); ++i) {
    for (std::size_t k = 0; k < r.external_writes.size(); ++k) {
      EXPECT_EQ(r.interrupts[i].transaction < r.external_writes[k].transaction,
                interrupts[i].transaction < writes[k].transaction)
          << i << " " << k;
    }
  }
  EXPECT_LE(r.interrupts.back().transaction, 8u);
}

}  // namespace
}  // namespace citcat::test
