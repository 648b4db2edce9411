#include "events/machine/cpu_state.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <variant>

#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {

namespace {

struct ModelName {
  CpuModel model;
  std::string_view name;
};
constexpr auto kModelNames = std::to_array<ModelName>({
#define CITCAT_NAME(MODEL, NUMBER, NAME, TRAITS, BUSES) {CpuModel::MODEL, NAME},
    CITCAT_PROCESSORS(CITCAT_NAME)
#undef CITCAT_NAME
});

constexpr std::array<std::string_view, 8> kGprNames{"eax", "ecx", "edx", "ebx",
                                                    "esp", "ebp", "esi", "edi"};
constexpr std::array<std::string_view, 8> kWideGprNames{"rax", "rcx", "rdx", "rbx",
                                                        "rsp", "rbp", "rsi", "rdi"};
constexpr std::array<std::string_view, 8> kExtendedGprNames{"r8",  "r9",  "r10", "r11",
                                                            "r12", "r13", "r14", "r15"};
constexpr std::array<std::string_view, 6> kSegmentNames{"es", "cs", "ss", "ds", "fs", "gs"};

constexpr std::uint32_t kCr0ProtectedMode = 1;  // CR0.PE, Intel SDM vol. 3, 2.5

/// The places of a register of 64 bits.
struct Halves {
  std::uint32_t* low;
  std::uint32_t* high;
};
/// Where a register lies in a CpuState.
using Location =
    std::variant<std::monostate, std::uint16_t*, std::uint32_t*, std::uint64_t*, Halves>;

template <std::size_t N>
std::size_t position_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

Location locate_segment_part(Segment& segment, std::string_view part) {
  if (part.empty()) return &segment.selector;
  if (part == "base") return &segment.base;
  if (part == "limit") return &segment.limit;
  if (part == "attributes") return &segment.attributes;
  return {};
}

Location locate_table_part(TableRegister& table, std::string_view part) {
  if (part == "base") return &table.base;
  if (part == "limit") return &table.limit;
  return {};
}

/// cr0, cr2, cr3, cr4, dr0..dr7.
Location locate_numbered(CpuState& state, std::string_view name) {
  if (name == "cr0") return &state.cr0;
  if (name == "cr2") return &state.cr2;
  if (name == "cr3") return &state.cr3;
  if (name == "cr4") return &state.cr4;
  if (name.size() == 3 && name.starts_with("dr") && name[2] >= '0' && name[2] <= '7') {
    return &state.dr[static_cast<std::size_t>(name[2] - '0')];
  }
  return {};
}

/// The register with this name of a processor without long mode; 16-bit names are the caller's.
Location locate_32(CpuState& state, std::string_view name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  const std::string_view whole = name.substr(0, dot);
  const std::string_view part = name.substr(std::min(dot + 1, name.size()));
  if (dot + 1 == name.size()) return {};
  const std::size_t segment = position_of(kSegmentNames, whole);
  if (segment < kSegmentNames.size()) return locate_segment_part(state.segment[segment], part);
  if (whole == "ldtr") return locate_segment_part(state.ldtr, part);
  if (whole == "tr") return locate_segment_part(state.tr, part);
  if (whole == "gdtr") return locate_table_part(state.gdtr, part);
  if (whole == "idtr") return locate_table_part(state.idtr, part);
  const std::size_t gpr = position_of(kGprNames, name);
  if (gpr < kGprNames.size()) return &state.gpr[gpr];
  if (name == "eip") return &state.eip;
  if (name == "eflags") return &state.eflags;
  if (name == "a20_mask") return &state.a20_mask;
  if (name == "smbase") return &state.smbase;
  if (name == "tsc") return &state.tsc;
  return locate_numbered(state, name);
}

/// The upper half of what locate_32() finds under `name`.
std::uint32_t* upper_half(LongModeState& wide, std::string_view name) {
  if (name == "cr0") return &wide.cr0_high;
  if (name == "cr2") return &wide.cr2_high;
  if (name == "cr3") return &wide.cr3_high;
  if (name == "cr4") return &wide.cr4_high;
  if (name == "ldtr.base") return &wide.ldtr_base_high;
  if (name == "tr.base") return &wide.tr_base_high;
  if (name == "gdtr.base") return &wide.gdtr_base_high;
  if (name == "idtr.base") return &wide.idtr_base_high;
  const std::size_t segment = position_of(kSegmentNames, name.substr(0, name.find('.')));
  if (segment < kSegmentNames.size() && name.ends_with(".base")) return &wide.base_high[segment];
  if (name.size() == 3 && name.starts_with("dr")) {
    return &wide.dr_high[static_cast<std::size_t>(name[2] - '0')];
  }
  return nullptr;
}

/// The register with this name of a processor with long mode.
Location locate_64(CpuState& state, LongModeState& wide, std::string_view name) {
  const std::size_t gpr = position_of(kWideGprNames, name);
  if (gpr < kWideGprNames.size()) return Halves{&state.gpr[gpr], &wide.gpr_high[gpr]};
  const std::size_t r = position_of(kExtendedGprNames, name);
  if (r < kExtendedGprNames.size()) return &wide.r[r];
  if (name == "rip") return Halves{&state.eip, &wide.rip_high};
  if (name == "rflags") return Halves{&state.eflags, &wide.rflags_high};
  if (name == "cr8") return &wide.cr8;
  if (name == "efer") return &wide.efer;
  if (name == "xcr0") return &wide.xcr0;
  if (name == "eip" || name == "eflags" || position_of(kGprNames, name) < kGprNames.size()) {
    return {};
  }
  const Location lower = locate_32(state, name);
  const auto* const low = std::get_if<std::uint32_t*>(&lower);
  if (low == nullptr) return lower;
  std::uint32_t* const high = upper_half(wide, name);
  return high == nullptr ? lower : Location(Halves{*low, high});
}

Location locate(CpuState& state, std::string_view name) {
  return state.long_mode ? locate_64(state, *state.long_mode, name) : locate_32(state, name);
}

/// "ax" -> "eax", "ip" -> "eip", "flags" -> "eflags"; empty when `name` is no 16-bit name.
std::string wide_name(std::string_view name) {
  const std::string wide = "e" + std::string(name);
  const bool known =
      position_of(kGprNames, wide) < kGprNames.size() || wide == "eip" || wide == "eflags";
  return known ? wide : std::string();
}

unsigned width_in_bits(const Location& location) {
  constexpr std::array<unsigned, 5> kBits{0, 16, 32, 64, 64};
  return kBits[location.index()];
}

void store(const Location& location, std::uint64_t value) {
  if (const auto* const p16 = std::get_if<std::uint16_t*>(&location)) {
    **p16 = static_cast<std::uint16_t>(value);
  } else if (const auto* const p32 = std::get_if<std::uint32_t*>(&location)) {
    **p32 = static_cast<std::uint32_t>(value);
  } else if (const auto* const p64 = std::get_if<std::uint64_t*>(&location)) {
    **p64 = value;
  } else if (const auto* const halves = std::get_if<Halves>(&location)) {
    *halves->low = static_cast<std::uint32_t>(value);
    *halves->high = static_cast<std::uint32_t>(value >> 32);
  }
}

std::uint64_t fetch(const Location& location) {
  if (const auto* const p16 = std::get_if<std::uint16_t*>(&location)) return **p16;
  if (const auto* const p32 = std::get_if<std::uint32_t*>(&location)) return **p32;
  if (const auto* const p64 = std::get_if<std::uint64_t*>(&location)) return **p64;
  if (const auto* const halves = std::get_if<Halves>(&location)) {
    return *halves->low | std::uint64_t{*halves->high} << 32;
  }
  return 0;
}

bool is_real_mode(const CpuState& state) { return (state.cr0 & kCr0ProtectedMode) == 0; }

bool is_selector(std::string_view name) {
  return position_of(kSegmentNames, name) < kSegmentNames.size();
}

}  // namespace

