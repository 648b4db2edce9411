#pragma once
// One session of gdb with one recorded machine: what it asks for is answered until it goes.

#include <functional>
#include <string>
#include <string_view>

#include "debugger/protocol/connection.h"
#include "debugger/protocol/request.h"
#include "debugger/server/monitor.h"
#include "debugger/target/debug_target.h"

namespace citcat {

class GdbServer {
 public:
  /// All must outlive the server. `tell`: where the reason goes of a refusal for which the protocol
  /// has no room; a line without an end.
  GdbServer(DebugTarget& target, Monitor& monitor, gdb::Connection& connection,
            std::function<void(const std::string&)> tell);

  /// Returns when gdb detaches or has gone. `begin` is called before the machine is looked at for
  /// the first time.
  void serve(const std::function<void()>& begin);

 private:
  using Request = gdb::Request;

  bool answer(const Request& request);
  void answer_query(const Request& request);
  void move(const Request& request);
  void send_features(const Request& request);
  void send_registers();
  void send_register(std::size_t number);
  void send_memory(const Request& request);
  void send_description(const Request& request);
  void change(const Request& request);
  void write_registers(const Request& request);
  void change_stops(const Request& request);
  void run_command(const std::string& command);
  void send_text(const std::string& text);
  void send_stop(const MoveEnd& end);
  std::string register_hex(std::size_t number, const RegisterView& view) const;
  void tell_divergence();
  void refuse(const std::string& reason) { connection_.send("E." + reason); }

  DebugTarget& target_;
  Monitor& monitor_;
  gdb::Connection& connection_;
  std::function<void(const std::string&)> tell_;
  std::string stop_ = "T05thread:1;";  ///< why it stands where it stands
  std::string description_;
  bool says_kind_of_breakpoint_ = false;  ///< gdb understands swbreak and hwbreak
};

}  // namespace citcat
