#include "unit/replay/machine/repeat_events.h"

#include <algorithm>
#include <random>
#include <vector>

#include "replay/session/replayer.h"

namespace citcat {
namespace {

struct Place {
  Position position;
  PhysAddr address;  ///< of an access of this iteration
};

/// Where an iteration begins that is not the first, once for each access of it.
class Iterations final : public Observer {
 public:
  explicit Iterations(Position after) : after_(after) {}
  Interest interest() const override { return Interest::everything(); }
  void read(PhysAddr a, std::uint32_t, AccessKind kind, Position now) override {
    note(a, kind, now);
  }
  void write(PhysAddr a, std::span<const std::uint8_t>, AccessKind kind, Position now) override {
    note(a, kind, now);
  }

  std::vector<Place> list;

 private:
  void note(PhysAddr a, AccessKind kind, Position now) {
    if (kind == AccessKind::data && now.iteration != 0 && after_ < now) list.push_back({now, a});
  }
  Position after_;
};

template <class Event>
void insert(std::vector<Event>& events, const Event& event) {
  const auto later = [](const Event& a, const Event& b) { return a.position < b.position; };
  events.insert(std::upper_bound(events.begin(), events.end(), event, later), event);
}
void insert(ExternalWrites& events, const ExternalWrite& event) {
  const auto at = std::find_if(events.begin(), events.end(), [&](const ExternalWrite& other) {
    return event.position < other.position;
  });
  events.insert(at.index(), event);
}

Interrupt nmi_at(Position position) {
  Interrupt nmi;
  nmi.kind = Interrupt::Kind::nmi;
  nmi.vector = 2;
  nmi.position_known = true;
  nmi.position = position;
  return nmi;
}

}  // namespace

void add_events_in_repeats(Recording& recording, std::uint64_t seed) {
  constexpr int kEvents = 5;
  constexpr std::uint64_t kWithin = 20'000;  // instructions
  std::mt19937_64 random(seed);
  Position last;
  for (int i = 0; i < kEvents; ++i) {
    Iterations iterations(last);
    ReplayOptions options;
    options.path = ExecutionPath::instructions;
    Replayer(recording, &iterations, options).run_to(kWithin);
    const std::vector<Place>& places = iterations.list;
    if (places.empty()) return;
    // Often in the repetition of the event before, or in the next one.
    const std::size_t most = random() % 2 == 0 ? 40 : places.size() / (kEvents - i);
    const Place& place = places[random() % std::clamp<std::size_t>(most, 1, places.size())];
    last = place.position;
    if (random() % 4 != 0) insert(recording.interrupts, nmi_at(last));
    if (random() % 4 != 0) {
      ExternalWrite write;
      write.position_known = true;
      write.position = last;
      const std::uint32_t ahead = static_cast<std::uint32_t>(random() % 16);
      write.address =
          PhysAddr{std::min(place.address.low32() + ahead, recording.initial.ram_bytes - 2)};
      write.data = {static_cast<std::uint8_t>(random()), static_cast<std::uint8_t>(random())};
      insert(recording.external_writes, write);
    }
  }
}

}  // namespace citcat
