// io: ports and what other bus masters wrote to memory. Formula and facts: docs/tools/io.md.

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "tools/host/tool.h"

namespace citcat::tools {
namespace {

class IoTool final : public Tool {
 public:
  Wants wants() const override { return {.events = true}; }
  void event(const MachineEvent& event, const Context&) override {
    switch (event.kind) {
      case MachineEvent::Kind::port_read:
      case MachineEvent::Kind::port_write: {
        const bool write = event.kind == MachineEvent::Kind::port_write;
        Accesses& a = ports_[{event.port, write, event.size}];
        if (a.count++ == 0) a.first = event.position.instruction;
        a.last = event.position.instruction;
        a.value = static_cast<std::uint32_t>(event.value);
        break;
      }
      case MachineEvent::Kind::external_write:
        ++external_;
        external_bytes_ += event.size;
        break;
      default:
        break;
    }
  }
  std::unique_ptr<Tool> part() const override { return std::make_unique<IoTool>(); }
  void follow(Tool&& tool) override {
    const auto& later = static_cast<const IoTool&>(tool);
    for (const auto& [port, theirs] : later.ports_) {
      Accesses& mine = ports_[port];
      if (mine.count == 0) mine.first = theirs.first;
      mine.count += theirs.count;
      mine.last = theirs.last;
      mine.value = theirs.value;
    }
    external_ += later.external_;
    external_bytes_ += later.external_bytes_;
  }
  void save(ByteWriter& out) const override {
    out.varint(external_);
    out.varint(external_bytes_);
    out.varint(ports_.size());
    for (const auto& [port, a] : ports_) {
      out.u16(std::get<0>(port));
      out.u8(std::get<1>(port) ? 1 : 0);
      out.varint(std::get<2>(port));
      for (const std::uint64_t n : {a.count, a.first, a.last}) out.varint(n);
      out.u32(a.value);
    }
  }
  void load(ByteReader& in) override {
    external_ = in.varint("external writes");
    external_bytes_ = in.varint("bytes of these");
    const std::uint64_t count = in.varint("number of ports");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint16_t port = in.u16("port");
      const bool write = in.u8("direction") != 0;
      const auto size = static_cast<std::uint32_t>(in.count("size", 4));
      Accesses& a = ports_[{port, write, size}];
      for (std::uint64_t* n : {&a.count, &a.first, &a.last}) *n = in.varint("of a port");
      a.value = in.u32("value");
    }
  }
  void report(Report& out) const override {
    std::uint64_t reads = 0, writes = 0;
    Table& table = out.table("ports", "ports",
                             {{"port", "port", ""},
                              {"direction", "direction", ""},
                              {"size", "size", "bytes"},
                              {"count", "count", ""},
                              {"first", "first at", "instruction"},
                              {"last", "last at", "instruction"},
                              {"last_value", "last value", ""}});
    for (const auto& [port, a] : ports_) {
      const auto& [number, write, size] = port;
      (write ? writes : reads) += a.count;
      table.row({fmt::format("{:04x}", number), std::string(write ? "write" : "read"),
                 std::uint64_t{size}, a.count, a.first, a.last,
                 fmt::format("{:0{}x}", a.value, 2 * size)});
    }
    out.value("reads", "port reads", reads);
    out.value("writes", "port writes", writes);
    out.value("external_writes", "writes of other bus masters", external_);
    out.value("external_bytes", "bytes of these", external_bytes_, "bytes");
  }

 private:
  struct Accesses {
    std::uint64_t count = 0, first = 0, last = 0;
    std::uint32_t value = 0;  ///< the last one
  };
  /// By number, direction and size.
  std::map<std::tuple<std::uint16_t, bool, std::uint32_t>, Accesses> ports_;
  std::uint64_t external_ = 0, external_bytes_ = 0;
};

std::unique_ptr<Tool> make_io(ToolOptions&, const Setup&) { return std::make_unique<IoTool>(); }

}  // namespace

extern const ToolRow kIoTool{"io",
                             "Count accesses to ports, and writes of other bus masters",
                             "",
                             "citcat analyze boot.citcat --tool io",
                             ToolRow::Merging::exact,
                             make_io};

}  // namespace citcat::tools
