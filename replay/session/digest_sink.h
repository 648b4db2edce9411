#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/archive/recording_codec.h"
#include "formats/io/hash.h"
#include "replay/machine/observer.h"

namespace citcat {

/// Sums a replay up in digests at fixed intervals, so that an archive can do without the evidence
/// once a replay was verified against it: another replay with the same digests is the same run.
///
/// A digest is the XXH3-64 half of the running XXH3-128 of, in program order: every byte written to
/// memory (u8 1, u32 physical address, u8 value), every port write (u8 2, u16 port, u8 size,
/// u32 value), every delivered interrupt or exception (u8 3, u8 vector, u32 eip, u32 upper half of
/// RIP where that is not 0, u64 instruction) and every halt (u8 4, u64 instruction). Bytes and not
/// accesses, because the program cannot see how an access is split.
class DigestSink final : public Observer {
 public:
  static constexpr std::uint64_t kInterval = std::uint64_t{1} << 20;  ///< instructions

  void watch(const Machine& machine) override { machine_ = &machine; }
  /// From ordinary code digests take stores and nothing else.
  Interest interest() const override { return {.code = Detail::stores}; }
  Interest interest_from(std::uint64_t instruction) override;
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void stored(std::span<const PlainStore> stores, Position from) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void write(PhysAddr address, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void halted(Position now) override;

  /// Returns all digests, the last one taken here. To be called once, at the end of the replay.
  std::vector<ReplayDigest> finish(std::uint64_t instructions);

 private:
  /// Few enough to stay in the host's first cache until they are summed up.
  static constexpr std::size_t kPendingBytes = std::size_t{1} << 13;

  void begin(Position now);
  void add(PhysAddr address, std::span<const std::uint8_t> bytes);
  template <std::uint32_t kSize>
  void add(PhysAddr address, std::uint64_t value);
  template <class... T>
  void add_event(std::uint8_t kind, T... numbers);
  void flush();

  const Machine* machine_ = nullptr;
  Hasher128 hasher_;
  std::vector<std::uint8_t> pending_ = std::vector<std::uint8_t>(kPendingBytes);
  std::size_t used_ = 0;  ///< of them
  std::uint64_t next_ = kInterval;
  std::vector<ReplayDigest> digests_;
};

/// Compares the digests `found` in a replay of `instructions` with `expected`: the instruction
/// before which the two runs part, or nullopt where the replay is the same as far as it goes.
std::optional<std::uint64_t> first_difference(std::span<const ReplayDigest> expected,
                                              std::span<const ReplayDigest> found,
                                              std::uint64_t instructions);

}  // namespace citcat