std::optional<CpuModel> parse_cpu_model(std::string_view name) {
  for (const ModelName& row : kModelNames) {
    if (row.name == name) return row.model;
  }
  return std::nullopt;
}

std::string_view cpu_model_name(CpuModel model) {
  for (const ModelName& row : kModelNames) {
    if (row.model == model) return row.name;
  }
  return "unknown";
}

std::vector<std::string> cpu_model_names() {
  std::vector<std::string> names;
  for (const ModelName& row : kModelNames) names.emplace_back(row.name);
  return names;
}

std::string cpu_model_names_text() {
  std::string text;
  for (std::size_t i = 0; i < kModelNames.size(); ++i) {
    if (i != 0) text += i + 1 == kModelNames.size() ? " or " : ", ";
    text += kModelNames[i].name;
  }
  return text;
}

std::array<std::uint8_t, 512> CpuState::default_fx() {
  // As FNINIT and reset leave it: Intel SDM vol. 2 (FINIT) and vol. 3, 9.1.1 (MXCSR); the layout is
  // that of FXSAVE, vol. 1, table 10-2. The abridged tag byte 0 means that all registers are empty.
  std::array<std::uint8_t, 512> fx{};
  fx[0] = 0x7f;
  fx[1] = 0x03;
  fx[24] = 0x80;
  fx[25] = 0x1f;
  return fx;
}

