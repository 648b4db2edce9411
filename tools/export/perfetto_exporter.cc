// perfetto: a time line of processes, levels, interrupts, system calls, ports and DMA. Format and
// source: docs/export/perfetto.md.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string>

#include "events/processors/bus_turns.h"
#include "tools/export/export_file.h"
#include "tools/export/step_stream.h"

namespace citcat::tools {
namespace {

/// Fields of perfetto.protos.Trace, TracePacket, TrackDescriptor and TrackEvent.
enum TraceField : protozero::pbf_tag_type { kPacket = 1 };
enum PacketField : protozero::pbf_tag_type {
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
enum DescriptorField : protozero::pbf_tag_type { kUuid = 1, kTrackName = 2, kCounter = 8 };
enum EventField : protozero::pbf_tag_type {
  kEventType = 9,
  kTrack = 11,
  kEventName = 23,
  kCounterValue = 30,
};
enum EventType : std::int32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterType = 4 };
constexpr std::uint32_t kFirstSequence = 1, kStateCleared = 1;
/// Numbers of tracks for each processor.
constexpr std::uint64_t kTracks = 16;

enum class TrackId : std::uint64_t { process = 1, level, delivery, ports, dma, written };

/// A track on which one thing is going on at a time.
struct Running {
  std::optional<std::uint64_t> value;
};

class PerfettoTool final : public StepTool {
 public:
  /// `turns`: of the bus, where several processors share it.
  PerfettoTool(ExportFile file, std::size_t processor, std::shared_ptr<const BusTurns> turns,
               bool is_sampled)
      : StepTool(std::move(file)),
        processor_(processor),
        turns_(std::move(turns)),
        is_sampled_(is_sampled) {}
  Wants wants() const override {
    return {.executions = true, .events = true, .passes = !is_sampled_};
  }
  std::unique_ptr<Tool> part() const override {
    return std::make_unique<PerfettoTool>(file().anew(), processor_, turns_, is_sampled_);
  }

 private:
  template <class Fill>
  void packet(std::uint64_t time, Fill&& fill) {
    std::string bytes;
    {
      protozero::pbf_writer trace(bytes);
      protozero::pbf_writer packet(trace, kPacket);
      packet.add_uint64(kTimestamp, time);
      packet.add_uint32(kSequence, kFirstSequence + static_cast<std::uint32_t>(processor_));
      fill(packet);
    }
    file().write(bytes);
    ++packets_;
  }

  /// Processors' files put together have no number twice.
  std::uint64_t number_of(TrackId track) const {
    return processor_ * kTracks + static_cast<std::uint64_t>(track);
  }

  void describe(TrackId id, const std::string& name, bool counter = false) {
    packet(0, [&](protozero::pbf_writer& packet) {
      if (packets_ == 0) packet.add_uint32(kSequenceFlags, kStateCleared);
      protozero::pbf_writer track(packet, kTrackDescriptor);
      track.add_uint64(kUuid, number_of(id));
      track.add_string(kTrackName,
                       turns_ ? fmt::format("processor {}: {}", processor_, name) : name);
      if (counter) protozero::pbf_writer{track, kCounter};
    });
  }

  void tell(std::uint64_t time, TrackId track, EventType type, const std::string& name = "") {
    packet(time, [&](protozero::pbf_writer& packet) {
      protozero::pbf_writer event(packet, kTrackEvent);
      event.add_int32(kEventType, type);
      event.add_uint64(kTrack, number_of(track));
      if (!name.empty()) event.add_string(kEventName, name);
    });
  }

  void count(std::uint64_t time, TrackId track, std::uint64_t value) {
    packet(time, [&](protozero::pbf_writer& packet) {
      protozero::pbf_writer event(packet, kTrackEvent);
      event.add_int32(kEventType, kCounterType);
      event.add_uint64(kTrack, number_of(track));
      event.add_int64(kCounterValue, static_cast<std::int64_t>(value));
    });
  }

  void describe_tracks() {
    described_ = true;
    describe(TrackId::process, "process");
    describe(TrackId::level, "privilege level");
    describe(TrackId::delivery, "interrupts, exceptions, system calls");
    describe(TrackId::ports, "ports");
    describe(TrackId::dma, "memory written by others");
    describe(TrackId::written, "bytes written by others", true);
  }

  /// What goes on on a track from now on; `name` is the format of its name.
  void change(Running& running, TrackId track, std::uint64_t time, std::uint64_t value,
              fmt::format_string<std::uint64_t&> name) {
    if (running.value == value) return;
    if (running.value) tell(time, track, kSliceEnd);
    running.value = value;
    tell(time, track, kSliceBegin, fmt::format(name, value));
  }

