// The state of a checkpoint comes from a file: whatever it is, it is refused or can be gone on
// from.

#include "replay/session/checkpoint_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "events/recording.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

using CheckpointBytes = std::vector<std::uint8_t>;

/// Real-mode code of a 486 that calls, stores and loops, all over its first 64 KiB.
Recording small_recording() {
  Recording recording;
  recording.initial.model = CpuModel::i486;
  recording.initial.eip = 0x100;
  recording.initial.gpr[4] = 0x8000;
  const CheckpointBytes code{0x40, 0x89, 0x06, 0x00, 0x20, 0x50, 0xe8,
                             0x01, 0x00, 0xf4, 0x58, 0x58, 0xeb, 0xf2};
  for (std::uint32_t at = 0; at < 0x10000; ++at) {
    recording.image.set(PhysAddr{at}, at < 0x100 ? 0 : code[at % 0x100 % code.size()]);
  }
  return recording;
}

CheckpointBytes state_of(const Recording& recording, std::uint64_t instructions) {
  Replayer replayer(recording, nullptr, {});
  replayer.run_to(instructions);
  return encode_checkpoint_state(replayer.checkpoint());
}

Replayer::Checkpoint decode_state(const CheckpointBytes& state, const Recording& recording) {
  ByteReader in(state, "state");
  return decode_checkpoint_state(in, recording);
}

/// Ends a run in which every instruction faults, the handler's first one too: as a processor does,
/// it goes on for ever.
struct Patience final : Observer {
  int writes = 0;
  void write(PhysAddr, std::span<const std::uint8_t>, AccessKind, Position) override {
    constexpr int kMax = 1000;
    if (++writes > kMax) throw UsageError("no patience left");
  }
};

TEST(CheckpointCodec, GivesBackWhatItWasGiven) {
  const Recording recording = small_recording();
  const CheckpointBytes state = state_of(recording, 100);
  EXPECT_EQ(encode_checkpoint_state(decode_state(state, recording)), state);
}

TEST(CheckpointCodec, RefusesEveryCut) {
  const Recording recording = small_recording();
  const CheckpointBytes state = state_of(recording, 100);
  for (std::size_t size = 0; size < state.size(); ++size) {
    EXPECT_THROW(
        decode_state({state.begin(), state.begin() + static_cast<std::ptrdiff_t>(size)}, recording),
        FormatError);
  }
}

TEST(CheckpointCodec, RefusesDamageOrGoesOnFromIt) {
  const Recording recording = small_recording();
  const CheckpointBytes state = state_of(recording, 100);
  std::mt19937 random(19850101);
  Patience patience;
  Replayer replayer(recording, &patience, {});
  int restored = 0;
  for (int i = 0; i < 1000; ++i) {
    CheckpointBytes damaged = state;
    for (std::size_t flips = 1 + random() % 4; flips != 0; --flips) {
      damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    }
    try {
      const Replayer::Checkpoint checkpoint = decode_state(damaged, recording);
      replayer.restore(checkpoint);
      patience.writes = 0;
      ++restored;
      replayer.run_to(checkpoint.machine.position.instruction + 50);
    } catch (const InternalError& error) {
      ADD_FAILURE() << error.what();
    } catch (const Error&) {
    }
  }
  EXPECT_GT(restored, 100);
}

}  // namespace
}  // namespace citcat
