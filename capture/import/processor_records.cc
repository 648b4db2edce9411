#include "capture/import/processor_records.h"

#include <cstring>

#include "capture/import/bus_record.h"

namespace citcat {
namespace {

constexpr unsigned kAgentShift = 4, kBurstMask = 15;
constexpr std::uint8_t kRecordShared = 64, kRecordLocked = 128;
/// Types after those of one processor.
constexpr std::uint8_t kInterrupt = 16, kMessage = 17, kInit = 18, kStartup = 19, kInvalidate = 20;
constexpr std::uint8_t kMonitorsInvalidate = 12;
/// Delivery mode of an interrupt that is an NMI (Intel SDM vol. 3, 10.6.1).
constexpr std::uint8_t kNmiMode = 4;
/// The shortest there are; who knows the line of a capture holds it to that.
constexpr std::uint32_t kInvalidatedBytes = 16;

std::uint8_t type_code(BusRecordType type) { return static_cast<std::uint8_t>(type); }

std::string expect_size(const BusRecord& r, unsigned size, const char* what) {
  if (r.size == size) return "";
  return "size: " + std::string(what) + " has " + std::to_string(size) + " bytes, found " +
         std::to_string(r.size);
}

bool is_zero_beyond(const BusRecord& r) {
  for (std::size_t i = r.size; i < kBusRecordData; ++i) {
    if (r.data[i] != 0) return false;
  }
  return true;
}

/// An interrupt that the processor takes from its local APIC becomes what it is to the processor.
std::string take_interrupt(BusRecord& r) {
  if (std::string wrong = expect_size(r, 2, "an interrupt of a local APIC"); !wrong.empty())
    return wrong;
  if (r.data[1] != 0 && r.data[1] != kNmiMode) {
    return "data: the mode of an interrupt is 0 (fixed) or 4 (NMI), found " +
           std::to_string(r.data[1]);
  }
  const bool nmi = r.data[1] == kNmiMode;
  r.type = type_code(nmi ? BusRecordType::nmi : BusRecordType::interrupt_acknowledge);
  r.size = nmi ? 0 : 1;
  if (nmi) r.data[0] = 0;
  r.data[1] = 0;
  r.address = 0;
  return "";
}

std::string refuse_agent(std::uint8_t agent) {
  return "agent: " + std::to_string(agent) +
         " is not a processor, and can only write up to 8 bytes, or send messages";
}

std::string take_note(const BusRecord& r, bool invalidates, ProcessorRecord& out) {
  out.kind = ProcessorRecord::Kind::note;
  BusNote& note = out.note;
  note.kind = invalidates ? BusNote::Kind::invalidate : BusNote::Kind::message;
  note.processor = out.agent;
  note.locked = out.locked;
  note.address = PhysAddr{r.address};
  note.size = r.size;
  if (invalidates) {
    if (out.agent >= kMostProcessors) return refuse_agent(out.agent);
    if (r.address % kInvalidatedBytes != 0) return "address: an invalidation is of a whole line";
    return expect_size(r, 0, "an invalidation");
  }
  std::memcpy(&note.data, r.data.data(), sizeof note.data);
  return expect_size(r, 4, "a message of the APIC bus");
}

}  // namespace

std::string read_processor_record(const BusRecord& record, RecordDialect dialect,
                                  std::uint32_t bus_bytes, ProcessorRecord& out) {
  out = {};
  out.record = record;
  BusRecord& r = out.record;
  out.agent = static_cast<std::uint8_t>(record.burst >> kAgentShift);
  r.burst = record.burst & kBurstMask;
  if (r.size > kBusRecordData) return check_bus_record(r, bus_bytes);
  if (!is_zero_beyond(r)) return "data: bytes beyond the size are not zero";
  const bool starts = r.type == type_code(BusRecordType::instruction_start);
  if (!starts) {
    out.shared = (r.flags & kRecordShared) != 0;
    out.locked = (r.flags & kRecordLocked) != 0;
    r.flags &= static_cast<std::uint8_t>(~(kRecordShared | kRecordLocked));
  }
  const std::uint8_t invalidate =
      dialect == RecordDialect::native ? kInvalidate : kMonitorsInvalidate;
  if (r.type == invalidate) return take_note(r, true, out);
  switch (r.type) {
    case kMessage:
      return take_note(r, false, out);
    case kInterrupt: {
      if (std::string wrong = take_interrupt(r); !wrong.empty()) return wrong;
      out.of_local_apic = r.type == type_code(BusRecordType::interrupt_acknowledge);
      break;
    }
    case kInit:
    case kStartup: {
      const bool init = r.type == kInit;
      out.kind = init ? ProcessorRecord::Kind::init : ProcessorRecord::Kind::startup;
      if (out.agent >= kMostProcessors) return refuse_agent(out.agent);
      return init ? expect_size(r, 0, "an INIT") : expect_size(r, 1, "a SIPI");
    }
    default:
      break;
  }
  if (r.type == type_code(BusRecordType::stand_in))
    return "type: a capture of several processors cannot have stand-ins for memory beyond 4 GiB";
  if (std::string wrong = check_bus_record(r, bus_bytes); !wrong.empty()) return wrong;
  if (r.type == type_code(BusRecordType::cut)) out.kind = ProcessorRecord::Kind::cut;
  if (r.type == type_code(BusRecordType::reached)) out.kind = ProcessorRecord::Kind::reached;
  if (r.type == type_code(BusRecordType::high)) {
    out.kind = ProcessorRecord::Kind::high;
    return "";
  }
  if (out.agent < kMostProcessors) return "";
  if (r.type != type_code(BusRecordType::data_write) || r.size > sizeof out.note.data)
    return refuse_agent(out.agent);
  out.kind = ProcessorRecord::Kind::note;
  out.note.kind = BusNote::Kind::device_write;
  out.note.processor = out.agent;
  out.note.address = PhysAddr{r.address};
  out.note.size = r.size;
  std::memcpy(&out.note.data, r.data.data(), sizeof out.note.data);
  return "";
}

}  // namespace citcat
