#include "tools/plugin/plugin_structs.h"

#include <algorithm>

#include "events/machine/cpu_place.h"
#include "replay/machine/machine.h"
#include "tools/analyses/instruction_table.h"

namespace citcat::tools {

namespace {

/// `mnemonic` outlives what is returned.
citcat_instruction to_c(const StaticInstruction& i, const std::string& mnemonic) {
  citcat_instruction c{};
  c.linear = i.linear.value;
  c.offset = i.offset;
  c.physical = i.physical.value;
  c.physical_rest = i.bytes_in_first_page() < i.info.length ? i.physical_rest.value : 0;
  c.mnemonic = mnemonic.c_str();
  c.first_address = i.addresses_before;
  c.length = i.info.length;
  c.address_count = i.info.ea_count;
  c.transfers = i.info.control_flow;
  c.conditional = i.info.kind == InstructionClass::jcc || i.info.kind == InstructionClass::loop;
  std::copy_n(i.info.bytes.begin(), i.info.length, c.bytes);
  return c;
}

static_assert(static_cast<int>(AccessKind::data) == CITCAT_DATA);
static_assert(static_cast<int>(AccessKind::walk) == CITCAT_WALK);
static_assert(static_cast<int>(AccessKind::system) == CITCAT_SYSTEM);

citcat_context to_c(const Context& context, bool registers) {
  citcat_context c{};
  c.address_space = context.address_space();
  c.level = context.level();
  c.interrupt_depth = context.interrupt_depth();
  if (registers) {
    const CpuState state = context.machine().save();
    for (std::size_t i = 0; i < state.gpr.size(); ++i) {
      const std::uint64_t high = state.long_mode ? state.long_mode->gpr_high[i] : 0;
      c.registers[i] = high << 32 | state.gpr[i];
    }
    c.instruction_pointer = instruction_pointer(state);
    c.flags = state.eflags;
  }
  return c;
}

std::uint32_t kind_of(const DeliveredEvent& delivery) {
  switch (delivery.kind) {
    case DeliveredEvent::Kind::exception:
      return CITCAT_TOOL_EXCEPTION;
    case DeliveredEvent::Kind::external:
      return CITCAT_TOOL_INTERRUPT;
    case DeliveredEvent::Kind::software:
      return CITCAT_TOOL_SOFTWARE;
    case DeliveredEvent::Kind::nmi:
      return CITCAT_TOOL_NMI;
    case DeliveredEvent::Kind::smi:
      return CITCAT_TOOL_SMI;
  }
  return 0;
}

std::uint32_t kind_of(const MachineEvent& event) {
  using Kind = MachineEvent::Kind;
  switch (event.kind) {
    case Kind::delivered:
      return kind_of(event.delivery);
    case Kind::returned:
      return CITCAT_TOOL_RETURNED;
    case Kind::fast_call:
      return CITCAT_TOOL_FAST_CALL;
    case Kind::fast_return:
      return CITCAT_TOOL_FAST_RETURN;
    case Kind::address_space:
      return CITCAT_TOOL_ADDRESS_SPACE;
    case Kind::port_read:
      return CITCAT_TOOL_PORT_READ;
    case Kind::port_write:
      return CITCAT_TOOL_PORT_WRITE;
    case Kind::external_write:
      return CITCAT_TOOL_EXTERNAL_WRITE;
    case Kind::halted:
      return CITCAT_TOOL_HALTED;
    case Kind::shutdown:
      return CITCAT_TOOL_SHUTDOWN;
    case Kind::cache_flushed:
      return CITCAT_TOOL_CACHE_FLUSHED;
    case Kind::mapping:
      return CITCAT_TOOL_MAPPING;
    case Kind::window_opened:
      return CITCAT_TOOL_WINDOW_OPENED;
    case Kind::window_closed:
      return CITCAT_TOOL_WINDOW_CLOSED;
    case Kind::translation_dropped:
    case Kind::call_began:
    case Kind::call_ended:
      return 0;  // what they tell is in C++
  }
  return 0;
}

constexpr std::uint32_t kWantReferences =
    CITCAT_WANTS_REFERENCES | CITCAT_WANTS_WALKS | CITCAT_WANTS_VALUES;

}  // namespace

PluginBlock::PluginBlock(const StaticBlock& block) {
  for (const StaticInstruction& i : block.instructions()) {
    mnemonics_.push_back(mnemonic_of(InstructionKey::of(i).text()));
  }
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    instructions_.push_back(to_c(block[i], mnemonics_[i]));
  }
  c_.size = sizeof c_;
  c_.count = block.count();
  c_.instruction_size = sizeof(citcat_instruction);
  c_.bits = segment_bits(block.front().info);
  c_.instructions = instructions_.data();
}

