#include "replay/diagnose/processors/replayed_accesses.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "replay/machine/observer.h"
#include "replay/run/replay_session.h"

namespace citcat {
namespace {

class AccessKeeper final : public Observer {
 public:
  AccessKeeper(Position from, Position to, std::size_t most) : from_(from), to_(to), most_(most) {}

  Interest interest() const override { return Interest::everything(); }
  void fetch(PhysAddr a, std::uint32_t size, Position now) override {
    keep(BusOp::code_read, a, size, now);
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind, Position now) override {
    keep(BusOp::data_read, a, size, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) override {
    keep(BusOp::data_write, a, static_cast<std::uint32_t>(bytes.size()), now);
    if (!kept_.empty() && kept_.back().position == now)
      std::memcpy(&kept_.back().value, bytes.data(), std::min<std::size_t>(bytes.size(), 4));
  }
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t, Position now) override {
    keep(BusOp::io_read, PhysAddr{port}, size, now);
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t, Position now) override {
    keep(BusOp::io_write, PhysAddr{port}, size, now);
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    if (now < from_ || to_ < now) return;
    keep(BusOp::code_read, e.physical, e.info->length, now);
    for (auto its = kept_.rbegin(); its != kept_.rend() && its->position == now; ++its)
      its->instruction = e.linear;
  }

  std::vector<ReplayedAccess> take() { return {kept_.begin(), kept_.end()}; }

 private:
  void keep(BusOp op, PhysAddr a, std::uint32_t size, Position now) {
    if (now < from_ || to_ < now) return;
    kept_.push_back({op, a, size, now, {}, 0});
    if (kept_.size() > most_) kept_.pop_front();
  }

  Position from_, to_;
  std::size_t most_;
  std::deque<ReplayedAccess> kept_;
};

}  // namespace

std::vector<ReplayedAccess> replayed_accesses(const RecordingFile& file, Position from, Position to,
                                              std::size_t most) {
  AccessKeeper keeper(from, to, most);
  SessionOptions options;
  options.check = false;
  ReplaySession session(file, &keeper, options);
  (void)session.run_to(Position{to.instruction + 1, 0});
  return keeper.take();
}

bool is_shown_by(const ReplayedAccess& access, const BusTransaction& t, std::uint32_t line_bytes) {
  const bool line = t.has(kLine) && line_bytes != 0;
  // A line comes for whatever is in it, and goes back for what was stored in it before.
  if (line && t.op == BusOp::data_write) return false;
  if (line) {
    if (access.op == BusOp::io_read || access.op == BusOp::io_write) return false;
    if ((t.op == BusOp::code_read) != (access.op == BusOp::code_read)) return false;
    const PhysAddr base{t.address.value / line_bytes * line_bytes};
    return overlap(base, line_bytes, access.address, access.size);
  }
  if (t.op != access.op) return false;
  // Code is fetched in bus words, which have more than an instruction needs.
  return overlap(t.address, t.size, access.address, access.size);
}

}  // namespace citcat
