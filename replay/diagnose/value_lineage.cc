#include "replay/diagnose/value_lineage.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "formats/io/hash.h"

namespace citcat {
namespace {

constexpr std::size_t kNoNode = ~std::size_t{0};
// What a dependence other than by value costs.
constexpr unsigned kThroughAddress = 4;
/// Nodes looked at before a lineage is taken for endless.
constexpr std::size_t kMaxNodes = 20'000;

}  // namespace

ValueLineage::ValueLineage(const RunHistory& history) : history_(history) {
  const auto& steps = history_.steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (const HistoryAccess& a : history_.accesses(steps[i])) {
      if (a.kind != HistoryAccess::Kind::write && a.kind != HistoryAccess::Kind::external) continue;
      for (std::uint32_t b = 0; b < a.size; ++b) {
        stores_[a.address.plus32(b).value].push_back(static_cast<std::uint32_t>(i));
      }
    }
    add_register_writer(i);
  }
}

void ValueLineage::add_register_writer(std::size_t step) {
  std::uint32_t written = 0;
  const HistoryStep::Kind kind = history_.steps()[step].kind;
  if (kind == HistoryStep::Kind::instruction) written = flow(step).written;
  // A delivery changes CS, EFLAGS and perhaps the stack; none of it is a program's value.
  if (kind == HistoryStep::Kind::delivery) written = 1u << InstructionFlow::kFlags;
  for (; written != 0; written &= written - 1) {
    register_writers_[static_cast<unsigned>(std::countr_zero(written))].push_back(
        static_cast<std::uint32_t>(step));
  }
}

const InstructionFlow& ValueLineage::flow(std::size_t step) {
  const HistoryStep& s = history_.steps()[step];
  const std::uint64_t hash = hash64(s.code());
  auto& [kept, flow] = flows_[s.physical.value];
  if (kept == hash) return flow;
  kept = hash;
  flow = instruction_flow(s.code(), s.bits);
  return flow;
}