citcat_reference PluginExecution::reference(const Reference& r) const {
  citcat_reference c{};
  c.physical = r.physical.value;
  c.linear = r.linear.value;
  c.value = wants(CITCAT_WANTS_VALUES) ? r.value : 0;
  c.bytes = r.size;
  c.instruction = r.instruction;
  c.access = static_cast<std::uint8_t>(r.kind);
  c.write = r.write;
  return c;
}

const citcat_execution& PluginExecution::make(const Execution& execution, const citcat_block& block,
                                              const Context& context) {
  addresses_.clear();
  references_.clear();
  if (wants(kWantReferences) && !execution.does_nothing()) {
    for (std::uint32_t i = 0; i < block.count; ++i) {
      for (unsigned a = 0; a < block.instructions[i].address_count; ++a) {
        addresses_.push_back(execution.address(i, a).value);
      }
    }
    for (const Reference& r : execution.references()) {
      if (wants(r)) references_.push_back(reference(r));
    }
  }
  c_.size = sizeof c_;
  c_.iterations = execution.iterations();
  c_.step = static_cast<std::int32_t>(execution.step());
  c_.does_nothing = execution.does_nothing();
  c_.block = &block;
  c_.instruction = execution.first().instruction;
  c_.iteration = execution.first().iteration;
  c_.addresses = addresses_.empty() ? nullptr : addresses_.data();
  c_.address_count = static_cast<std::uint32_t>(addresses_.size());
  c_.references = references_.empty() ? nullptr : references_.data();
  c_.reference_count = static_cast<std::uint32_t>(references_.size());
  c_.reference_size = sizeof(citcat_reference);
  c_.context = to_c(context, wants(CITCAT_WANTS_REGISTERS));
  return c_;
}

const citcat_accesses* PluginExecution::make(std::span<const OtherAccess> accesses,
                                             const Context& context) {
  references_.clear();
  for (const OtherAccess& a : accesses) {
    if (!wants(a)) continue;
    references_.push_back(reference(a));
    references_.back().code = a.code;
  }
  if (references_.empty()) return nullptr;
  accesses_.size = sizeof accesses_;
  accesses_.count = static_cast<std::uint32_t>(references_.size());
  accesses_.reference_size = sizeof(citcat_reference);
  accesses_.references = references_.data();
  accesses_.context = to_c(context, false);
  return &accesses_;
}

std::optional<citcat_tool_event> plugin_event(const MachineEvent& event, const Context& context) {
  citcat_tool_event c{};
  c.size = sizeof c;
  c.kind = kind_of(event);
  if (c.kind == 0) return std::nullopt;
  c.instruction = event.position.instruction;
  c.iteration = event.position.iteration;
  c.physical = event.physical.value;
  c.linear = event.linear.value;
  c.value = event.value;
  c.bytes = event.size;
  c.port = event.port;
  if (event.kind == MachineEvent::Kind::delivered) {
    c.offset = event.delivery.eip;
    c.cs = event.delivery.cs;
    c.cr2 = event.delivery.cr2;
    c.vector = event.delivery.vector;
    c.error_code = event.delivery.error_code;
  }
  c.context = to_c(context, false);
  return c;
}

Wants plugin_wants(std::uint32_t wants) {
  const auto has = [wants](std::uint32_t bit) { return (wants & bit) != 0; };
  Wants w;
  w.counts = has(CITCAT_WANTS_COUNTS);
  w.executions = has(CITCAT_WANTS_EXECUTIONS);
  w.references = (wants & kWantReferences) != 0;
  w.walks = has(CITCAT_WANTS_WALKS);
  w.registers = has(CITCAT_WANTS_REGISTERS);
  w.values = has(CITCAT_WANTS_VALUES);
  w.events = has(CITCAT_WANTS_EVENTS);
  return w;
}

}  // namespace citcat::tools
