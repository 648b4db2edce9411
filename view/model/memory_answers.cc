// Questions about memory at a moment, and about who accesses it.

#include <fmt/format.h>

#include <algorithm>

#include "events/position_text.h"
#include "formats/io/error.h"
#include "view/model/answer_text.h"

namespace citcat::view {

namespace {

constexpr std::uint64_t kMostBytes = 1 << 16;

bool is_physical(const Query& query) {
  const std::string space = query.has("space") ? query.text("space") : "linear";
  if (space != "linear" && space != "physical") {
    throw UsageError("space: expected linear or physical, found '" + space + "'");
  }
  return space == "physical";
}

/// Where an address of the space lies just now; nullopt where nothing is.
std::optional<PhysAddr> lies_at(const RunView& view, bool physical, std::uint64_t address) {
  if (physical) return PhysAddr{address};
  return view.machine().find(LinearAddr{address});
}

/// The bytes as digits, "??" for each that nobody knows, and where each page lies.
Json answer_memory(RunView& view, const Query& query) {
  const bool physical = is_physical(query);
  const std::uint64_t address = query.hexadecimal("address");
  const std::uint64_t size = query.number("size", 256, kMostBytes);
  view.go_to(query);
  Json json = here(view);
  json["space"] = physical ? "physical" : "linear";
  json["at"] = physical ? fmt::format("{:08x}", address) : linear_text(view, LinearAddr{address});
  std::string bytes;
  Json pages = Json::array();
  std::optional<PhysAddr> page;
  for (std::uint64_t i = 0; i < size; ++i) {
    const std::uint64_t at = address + i;
    if (i == 0 || at % kPageSize == 0) {
      page = lies_at(view, physical, at);
      pages.push_back(page ? Json(physical_text(view, *page)) : Json());
      if (page) page = page->page_begin();
    }
    const auto byte = page ? view.machine().memory().defined_byte(
                                 page->plus32(static_cast<std::uint32_t>(at % kPageSize)))
                           : std::nullopt;
    bytes += byte ? fmt::format("{:02x}", *byte) : "??";
  }
  json["bytes"] = bytes;
  json["pages"] = std::move(pages);
  return json;
}

// ---- who accesses it

struct AccessWanted {
  PhysAddr at;
  std::uint32_t size = 1;
  bool reads = false, writes = false, back = true;
};

AccessWanted access_wanted(RunView& view, const Query& query) {
  AccessWanted wanted;
  const std::uint64_t address = query.hexadecimal("address");
  const auto lies = lies_at(view, is_physical(query), address);
  if (!lies) throw UsageError(fmt::format("address: nothing is mapped at {:08x}", address));
  wanted.at = *lies;
  // Within one frame: what lies after it is elsewhere.
  wanted.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      query.number("size", 1, kPageSize), kPageSize - lies->offset_in_page()));
  const std::string kind = query.has("kind") ? query.text("kind") : "write";
  const std::string direction = query.has("direction") ? query.text("direction") : "back";
  if (kind != "write" && kind != "read" && kind != "access") {
    throw UsageError("kind: expected write, read or access, found '" + kind + "'");
  }
  if (direction != "back" && direction != "on") {
    throw UsageError("direction: expected back or on, found '" + direction + "'");
  }
  wanted.reads = kind != "write";
  wanted.writes = kind != "read";
  wanted.back = direction == "back";
  return wanted;
}

std::string held_text(const RunView& view, const AccessWanted& wanted) {
  std::vector<std::uint8_t> bytes;
  for (std::uint32_t i = 0; i < wanted.size; ++i) {
    const auto byte = view.machine().memory().defined_byte(wanted.at.plus32(i));
    if (!byte) return "";
    bytes.push_back(*byte);
  }
  return bytes_text(bytes);
}

std::string who(const StopHit& hit) {
  if (hit.outside) return "another bus master";
  if (hit.access == AccessKind::walk) return "a page walk";
  return hit.access == AccessKind::system ? "the processor itself" : "the program";
}

/// Who wrote or read memory last before a moment, or does so next from it on.
Json answer_access(RunView& view, const Query& query) {
  const Moment moment = view.go_to(query);
  const AccessWanted wanted = access_wanted(view, query);
  StopSet stops;
  stops.memory.push_back({wanted.at, wanted.size, wanted.reads, wanted.writes});
  ReplayTimeline& timeline = view.timeline();
  const ReplayTimeline::Stop stop = wanted.back ? timeline.run_back_to_stop(stops, view.limit())
                                                : timeline.run_to_stop(stops, view.limit());
  Json json = {{"asked_at", moment_text(moment)}, {"found", stop.hit.has_value()}};
  if (!stop.hit) {
    using Why = ReplayTimeline::Stop::Why;
    json["why"] = stop.why == Why::interrupted ? kSearchTookTooLong
                  : wanted.back                ? "nobody has before, within the recording"
                                               : "nobody does, within the recording";
    if (stop.why == Why::interrupted) json["searched_to"] = moment_text(timeline.moment());
    return json;
  }
  const StopHit hit = *stop.hit;
  if (!wanted.back) timeline.step_back();  // the search ended after the access
  view.settle_here();
  const Json place = here(view);
  json.update(place);
  json["by"] = who(hit);
  json["write"] = hit.kind == StopHit::Kind::write;
  json["physical"] = physical_text(view, hit.address);
  json["size"] = hit.size;
  if (!hit.outside) {
    json["text"] = code_at(view, view.machine().next_linear()).text;
    if (const auto events = step_events(view); !events.empty()) json["events"] = events;
  }
  json["before"] = held_text(view, wanted);
  timeline.step();
  json["next"] = moment_text(timeline.moment());
  json["after"] = held_text(view, wanted);
  return json;
}

}  // namespace

std::vector<Question> memory_questions() {
  return {{"memory", {"at", "space", "address", "size"}, answer_memory},
          {"access", {"at", "space", "address", "size", "kind", "direction"}, answer_access}};
}

}  // namespace citcat::view
