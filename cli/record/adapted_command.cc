#include "cli/record/adapted_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "cli/record/emulator_command.h"
#include "cli/record/emulator_words.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

/// Processors of QEMU 10 that have nothing of kNotRecorded that a system uses unasked.
constexpr std::array kRecordedModels = {
    "486",          "pentium",     "pentium2",    "pentium3",     "qemu32",     "qemu64",
    "kvm32",        "kvm64",       "n270",        "coreduo",      "core2duo",   "Conroe",
    "Penryn",       "Nehalem",     "Westmere",    "Opteron_G1",   "base",       "Opteron_G2",
    "Conroe-v1",    "Penryn-v1",   "qemu32-v1",   "qemu64-v1",    "Nehalem-v1", "Nehalem-v2",
    "Nehalem-IBRS", "Westmere-v1", "Westmere-v2", "Westmere-IBRS"};

/// What QEMU emulates of processors, by its name there, and the monitor or the replay does not hold
/// (docs/monitor.md, docs/long-mode.md).
constexpr std::array kNotRecorded = {
    "avx", "avx2", "f16c",   "fma",    "vaes",    "vpclmulqdq", "la57",     "pcid",  "invpcid",
    "pku", "pks",  "mpx",    "svm",    "monitor", "3dnow",      "3dnowext", "sse4a", "fma4",
    "xop", "tbm",  "xsavec", "xsaves", "sha-ni",  "cmpccxadd",  "wbnoinvd", "smx",   "waitpkg"};
/// The same of emulators that have no long mode.
constexpr std::array kNotRecordedIn32Bits = {"xsave", "xsaveopt", "nx"};

bool names_one_of(std::string_view feature, std::span<const char* const> names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    // QEMU takes "sse4_1" for "sse4-1".
    return std::equal(feature.begin(), feature.end(), name.begin(), name.end(),
                      [](char a, char b) { return (a == '_' ? '-' : a) == b; });
  });
}

/// The feature that "+avx" or "avx=on" gives a processor; "" of anything else.
std::string given_feature(const std::string& word) {
  if (word.starts_with('+')) return word.substr(1);
  return word.ends_with("=on") ? word.substr(0, word.size() - 3) : "";
}

/// A command line in the making: words that the options below take and put.
class Adaptation {
 public:
  Adaptation(const std::vector<std::string>& command, bool wide, unsigned most_processors)
      : given_(command), wide_(wide), most_processors_(most_processors) {}

  AdaptedCommand run() {
    if (!given_.empty()) take_program(given_[0]);
    for (std::size_t n = 1; n < given_.size(); ++n) n += take(n);
    if (out_.processors > 1 && given_smm_ != "smm=off") leave_out_smm();
    return std::move(out_);
  }

 private:
  void put(const std::string& word) { out_.command.push_back(word); }
  void put(const std::string& option, const std::string& value) {
    put("-" + option);
    put(value);
  }
  void tell(std::string text) { out_.changes.push_back(std::move(text)); }

  /// KVM's own name for an emulator that is to use it.
  void take_program(const std::string& program) {
    const std::string name = std::filesystem::path(program).filename().string();
    if (name != "kvm" && name != "qemu-kvm") return put(program);
    put("qemu-system-x86_64");
    tell(
        fmt::format("{}: qemu-system-x86_64 in its place, since only software emulation can be "
                    "recorded",
                    program));
  }

  /// Takes the word `n`, and with it its value where it is an option with one: 1 then.
  std::size_t take(std::size_t n) {
    const std::string& word = given_[n];
    const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    if (!word.starts_with('-')) return put(word), 0;
    if (name == "enable-kvm")
      return tell("-enable-kvm: left out, since only software emulation can be recorded"), 0;
    if (name == "mem-prealloc")
      return tell("-mem-prealloc: left out; the recorder gives the RAM"), 0;
    if (name == "daemonize")
      return tell("-daemonize: left out; the emulator is the recorder's child"), 0;
    if (name == "S" || name == "preconfig")
      return tell(fmt::format("-{}: left out, since nothing would start the machine", name)), 0;
    if (take_former(name)) return 0;
    if (n + 1 == given_.size()) return put(word), 0;
    return take_valued(name, given_[n + 1]) ? 1 : (put(word), 0);
  }

