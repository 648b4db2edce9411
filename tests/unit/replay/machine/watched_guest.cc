#include "unit/replay/machine/watched_guest.h"

#include <algorithm>

#include "events/derive/recording_builder.h"
#include "replay/session/replayer.h"
#include "unit/kept_evidence.h"

namespace citcat::test {
namespace {

BusModel bus_8088() { return {CacheForm::none, 0, 1, 0xfffff}; }

/// What a bus of one byte's width carries.
class ByteBus final : public Observer {
 public:
  ByteBus(const std::vector<Interrupt>& interrupts, std::size_t nmi_earlier)
      : interrupts_(interrupts), nmi_earlier_(nmi_earlier) {}
  Interest interest() const override { return Interest::everything(); }
  void watch(const Machine& machine) override { machine_ = &machine; }

  void read(PhysAddr a, std::uint32_t size, AccessKind, Position) override {
    for (std::uint32_t i = 0; i < size; ++i) {
      add(BusOp::data_read, a.low32() + i, *machine_->memory().host(a.plus32(i)));
    }
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    for (std::uint32_t i = 0; i < bytes.size(); ++i) {
      add(BusOp::data_write, a.low32() + i, bytes[i]);
    }
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) override {
    for (std::uint32_t i = 0; i < size; ++i) {
      add(BusOp::io_read, port + i, static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) override {
    for (std::uint32_t i = 0; i < size; ++i) {
      add(BusOp::io_write, port + i, static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  void instruction(const ExecutedInstruction&, Position) override { boundary_ = shown.size(); }
  void delivered(const DeliveredEvent& event, Position) override {
    // Told when all of it is done: the acknowledge comes before the vector is read.
    const Interrupt::Kind kind = interrupts_.at(next_++).kind;
    BusTransaction t;
    t.op = kind == Interrupt::Kind::nmi   ? BusOp::nmi
           : kind == Interrupt::Kind::smi ? BusOp::smi
                                          : BusOp::interrupt_acknowledge;
    t.size = 1;
    t.data[0] = event.vector;
    const std::size_t earlier = kind == Interrupt::Kind::nmi ? nmi_earlier_ : 0;
    const auto at = static_cast<std::ptrdiff_t>(boundary_ - std::min(boundary_, earlier));
    if (kind != Interrupt::Kind::on_chip) shown.insert(shown.begin() + at, t);
    boundary_ = shown.size();
  }

  std::vector<BusTransaction> shown;

 private:
  void add(BusOp op, std::uint32_t address, std::uint8_t value) {
    BusTransaction t;
    t.op = op;
    t.address.value = address & 0xfffff;
    t.size = 1;
    t.data[0] = value;
    shown.push_back(t);
  }
  const std::vector<Interrupt>& interrupts_;
  std::size_t nmi_earlier_;
  const Machine* machine_ = nullptr;
  std::size_t boundary_ = 0, next_ = 0;
};

}  // namespace

WatchedGuest::WatchedGuest() {
  state_.model = CpuModel::i8088;
  for (const auto& [name, value] : {std::pair{"cs", 0x100},
                                    {"ss", 0x2000},
                                    {"sp", 0x100},
                                    {"ds", 0x3000},
                                    {"es", 0x3000},
                                    {"eflags", 0xf202}}) {
    set(name, static_cast<std::uint32_t>(value));
  }
  for (std::uint32_t a = 0; a < 0x600; ++a) image_.set(PhysAddr{a}, 0);
  for (std::uint32_t a = 0; a < 0x200; ++a) {
    image_.set(PhysAddr{0x1000 + a}, 0x90);
    image_.set(PhysAddr{0x20000 + a}, 0);
    image_.set(PhysAddr{0x30000 + a}, 0);
  }
  put(0x20, {0x00, 0x00, 0x50, 0x00});  // vector 8
  put(0x08, {0x00, 0x00, 0x54, 0x00});  // vector 2
}

void WatchedGuest::put(std::uint32_t address, std::initializer_list<int> bytes) {
  for (const int b : bytes) image_.set(PhysAddr{address++}, static_cast<std::uint8_t>(b));
}

void WatchedGuest::set(const char* name, std::uint32_t value) { set_register(state_, name, value); }

void WatchedGuest::add(Interrupt::Kind kind, std::uint8_t vector, Position position) {
  positions_.push_back(position);
  Interrupt& i = interrupts_.emplace_back();
  i.kind = kind;
  i.vector = vector;
  i.position_known = true;
  i.position = position;
}

void WatchedGuest::internal_value(Position position, std::uint64_t value) {
  InternalRead& read = internal_reads_.emplace_back();
  read.position_known = true;
  read.position = position;
  read.eax = static_cast<std::uint32_t>(value);
  read.edx = static_cast<std::uint32_t>(value >> 32);
}

void WatchedGuest::port_read(std::uint16_t port, std::uint8_t size, std::uint32_t value) {
  IoRead& read = io_reads_.emplace_back();
  read.port = port;
  read.size = size;
  read.value = value;
}

ImportedRecording WatchedGuest::record(std::uint64_t instructions) const {
  Recording known;
  known.initial = state_;
  known.bus = bus_8088();
  known.image = image_.clone();
  known.instructions = instructions;
  known.interrupts = interrupts_;
  known.internal_reads.append(internal_reads_);
  known.io_reads.append(io_reads_);
  ByteBus bus(interrupts_, nmi_earlier_);
  Replayer replayer(known, &bus, {});
  replayer.run();

  ImportedRecording imported;
  KeptEvidence kept(imported.evidence);
  RecordingBuilder builder({bus_8088(), markers_}, &kept);
  for (std::size_t i = 0; i < bus.shown.size(); ++i) {
    bus.shown[i].index = i;
    builder.add(bus.shown[i]);
  }
  imported.recording = builder.finish();
  imported.recording.initial = state_;
  imported.recording.image = image_.clone();
  imported.recording.internal_reads.append(internal_reads_);
  return imported;
}

}  // namespace citcat::test
