#include "events/processors/line_owners.h"

#include <algorithm>

#include "events/processors/bus_flags.h"

namespace citcat {

LineOwners::Line LineOwners::line(PhysAddr address) {
  return line_of(
      parts_.find_or_make(
          bus_part(address),
          [this](Lines& made) { made.resize(kBusPart / line_bytes_ * processors_, Copy::none); }),
      address);
}

std::optional<std::uint8_t> LineOwners::owner(PhysAddr address) const {
  Lines* const lines = parts_.find(bus_part(address));
  if (lines == nullptr) return std::nullopt;
  const Line its = line_of(*lines, address);
  for (std::size_t i = 0; i < its.size(); ++i) {
    if (its[i] == Copy::own || its[i] == Copy::modified) return static_cast<std::uint8_t>(i);
  }
  return std::nullopt;
}

void LineOwners::drop_others(Line line, std::uint8_t processor) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i != processor) line[i] = Copy::none;
  }
}

bool LineOwners::others_have(Line line, std::uint8_t processor) const {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i != processor && line[i] != Copy::none) return true;
  }
  return false;
}

std::string LineOwners::fill(Line line, std::uint8_t processor, const BusTransaction& t) {
  const bool shared = (t.flags & kSharedFill) != 0;
  std::string wrong;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i != processor && line[i] == Copy::modified)
      wrong = "a line is filled that processor " + std::to_string(i) +
              " has modified, and has not written back";
  }
  if (wrong.empty() && shared && !others_have(line, processor))
    wrong = "a line is filled as shared (HIT#) that no other processor can have";
  Copy& own = line[processor];
  if (t.has(kStoreFill)) {
    drop_others(line, processor);
    own = Copy::modified;
    return wrong;
  }
  if (!shared) drop_others(line, processor);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i != processor && line[i] != Copy::none) line[i] = Copy::shared;
  }
  // Instructions go to a cache that is never written; data of the line may be in the other one.
  if (t.op == BusOp::data_read || own == Copy::none) {
    own = shared || t.op == BusOp::code_read ? Copy::shared : Copy::own;
  } else if (own != Copy::none && shared) {
    own = Copy::shared;
  }
  return wrong;
}

std::string LineOwners::write_back(Line line, std::uint8_t processor, const BusTransaction& t) {
  Copy& own = line[processor];
  std::string wrong;
  if (own == Copy::none) {
    wrong = "a line is written back that the processor cannot have";
  } else if (own == Copy::shared) {
    wrong =
        "a line is written back that the processor has shared with another: it never made the line "
        "its own (an invalidation is missing)";
  }
  // Forced by its own fetch, the line stays the processor's own; by another's read it is shared
  // from then on, which that read says.
  own = t.has(kSnoop) ? Copy::own : Copy::none;
  return wrong;
}

std::string LineOwners::take(std::uint8_t processor, const BusTransaction& t) {
  if (!t.is_memory() || t.has(kUncacheable)) return "";
  const Line its = line(t.address);
  if (t.has(kLine)) {
    // The further parts of a line belong to the first.
    if (t.address.offset_in(line_bytes_) != 0) return "";
    return t.op == BusOp::data_write ? write_back(its, processor, t) : fill(its, processor, t);
  }
  // What goes by the caches is looked for in those of others all the same.
  const bool owns = t.op == BusOp::data_write || (t.flags & kLocked) != 0;
  std::string wrong;
  for (std::size_t i = 0; i < its.size(); ++i) {
    if (i == processor || its[i] == Copy::none) continue;
    if (its[i] == Copy::modified)
      wrong = "memory is used that processor " + std::to_string(i) +
              " has modified, and has not written back";
    its[i] = owns ? Copy::none : Copy::shared;
  }
  return wrong;
}

std::string LineOwners::invalidate(std::uint8_t processor, PhysAddr address) {
  const Line its = line(address);
  std::string wrong;
  if (its[processor] == Copy::none) {
    wrong = "a processor makes a line its own that it cannot have";
  } else if (its[processor] != Copy::shared) {
    wrong = "a processor makes a line its own that is its own already";
  }
  drop_others(its, processor);
  its[processor] = Copy::modified;
  return wrong;
}

std::vector<PhysAddr> LineOwners::write_back_all(std::uint8_t processor) {
  std::vector<PhysAddr> left;
  parts_.for_each([&](std::uint64_t number, Lines& lines) {
    for (std::size_t i = processor; i < lines.size(); i += processors_) {
      if (lines[i] == Copy::modified)
        left.emplace_back(number * kBusPart + i / processors_ * line_bytes_);
      lines[i] = Copy::none;
    }
  });
  std::sort(left.begin(), left.end());
  return left;
}

void LineOwners::throw_away(std::uint8_t processor) {
  parts_.for_each([&](std::uint64_t, Lines& lines) {
    // Nobody need write these back. The processor's replay still has what it stored to them.
    for (std::size_t i = processor; i < lines.size(); i += processors_)
      if (lines[i] == Copy::modified) lines[i] = Copy::own;
  });
}

}  // namespace citcat
