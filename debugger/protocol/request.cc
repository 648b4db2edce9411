#include "debugger/protocol/request.h"

#include <array>
#include <utility>

#include "debugger/protocol/packet_text.h"

namespace citcat::gdb {

namespace {

using Kind = Request::Kind;

/// Takes what is before `end`, and `end` itself; everything where it is not there.
std::string_view take_until(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  const std::string_view taken = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return taken;
}

Request malformed() { return {Kind::malformed, 0, 0, 0, "", {}}; }

Request plain(Kind kind) { return {kind, 0, 0, 0, "", {}}; }

/// "ADDRESS,LENGTH", which may go on with `end`.
Request with_range(Kind kind, std::string_view rest, char end = ':') {
  const auto address = number_of(take_until(rest, ','));
  const auto length = number_of(take_until(rest, end));
  if (!address || !length) return malformed();
  return {kind, *address, *length, 0, "", {}};
}

Request with_number(Kind kind, std::string_view hex) {
  const auto number = number_of(hex);
  if (!number || *number > 0xffffffff) return malformed();
  return {kind, 0, 0, static_cast<std::uint32_t>(*number), "", {}};
}

Request with_hex(Request request, std::string_view hex) {
  auto bytes = bytes_of(hex);
  if (!bytes) return malformed();
  if (request.kind != Kind::malformed) request.data = std::move(*bytes);
  return request;
}

/// "ADDRESS,LENGTH:DATA".
Request write_request(std::string_view rest, bool binary) {
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return malformed();
  Request request = with_range(Kind::write_memory, rest);
  const std::string_view data = rest.substr(colon + 1);
  if (binary) {
    request.data.assign(data.begin(), data.end());
  } else {
    request = with_hex(std::move(request), data);
  }
  return request.data.size() == request.length ? request : malformed();
}

/// "TYPE,ADDRESS,KIND", which may go on with conditions.
Request stop_request(Kind kind, std::string_view rest) {
  Request request = with_number(kind, take_until(rest, ','));
  if (request.kind == Kind::malformed) return request;
  const Request range = with_range(kind, rest, ';');
  if (range.kind == Kind::malformed || request.number > 4) return malformed();
  request.address = range.address;
  request.length = range.length;
  return request;
}

/// "N" in hexadecimal, from 1 on; 0 (any) and -1 (all) become 0.
std::optional<std::uint32_t> thread_of(std::string_view text) {
  if (text == "-1") return 0;
  const auto number = number_of(text);
  if (!number || *number > 0xffffffff) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

Request of_thread(Kind kind, std::string_view text) {
  const auto thread = thread_of(text);
  if (!thread) return malformed();
  Request request = plain(kind);
  request.thread = *thread;
  return request;
}

/// "g" or "c", and a thread.
Request set_thread_request(std::string_view rest) {
  if (rest.empty()) return malformed();
  Request request = of_thread(Kind::set_thread, rest.substr(1));
  request.text = rest.substr(0, 1);
  return request;
}

/// What one action of a vCont packet asks for.
Request action_request(std::string_view action) {
  if (action.empty()) return malformed();
  switch (action.front()) {
    case 'c':
    case 'C':
      return plain(Kind::go_on);
    case 's':
    case 'S':
      return plain(Kind::step);
    case 'r': {
      action.remove_prefix(1);
      const Request range = with_range(Kind::step_in_range, action);
      if (range.kind == Kind::malformed || range.length < range.address) return malformed();
      return {Kind::step_in_range, range.address, range.length - range.address, 0, "", {}};
    }
    default:
      return malformed();
  }
}

/// A vCont packet: the action that steps, where there is one, else the first; of its thread alone
/// where no other action is of all threads.
Request resume_request(std::string_view rest) {
  std::optional<Request> chosen;
  bool others = false;
  while (!rest.empty()) {
    std::string_view action = take_until(rest, ';');
    const std::string_view kind = take_until(action, ':');
    Request request = action_request(kind);
    if (request.kind == Kind::malformed) return request;
    if (!action.empty()) {
      const auto thread = thread_of(action);
      if (!thread) return malformed();
      request.thread = *thread;
    }
    others = others || request.thread == 0;
    const bool steps = request.kind != Kind::go_on;
    if (!chosen || (steps && chosen->kind == Kind::go_on)) chosen = std::move(request);
  }
  if (!chosen) return malformed();
  chosen->alone = !others;
  return *chosen;
}

Request description_request(std::string_view rest) {
  const std::string_view document = take_until(rest, ':');
  Request request = with_range(Kind::description, rest);
  request.text = document;
  return request;
}

Request command_request(std::string_view hex) {
  const auto bytes = bytes_of(hex);
  if (!bytes) return malformed();
  return {Kind::command, 0, 0, 0, std::string(bytes->begin(), bytes->end()), {}};
}

struct Named {
  std::string_view name;
  Kind kind;
  bool whole;  ///< nothing may follow
};

/// Packets with names; longer ones before those that they begin with.
constexpr std::array kNamed{
    Named{"qSupported", Kind::features, false},
    Named{"QStartNoAckMode", Kind::no_acknowledging, true},
    Named{"vCont?", Kind::resume_kinds, true},
    Named{"qfThreadInfo", Kind::first_threads, true},
    Named{"qsThreadInfo", Kind::more_threads, true},
    Named{"qThreadExtraInfo", Kind::thread_text, false},
    Named{"qAttached", Kind::attached, false},
    Named{"qSymbol", Kind::symbols, false},
    Named{"vKill", Kind::kill, false},
    Named{"qC", Kind::current_thread, true},
    Named{"bs", Kind::step_back, true},
    Named{"bc", Kind::go_back, true},
};

Request named_request(std::string_view data) {
  for (const Named& named : kNamed) {
    if (data.substr(0, named.name.size()) != named.name) continue;
    if (named.whole && data.size() != named.name.size()) continue;
    Request request = plain(named.kind);
    request.text = data.substr(named.name.size());
    if (named.kind != Kind::thread_text) return request;
    // A comma goes before the thread.
    return of_thread(named.kind,
                     std::string_view(request.text).substr(request.text.empty() ? 0 : 1));
  }
  return plain(Kind::unknown);
}

bool take_prefix(std::string_view& data, std::string_view prefix) {
  if (data.substr(0, prefix.size()) != prefix) return false;
  data.remove_prefix(prefix.size());
  return true;
}

/// Packets of one letter, whose rest is `rest`.
Request lettered_request(char letter, std::string_view rest) {
  switch (letter) {
    case '?':
      return plain(Kind::why_stopped);
    case 'g':
      return plain(Kind::read_registers);
    case 'G':
      return with_hex(plain(Kind::write_registers), rest);
    case 'p':
      return with_number(Kind::read_register, rest);
    case 'P': {
      if (rest.find('=') == std::string_view::npos) return malformed();
      const std::string_view number = take_until(rest, '=');
      if (rest.empty()) return malformed();
      return with_hex(with_number(Kind::write_register, number), rest);
    }
    case 'm':
      return with_range(Kind::read_memory, rest);
    case 'M':
      return write_request(rest, false);
    case 'X':
      return write_request(rest, true);
    case 'Z':
      return stop_request(Kind::insert_stop, rest);
    case 'z':
      return stop_request(Kind::remove_stop, rest);
    case 's':
    case 'S':
      return plain(Kind::step);
    case 'c':
    case 'C':
      return plain(Kind::go_on);
    case 'H':
      return set_thread_request(rest);
    case 'T':
      return of_thread(Kind::thread_alive, rest);
    case 'D':
      return plain(Kind::detach);
    case 'k':
      return plain(Kind::kill);
    default:
      return plain(Kind::unknown);
  }
}

}  // namespace

Request parse_request(std::string_view data) {
  if (data.empty()) return plain(Kind::unknown);
  if (take_prefix(data, "vCont;")) return resume_request(data);
  if (take_prefix(data, "qXfer:features:read:")) return description_request(data);
  if (take_prefix(data, "qRcmd,")) return command_request(data);
  Request named = named_request(data);
  if (named.kind != Kind::unknown) return named;
  const char letter = data.front();
  // Names that are not known stay unknown.
  if (letter == 'q' || letter == 'Q' || letter == 'v' || letter == 'b') return named;
  return lettered_request(letter, data.substr(1));
}

}  // namespace citcat::gdb
