#pragma once
// A request of gdb, read from a packet's data (Debugging with GDB, appendix E).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace citcat::gdb {

struct Request {
  enum class Kind : std::uint8_t {
    unknown,    ///< none of these: answered with nothing, as the manual says
    malformed,  ///< one of these, but not as it has to be
    why_stopped,
    features,          ///< qSupported; `text`: those of gdb
    no_acknowledging,  ///< QStartNoAckMode
    read_registers,
    write_registers,
    read_register,   ///< `number`
    write_register,  ///< `number`
    read_memory,     ///< `address`, `length`
    write_memory,
    insert_stop,  ///< `number`: 0 to 4 as in packet Z; `address`, `length`
    remove_stop,
    step,
    go_on,
    step_in_range,  ///< [`address`, `address` + `length`)
    step_back,
    go_back,
    resume_kinds,  ///< vCont?
    description,  ///< qXfer:features:read, of the document `text`, from `address` on `length` bytes
    command,      ///< qRcmd; `text`
    set_thread,   ///< `text` "g": to look at, "c": to move; `thread`
    thread_alive,  ///< `thread`
    current_thread,
    first_threads,
    more_threads,
    thread_text,  ///< `thread`
    attached,     ///< qAttached: gdb is not to end what it debugs
    symbols,      ///< qSymbol
    detach,
    kill,
  } kind = Kind::unknown;
  std::uint64_t address = 0, length = 0;
  std::uint32_t number = 0;
  std::string text;
  std::vector<std::uint8_t> data;  ///< to be written
  std::uint32_t thread = 0;        ///< 0: any of them, or all
  bool alone = false;              ///< a move of this thread only
};

/// Never throws: data that is not a request gives one of the first two kinds.
Request parse_request(std::string_view data);

}  // namespace citcat::gdb
