#pragma once

#include <cstdint>
#include <vector>

#include "replay/trace/kt_sink.h"
#include "replay/trace/trace_reader.h"
#include "replay/verify/bus_times.h"

namespace citcat {

/// Keeps what a replay does as records, and as events.
class RecordSink final : public Observer {
 public:
  /// `options`: its range is not looked at. `events`: these too. `times`, which may be null,
  /// receives the times from the comparison of the same replay and must outlive the sink.
  RecordSink(const KtOptions& options, bool events, BusTimes* times = nullptr)
      : options_(options), events_(events), times_(times) {}

  /// Throws UsageError where addresses have 64 bits and the options do not allow for that.
  void watch(const Machine& machine) override;
  /// Forgets the records; what comes before `from` is not kept.
  void begin_at(Position from);
  Position from() const { return range_.from(); }

  Interest interest() const override {
    return {.code = Detail::blocks, .mappings = options_.process_records};
  }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr at, std::span<const std::uint8_t> bytes, Position now) override;
  void translation_dropped(LinearAddr page, Position now) override;
  void halted(Position now) override;
  void shutdown(Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;
  void mapping(LinearAddr page, PhysAddr frame, Position now) override;

  std::vector<TraceRecord> records;

 private:
  bool wanted(Position now);
  void add(const KtRecord& record, Position now, std::uint8_t bits);
  void add(const ExecutedInstruction& e, Position now);
  void add(const ExecutedBlock& block, Position first);
  void add_event(KtNote::Kind kind, Position now, std::uint64_t where = 0, std::uint32_t size = 0,
                 std::uint32_t value = 0);

  KtOptions options_;
  bool events_;
  BusTimes* times_;
  const Machine* machine_ = nullptr;
  TraceRange range_;
};

}  // namespace citcat
