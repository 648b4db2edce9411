#include "debugger/server/gdb_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "debugger/protocol/packet_text.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "formats/text/printable_text.h"

namespace citcat {

namespace {

using gdb::hex_number;
using gdb::hex_of;
using Kind = gdb::Request::Kind;

constexpr const char* kReadOnly =
    "this is a recorded run, which cannot be changed; 'monitor fork' opens a branch that can";

bool is_move(Kind kind) {
  switch (kind) {
    case Kind::step:
    case Kind::go_on:
    case Kind::step_in_range:
    case Kind::step_back:
    case Kind::go_back:
      return true;
    default:
      return false;
  }
}

bool looks_at_machine(Kind kind) {
  switch (kind) {
    case Kind::description:  // of its mode, too
    case Kind::read_registers:
    case Kind::read_register:
    case Kind::read_memory:
    case Kind::command:
      return true;
    default:
      return is_move(kind);
  }
}

bool is_seek(const std::string& command) {
  std::istringstream words(command);
  std::string first;
  words >> first;
  return first == "seek";
}

}  // namespace

GdbServer::GdbServer(MachineTarget& machine, std::vector<Monitor*> monitors,
                     gdb::Connection& connection, std::function<void(const std::string&)> tell)
    : machine_(machine),
      monitors_(std::move(monitors)),
      connection_(connection),
      tell_(std::move(tell)) {
  stop_ = stopped();
}

void GdbServer::serve(const std::function<std::size_t()>& begin) {
  bool begun = false;
  for (std::string data; connection_.receive(data);) {
    const Request request = gdb::parse_request(data);
    if (!begun && looks_at_machine(request.kind)) {
      begun = true;
      looked_at_ = begin();
      stop_ = stopped();
    }
    try {
      if (!answer(request)) return;
    } catch (const UsageError& error) {
      refuse(error.what());
    }
  }
}

/// False when the session is over.
bool GdbServer::answer(const Request& request) {
  if (is_move(request.kind)) {
    move(request);
    return true;
  }
  switch (request.kind) {
    case Kind::malformed:
      connection_.send("E.the packet is not what it has to be");
      return true;
    case Kind::read_registers:
      send_registers();
      return true;
    case Kind::read_register:
      send_register(request.number);
      return true;
    case Kind::read_memory:
      send_memory(request);
      return true;
    case Kind::write_registers:
    case Kind::write_register:
    case Kind::write_memory:
      change(request);
      return true;
    case Kind::insert_stop:
    case Kind::remove_stop:
      change_stops(request);
      return true;
    case Kind::description:
      send_description(request);
      return true;
    case Kind::command:
      run_command(request.text);
      return true;
    case Kind::detach:
      connection_.send("OK");
      return false;
    case Kind::kill:
      // vKill is to be answered, k is not.
      if (!request.text.empty()) connection_.send("OK");
      return false;
    default:
      answer_query(request);
      return true;
  }
}

void GdbServer::answer_query(const Request& request) {
  switch (request.kind) {
    case Kind::why_stopped:
      return connection_.send(stop_);
    case Kind::features:
      return send_features(request);
    case Kind::no_acknowledging:
      connection_.send("OK");
      return connection_.stop_acknowledging();
    case Kind::resume_kinds:
      return connection_.send("vCont;c;C;s;S;r");
    case Kind::symbols:
      return connection_.send("OK");
    case Kind::attached:
      return connection_.send("1");
    default:
      return answer_of_threads(request);
  }
}

void GdbServer::answer_of_threads(const Request& request) {
  const bool is_all = request.thread == 0;
  switch (request.kind) {
    case Kind::set_thread:
      if (!is_all && !is_thread(request.thread)) return refuse("there is no such processor");
      if (request.text != "g") {
        moves_ = is_all ? std::nullopt : std::optional<std::size_t>(request.thread - 1);
      } else if (!is_all) {
        looked_at_ = request.thread - 1;
      }
      return connection_.send("OK");
    case Kind::thread_alive:
      if (!is_all && !is_thread(request.thread)) return refuse("there is no such processor");
      return connection_.send("OK");
    case Kind::current_thread:
      return connection_.send("QC" + hex_number(looked_at_ + 1));
    case Kind::first_threads: {
      std::string all = "m";
      for (std::size_t p = 0; p < machine_.size(); ++p)
        all += (p == 0 ? "" : ",") + hex_number(p + 1);
      return connection_.send(all);
    }
    case Kind::more_threads:
      return connection_.send("l");
    case Kind::thread_text:
      if (!is_thread(request.thread)) return refuse("there is no such processor");
      return connection_.send(hex_of(std::string_view(thread_text(request.thread - 1))));
    default:
      return connection_.send("");
  }
}

std::string GdbServer::thread_text(std::size_t p) const {
  if (machine_.size() == 1) return "the processor";
  const DebugTarget& its = machine_.processor(p);
  return fmt::format("processor {} at {}:{}{}", p, p, position_text(its.timeline().position()),
                     its.machine().save().halted ? ", halted" : "");
}

void GdbServer::send_features(const Request& request) {
  says_kind_of_breakpoint_ = request.text.find("swbreak+") != std::string::npos &&
                             request.text.find("hwbreak+") != std::string::npos;
  connection_.send(fmt::format(
      "PacketSize={};QStartNoAckMode+;qXfer:features:read+;vContSupported+;ReverseStep+;"
      "ReverseContinue+;swbreak+;hwbreak+",
      hex_number(gdb::kMaxPacketBytes)));
}

void GdbServer::send_description(const Request& request) {
  if (request.text != "target.xml") return connection_.send("E00");
  if (description_.empty() || request.address == 0) {
    description_ = target().register_file().description(target().code_bits() == 16);
  }
  if (request.address >= description_.size()) return connection_.send("l");
  const std::string part = description_.substr(
      request.address, std::min<std::size_t>(request.length, gdb::kMaxPacketBytes / 2));
  const bool last = request.address + part.size() == description_.size();
  connection_.send((last ? "l" : "m") + part);
}

// ---------------------------------------------------------------------------------------------
// Registers and memory

std::string GdbServer::register_hex(std::size_t number, const RegisterView& view) const {
  const auto value = target().register_file().value(number, view);
  return value ? hex_of(*value) : std::string(2 * target().register_file().bytes(number), 'x');
}

void GdbServer::send_registers() {
  const RegisterView view = target().registers();
  std::string all;
  for (std::size_t i = 0; i < target().register_file().count(); ++i) all += register_hex(i, view);
  connection_.send(all);
}

void GdbServer::send_register(std::size_t number) {
  if (number >= target().register_file().count()) return refuse("there is no such register");
  connection_.send(register_hex(number, target().registers()));
}

void GdbServer::send_memory(const Request& request) {
  constexpr std::uint64_t kMost = gdb::kMaxPacketBytes / 2 - 16;
  const auto bytes = target().read(target().address(request.address),
                                   std::min<std::uint64_t>(request.length, kMost));
  if (bytes.empty() && request.length != 0) {
    // Nothing is mapped there, or no evidence says what it holds. For failed reads
    // gdb understands numbers only: EFAULT.
    return connection_.send("E0e");
  }
  connection_.send(hex_of(bytes));
}

void GdbServer::change(const Request& request) {
  if (!target().forked()) {
    // gdb says nothing of the reason but for registers.
    if (request.kind == Kind::write_memory && request.length != 0) tell_(kReadOnly);
    return refuse(kReadOnly);
  }
  bool done = true;
  if (request.kind == Kind::write_memory) {
    done = target().write(target().address(request.address), request.data);
  } else if (request.kind == Kind::write_registers) {
    return write_registers(request);
  } else {
    done = request.number < target().register_file().count() &&
           target().set_register(request.number, request.data);
  }
  if (!done) return refuse("that cannot be changed");
  connection_.send("OK");
}

/// What gdb does not know of the registers it gives back as it got it.
void GdbServer::write_registers(const Request& request) {
  const RegisterFile& file = target().register_file();
  const RegisterView view = target().registers();
  std::size_t at = 0;
  for (std::size_t i = 0; i < file.count() && at + file.bytes(i) <= request.data.size(); ++i) {
    const std::vector<std::uint8_t> value(
        request.data.begin() + static_cast<std::ptrdiff_t>(at),
        request.data.begin() + static_cast<std::ptrdiff_t>(at + file.bytes(i)));
    at += file.bytes(i);
    if (value != file.value(i, view) && !target().set_register(i, value)) {
      return refuse(file.name(i) + " cannot be changed");
    }
  }
  connection_.send("OK");
}

void GdbServer::change_stops(const Request& request) {
  const auto kind = static_cast<StopKind>(request.number);
  const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(request.length, 0xffff));
  if (request.kind == Kind::insert_stop) {
    machine_.insert(kind, target().address(request.address), size);
  } else {
    machine_.remove(kind, target().address(request.address), size);
  }
  connection_.send("OK");
}