std::vector<std::string> register_names(CpuModel model) {
  const CpuTraits& traits = cpu_traits(model);
  const bool has_protection = traits.has_limits;
  const bool is_32_bit = !traits.sixteen_bit;
  const auto& general = traits.has_long_mode ? kWideGprNames : kGprNames;
  std::vector<std::string> names(general.begin(), general.end());
  if (traits.has_long_mode) {
    names.insert(names.end(), kExtendedGprNames.begin(), kExtendedGprNames.end());
    names.insert(names.end(), {"rip", "rflags"});
  } else {
    names.insert(names.end(), {"eip", "eflags"});
  }
  const auto add_segment = [&names](const std::string& name) {
    names.insert(names.end(), {name, name + ".base", name + ".limit", name + ".attributes"});
  };
  const std::size_t segments = is_32_bit ? kSegmentNames.size() : 4;
  for (std::size_t i = 0; i < segments; ++i) add_segment(std::string(kSegmentNames[i]));
  if (has_protection) {
    add_segment("ldtr");
    add_segment("tr");
    names.insert(names.end(), {"gdtr.base", "gdtr.limit", "idtr.base", "idtr.limit", "cr0"});
  }
  if (is_32_bit) names.insert(names.end(), {"cr2", "cr3"});
  // Came with the Pentium; late 486 have it too.
  if (traits.instructions >= InstructionSet::i486) names.emplace_back("cr4");
  if (traits.has_long_mode) names.insert(names.end(), {"cr8", "efer", "xcr0"});
  if (is_32_bit) {
    for (const char digit : std::string_view("01234567"))
      names.push_back(std::string("dr") + digit);
  }
  if (has_protection) names.emplace_back("a20_mask");
  if (is_32_bit) names.emplace_back("smbase");
  if (traits.instructions >= InstructionSet::pentium) names.emplace_back("tsc");
  names.emplace_back("fx");
  return names;
}

bool set_register(CpuState& state, std::string_view name, std::uint64_t value) {
  if (const std::string wide = wide_name(name); !wide.empty() && !state.long_mode) {
    const Location location = locate(state, wide);
    store(location, (fetch(location) & ~std::uint64_t{0xffff}) | (value & 0xffff));
    return true;
  }
  const Location location = locate(state, name);
  if (width_in_bits(location) == 0) return false;
  store(location, value);
  if (is_selector(name) && is_real_mode(state)) {
    Segment& segment = state.segment[position_of(kSegmentNames, name)];
    segment.base = std::uint32_t{segment.selector} << 4;
    if (state.long_mode) state.long_mode->base_high[position_of(kSegmentNames, name)] = 0;
  }
  return true;
}

std::optional<std::uint64_t> get_register(const CpuState& state, std::string_view name) {
  // locate() serves both directions; through this path nothing is written.
  auto& mutable_state = const_cast<CpuState&>(state);
  if (const std::string wide = wide_name(name); !wide.empty() && !state.long_mode) {
    return fetch(locate(mutable_state, wide)) & 0xffff;
  }
  const Location location = locate(mutable_state, name);
  if (width_in_bits(location) == 0) return std::nullopt;
  return fetch(location);
}

bool is_unknown(const CpuState& state, std::string_view name) {
  return std::find(state.unknown.begin(), state.unknown.end(), name) != state.unknown.end();
}