  /// What older QEMUs took, and what is written for it now.
  bool take_former(const std::string& name) {
    struct Former {
      const char* name;
      const char* option;
      const char* value;
    };
    constexpr Former kFormer[] = {
        {"localtime", "rtc", "base=localtime"}, {"no-acpi", "machine", "acpi=off"},
        {"no-hpet", "machine", "hpet=off"},     {"sdl", "display", "sdl"},
        {"no-kvm", nullptr, nullptr},           {"no-kvm-irqchip", nullptr, nullptr}};
    const auto* const found = std::find_if(std::begin(kFormer), std::end(kFormer),
                                           [&](const Former& one) { return name == one.name; });
    if (found == std::end(kFormer)) return false;
    if (found->option == nullptr)
      return tell(fmt::format("-{}: left out, since QEMU has it no more", name)), true;
    put(found->option, found->value);
    tell(fmt::format("-{}: -{} {} in its place, as QEMU has it now", name, found->option,
                     found->value));
    return true;
  }

  /// The same of options with a value.
  bool take_former_valued(const std::string& name, const std::string& value) {
    if (name == "realtime") {
      tell(fmt::format("-realtime {}: left out, since QEMU has it no more", value));
    } else if (name == "usbdevice" &&
               (value == "tablet" || value == "mouse" || value == "keyboard")) {
      put("-usb");
      put("device", value == "keyboard" ? "usb-kbd" : "usb-" + value);
      tell(fmt::format("-usbdevice {}: -usb -device {} in its place, as QEMU has it now", value,
                       out_.command.back()));
    } else {
      return false;
    }
    return true;
  }

  bool take_valued(const std::string& name, const std::string& value) {
    if (take_former_valued(name, value)) return true;
    if (name == "accel")
      take_accelerator(value);
    else if (name == "machine" || name == "M")
      take_machine(name, value);
    else if (name == "cpu")
      take_processor(value);
    else if (name == "smp")
      take_processors(value);
    else if (name == "m")
      take_memory(value);
    else if (name == "object" && value.starts_with("memory-backend-"))
      tell(fmt::format("-object {}: left out; the recorder gives the RAM", value));
    else if (name == "numa" || name == "mem-path")
      tell(fmt::format("-{} {}: left out; the recorder gives the RAM", name, value));
    else if (name == "d" || name == "D" || name == "plugin")
      tell(fmt::format("-{} {}: left out; the monitor uses this option itself", name, value));
    else if (name == "loadvm" || name == "incoming")
      throw UsageError(
          fmt::format("-{}: a machine that is resumed in the middle of its run cannot be recorded, "
                      "because nobody has seen what its program wrote to model-specific registers; "
                      "start it from reset, and see record --live --keep",
                      name));
    else if (name == "icount" && OptionValue(value).get("rr"))
      throw UsageError(
          "-icount with rr=: QEMU's log cannot be used from outside; write record --live and "
          "record "
          "--from in its place");
    else
      return false;
    return true;
  }

  void take_accelerator(const std::string& value) {
    std::vector<std::string> parts = parts_of_value(value);
    if (parts.empty()) return put("accel", value);  // said by the emulator
    if (parts[0] != "tcg" && parts[0] != "accel=tcg") {
      tell(
          fmt::format("-accel {}: left out, since only software emulation can be recorded", value));
      return;
    }
    const auto threads = std::remove(parts.begin(), parts.end(), "thread=multi");
    if (threads != parts.end()) {
      parts.erase(threads, parts.end());
      tell(fmt::format("-accel {}: without thread=multi, since processors are recorded in turns",
                       value));
    }
    put("accel", value_of_parts(parts));
  }

  void take_machine(const std::string& option, const std::string& value) {
    std::vector<std::string> kept;
    for (const std::string& part : parts_of_value(value)) {
      const std::string key = part.substr(0, part.find('='));
      if (key == "accel" && part != "accel=tcg") {
        tell(fmt::format("-{} {}: left out, since only software emulation can be recorded", option,
                         part));
      } else if (key == "kernel_irqchip" || key == "kernel-irqchip" || key == "kvm-shadow-mem") {
        tell(fmt::format("-{} {}: left out, since it belongs to KVM", option, part));
      } else if (key == "memory-backend") {
        tell(fmt::format("-{} {}: left out; the recorder gives the RAM", option, part));
      } else {
        if (key == "smm") given_smm_ = part;
        kept.push_back(part);
      }
    }
    if (!kept.empty()) put(option, value_of_parts(kept));
  }

  /// The last -machine counts.
  void leave_out_smm() {
    put("machine", "smm=off");
    const std::string given = given_smm_.empty() ? "" : fmt::format("-machine {}: ", given_smm_);
    tell(given + "-machine smm=off " + (given.empty() ? "is added" : "in its place") +
         ": system management mode is recorded of one processor alone");
  }