// ---------------------------------------------------------------------------------------------
// Moving

MachineMoveEnd GdbServer::moved(const Request& request) {
  const MachineTarget::Interrupt interrupt = [this] { return connection_.is_interrupted(); };
  const std::size_t p = is_thread(request.thread) ? request.thread - 1 : moved_unnamed();
  switch (request.kind) {
    case Kind::step:
      return machine_.step(p, request.alone, interrupt);
    case Kind::step_back:
      return machine_.step_back(p);
    case Kind::step_in_range:
      return machine_.step_in_range(p, machine_.processor(p).address(request.address),
                                    static_cast<std::uint32_t>(request.length), request.alone,
                                    interrupt);
    case Kind::go_back:
      return machine_.go_back(p, interrupt);
    default:
      return machine_.go_on(p, request.alone, interrupt);
  }
}

void GdbServer::move(const Request& request) {
  if (request.thread != 0 && !is_thread(request.thread))
    return refuse("there is no such processor");
  if (request.kind == Kind::go_on || request.kind == Kind::go_back) tell_unmapped();
  const MachineMoveEnd end = moved(request);
  looked_at_ = end.processor;
  if (end.end.why == MoveEnd::Why::end) {
    for (std::size_t p = 0; p < machine_.size(); ++p) tell_divergence(p);
  }
  send_stop(end);
}