namespace {

bool is_reset(const CpuState& state) {
  const Segment& cs = state.segment[kCs];
  return is_real_mode(state) && cs.base == 0xffff0000 && state.eip == 0xfff0;
}

}  // namespace

void settle_smbase(CpuState& state, std::optional<std::uint32_t> shows) {
  constexpr std::uint32_t kSmbaseMsr = 0x9e;  // IA32_SMBASE: SDM vol. 4, table 2-2
  constexpr std::string_view kName = "smbase";
  if (!is_unknown(state, kName)) return;
  const auto msr = std::find_if(state.msrs.begin(), state.msrs.end(),
                                [](const Msr& m) { return m.index == kSmbaseMsr; });
  if (msr != state.msrs.end()) {
    state.smbase = static_cast<std::uint32_t>(msr->value);
  } else if (shows) {
    state.smbase = *shows;
  } else if (!is_reset(state)) {
    return;
  }
  std::erase(state.unknown, kName);
}

namespace {

constexpr std::uint64_t kMaxStateFileBytes = std::uint64_t{1} << 20;

/// Reads one initial-state file. Errors point at the key's text.
class StateFile {
 public:
  explicit StateFile(const std::string& path) : path_(path) {
    const std::vector<std::uint8_t> bytes = read_whole_file(path, kMaxStateFileBytes);
    text_.assign(bytes.begin(), bytes.end());
  }

  CpuState parse() {
    const nlohmann::json root = parse_json();
    if (!root.is_object()) fail_at(0, "expected a JSON object, found " + kind(root));
    for (const auto& [key, value] : root.items()) {
      if (key == "cpu") {
        parse_model(value);
      } else if (key == "ram_bytes") {
        state_.ram_bytes = static_cast<std::uint32_t>(number(key, value, 32));
      } else if (key == "msrs") {
        parse_msrs(value);
      } else if (key == "cpuid") {
        parse_cpuid(value);
      } else if (key != "registers" && key != "comment") {
        fail(key,
             "expected \"cpu\", \"registers\", \"msrs\", \"cpuid\", \"ram_bytes\" or \"comment\"");
      }
    }
    const auto registers = root.find("registers");
    if (registers == root.end()) fail_at(0, "expected the key \"registers\"");
    parse_registers(*registers);
    list_unknown();
    return std::move(state_);
  }

 private:
  nlohmann::json parse_json() const {
    try {
      return nlohmann::json::parse(text_);
    } catch (const nlohmann::json::parse_error& error) {
      fail_at(error.byte > 0 ? error.byte - 1 : 0, "expected JSON text, found something else");
    } catch (const nlohmann::json::exception&) {
      // A number beyond what a double holds is not called a parse error.
      fail_at(0, "expected JSON text with numbers of ordinary size, found another");
    }
  }

  void parse_model(const nlohmann::json& value) {
    if (!value.is_string()) fail("cpu", "expected a text, found " + kind(value));
    const auto model = parse_cpu_model(value.get_ref<const std::string&>());
    if (!model) fail("cpu", "expected " + cpu_model_names_text() + ", found " + printable(value));
    state_.model = *model;
    if (cpu_traits(*model).has_long_mode) state_.long_mode.emplace();
  }

  void parse_msrs(const nlohmann::json& value) {
    if (!value.is_object()) fail("msrs", "expected an object, found " + kind(value));
    for (const auto& [key, content] : value.items()) {
      Msr msr;
      msr.index = static_cast<std::uint32_t>(number(key, nlohmann::json(key), 32));
      msr.value = number(key, content, 64);
      state_.msrs.push_back(msr);
    }
    std::sort(state_.msrs.begin(), state_.msrs.end(),
              [](const Msr& a, const Msr& b) { return a.index < b.index; });
  }

  /// A leaf is an object of its four registers; one with sub-leaves a list of such, from 0 on.
  void parse_cpuid(const nlohmann::json& value) {
    if (!value.is_object()) fail("cpuid", "expected an object, found " + kind(value));
    for (const auto& [key, content] : value.items()) {
      const auto leaf = static_cast<std::uint32_t>(number(key, nlohmann::json(key), 32));
      if (!content.is_array()) {
        parse_leaf(key, leaf, content);
        continue;
      }
      for (const nlohmann::json& subleaf : content) parse_leaf(key, leaf, subleaf);
    }
    std::stable_sort(state_.cpuid.begin(), state_.cpuid.end(),
                     [](const CpuidLeaf& a, const CpuidLeaf& b) { return a.leaf < b.leaf; });
  }

