#pragma once
// The last store to some bytes, found in two ways that are to find the same.

#include <gtest/gtest.h>

#include <cstdint>

#include "replay/run/replay_timeline.h"

namespace citcat::test {

/// Goes back from where the timeline stands to the last store to these bytes: with nothing looked
/// at on the way but whether there is one, and with a look at each access, which is what a
/// breakpoint asks for. Expects both to end at the same place, and comes back. True where there is
/// a store.
inline bool expect_same_last_store(ReplayTimeline& timeline, PhysAddr at, std::uint32_t size) {
  SCOPED_TRACE(testing::Message() << size << " bytes at " << std::hex << at.value << " before "
                                  << std::dec << timeline.position().instruction);
  StopSet stops;
  stops.memory.push_back({at, size, false, true});
  StopSet with_breakpoint = stops;
  with_breakpoint.code.push_back(LinearAddr{0xfffffffd});  // where nothing runs
  const std::size_t here = timeline.mark();
  const ReplayTimeline::Stop found = timeline.run_back_to_stop(stops);
  const Moment there = timeline.moment();
  timeline.return_to(here);
  const ReplayTimeline::Stop expected = timeline.run_back_to_stop(with_breakpoint);
  EXPECT_EQ(there, timeline.moment());
  EXPECT_EQ(found.why, expected.why);
  EXPECT_EQ(found.hit.has_value(), expected.hit.has_value());
  if (found.hit && expected.hit) {
    EXPECT_EQ(found.hit->at, expected.hit->at);
    EXPECT_EQ(found.hit->address, expected.hit->address);
    EXPECT_EQ(found.hit->size, expected.hit->size);
    EXPECT_EQ(found.hit->access, expected.hit->access);
    EXPECT_EQ(found.hit->outside, expected.hit->outside);
  }
  timeline.return_to(here);
  timeline.forget(here);
  return expected.hit.has_value();
}

}  // namespace citcat::test
