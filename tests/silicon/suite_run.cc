#include "silicon/suite_run.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "capture/import/moo_capture.h"
#include "events/derive/recording_builder.h"
#include "replay/session/replayer.h"

namespace citcat::silicon {
namespace {

constexpr std::uint32_t kRealModeBytes = 0x110000;  ///< FFFF:FFFF is the highest address
constexpr std::uint64_t kMaxInstructions = 64;      ///< the tested one, its handler and HLT
constexpr std::uint64_t kTested = 1;                ///< where no HLT follows the tested one
constexpr unsigned kMaxSeconds = 10;
constexpr std::uint16_t kSuiteArithmetic = 0x8d5;

struct WrittenByte {
  std::uint32_t address = 0;
  std::uint8_t value = 0;
  bool port = false;
  bool operator==(const WrittenByte&) const = default;
};

/// Tests of the 8086 and its relatives end where the next instruction begins, others in a HLT.
bool ends_in_halt(MooCpu cpu) { return cpu == MooCpu::i286 || cpu == MooCpu::i386ex; }

BusModel bus_model(MooCpu cpu) {
  BusModel bus;
  const bool byte_bus = cpu == MooCpu::i8088 || cpu == MooCpu::v20;
  bus.bus_bytes = byte_bus ? 1 : 2;
  bus.address_mask = cpu == MooCpu::i386ex ? 0x3ffffff : cpu == MooCpu::i286 ? 0xffffff : 0xfffff;
  return bus;
}

/// What the replay did, for comparison with the test.
class Observation final : public Observer {
 public:
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    accesses.push_back({written.size(), bytes.size()});
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      written.push_back({a.low32() + static_cast<std::uint32_t>(i), bytes[i], false});
    }
  }
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) override {
    accesses.push_back({written.size(), size});
    for (std::uint32_t i = 0; i < size; ++i) {
      written.push_back({port + i, static_cast<std::uint8_t>(value >> 8 * i), true});
    }
  }
  void io_read(std::uint16_t, std::uint32_t size, std::uint32_t, Position) override {
    port_bytes_read += size;
  }
  void delivered(const DeliveredEvent& event, Position) override {
    if (!vector) vector = event.vector;
  }
  struct Access {
    std::size_t first = 0, size = 0;  ///< of `written`
  };
  std::vector<WrittenByte> written;
  std::vector<Access> accesses;
  std::size_t port_bytes_read = 0;
  std::optional<std::uint8_t> vector;
};

/// What the bus of the test shows.
struct BusTruth {
  std::vector<WrittenByte> written;
  std::size_t port_bytes_read = 0;
  /// Code as it was fetched last, and not written since. The rig answers some fetches itself, and
  /// leaves memory as it was.
  std::map<std::uint32_t, std::uint8_t> fetched;
};

BusTruth bus_truth(const std::vector<BusTransaction>& transactions) {
  BusTruth truth;
  for (const BusTransaction& t : transactions) {
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const std::uint32_t at = t.address.low32() + i;
      if (t.op == BusOp::code_read) truth.fetched[at] = t.data[i];
      if (t.op == BusOp::data_write) truth.fetched.erase(at);
    }
    if (t.op == BusOp::io_read) truth.port_bytes_read += t.size;
    if (t.op != BusOp::data_write && t.op != BusOp::io_write) continue;
    for (std::uint32_t i = 0; i < t.size; ++i) {
      truth.written.push_back({t.address.low32() + i, t.data[i], t.op == BusOp::io_write});
    }
  }
  return truth;
}

/// Everything that differs, sorted into what rules speak about.
struct Differences {
  std::uint16_t flags = 0;          ///< bits of the final FLAGS
  std::uint16_t pushed_flags = 0;   ///< bits of the frame's FLAGS image
  std::vector<std::string> others;  ///< registers, memory, order, ports, the way it ended
  bool none() const { return flags == 0 && pushed_flags == 0 && others.empty(); }
  bool flags_within(std::uint16_t mask) const {
    return others.empty() && ((flags | pushed_flags) & ~mask) == 0;
  }
};

