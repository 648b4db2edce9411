#pragma once
// One session of gdb with one recorded machine: answers its requests until gdb disconnects. Each of
// the machine's processors is a thread, numbered from 1.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "debugger/protocol/connection.h"
#include "debugger/protocol/request.h"
#include "debugger/server/monitor.h"
#include "debugger/target/machine_target.h"

namespace citcat {

class GdbServer {
 public:
  /// All must outlive the server. `monitors`: one of each processor. `tell`: where the reason goes
  /// of a refusal for which the protocol has no room; a line without an end.
  GdbServer(MachineTarget& machine, std::vector<Monitor*> monitors, gdb::Connection& connection,
            std::function<void(const std::string&)> tell);

  /// Returns when gdb detaches or has gone. `begin` is called before the machine is looked at for
  /// the first time, and answers at which processor it then is.
  void serve(const std::function<std::size_t()>& begin);

 private:
  using Request = gdb::Request;

  bool answer(const Request& request);
  void answer_query(const Request& request);
  void answer_of_threads(const Request& request);
  void move(const Request& request);
  void send_features(const Request& request);
  void send_registers();
  void send_register(std::size_t number);
  void send_memory(const Request& request);
  void send_description(const Request& request);
  void change(const Request& request);
  void write_registers(const Request& request);
  void change_stops(const Request& request);
  std::pair<std::size_t, std::string> processor_meant(const std::string& command) const;
  void run_command(const std::string& command);
  void send_text(const std::string& text);
  void send_stop(const MachineMoveEnd& end);
  std::string stopped() const;
  std::string thread_text(std::size_t p) const;
  std::string register_hex(std::size_t number, const RegisterView& view) const;
  MachineMoveEnd moved(const Request& request);
  void tell_unmapped();
  void tell_divergence(std::size_t p);
  void refuse(const std::string& reason) { connection_.send("E." + reason); }

  DebugTarget& target() { return machine_.processor(looked_at_); }
  const DebugTarget& target() const { return machine_.processor(looked_at_); }
  /// What a packet without a thread moves.
  std::size_t moved_unnamed() const { return moves_.value_or(looked_at_); }
  bool is_thread(std::uint32_t thread) const { return thread != 0 && thread <= machine_.size(); }

  MachineTarget& machine_;
  std::vector<Monitor*> monitors_;
  gdb::Connection& connection_;
  std::function<void(const std::string&)> tell_;
  std::size_t looked_at_ = 0;         ///< whose registers and memory gdb asks for
  std::optional<std::size_t> moves_;  ///< what gdb wants moved; nullopt: what it looks at
  std::string stop_;                  ///< why it is where it is
  std::string description_;
  bool says_kind_of_breakpoint_ = false;  ///< gdb understands swbreak and hwbreak
};

}  // namespace citcat
