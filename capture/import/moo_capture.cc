#include "capture/import/moo_capture.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "capture/bus/cycle_definitions.h"
#include "capture/bus/hex.h"
#include "capture/import/moo_execution.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

using Kind = CycleKind;

/// What differs between the processors.
struct MooBus {
  MooCpu cpu;
  CpuModel model;
  std::uint32_t bus_bytes;
  std::uint32_t address_mask;
  std::uint32_t flags_loaded;    ///< bits of FLAGS that the rig loads
  std::span<const Kind> status;  ///< empty where rows tell of a queue: executed_transactions()
};

constexpr MooBus kMooBuses[] = {
    {MooCpu::i8088, CpuModel::i8088, 1, 0xfffff, 0xffff, {}},
    {MooCpu::i8086, CpuModel::i8086, 2, 0xfffff, 0xffff, {}},
    {MooCpu::v20, CpuModel::v20, 1, 0xfffff, 0xffff, {}},
    {MooCpu::v30, CpuModel::v30, 2, 0xfffff, 0xffff, {}},
    {MooCpu::i186, CpuModel::i80186, 2, 0xfffff, 0xffff, {}},
    {MooCpu::i286, CpuModel::i286, 2, 0xffffff, 0x0fff, kStatus286},
    {MooCpu::i386ex, CpuModel::i386, 2, 0x3ffffff, 0xffff, kDefinition386},
};

const MooBus& bus_of(MooCpu cpu) {
  for (const MooBus& bus : kMooBuses)
    if (bus.cpu == cpu) return bus;
  throw InternalError("MOO processor without a bus");
}

// T states: the data are those of the last row in the second.
constexpr std::uint8_t kFirstState = 1, kDataState = 2;
constexpr std::uint8_t kPinHighLane = 2;  // BHE#, active low
constexpr std::uint32_t kShutdownAddress = 0;

/// Bytes a cycle moves: one or both lanes of a 16-bit bus (80286 data sheet, table "BHE and A0").
/// Lanes that are not driven float, what they show is not data.
void set_lanes(const MooBus& bus, const MooCycle& cycle, std::size_t row, BusTransaction& out) {
  const bool high = (cycle.pins & kPinHighLane) == 0;
  const bool odd = (cycle.address & 1) != 0;
  if (odd && !high)
    throw FormatError(
        "cycles", row,
        "expected BHE# or an even address, found neither at " + hex(cycle.address, 6));
  out.address = PhysAddr{cycle.address & bus.address_mask};
  out.size = high && !odd ? 2 : 1;
}

void set_data(std::uint16_t data, BusTransaction& out) {
  const auto low = static_cast<std::uint8_t>(data);
  const auto high = static_cast<std::uint8_t>(data >> 8);
  out.data[0] = out.address.offset_in(2) != 0 ? high : low;
  if (out.size == 2) out.data[1] = high;
}

/// The cycle that a row opens, if it opens one.
std::optional<BusTransaction> open_cycle(const MooBus& bus, const MooCycle& cycle,
                                         std::size_t row) {
  if (cycle.t_state != kFirstState) return std::nullopt;
  const std::size_t code = cycle.bus_status & 15;
  const Kind kind = code < bus.status.size() ? bus.status[code] : Kind::none;
  if (kind == Kind::none) return std::nullopt;
  BusTransaction out;
  out.op = kind == Kind::special ? BusOp::halt : op_of(kind);
  out.clock = row;
  out.flags = kClockKnown;
  if (kind == Kind::special) {
    // A shutdown has the same status and address 0.
    if ((cycle.address & 2) == kShutdownAddress) out.op = BusOp::shutdown;
  } else if (kind == Kind::interrupt_acknowledge) {
    out.size = 1;
  } else {
    set_lanes(bus, cycle, row, out);
  }
  return out;
}

}  // namespace

CpuModel cpu_model_of(MooCpu cpu) { return bus_of(cpu).model; }