  void take_processor(const std::string& value) {
    const std::string model = recordable_processor(value, wide_);
    put("cpu", model);
    if (model != value)
      tell(fmt::format("-cpu {}: replaced by -cpu {}, without features that citcat cannot replay",
                       value, model));
  }

  void take_processors(const std::string& value) {
    const Processors asked = processors_of(value);
    if (!asked.count) return put("smp", value);  // said by the emulator
    out_.processors = std::min(*asked.count, most_processors_);
    const bool all = out_.processors == *asked.count && !asked.may_be_more;
    put("smp", all ? value : std::to_string(out_.processors));
    if (all) return;
    const std::string why = asked.may_be_more && out_.processors == *asked.count
                                ? "none can be added while it is recorded"
                            : most_processors_ == 1
                                ? "the driver's dump and QEMU's log are of one processor"
                                : "no more of them can share a bus";
    tell(fmt::format("-smp {}: -smp {} in its place, since {}", value, out_.processors, why));
  }

  struct Processors {
    std::optional<unsigned> count;
    bool may_be_more = false;
  };

  /// "4", "cpus=4,maxcpus=8", "sockets=2,cores=2".
  static Processors processors_of(const std::string& value) {
    Processors out;
    unsigned product = 1, most = 0;
    for (const std::string& part : parts_of_value(value)) {
      const std::size_t equal = part.find('=');
      const std::string key = equal == std::string::npos ? "cpus" : part.substr(0, equal);
      const std::string number = equal == std::string::npos ? part : part.substr(equal + 1);
      constexpr unsigned kMost = 1u << 16;  // more than any emulator has
      unsigned n = 0;
      const char* const end = number.data() + number.size();
      const auto parsed = std::from_chars(number.data(), end, n);
      if (parsed.ec != std::errc() || parsed.ptr != end || n == 0 || n > kMost) return {};
      if (key == "cpus")
        out.count = n;
      else if (key == "maxcpus")
        most = n;
      else
        product = std::min(product * n, kMost);
    }
    if (!out.count) out.count = most != 0 ? std::min(most, product) : product;
    out.may_be_more = most > *out.count;
    return out;
  }

  void take_memory(const std::string& value) {
    put("m", value);
    const auto bytes = bytes_of_ram(value);  // what is no size is refused by whoever needs it
    if (!bytes || *bytes <= kMaxRecordedRam) return;
    out_.command.back() = fmt::format("{}G", kMaxRecordedRam >> 30);
    tell(fmt::format("-m {}: -m {} in its place, the most that can be recorded", value,
                     out_.command.back()));
  }

  const std::vector<std::string>& given_;
  const bool wide_;
  const unsigned most_processors_;
  std::string given_smm_;  ///< the last `smm=` of the command line
  AdaptedCommand out_;
};

}  // namespace

std::string recordable_processor(const std::string& model, bool wide) {
  const std::vector<std::string> parts = parts_of_value(model);
  if (parts.empty() || parts[0] == "help" || parts[0] == "?")
    return model;  // QEMU lists what there is
  const auto is_held = [&](const std::string& word) {
    const std::string feature = given_feature(word);
    return !names_one_of(feature, kNotRecorded) &&
           (wide || !names_one_of(feature, kNotRecordedIn32Bits));
  };
  const bool is_recorded = std::find(kRecordedModels.begin(), kRecordedModels.end(), parts[0]) !=
                               kRecordedModels.end() &&
                           std::all_of(parts.begin() + 1, parts.end(), is_held);
  if (is_recorded) return model;
  // What a processor of the host has, this emulator has at most.
  std::string out = parts[0] == "host" ? "max" : parts[0];
  std::vector<std::string> taken;
  for (std::size_t n = 1; n < parts.size(); ++n) {
    if (is_held(parts[n])) out += "," + parts[n];
    if (parts[n].starts_with('-')) taken.push_back(parts[n].substr(1));
    if (parts[n].ends_with("=off")) taken.push_back(parts[n].substr(0, parts[n].size() - 4));
  }
  const auto leave_out = [&](std::span<const char* const> features) {
    for (const char* const feature : features)
      if (std::find(taken.begin(), taken.end(), feature) == taken.end())
        out += std::string(",-") + feature;
  };
  leave_out(kNotRecorded);
  if (!wide) leave_out(kNotRecordedIn32Bits);
  return out;
}

AdaptedCommand adapted_command(const std::vector<std::string>& command, unsigned most_processors) {
  const bool wide = command.empty() || command[0].find("i386") == std::string::npos;
  return Adaptation(command, wide, most_processors).run();
}

}  // namespace citcat