std::string numbers_text(const char* format, std::size_t a, std::size_t b) {
  char text[96];
  std::snprintf(text, sizeof text, format, static_cast<std::uint32_t>(a),
                static_cast<std::uint32_t>(b));
  return text;
}

constexpr std::array<const char*, 13> kSuiteRegisters = {"ax", "cx", "dx", "bx", "sp", "bp", "si",
                                                         "di", "es", "cs", "ss", "ds", "ip"};

class Comparison {
 public:
  Comparison(const MooTest& test, MooCpu cpu, const Observation& seen, Machine& machine)
      : test_(test), cpu_(cpu), seen_(seen), machine_(machine) {}

  Differences run(const BusTruth& truth) {
    const CpuState state = machine_.save();
    registers(state);
    locate_frame();
    memory(truth);
    stream(truth);
    if (seen_.port_bytes_read != truth.port_bytes_read) {
      found_.others.push_back(
          numbers_text("%u port bytes read, bus %u", seen_.port_bytes_read, truth.port_bytes_read));
    }
    return found_;
  }

 private:
  std::uint32_t before(std::string_view name) const {
    if (name == "flags") return *get_register(initial_state_of(test_, cpu_), "flags") & 0xffff;
    const std::string wide = "e" + std::string(name);
    return test_.initial.find(name).value_or(test_.initial.find(wide).value_or(0));
  }
  std::uint32_t after(std::string_view name) const {
    const std::string wide = "e" + std::string(name);
    const auto listed = test_.final.find(name);
    const auto listed_wide = test_.final.find(wide);
    return listed ? *listed : listed_wide ? *listed_wide : before(name);
  }

  void registers(const CpuState& state) {
    for (const char* name : kSuiteRegisters) {
      const auto ours = static_cast<std::uint32_t>(get_register(state, name).value_or(0)) & 0xffff;
      const std::uint32_t theirs = after(name) & 0xffff;
      if (ours != theirs) {
        found_.others.push_back(std::string(name) +
                                numbers_text(" %04x, silicon %04x", ours, theirs));
      }
    }
    found_.flags = static_cast<std::uint16_t>(state.eflags ^ after("flags"));
  }

  /// The FLAGS image of an exception's frame. Not from the test's own field, which is one too low
  /// where SP is odd.
  void locate_frame() {
    if (!test_.exception) return;
    const std::uint32_t sp = (after("sp") + 4) & 0xffff;
    frame_ = (after("ss") << 4) + sp;
  }

  void differ(std::uint32_t address, std::uint8_t ours, std::uint8_t theirs, const char* where) {
    if (frame_ && (address == *frame_ || address == *frame_ + 1)) {
      const auto bits = static_cast<std::uint16_t>(ours ^ theirs);
      found_.pushed_flags =
          static_cast<std::uint16_t>(found_.pushed_flags | (address == *frame_ ? bits : bits << 8));
      return;
    }
    found_.others.push_back(std::string(where) + numbers_text(" %06x", address, 0) +
                            numbers_text(": %02x, silicon %02x", ours, theirs));
  }

  void memory(const BusTruth& truth) {
    for (const MooByte& byte : test_.final.ram) {
      const auto fetched = truth.fetched.find(byte.address);
      if (fetched != truth.fetched.end() && fetched->second != byte.value) continue;
      const auto ours = machine_.memory().defined_byte(PhysAddr{byte.address});
      if (!ours) {
        const bool was = std::any_of(
            test_.initial.ram.begin(), test_.initial.ram.end(),
            [&](const MooByte& b) { return b.address == byte.address && b.value == byte.value; });
        if (was) continue;
        found_.others.push_back(
            numbers_text("memory %06x: nothing, silicon %02x", byte.address, byte.value));
      } else if (*ours != byte.value) {
        differ(byte.address, *ours, byte.value, "memory");
      }
    }
  }

  /// What the bus shows, in ascending order within each access. A 386 writes the upper of two
  /// dwords first (80386 Hardware Reference Manual, table 3-4).
  std::vector<WrittenByte> ascending(std::vector<WrittenByte> bytes) const {
    if (cpu_ != MooCpu::i386ex) return bytes;
    for (const Observation::Access& access : seen_.accesses) {
      const std::uint32_t address = seen_.written[access.first].address;
      const std::size_t below = 4 - address % 4;
      if (below >= access.size || bytes[access.first].address != address + below) continue;
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(access.first);
      const auto end = begin + static_cast<std::ptrdiff_t>(access.size);
      std::rotate(begin, end - static_cast<std::ptrdiff_t>(below), end);
    }
    return bytes;
  }