void ValueLineage::add(std::uint64_t location, std::size_t before, unsigned distance,
                       bool uncertain, std::size_t parent, std::size_t used_by) {
  if (nodes_.size() >= kMaxNodes) return;
  auto& known = seen_[location];
  const std::size_t writer = last_write(location, before);
  if (std::find(known.begin(), known.end(), writer) != known.end()) return;
  known.push_back(writer);
  const std::size_t number = nodes_.size();
  nodes_.push_back(
      {location, before, distance, uncertain, parent == kNoNode ? number : parent, used_by});
  queue_.emplace_back(distance, number);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

void ValueLineage::add_registers(std::uint32_t set, std::size_t step, unsigned distance,
                                 bool uncertain, std::size_t parent) {
  for (unsigned r = 0; r < 32; ++r) {
    if ((set >> r & 1) != 0) add(r, step, distance, uncertain, parent, step);
  }
}

void ValueLineage::ask_memory(PhysAddr byte, unsigned distance) {
  const std::size_t end = history_.steps().size();
  add(kMemory | byte.value, end, distance, false, kNoNode, kNoNode);
}

void ValueLineage::ask_step(std::size_t step, unsigned values, unsigned addresses) {
  const InstructionFlow& f = flow(step);
  add_registers(f.values, step, values, false, kNoNode);
  add_registers(f.addresses, step, addresses, false, kNoNode);
  for (const HistoryAccess& a : history_.accesses(history_.steps()[step])) {
    if (a.kind != HistoryAccess::Kind::read) continue;
    for (std::uint32_t b = 0; b < a.size; ++b) {
      add(kMemory | a.address.plus32(b).value, step, values, false, kNoNode, step);
    }
  }
}

/// The last step before `before` that set the location; kNoNode for none.
std::size_t ValueLineage::last_write(std::uint64_t location, std::size_t before) {
  const std::vector<std::uint32_t>* writers = nullptr;
  if (location >= kMemory) {
    const auto stores = stores_.find(location & ~kMemory);
    if (stores == stores_.end()) return kNoNode;
    writers = &stores->second;
  } else {
    writers = &register_writers_[location];
  }
  const auto after = std::lower_bound(writers->begin(), writers->end(), before);
  return after == writers->begin() ? kNoNode : *std::prev(after);
}

LineageSource ValueLineage::source(LineageSource::Kind kind, std::size_t node) const {
  LineageSource s;
  s.kind = kind;
  s.distance = nodes_[node].distance;
  s.uncertain = nodes_[node].uncertain;
  for (std::size_t n = node;; n = nodes_[n].parent) {
    const std::size_t step = nodes_[n].used_by;
    if (step != kNoNode && (s.path.empty() || s.path.back() != step)) s.path.push_back(step);
    if (nodes_[n].parent == n) break;
  }
  return s;
}

void ValueLineage::follow(std::size_t node, std::size_t step, std::vector<LineageSource>& found) {
  const HistoryStep& s = history_.steps()[step];
  const Node n = nodes_[node];
  const auto accesses = history_.accesses(s);
  if (s.kind == HistoryStep::Kind::external) {
    LineageSource leaf = source(LineageSource::Kind::external, node);
    leaf.address.value = n.location & ~kMemory;
    leaf.number = accesses.front().number;
    leaf.path.insert(leaf.path.begin(), step);
    found.push_back(std::move(leaf));
    return;
  }
  if (s.kind == HistoryStep::Kind::delivery) return;
  const bool uncertain = n.uncertain || s.instruction_class == InstructionClass::x87 ||
                         s.instruction_class == InstructionClass::sse_fp ||
                         (s.flag_rule != FlagRule::none && n.location == InstructionFlow::kFlags);
  const bool internal = s.instruction_class == InstructionClass::rdtsc ||
                        s.instruction_class == InstructionClass::rdmsr ||
                        s.instruction_class == InstructionClass::rdpmc ||
                        s.instruction_class == InstructionClass::cpuid;
  if (internal) {
    LineageSource leaf = source(LineageSource::Kind::internal, node);
    leaf.number = step;
    found.push_back(std::move(leaf));
  }
  const InstructionFlow f = flow(step);
  const bool stack_pointer = n.location == kEsp && (f.addresses >> kEsp & 1) != 0;
  if (stack_pointer) {
    add_registers(1u << kEsp, step, n.distance + 1, uncertain, node);
    return;
  }
  add_registers(f.values, step, n.distance + 1, uncertain, node);
  add_registers(f.addresses & ~f.values, step, n.distance + kThroughAddress, uncertain, node);
  // A string instruction copies byte for byte: what was stored is what was read there.
  const HistoryAccess* read = nullptr;
  const HistoryAccess* written = nullptr;
  for (const HistoryAccess& a : accesses) {
    if (a.kind == HistoryAccess::Kind::read) read = &a;
    if (a.kind == HistoryAccess::Kind::write) written = &a;
  }
  const bool copies = s.instruction_class == InstructionClass::string && read != nullptr &&
                      written != nullptr && read->size == written->size;
  for (const HistoryAccess& a : accesses) {
    if (a.kind == HistoryAccess::Kind::port_read) {
      LineageSource leaf = source(LineageSource::Kind::port, node);
      leaf.address = a.address;
      leaf.number = a.number;
      leaf.path.insert(leaf.path.begin(), step);
      found.push_back(std::move(leaf));
    }
    if (a.kind != HistoryAccess::Kind::read) continue;
    for (std::uint32_t b = 0; b < a.size; ++b) {
      if (copies && n.location >= kMemory &&
          (n.location & ~kMemory) - written->address.value != b) {
        continue;
      }
      add(kMemory | a.address.plus32(b).value, step, n.distance + 1, uncertain, node, step);
    }
  }
}

void ValueLineage::expand(std::size_t node, std::vector<LineageSource>& found) {
  const Node n = nodes_[node];
  const std::size_t writer = last_write(n.location, n.before);
  if (writer != kNoNode) {
    follow(node, writer, found);
    return;
  }
  const bool memory = n.location >= kMemory;
  LineageSource leaf =
      source(memory ? LineageSource::Kind::memory : LineageSource::Kind::reg, node);
  leaf.address.value = memory ? n.location & ~kMemory : 0;
  leaf.number = memory ? 0 : n.location;
  found.push_back(std::move(leaf));
}

/// One step back: a string copy, or a store of a register that a load had filled.
std::optional<ValueLineage::Moved> ValueLineage::move_into(PhysAddr byte, std::size_t before) {
  const std::size_t store = last_write(kMemory | byte.value, before);
  if (store == kNoNode) return std::nullopt;
  const auto single = [&](std::size_t step, HistoryAccess::Kind kind) -> const HistoryAccess* {
    const HistoryAccess* found = nullptr;
    for (const HistoryAccess& a : history_.accesses(history_.steps()[step])) {
      if (a.kind == HistoryAccess::Kind::walk) continue;
      if (a.kind != kind) return nullptr;
      if (found != nullptr) return nullptr;
      found = &a;
    }
    return found;
  };
  if (history_.steps()[store].instruction_class == InstructionClass::string ||
      history_.steps()[store].kind == HistoryStep::Kind::unfinished) {
    const auto accesses = history_.accesses(history_.steps()[store]);
    const HistoryAccess *read = nullptr, *written = nullptr;
    for (const HistoryAccess& a : accesses) {
      if (a.kind == HistoryAccess::Kind::read) read = &a;
      if (a.kind == HistoryAccess::Kind::write) written = &a;
    }
    if (read != nullptr && written != nullptr && read->size == written->size) {
      return Moved{read->address.plus32(byte.minus32(written->address)), store};
    }
  }
  const HistoryAccess* written = single(store, HistoryAccess::Kind::write);
  const std::uint32_t value = flow(store).values;
  if (written == nullptr || (value & (value - 1)) != 0 || value == 0) return std::nullopt;
  unsigned reg = 0;
  while ((value >> reg & 1) == 0) ++reg;
  const std::size_t load = last_write(reg, store);
  if (load == kNoNode) return std::nullopt;
  const HistoryAccess* read = single(load, HistoryAccess::Kind::read);
  const bool only_loads =
      (flow(load).written >> InstructionFlow::kFlags & 1) == 0 && (flow(load).values & ~value) == 0;
  if (read == nullptr || !only_loads || read->size != written->size) return std::nullopt;
  return Moved{read->address.plus32(byte.minus32(written->address)), load};
}

std::vector<ValueLineage::Moved> ValueLineage::moved_from(PhysAddr byte) {
  constexpr std::size_t kMaxMoves = 4;
  std::vector<Moved> moves;
  std::size_t before = history_.steps().size();
  while (moves.size() < kMaxMoves) {
    const auto move = move_into(byte, before);
    if (!move) break;
    moves.push_back(*move);
    byte = move->from;
    before = move->step;
  }
  return moves;
}

std::vector<LineageSource> ValueLineage::sources(std::size_t most) {
  std::vector<LineageSource> found;
  while (!queue_.empty() && found.size() < most) {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const std::size_t node = queue_.back().second;
    queue_.pop_back();
    expand(node, found);
  }
  return found;
}

}  // namespace citcat
