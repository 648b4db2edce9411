// events: interrupts, exceptions, system calls and whatever else happens besides instructions.
// Formula and facts: docs/tools/events.md.

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class EventsTool final : public Tool {
 public:
  Wants wants() const override { return {.events = true}; }
  void event(const MachineEvent& event, const Context& context) override {
    const std::string name = name_of(event);
    if (name.empty()) return;
    Happened& h = happened_[name];
    if (h.count++ == 0) h.first = event.position.instruction;
    h.last = event.position.instruction;
    if (level_left(event, context) == Context::kUserLevel) ++h.from_user;
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<EventsTool>(); }
  void follow(Tool&& tool) override {
    for (const auto& [name, theirs] : static_cast<const EventsTool&>(tool).happened_) {
      Happened& mine = happened_[name];
      if (mine.count == 0) mine.first = theirs.first;
      mine.count += theirs.count;
      mine.from_user += theirs.from_user;
      mine.last = theirs.last;
    }
  }
  void save(ByteWriter& out) const override {
    out.varint(happened_.size());
    for (const auto& [name, h] : happened_) {
      out.string(name);
      for (const std::uint64_t n : {h.count, h.from_user, h.first, h.last}) out.varint(n);
    }
  }
  void load(ByteReader& in) override {
    const std::uint64_t count = in.varint("kinds of events");
    for (std::uint64_t i = 0; i < count; ++i) {
      Happened& h = happened_[in.string("name of an event", 64)];
      for (std::uint64_t* n : {&h.count, &h.from_user, &h.first, &h.last}) {
        *n = in.varint("of an event");
      }
    }
  }
  void report(Report& out) const override {
    Table& table = out.table("events", "events",
                             {{"event", "event", ""},
                              {"count", "count", ""},
                              {"from_user", "of these from level 3", ""},
                              {"first", "first at", "instruction"},
                              {"last", "last at", "instruction"}});
    for (const auto& [name, h] : happened_)
      table.row({name, h.count, h.from_user, h.first, h.last});
  }

 private:
  struct Happened {
    std::uint64_t count = 0, from_user = 0, first = 0, last = 0;
  };
  /// The level that an entry to the system came from. A delivery is told before it takes place,
  /// SYSENTER and SYSCALL after it.
  static std::optional<std::uint32_t> level_left(const MachineEvent& event,
                                                 const Context& context) {
    if (event.kind == MachineEvent::Kind::delivered) return context.level();
    if (event.kind == MachineEvent::Kind::fast_call) return context.open()->level;
    return std::nullopt;
  }
  /// Empty for what other tools count.
  static std::string name_of(const MachineEvent& event) {
    using Kind = MachineEvent::Kind;
    switch (event.kind) {
      case Kind::delivered:
        return delivery_name(event.delivery);
      case Kind::returned:
        return "return from interrupt";
      case Kind::fast_call:
        return event.value == 1 ? "SYSCALL" : "SYSENTER";
      case Kind::fast_return:
        return event.value == 1 ? "SYSRET" : "SYSEXIT";
      case Kind::address_space:
        return "load of CR3 or CR0";
      case Kind::external_write:
        return "external write";
      case Kind::translation_dropped:
        return "translation dropped";
      case Kind::halted:
        return "halt";
      case Kind::shutdown:
        return "shutdown";
      case Kind::cache_flushed:
        return event.value != 0 ? "WBINVD" : "INVD";
      default:
        return "";
    }
  }
  static std::string delivery_name(const DeliveredEvent& e) {
    switch (e.kind) {
      case DeliveredEvent::Kind::exception:
        return fmt::format("exception {:02x}", e.vector);
      case DeliveredEvent::Kind::external:
        return fmt::format("interrupt {:02x}", e.vector);
      case DeliveredEvent::Kind::software:
        return fmt::format("software interrupt {:02x}", e.vector);
      case DeliveredEvent::Kind::nmi:
        return "NMI";
      case DeliveredEvent::Kind::smi:
        return "SMI";
    }
    return "";
  }

  std::map<std::string, Happened> happened_;
};

std::unique_ptr<Tool> make_events(ToolOptions&, const Setup&) {
  return std::make_unique<EventsTool>();
}

}  // namespace

extern const ToolRow kEventsTool{"events",
                                 "Count interrupts, exceptions, halts and the like",
                                 "",
                                 "citcat analyze boot.citcat --tool events",
                                 ToolRow::Merging::exact,
                                 make_events};

}  // namespace citcat::tools
