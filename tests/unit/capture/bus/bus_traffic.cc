#include "tests/unit/capture/bus/bus_traffic.h"

namespace citcat::test {
namespace {

void fill_data(BusTransaction& t, Random& random) {
  for (unsigned i = 0; i < t.size; ++i) t.data[i] = static_cast<std::uint8_t>(random());
}

BusTransaction single(const TrafficRules& rules, Random& random) {
  static constexpr BusOp kOps[] = {BusOp::code_read, BusOp::data_read, BusOp::data_write,
                                   BusOp::io_read, BusOp::io_write};
  BusTransaction t;
  t.op = kOps[draw(random, 5)];
  const bool io = t.op == BusOp::io_read || t.op == BusOp::io_write;
  t.address = PhysAddr{static_cast<std::uint32_t>(random()) & rules.address_mask &
                       (io ? 0xffffu : 0xffffffffu)};
  const unsigned room = rules.bus_bytes - t.address.low32() % rules.bus_bytes;
  t.size = static_cast<std::uint8_t>(1 + draw(random, io && room > 4 ? 4 : room));
  if (rules.uncacheable_reads && (t.op == BusOp::code_read || t.op == BusOp::data_read))
    t.flags |= kUncacheable;
  fill_data(t, random);
  return t;
}

BusTransaction line(const TrafficRules& rules, Random& random) {
  BusTransaction t;
  const unsigned kinds = rules.line_writes ? 3 : 2;
  const unsigned kind = draw(random, kinds);
  t.op = kind == 0 ? BusOp::code_read : kind == 1 ? BusOp::data_read : BusOp::data_write;
  t.flags = kLine;
  if (kind == 2) t.flags |= kWriteBack;
  if (kind == 2 && draw(random, 3) == 0) t.flags |= kSnoop;
  t.size = static_cast<std::uint8_t>(rules.line_bytes);
  t.address =
      PhysAddr{static_cast<std::uint32_t>(random()) & rules.address_mask & ~(rules.line_bytes - 1)};
  fill_data(t, random);
  return t;
}

BusTransaction special(const TrafficRules& rules, Random& random) {
  BusTransaction t;
  std::vector<BusOp> ops = {BusOp::interrupt_acknowledge};
  if (rules.halts) ops.push_back(BusOp::halt);
  if (rules.shutdowns) ops.push_back(BusOp::shutdown);
  if (rules.flushes) ops.push_back(BusOp::flush);
  t.op = ops[draw(random, static_cast<unsigned>(ops.size()))];
  if (t.op == BusOp::interrupt_acknowledge || t.op == BusOp::flush) t.size = 1;
  if (t.op == BusOp::interrupt_acknowledge) fill_data(t, random);
  if (t.op == BusOp::flush) t.data[0] = static_cast<std::uint8_t>(1 + draw(random, 2));
  return t;
}

BusTransaction branch_target(const TrafficRules& rules, Random& random) {
  BusTransaction t;
  t.op = BusOp::instruction_start;
  t.flags = kBranchTarget;
  t.size = static_cast<std::uint8_t>(rules.branch_targets);
  constexpr std::uint32_t kFirstMegabyte = 0xfffff;
  const std::uint32_t linear = static_cast<std::uint32_t>(random()) & ~(rules.branch_targets - 1);
  t.address = PhysAddr{draw(random, 2) == 0 ? linear : linear & kFirstMegabyte};
  return t;
}

}  // namespace

std::vector<BusTransaction> random_traffic(const TrafficRules& rules, Random& random) {
  std::vector<BusTransaction> traffic;
  for (unsigned n = 1 + draw(random, 16); n != 0; --n) {
    const unsigned choice = draw(random, 10);
    if (rules.branch_targets != 0 && draw(random, 4) == 0) {
      traffic.push_back(branch_target(rules, random));
    } else if (choice == 0) {
      traffic.push_back(special(rules, random));
    } else if (choice < 4 && rules.line_bytes != 0) {
      traffic.push_back(line(rules, random));
    } else {
      traffic.push_back(single(rules, random));
    }
  }
  return traffic;
}

}  // namespace citcat::test
