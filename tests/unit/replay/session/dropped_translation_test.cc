// A translation that the processor drops by itself: the next access finds what the tables say by
// then, in every way to replay, from every checkpoint, and nothing is dropped besides.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "events/recording.h"
#include "replay/session/checkpoint_codec.h"
#include "replay/session/replayer.h"
#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

class DroppedTranslations : public testing::TestWithParam<ExecutionPath> {
 protected:
  static constexpr std::uint32_t kPage = 0x10, kFrame = 0x13, kHere = 0x11111111,
                                 kThere = 0x22222222;
  static constexpr std::uint32_t kData = kPage << 12, kEntry = PagedGuest::kTable + 4 * kPage;

  static PagedGuest guest() {
    PagedGuest guest;
    guest.put_word(kPage << 12, kHere);
    guest.put_word(kFrame << 12, kThere);
    return guest;
  }
  static void read(PagedGuest& guest) { guest.add({0xa1}, {kData}); }  // mov eax,[kData]
  static void drop(PagedGuest& guest, Position at, std::uint32_t page = kPage) {
    guest.recording.dropped_translations.push_back({at, LinearAddr{page << 12}});
  }
};

TEST_P(DroppedTranslations, AreFoundElsewhere) {
  for (const bool drops : {false, true}) {
    PagedGuest g = guest();
    read(g);
    g.move_page(kPage, kFrame);
    read(g);
    g.add({0x89, 0xc3});  // mov ebx,eax
    read(g);
    if (drops) drop(g, {4, 0});
    const PagedGuest::Outcome found = g.run(5, GetParam());
    EXPECT_EQ(found.cpu.gpr[kEbx], kHere);
    EXPECT_EQ(found.cpu.gpr[kEax], drops ? kThere : kHere);
  }
}

TEST_P(DroppedTranslations, AreMarkedAnew) {
  for (const std::uint32_t page : {kPage, kPage + 1}) {
    PagedGuest g = guest();
    read(g);
    g.add({0x83, 0x25}, {kEntry});  // and dword [kEntry],not 20h
    g.add({0xdf});
    read(g);
    drop(g, {2, 0}, page);
    const PagedGuest::Outcome found = g.run(3, GetParam());
    EXPECT_EQ(found.word(kEntry) & 0x20, page == kPage ? 0x20u : 0u) << page;
  }
}

TEST_P(DroppedTranslations, AreMarkedAsDirtyByTheNextStore) {
  PagedGuest g = guest();
  g.add({0xa3}, {kData});         // mov [kData],eax
  g.add({0x83, 0x25}, {kEntry});  // and dword [kEntry],not 60h
  g.add({0x9f});
  g.add({0xa3}, {kData});
  g.add({0xa3}, {kData});
  drop(g, {3, 0});
  EXPECT_EQ(g.run(3, GetParam()).word(kEntry) & 0x60, 0u);
  EXPECT_EQ(g.run(4, GetParam()).word(kEntry) & 0x60, 0x60u);
}

TEST_P(DroppedTranslations, MayBeDroppedBetweenIterations) {
  PagedGuest g = guest();
  g.recording.initial.gpr[kEcx] = 4;
  g.recording.initial.gpr[kEsi] = kData;
  read(g);
  g.move_page(kPage, kFrame);
  g.put_word((kPage << 12) + 8, 1);
  g.put_word((kFrame << 12) + 8, 2);
  g.put_word((kFrame << 12) + 12, 3);
  g.recording.initial.gpr[kEdi] = 0x20000;
  g.add({0xf3, 0xa5});  // rep movsd
  drop(g, {2, 3});
  const PagedGuest::Outcome found = g.run(3, GetParam());
  EXPECT_EQ(found.word(0x20000), kHere);
  EXPECT_EQ(found.word(0x20008), 1u);
  EXPECT_EQ(found.word(0x2000c), 3u);
}

TEST_P(DroppedTranslations, AreToldBeforeTheyAreDropped) {
  struct Told final : Observer {
    std::vector<DroppedTranslation> all;
    void translation_dropped(LinearAddr page, Position now) override { all.push_back({now, page}); }
  } told;
  PagedGuest g = guest();
  for (int i = 0; i < 3; ++i) read(g);
  drop(g, {1, 0});
  drop(g, {1, 0}, kPage + 1);
  drop(g, {2, 0});
  g.recording.instructions = 3;
  ReplayOptions options;
  options.path = GetParam();
  Replayer replayer(g.recording, &told, options);
  EXPECT_EQ(replayer.run().end, ReplayReport::End::complete);
  EXPECT_EQ(told.all, g.recording.dropped_translations);
}

TEST_P(DroppedTranslations, ThatComeAfterACheckpointAreDroppedAfterIt) {
  PagedGuest g = guest();
  read(g);
  g.move_page(kPage, kFrame);
  for (int i = 0; i < 4; ++i) read(g);
  drop(g, {1, 0}, kPage + 1);
  drop(g, {4, 0});
  g.recording.instructions = 6;
  for (std::uint64_t at = 0; at < 6; ++at) {
    ReplayOptions options;
    options.path = GetParam();
    Replayer first(g.recording, nullptr, options), second(g.recording, nullptr, options);
    first.run_to(at);
    const Replayer::Checkpoint checkpoint = first.checkpoint();
    const std::vector<std::uint8_t> state = encode_checkpoint_state(checkpoint);
    ByteReader in(state, "state");
    Replayer::Checkpoint back = decode_checkpoint_state(in, g.recording);
    back.machine.pages = checkpoint.machine.pages;
    second.restore(back);
    second.run_to(4);
    EXPECT_EQ(second.machine().save().gpr[kEax], at > 4 ? kThere : kHere) << at;
    second.run_to(6);
    EXPECT_EQ(second.machine().save().gpr[kEax], kThere) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(, DroppedTranslations, both_paths(), path_name);

}  // namespace
}  // namespace citcat