  void step(const Step& step) override {
    if (!described_) describe_tracks();
    const std::uint64_t time = now(step.position);
    change(process_, TrackId::process, time, step.address_space, "{:08x}");
    change(level_, TrackId::level, time, step.level, "level {}");
    // Where level 3 runs, every delivery has returned.
    if (step.level == 3) close_deliveries(time, 0);
  }

  /// Nothing changes within a stretch.
  void stretch(const StepStretch& s) override {
    Step first;
    first.position = {s.first, 0};
    first.level = s.level;
    first.address_space = s.address_space;
    step(first);
    now({s.end - 1, 0});
  }

  /// Time does not go back, as positions do where an interrupt is taken within a REP.
  std::uint64_t now(Position position) {
    last_ = std::max(last_, turns_ ? turns_->clock_of(processor_, position) : position.instruction);
    return last_;
  }

  void close_deliveries(std::uint64_t time, std::size_t left) {
    for (; open_ > left; --open_) tell(time, TrackId::delivery, kSliceEnd);
  }

  void open(std::uint64_t time, const std::string& name) {
    ++open_;
    tell(time, TrackId::delivery, kSliceBegin, name);
  }

  static std::string delivery_name(const DeliveredEvent& d) {
    switch (d.kind) {
      case DeliveredEvent::Kind::exception:
        return fmt::format("exception {:02x}", d.vector);
      case DeliveredEvent::Kind::external:
        return fmt::format("interrupt {:02x}", d.vector);
      case DeliveredEvent::Kind::software:
        return fmt::format("software interrupt {:02x}", d.vector);
      case DeliveredEvent::Kind::nmi:
        return "nmi";
      case DeliveredEvent::Kind::smi:
        return "smi";
    }
    return "";
  }

  void happened(const StepEvent& h) override {
    if (!described_) describe_tracks();
    const MachineEvent& e = h.event;
    const std::uint64_t time = now(e.position);
    switch (e.kind) {
      case MachineEvent::Kind::delivered:
        return open(time, delivery_name(e.delivery));
      case MachineEvent::Kind::fast_call:
        return open(time, fmt::format("system call {}", h.eax));
      case MachineEvent::Kind::returned:
        if (e.value == 0) return;
        [[fallthrough]];
      case MachineEvent::Kind::fast_return:
        return close_deliveries(time, open_ == 0 ? 0 : open_ - 1);
      case MachineEvent::Kind::port_read:
        return tell(time, TrackId::ports, kInstant,
                    fmt::format("in {:04x} = {:x}", e.port, e.value));
      case MachineEvent::Kind::port_write:
        return tell(time, TrackId::ports, kInstant,
                    fmt::format("out {:04x} = {:x}", e.port, e.value));
      case MachineEvent::Kind::external_write:
        bytes_ += e.size;
        tell(time, TrackId::dma, kInstant, fmt::format("{:08x} size {}", e.physical.value, e.size));
        return count(time, TrackId::written, bytes_);
      case MachineEvent::Kind::halted:
        return tell(time, TrackId::level, kInstant, "halt");
      case MachineEvent::Kind::shutdown:
        return tell(time, TrackId::level, kInstant, "shutdown");
      default:
        return;
    }
  }

  void end() override {
    if (!described_) describe_tracks();
    const std::uint64_t time = last_ + 1;
    close_deliveries(time, 0);
    if (process_.value) tell(time, TrackId::process, kSliceEnd);
    if (level_.value) tell(time, TrackId::level, kSliceEnd);
    file().finish();
  }
  void report_more(Report& out) const override {
    out.value("packets", "packets", packets_);
    out.value("written_by_others", "bytes written by others", bytes_, "bytes");
  }

  std::size_t processor_;
  std::shared_ptr<const BusTurns> turns_;
  bool is_sampled_;
  std::uint64_t packets_ = 0, bytes_ = 0, last_ = 0;
  bool described_ = false;
  Running process_, level_;
  std::size_t open_ = 0;  ///< deliveries
};

std::unique_ptr<Tool> make_perfetto(ToolOptions& options, const Setup& setup) {
  return std::make_unique<PerfettoTool>(ExportFile(options, setup), setup.processor,
                                        setup.bus_turns ? setup.bus_turns() : nullptr,
                                        setup.sampled);
}

}  // namespace

extern const ToolRow kPerfettoTool{"perfetto",
                                   "Write a time line for Perfetto",
                                   "to=FILE  output file",
                                   "citcat replay boot.citcat -o boot.perfetto-trace",
                                   ToolRow::Merging::exact,
                                   make_perfetto};

}  // namespace citcat::tools