  void stream(const BusTruth& truth) {
    if (seen_.written.size() != truth.written.size()) {
      found_.others.push_back(
          numbers_text("%u bytes written, bus %u", seen_.written.size(), truth.written.size()));
      return;
    }
    const std::vector<WrittenByte> shown = ascending(truth.written);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const WrittenByte &ours = seen_.written[i], &theirs = shown[i];
      if (ours == theirs) continue;
      if (ours.address == theirs.address && ours.port == theirs.port) {
        differ(theirs.address, ours.value, theirs.value, theirs.port ? "port" : "write");
      } else {
        found_.others.push_back(
            numbers_text("write to %06x, bus %06x", ours.address, theirs.address));
      }
    }
  }

  const MooTest& test_;
  MooCpu cpu_;
  const Observation& seen_;
  Machine& machine_;
  std::optional<std::uint32_t> frame_;
  Differences found_;
};

/// The name of the rule that explains the differences, or "".
std::string explain(const MooTest& test, const Differences& found, const Observation& seen,
                    const DecodedInstruction& info) {
  const bool divides = info.flag_rule == FlagRule::div || info.flag_rule == FlagRule::idiv;
  const bool trapped = test.exception && test.exception->number == 0;
  if (trapped && seen.vector == 0 && divides && found.flags_within(kSuiteArithmetic)) {
    return "divide-error-flags";
  }
  if (trapped && seen.vector == 0 && info.flag_rule == FlagRule::aam && found.flags_within(4)) {
    return "aam-zero-parity";
  }
  if (!test.exception && seen.vector == 0 && info.flag_rule == FlagRule::idiv &&
      info.operand_bytes == 1) {
    return "idiv-without-trap";
  }
  const auto is_port = [](const std::string& text) { return text.starts_with("port "); };
  if (info.kind == InstructionClass::x87 && found.flags == 0 && found.pushed_flags == 0 &&
      std::all_of(found.others.begin(), found.others.end(), is_port)) {
    return "coprocessor-word";
  }
  return "";
}

std::string join(const Differences& found) {
  std::string text;
  if ((found.flags | found.pushed_flags) != 0) {
    text += numbers_text("flags differ in %04x, pushed flags in %04x; ", found.flags,
                         found.pushed_flags);
  }
  for (const std::string& other : found.others) text += other + "; ";
  return text;
}

/// A replayer whose engine has run once, so that the processes forked from it need not start one.
class WarmReplayer {
 public:
  explicit WarmReplayer(MooCpu cpu) : cpu_(cpu) {
    recording_.bus = bus_model(cpu);
    recording_.initial.model = cpu_model_of(cpu);
    recording_.initial.ram_bytes = kRealModeBytes;
    set_register(recording_.initial, "cs", 0);
    ReplayOptions options;
    options.to = ends_in_halt(cpu) ? kMaxInstructions : kTested;
    replayer_ = std::make_unique<Replayer>(recording_, &seen_, options);
    replayer_->run();  // stops at once: no evidence defines any code
  }

