#include "events/placement.h"

#include <algorithm>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat {

namespace {

void write_position(ByteWriter& out, const Position& position) {
  out.varint(position.instruction);
  out.varint(position.iteration);
}

Position read_position(ByteReader& in) {
  Position position;
  position.instruction = in.varint("instruction of a placed event");
  position.iteration =
      static_cast<std::uint32_t>(in.count("iteration of a placed event", ~std::uint32_t{0}));
  return position;
}

}  // namespace

const char* placement_name(Placement placement) {
  switch (placement) {
    case Placement::none:
      return "none";
    case Placement::unique:
      return "unique";
    case Placement::equivalent:
      return "equivalent";
    case Placement::ambiguous:
      return "ambiguous";
    case Placement::absent:
      return "absent";
  }
  return "?";
}

std::vector<std::uint8_t> encode_placements(std::span<const PlacedEvent> events) {
  ByteWriter out;
  out.varint(events.size());
  for (const PlacedEvent& e : events) {
    out.varint(e.interrupt);
    out.u8(static_cast<std::uint8_t>(e.placement));
    write_position(out, e.position);
    out.varint(e.candidates);
    out.u8(e.more ? 1 : 0);
    out.varint(e.others.size());
    for (const Position& other : e.others) write_position(out, other);
  }
  return out.take();
}

std::vector<PlacedEvent> decode_placements(ByteReader& in) {
  constexpr std::size_t kLeastBytes = 7;
  std::vector<PlacedEvent> events(in.count("placed events", in.remaining() / kLeastBytes));
  for (PlacedEvent& e : events) {
    e.interrupt = in.count("number of a placed event", ~std::uint32_t{0});
    const std::uint8_t placement = in.u8("kind of a placement");
    if (placement > static_cast<std::uint8_t>(Placement::absent)) {
      in.fail("expected a kind of placement from 0 to 4, found " + std::to_string(placement));
    }
    e.placement = static_cast<Placement>(placement);
    e.position = read_position(in);
    e.candidates = in.varint("candidates of a placed event");
    e.more = in.u8("whether there are more") != 0;
    e.others.resize(in.count("other positions", kListedPositions));
    for (Position& other : e.others) other = read_position(in);
  }
  in.expect_end("the placements chunk");
  return events;
}

bool apply_placements(std::span<const PlacedEvent> events, Schedule& schedule) {
  const bool fits = std::all_of(events.begin(), events.end(), [&](const PlacedEvent& e) {
    return e.interrupt < schedule.interrupts.size();
  });
  if (!fits) return false;
  for (const PlacedEvent& e : events) {
    if (e.placement == Placement::none) continue;
    Interrupt& interrupt = schedule.interrupts[e.interrupt];
    interrupt.position_known = true;
    interrupt.position = e.position;
    if (e.placement == Placement::absent) interrupt.kind = Interrupt::Kind::none;
  }
  return true;
}

}  // namespace citcat