/// Tells gdb which watchpoints a move cannot meet until something is mapped at their addresses.
void GdbServer::tell_unmapped() {
  for (const LinearAddr at : machine_.processor(moved_unnamed()).unmapped_watchpoints()) {
    send_text(fmt::format(
        "watchpoint at {:#x}: nothing is mapped there yet; it takes effect when something is\n",
        at.value));
  }
}

/// Why the run goes no further, where that is no regular end.
void GdbServer::tell_divergence(std::size_t p) {
  const auto& divergence = machine_.processor(p).timeline().divergence();
  if (!divergence) return;
  send_text(printable_text(monitors_[p]->divergence_text(), "\n"));
}

void GdbServer::send_text(const std::string& text) {
  constexpr std::size_t kPart = gdb::kMaxPacketBytes / 2 - 16;
  for (std::size_t at = 0; at < text.size(); at += kPart) {
    connection_.send("O" + hex_of(std::string_view(text).substr(at, kPart)));
  }
}

std::string GdbServer::stopped() const { return fmt::format("T05thread:{:x};", looked_at_ + 1); }

void GdbServer::send_stop(const MachineMoveEnd& machine_end) {
  const MoveEnd& end = machine_end.end;
  constexpr int kTrap = 5, kInterrupted = 2;  // gdb's numbers of SIGTRAP and SIGINT
  stop_ = fmt::format("T{:02x}", end.why == MoveEnd::Why::interrupted ? kInterrupted : kTrap);
  switch (end.why) {
    case MoveEnd::Why::watchpoint: {
      const char* const name = end.kind == StopKind::write_watchpoint  ? "watch"
                               : end.kind == StopKind::read_watchpoint ? "rwatch"
                                                                       : "awatch";
      stop_ += fmt::format("{}:{};", name, hex_number(end.watched.value));
      break;
    }
    case MoveEnd::Why::breakpoint:
      if (!says_kind_of_breakpoint_) break;
      stop_ += end.kind == StopKind::hardware_breakpoint ? "hwbreak:;" : "swbreak:;";
      break;
    case MoveEnd::Why::end:
      stop_ += "replaylog:end;";
      break;
    case MoveEnd::Why::beginning:
      stop_ += "replaylog:begin;";
      break;
    default:
      break;
  }
  const RegisterView view = target().registers();
  for (const std::size_t r : target().register_file().places()) {
    // Here gdb takes nothing for unknown; it asks for what is not there.
    if (!target().register_file().value(r, view)) continue;
    stop_ += fmt::format("{:02x}:{};", r, register_hex(r, view));
  }
  stop_ += fmt::format("thread:{:x};", looked_at_ + 1);
  connection_.send(stop_);
}

/// "seek P:N" is for processor P, every other command for the one that gdb looks at.
std::pair<std::size_t, std::string> GdbServer::processor_meant(const std::string& command) const {
  if (!is_seek(command) || command.find(':') == std::string::npos) return {looked_at_, command};
  std::istringstream words(command);
  std::string seek, place, more;
  words >> seek >> place;
  std::getline(words, more);
  const std::optional<ProcessorPlace> meant = split_processor(place);
  if (!meant || meant->processor.value_or(0) >= machine_.size()) {
    throw UsageError(
        fmt::format("seek: there is no processor '{}'", place.substr(0, place.find(':'))));
  }
  return {meant->processor.value_or(looked_at_), seek + " " + meant->place + more};
}

void GdbServer::run_command(const std::string& command) {
  std::string output;
  try {
    const auto [p, its] = processor_meant(command);
    output = monitors_[p]->run(its, [this] { return connection_.is_interrupted(); });
    if (is_seek(command)) machine_.follow(p);
  } catch (const UsageError& error) {
    output = std::string(error.what()) + "\n";
  }
  stop_ = stopped();
  // gdb puts it on its terminal as it comes. It quotes what the recorded machine had in its memory.
  send_text(printable_text(output, "\n"));
  connection_.send("OK");
}

}  // namespace citcat
