#pragma once
// What the bus of a processor without a cache shows of a replay: captures of runs whose every
// register is known.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "capture/import/import.h"
#include "events/derive/recording_builder.h"
#include "replay/session/replayer.h"
#include "unit/kept_evidence.h"

namespace citcat::test {

/// What a bus of four bytes' width carries.
class DwordBus final : public Observer {
 public:
  Interest interest() const override { return Interest::everything(); }
  void watch(const Machine& machine) override { machine_ = &machine; }
  void fetch(PhysAddr a, std::uint32_t size, Position) override {
    for (std::uint32_t at = a.low32() & ~3u; at < a.low32() + size; at += 4) {
      if (at != fetched_) add(BusOp::code_read, at, 4, nullptr);
      fetched_ = at;
    }
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind, Position) override {
    split(BusOp::data_read, a.low32(), size, nullptr);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    split(BusOp::data_write, a.low32(), static_cast<std::uint32_t>(bytes.size()), bytes.data());
  }
  void instruction(const ExecutedInstruction&, Position) override { boundary_ = shown.size(); }
  void delivered(const DeliveredEvent& event, Position) override {
    fetched_ = 1;
    if (event.kind != DeliveredEvent::Kind::external) return;
    // Told when all of it is done.
    BusTransaction t;
    t.op = BusOp::interrupt_acknowledge;
    t.size = 1;
    t.data[0] = event.vector;
    shown.insert(shown.begin() + static_cast<std::ptrdiff_t>(boundary_), t);
  }
  std::vector<BusTransaction> shown;

 private:
  void split(BusOp op, std::uint32_t at, std::uint32_t size, const std::uint8_t* bytes) {
    while (size != 0) {
      const std::uint32_t part = std::min(size, 4 - at % 4);
      add(op, at, part, bytes);
      at += part;
      size -= part;
      if (bytes != nullptr) bytes += part;
    }
  }
  void add(BusOp op, std::uint32_t at, std::uint32_t size, const std::uint8_t* bytes) {
    BusTransaction t;
    t.op = op;
    t.address.value = at;
    t.size = static_cast<std::uint8_t>(size);
    for (std::uint32_t i = 0; i < size; ++i) {
      t.data[i] = bytes != nullptr ? bytes[i] : *machine_->memory().host(PhysAddr{at + i});
    }
    shown.push_back(t);
  }
  const Machine* machine_ = nullptr;
  std::size_t boundary_ = 0;
  std::uint32_t fetched_ = 1;
};

/// The recording that is made of what such a bus shows of `known`, which it replays to its end. Of
/// the processor it has the model alone.
inline ImportedRecording shown_on_bus(const Recording& known) {
  DwordBus bus;
  ReplayOptions options;
  options.to = *known.instructions;
  Replayer replayer(known, &bus, options);
  const ReplayReport report = replayer.run();
  EXPECT_EQ(report.instructions, *known.instructions) << report.divergence->reason;
  ImportedRecording imported;
  KeptEvidence kept(imported.evidence);
  RecordingBuilder builder({known.bus}, &kept);
  for (std::size_t n = 0; n < bus.shown.size(); ++n) {
    bus.shown[n].index = n;
    builder.add(bus.shown[n]);
  }
  imported.recording = builder.finish();
  imported.recording.initial.model = known.initial.model;
  return imported;
}

}  // namespace citcat::test