  void parse_leaf(const std::string& key, std::uint32_t leaf, const nlohmann::json& value) {
    constexpr const char* kNames[] = {"eax", "ebx", "ecx", "edx"};
    CpuidLeaf told{leaf};
    std::uint32_t* const registers[] = {&told.eax, &told.ebx, &told.ecx, &told.edx};
    // What is left out would be taken for features that the processor lacks.
    if (!value.is_object() || value.size() != std::size(kNames))
      fail(key, "expected an object with \"eax\", \"ebx\", \"ecx\" and \"edx\", or a list of such");
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      const auto found = value.find(kNames[i]);
      if (found == value.end()) fail(key, std::string("expected \"") + kNames[i] + "\" in it");
      *registers[i] = static_cast<std::uint32_t>(number(key, *found, 32));
    }
    state_.cpuid.push_back(told);
  }

  // What decides the mode comes first, then selectors, then the parts of segments that a person
  // gives besides.
  void parse_registers(const nlohmann::json& registers) {
    if (!registers.is_object()) fail("registers", "expected an object, found " + kind(registers));
    for (int pass = 0; pass < 3; ++pass) {
      for (const auto& [key, value] : registers.items()) {
        const int its_pass = is_selector(key) ? 1 : key.find('.') != std::string::npos ? 2 : 0;
        if (its_pass == pass) parse_register(key, value);
      }
    }
  }

  void parse_register(const std::string& key, const nlohmann::json& value) {
    const std::string wide = state_.long_mode ? std::string() : wide_name(key);
    const std::string& name = wide.empty() ? key : wide;
    const unsigned bits = wide.empty() ? width_in_bits(locate(state_, key)) : 16;
    if (bits == 0) fail(key, "expected the name of a register");
    if (is_known(name)) fail(key, "expected each register once, found it again");
    set_register(state_, key, number(key, value, bits));
    known_.push_back(name);
  }

  bool is_known(const std::string& name) const {
    return std::find(known_.begin(), known_.end(), name) != known_.end();
  }

  void list_unknown() {
    for (const std::string& name : register_names(state_.model)) {
      const std::string selector = name.substr(0, name.find('.'));
      const bool follows =
          is_selector(selector) && name != selector && is_real_mode(state_) && is_known(selector);
      if (!is_known(name) && !follows) state_.unknown.push_back(name);
    }
  }

  std::uint64_t number(const std::string& key, const nlohmann::json& value, unsigned bits) const {
    const std::uint64_t limit = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    std::optional<std::uint64_t> result;
    if (value.is_number_unsigned()) result = value.get<std::uint64_t>();
    if (value.is_string()) result = parse_number(value.get_ref<const std::string&>());
    if (!result || *result > limit) {
      fail(key,
           "expected a number of " + std::to_string(bits) + " bits, found " + printable(value));
    }
    return *result;
  }

  static std::optional<std::uint64_t> parse_number(std::string_view text) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
      base = 16;
      text.remove_prefix(2);
    }
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
    return value;
  }

  static std::string kind(const nlohmann::json& value) { return value.type_name(); }
  static std::string printable(const nlohmann::json& value) {
    // The library prints by recursion, and a file may nest as deep as it likes.
    if (value.is_structured()) return kind(value);
    return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }

  /// Points at the first place where the key is in quotes; escapes inside keys are not
  /// followed.
  [[noreturn]] void fail(const std::string& key, const std::string& message) const {
    const std::size_t at = text_.find('"' + key + '"');
    fail_at(at == std::string::npos ? 0 : at, "\"" + key + "\": " + message);
  }
  [[noreturn]] void fail_at(std::uint64_t offset, const std::string& message) const {
    throw FormatError(path_, offset, message);
  }

  std::string path_;
  std::string text_;
  CpuState state_;
  std::vector<std::string> known_;
};

}  // namespace

CpuState load_state_json(const std::string& path) { return StateFile(path).parse(); }

}  // namespace citcat