  TestResult run(const MooTest& test, std::uint16_t flag_mask) {
    const std::vector<BusTransaction> transactions = transactions_of(test, cpu_);
    BuilderOptions options;
    options.bus = bus_model(cpu_);
    RecordingBuilder builder(options, nullptr);
    for (const BusTransaction& t : transactions) builder.add(t);
    recording_ = builder.finish();
    recording_.initial = initial_state_of(test, cpu_);
    Machine& machine = replayer_->machine();
    machine.load(recording_.initial, recording_.image);
    machine.set_polling(!recording_.external_writes.empty());
    seen_ = {};
    const ReplayReport report = replayer_->run();

    Differences found;
    if (report.end == ReplayReport::End::diverged) {
      const Divergence& d = *report.divergence;
      found.others.push_back("stopped: " + d.reason + " (" + d.expected + " / " + d.found + ")");
    } else if (ends_in_halt(cpu_) && !machine.halted()) {
      found.others.push_back("did not halt");
    } else if (!ends_in_halt(cpu_) && machine.position() != Position{kTested, 0}) {
      found.others.push_back("did not complete");
    } else {
      found = Comparison(test, cpu_, seen_, machine).run(bus_truth(transactions));
    }
    TestResult result;
    if (found.none()) {
      result.outcome = Outcome::equal;
      return result;
    }
    result.detail = join(found);
    const DecodedInstruction info =
        decode_instruction(test.bytes, CodeMode{false, true}, cpu_model_of(cpu_));
    result.rule = explain(test, found, seen_, info);
    if (!result.rule.empty()) {
      result.outcome = Outcome::explained;
    } else if (found.flags_within(static_cast<std::uint16_t>(~flag_mask))) {
      result.outcome = Outcome::masked;
    }
    return result;
  }

 private:
  MooCpu cpu_;
  Recording recording_;
  Observation seen_;
  std::unique_ptr<Replayer> replayer_;
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 512> buffer;
  for (ssize_t n; (n = read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

[[noreturn]] void answer(int fd, const TestResult& result) {
  constexpr char kSeparator = '\t';
  std::string text(1, static_cast<char>('0' + static_cast<int>(result.outcome)));
  text += result.rule + kSeparator + result.detail;
  const ssize_t written = write(fd, text.data(), text.size());
  _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
}

TestResult run_apart(WarmReplayer& warm, const MooTest& test, std::uint16_t flag_mask) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const rlimit seconds = {kMaxSeconds, kMaxSeconds};
    setrlimit(RLIMIT_CPU, &seconds);
    try {
      answer(ends[1], warm.run(test, flag_mask));
    } catch (const std::exception& error) {
      answer(ends[1], {Outcome::unexplained, "", std::string("threw: ") + error.what()});
    }
  }
  close(ends[1]);
  if (child < 0) throw std::runtime_error("no process");
  const std::string text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || text.empty()) {
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return {Outcome::unexplained, "", "the process ended by signal " + std::to_string(signal)};
  }
  const std::size_t tab = text.find('\t');
  return {static_cast<Outcome>(text[0] - '0'), text.substr(1, tab - 1), text.substr(tab + 1)};
}

}  // namespace

std::map<std::string, std::uint16_t> read_flag_masks(const std::string& metadata_path) {
  std::map<std::string, std::uint16_t> masks;
  std::ifstream in(metadata_path);
  if (!in) return masks;
  const nlohmann::json document = nlohmann::json::parse(in);
  const auto take = [&](const std::string& form, const nlohmann::json& entry) {
    if (entry.contains("flags-mask")) masks[form] = entry["flags-mask"].get<std::uint16_t>();
  };
  for (const auto& [opcode, entry] : document.at("opcodes").items()) {
    take(opcode, entry);
    if (!entry.contains("reg")) continue;
    for (const auto& [reg, form] : entry["reg"].items()) take(opcode + "." + reg, form);
  }
  return masks;
}

std::string form_of(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  return name.substr(0, name.find(".MOO"));
}

FormResult run_form(const MooFile& file, const std::string& form, std::uint16_t flag_mask,
                    std::size_t limit) {
  static std::map<MooCpu, std::unique_ptr<WarmReplayer>> warm;
  std::unique_ptr<WarmReplayer>& replayer = warm[file.cpu];
  if (!replayer) replayer = std::make_unique<WarmReplayer>(file.cpu);
  FormResult out;
  out.form = form;
  for (std::size_t i = 0; i < std::min(limit, file.tests.size()); ++i) {
    const MooTest& test = file.tests[i];
    const TestResult result = run_apart(*replayer, test, flag_mask);
    ++out.counts[static_cast<std::size_t>(result.outcome)];
    if (result.outcome == Outcome::explained) ++out.rules[result.rule];
    if (result.outcome == Outcome::unexplained) {
      out.unexplained.push_back(std::to_string(test.index) + " " + test.name + ": " +
                                result.detail);
    }
  }
  return out;
}

}  // namespace citcat::silicon