std::vector<BusTransaction> transactions_of(const MooTest& test, MooCpu cpu) {
  const MooBus& bus = bus_of(cpu);
  if (bus.status.empty()) return executed_transactions(test, bus.model, bus.bus_bytes);
  std::vector<BusTransaction> out;
  bool open = false;  // the last transaction may still get data
  bool first_acknowledge = false;
  for (std::size_t row = 0; row < test.cycles.size(); ++row) {
    const MooCycle& cycle = test.cycles[row];
    if (const auto opened = open_cycle(bus, cycle, row)) {
      // The second acknowledge brings the vector of the first.
      const bool second = opened->op == BusOp::interrupt_acknowledge && first_acknowledge;
      if (!second) out.push_back(*opened);
      first_acknowledge = opened->op == BusOp::interrupt_acknowledge && !second;
      open = true;
    } else if (open && cycle.t_state == kDataState) {
      set_data(cycle.data, out.back());
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i].index = i;
  return out;
}

CpuState initial_state_of(const MooTest& test, MooCpu cpu) {
  const MooBus& bus = bus_of(cpu);
  CpuState state;
  state.model = bus.model;
  state.a20_mask = bus.address_mask;
  // The rigs of the 8086 and its relatives have no coprocessor beside them.
  if (bus.status.empty()) state.cr0 |= kNoCoprocessor;
  for (const MooRegister& entry : test.initial.registers) {
    const std::string_view name = entry.name;
    if (name == "cr0" || name == "cr3" || name == "dr6" || name == "dr7") continue;
    const bool flags = name == "flags" || name == "eflags";
    set_register(state, name, flags ? entry.value & bus.flags_loaded : entry.value);
  }
  return state;
}

namespace {

class MooCapture final : public CaptureReader {
 public:
  MooCapture(const std::vector<std::string>& paths, const CaptureOptions& options)
      : paths_(paths), options_(options) {
    info_.format = "moo";
    open_file();
    open_test();
  }

  const CaptureInfo& info() const override { return info_; }

  bool next(BusTransaction& out) override {
    if (position_ == transactions_.size()) return false;
    out = transactions_[position_++];
    out.index = index_++;
    return true;
  }

  bool next_segment() override {
    if (position_ != transactions_.size()) return false;
    if (++test_ >= file_.tests.size()) {
      if (next_path_ == paths_.size()) {
        --test_;
        return false;
      }
      open_file();
    }
    open_test();
    return true;
  }

  std::optional<CpuState> initial_state() const override {
    CpuState state = initial_state_of(file_.tests[test_], file_.cpu);
    if (is_known(options_.cpu)) state.model = options_.cpu;
    return state;
  }

 private:
  void open_file() {
    const std::string& path = paths_.at(next_path_++);
    make_rereadable(path);
    file_ = read_moo(path);
    if (file_.tests.empty()) throw FormatError(path, 0, "expected at least one test, found none");
    test_ = 0;
    const MooBus& bus = bus_of(file_.cpu);
    info_.cpu = is_known(options_.cpu) ? options_.cpu : bus.model;
    info_.has_clock = true;
    info_.bus.bus_bytes = bus.bus_bytes;
    info_.address_mask = info_.bus.address_mask = bus.address_mask;
    InputStream input(path);
    while (!input.next_block().empty()) {
    }
    info_.files.push_back({std::filesystem::path(path).filename().string(), input.stored_bytes(),
                           input.stored_hash().hex()});
  }

  void open_test() {
    try {
      transactions_ = transactions_of(file_.tests[test_], file_.cpu);
    } catch (const FormatError& error) {
      throw FormatError(file_.name, file_.tests[test_].index, std::string("test: ") + error.what());
    }
    position_ = 0;
  }

  std::vector<std::string> paths_;
  CaptureOptions options_;
  CaptureInfo info_;
  MooFile file_;
  std::size_t next_path_ = 0, test_ = 0, position_ = 0;
  std::vector<BusTransaction> transactions_;
  std::uint64_t index_ = 0;
};

}  // namespace

int detect_moo(const CaptureProbe& probe) {
  constexpr std::string_view kMagic = "MOO ";
  const bool found = probe.prefix.size() >= kMagic.size() &&
                     std::equal(kMagic.begin(), kMagic.end(), probe.prefix.begin());
  return found ? 100 : 0;
}

std::unique_ptr<CaptureReader> open_moo_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options) {
  return std::make_unique<MooCapture>(paths, options);
}

}  // namespace citcat
