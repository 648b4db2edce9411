#include "golden/case_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "events/derive/recording_builder.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "golden/process.h"
#include "unit/kept_evidence.h"

namespace citcat::testing {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::istringstream stream(line.substr(0, line.find(';')));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class CaseParser {
 public:
  explicit CaseParser(std::string name) : name_(std::move(name)) {}

  /// Takes one line of the part before "expect".
  void line(const std::string& text, std::uint64_t number) {
    line_ = number;
    if (text.starts_with('#')) return;
    words_ = split(text);
    next_ = 0;
    if (words_.empty()) return;
    const std::string keyword = word("a keyword");
    if (keyword == "cpu") {
      cpu();
    } else if (keyword == "regs") {
      registers();
    } else if (keyword == "image") {
      image();
    } else if (keyword == "io") {
      io();
    } else if (keyword == "interrupt") {
      interrupt(Interrupt::Kind::external);
    } else if (keyword == "smi") {
      interrupt(Interrupt::Kind::smi);
      if (next_ != words_.size()) {
        recording_.interrupts.back().vector = static_cast<std::uint8_t>(hex(words_[next_++]));
      }
    } else if (keyword == "memory") {
      memory();
    } else if (keyword == "bus") {
      bus();
    } else if (keyword == "end") {
      recording_.instructions = number_of(word("an instruction"), 10);
    } else {
      fail("a keyword", keyword);
    }
    if (next_ != words_.size()) fail("the end of the line", words_[next_]);
  }

  Recording finish() { return std::move(recording_); }
  std::vector<BusTransaction> finish_bus() { return std::move(bus_); }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw FormatError(name_, line_, "expected " + expected + ", found '" + found + "'");
  }

  std::string word(const char* what) {
    if (next_ == words_.size()) fail(what, "the end of the line");
    return words_[next_++];
  }

  std::uint64_t number_of(std::string_view text, int base) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size())
      fail(base == 16 ? "a hexadecimal number" : "a decimal number", std::string(text));
    return value;
  }
  std::uint32_t hex(const std::string& text) const {
    return static_cast<std::uint32_t>(number_of(text, 16));
  }

  /// "12" or "12.3": instructions completed, and iterations of the REP in progress.
  Position position() {
    const std::string text = word("a position");
    const std::size_t dot = text.find('.');
    Position result{number_of(text.substr(0, dot), 10), 0};
    if (dot != std::string::npos)
      result.iteration = static_cast<std::uint32_t>(number_of(text.substr(dot + 1), 10));
    return result;
  }

  /// "00400:" and bytes to the end of the line.
  PhysAddr address_and_bytes(std::vector<std::uint8_t>& bytes) {
    std::string address = word("an address");
    if (!address.ends_with(':')) fail("an address and a colon", address);
    address.pop_back();
    while (next_ < words_.size()) {
      const std::uint64_t value = number_of(words_[next_], 16);
      if (value > 0xff) fail("a byte", words_[next_]);
      bytes.push_back(static_cast<std::uint8_t>(value));
      ++next_;
    }
    return PhysAddr{hex(address)};
  }

  void cpu() {
    const std::string name = word("a processor");
    const auto model = parse_cpu_model(name);
    if (!model) fail("a processor", name);
    recording_.initial.model = *model;
    if (cpu_traits(*model).has_long_mode) recording_.initial.long_mode.emplace();
  }

  void registers() {
    while (next_ < words_.size()) {
      const std::string text = word("a register");
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || !set_register(recording_.initial, text.substr(0, equals),
                                                       number_of(text.substr(equals + 1), 16)))
        fail("register=value", text);
    }
  }

  void image() {
    std::vector<std::uint8_t> bytes;
    const PhysAddr address = address_and_bytes(bytes);
    recording_.image.set(address, bytes);
  }

  /// "60 = 1c": the number of digits is the width of the access.
  void io() {
    IoRead read;
    read.port = static_cast<std::uint16_t>(hex(word("a port")));
    if (const std::string equals = word("="); equals != "=") fail("=", equals);
    const std::string value = word("a value");
    read.size = static_cast<std::uint8_t>(value.size() / 2);
    read.value = hex(value);
    recording_.io_reads.push_back(read);
  }

  void interrupt(Interrupt::Kind kind) {
    Interrupt event;
    event.kind = kind;
    event.position = position();
    event.position_known = true;
    if (kind == Interrupt::Kind::external) {
      event.vector = static_cast<std::uint8_t>(hex(word("a vector")));
    }
    recording_.interrupts.push_back(event);
  }

  void memory() {
    ExternalWrite write;
    write.position = position();
    write.position_known = true;
    write.address = address_and_bytes(write.data);
    recording_.external_writes.push_back(write);
  }

  BusTransaction& add_to_bus(BusOp op) {
    BusTransaction& t = bus_.emplace_back();
    t.index = bus_.size() - 1;
    t.op = op;
    t.size = 1;
    return t;
  }

  static std::optional<BusOp> access(std::string_view what) {
    constexpr std::pair<std::string_view, BusOp> kAccesses[] = {{"write", BusOp::data_write},
                                                                {"read", BusOp::data_read},
                                                                {"out", BusOp::io_write},
                                                                {"in", BusOp::io_read}};
    for (const auto& [name, op] : kAccesses) {
      if (what == name) return op;
    }
    return std::nullopt;
  }

  /// "write 200fe: 02 f2", a transaction for each byte; "out 3d4: 0c 38"; "nmi", "smi",
  /// "acknowledge 08".
  void bus() {
    const std::string what = word("a transaction");
    if (what == "nmi" || what == "smi") {
      add_to_bus(what == "nmi" ? BusOp::nmi : BusOp::smi);
    } else if (what == "acknowledge") {
      add_to_bus(BusOp::interrupt_acknowledge).data[0] =
          static_cast<std::uint8_t>(hex(word("a vector")));
    } else if (const auto op = access(what)) {
      std::vector<std::uint8_t> bytes;
      PhysAddr at = address_and_bytes(bytes);
      for (const std::uint8_t byte : bytes) {
        BusTransaction& t = add_to_bus(*op);
        t.address = at;
        t.data[0] = byte;
        at = at.plus32(1);
      }
    } else {
      fail("write, read, out, in, nmi, smi or acknowledge", what);
    }
  }

  std::string name_;
  std::vector<BusTransaction> bus_;
  std::uint64_t line_ = 0;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
  Recording recording_;
};

}  // namespace

ImportedRecording import_case(const CaseFile& file) {
  ImportedRecording imported;
  test::KeptEvidence kept(imported.evidence);
  BusModel bus;
  bus.bus_bytes = 1;
  RecordingBuilder builder({bus}, &kept);
  for (const BusTransaction& t : file.bus) builder.add(t);
  imported.recording = builder.finish();
  imported.recording.initial = file.recording.initial;
  imported.recording.image = file.recording.image.clone();
  imported.recording.instructions = file.recording.instructions;
  return imported;
}

CaseFile load_case(const std::filesystem::path& path) {
  std::istringstream text(read_file(path));
  CaseParser parser(path.filename().string());
  CaseFile result;
  std::uint64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    result.given += line + "\n";
    if (line == "expect") {
      result.recording = parser.finish();
      result.bus = parser.finish_bus();
      result.expect.assign(std::istreambuf_iterator<char>(text), {});
      return result;
    }
    parser.line(line, number);
  }
  throw FormatError(path.filename().string(), number, "expected the line 'expect', found the end");
}

}  // namespace citcat::testing
