#include "debugger/target/register_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "events/machine/cpu_place.h"
#include "events/machine/cpu_traits.h"
#include "x86/fx_image.h"
#include "x86/host_fpu.h"

namespace citcat {

namespace {

enum : unsigned { kCore, kSse, kSegments, kSystem };
constexpr std::array<const char*, 4> kFeatures{"org.gnu.gdb.i386.core", "org.gnu.gdb.i386.sse",
                                               "org.gnu.gdb.i386.segments", "org.citcat.system"};

constexpr std::uint32_t kMsrKernelGsBase = 0xc0000102;  // AMD64 APM vol. 2, SWAPGS

/// What the run tells of the place where it is.
enum : std::size_t { kInstruction, kIteration, kDeliveries, kHalted, kSmm };

constexpr std::string_view kFlagsType = R"(<flags id="i386_eflags" size="4">
<field name="" start="22" end="31"/><field name="CF" start="0" end="0"/>
<field name="" start="1" end="1"/><field name="PF" start="2" end="2"/>
<field name="AF" start="4" end="4"/><field name="ZF" start="6" end="6"/>
<field name="SF" start="7" end="7"/><field name="TF" start="8" end="8"/>
<field name="IF" start="9" end="9"/><field name="DF" start="10" end="10"/>
<field name="OF" start="11" end="11"/><field name="NT" start="14" end="14"/>
<field name="RF" start="16" end="16"/><field name="VM" start="17" end="17"/>
<field name="AC" start="18" end="18"/><field name="VIF" start="19" end="19"/>
<field name="VIP" start="20" end="20"/><field name="ID" start="21" end="21"/></flags>
)";

constexpr std::string_view kSseTypes = R"(<vector id="v4f" type="ieee_single" count="4"/>
<vector id="v2d" type="ieee_double" count="2"/><vector id="v16i8" type="int8" count="16"/>
<vector id="v8i16" type="int16" count="8"/><vector id="v4i32" type="int32" count="4"/>
<vector id="v2i64" type="int64" count="2"/>
<union id="vec128"><field name="v4_float" type="v4f"/><field name="v2_double" type="v2d"/>
<field name="v16_int8" type="v16i8"/><field name="v8_int16" type="v8i16"/>
<field name="v4_int32" type="v4i32"/><field name="v2_int64" type="v2i64"/>
<field name="uint128" type="uint128"/></union>
<flags id="i386_mxcsr" size="4"><field name="IE" start="0" end="0"/>
<field name="DE" start="1" end="1"/><field name="ZE" start="2" end="2"/>
<field name="OE" start="3" end="3"/><field name="UE" start="4" end="4"/>
<field name="PE" start="5" end="5"/><field name="DAZ" start="6" end="6"/>
<field name="IM" start="7" end="7"/><field name="DM" start="8" end="8"/>
<field name="ZM" start="9" end="9"/><field name="OM" start="10" end="10"/>
<field name="UM" start="11" end="11"/><field name="PM" start="12" end="12"/>
<field name="FZ" start="15" end="15"/></flags>
)";

std::vector<std::uint8_t> little_endian(std::uint64_t value, std::size_t bytes) {
  std::vector<std::uint8_t> out(bytes);
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes, 8); ++i) {
    out[i] = static_cast<std::uint8_t>(value >> 8 * i);
  }
  return out;
}

std::uint64_t number_from(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes.size(), 8); ++i) {
    value |= std::uint64_t{bytes[i]} << 8 * i;
  }
  return value;
}

std::vector<std::uint8_t> slice(const CpuState& cpu, std::size_t at, std::size_t bytes) {
  const auto from = cpu.fx.begin() + static_cast<std::ptrdiff_t>(at);
  return {from, from + static_cast<std::ptrdiff_t>(bytes)};
}

/// The control registers of the x87 unit in gdb's order, as the FXSAVE image has them: where, and
/// how many bytes. The tag word is another there (RegisterFile::Source::tags).
constexpr std::array<std::pair<std::size_t, std::size_t>, 8> kX87Control{{
    {fx_image::kControl, 2},
    {fx_image::kStatus, 2},
    {fx_image::kTags, 1},
    {fx_image::kCodeSelector, 2},
    {fx_image::kCodeOffset, 4},
    {fx_image::kDataSelector, 2},
    {fx_image::kDataOffset, 4},
    {fx_image::kOpcode, 2},
}};

/// The image of 64 bits has the upper halves of the pointers where the other has their selectors;
/// gdb shows them under that name.
std::size_t control_bytes(std::size_t index, bool wide) {
  const auto [at, bytes] = kX87Control[index];
  const bool selector = at == fx_image::kCodeSelector || at == fx_image::kDataSelector;
  return selector && wide ? 4 : bytes;
}

std::uint16_t whole_tags(const CpuState& cpu) {
  HostFpu fpu;
  fpu.image() = cpu.fx;
  return fpu.tag_word();
}

/// SDM vol. 1, 10.5.1.1: a bit for each register that is in use.
std::uint8_t abridged_tags(std::uint64_t tags) {
  std::uint8_t abridged = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((tags >> 2 * i & 3) != 3) abridged |= static_cast<std::uint8_t>(1u << i);
  }
  return abridged;
}

}  // namespace

RegisterFile::RegisterFile(CpuModel model) : wide_(cpu_traits(model).has_long_mode) {
  if (wide_) {
    add_wide_core();
  } else {
    add_core();
  }
  add_x87();
  const InstructionSet set = cpu_traits(model).instructions;
  if (wide_) {
    add_sse(16);
    add_wide_segments();
  } else if (set == InstructionSet::p6) {
    add_sse(8);
  }
  add_system();
}

std::array<std::size_t, 3> RegisterFile::places() const {
  if (wide_) return {16, 7, 6};
  return {8, 4, 5};
}

/// In gdb's order (features/i386/64bit-core.xml).
void RegisterFile::add_wide_core() {
  for (const char* const name : {"rax", "rbx", "rcx", "rdx", "rsi", "rdi"}) {
    add({name, 8, "int64", name});
  }
  for (const char* const name : {"rbp", "rsp"}) add({name, 8, "data_ptr", name});
  for (int i = 8; i < 16; ++i) {
    const std::string name = fmt::format("r{}", i);
    add({name, 8, "int64", name});
  }
  add({"rip", 8, "code_ptr", "rip", Source::eip});
  add({"eflags", 4, "i386_eflags", "rflags"});
  for (const char* const name : {"cs", "ss", "ds", "es", "fs", "gs"}) add({name, 4, "int32", name});
}

void RegisterFile::add_wide_segments() {
  for (const char* const name : {"fs", "gs"}) {
    add({fmt::format("{}_base", name), 8, "int", fmt::format("{}.base", name), Source::state, 0,
         kSegments});
  }
}

void RegisterFile::add_core() {
  for (const char* const name : {"eax", "ecx", "edx", "ebx"}) add({name, 4, "int32", name});
  for (const char* const name : {"esp", "ebp"}) add({name, 4, "data_ptr", name});
  for (const char* const name : {"esi", "edi"}) add({name, 4, "int32", name});
  add({"eip", 4, "code_ptr", "eip", Source::eip});
  add({"eflags", 4, "i386_eflags", "eflags"});
  for (const char* const name : {"cs", "ss", "ds", "es", "fs", "gs"}) add({name, 4, "int32", name});
}

void RegisterFile::add_x87() {
  for (std::size_t i = 0; i < 8; ++i) {
    add({fmt::format("st{}", i), fx_image::kRegisterBytes, "i387_ext", "fx", Source::x87, i});
  }
  constexpr std::array<const char*, 8> kNames{"fctrl", "fstat", "ftag",  "fiseg",
                                              "fioff", "foseg", "fooff", "fop"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const bool tags = kX87Control[i].first == fx_image::kTags;
    add({kNames[i], 4, "int", "fx", tags ? Source::tags : Source::control, i});
  }
}

void RegisterFile::add_sse(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    add({fmt::format("xmm{}", i), fx_image::kSlot, "vec128", "fx", Source::xmm, i, kSse});
  }
  add({"mxcsr", 4, "i386_mxcsr", "fx", Source::mxcsr, 0, kSse});
}

void RegisterFile::add_system() {
  const std::size_t whole = wide_ ? 8 : 4;  // bytes of an address, and of what came to have as many
  const auto state = [&](std::string name, std::string of, std::size_t bytes = 4) {
    add({std::move(name), bytes, bytes == 8 ? "int64" : "int32", std::move(of), Source::state, 0,
         kSystem});
  };
  const auto run = [&](const char* name, std::size_t bytes, std::size_t which) {
    add({name, bytes, bytes == 8 ? "int64" : "int32", "", Source::run, which, kSystem});
  };
  run("instruction", 8, kInstruction);
  run("iteration", 4, kIteration);
  run("deliveries", 8, kDeliveries);
  state(wide_ ? "rip_offset" : "eip_offset", wide_ ? "rip" : "eip", whole);
  for (const int i : {0, 2, 3, 4}) state(fmt::format("cr{}", i), fmt::format("cr{}", i), whole);
  if (wide_) {
    for (const char* const name : {"cr8", "efer", "xcr0"}) state(name, name, 8);
    add({"k_gs_base", 8, "int64", "", Source::msr, kMsrKernelGsBase, kSystem});
  }
  for (const int i : {0, 1, 2, 3, 6, 7}) {
    state(fmt::format("dr{}", i), fmt::format("dr{}", i), whole);
  }
  for (const char* const s : {"cs", "ss", "ds", "es", "fs", "gs", "ldtr", "tr"}) {
    if (std::string_view(s).size() != 2 || s[0] == 't') state(s, s);
    for (const char* const part : {"base", "limit", "attributes"}) {
      const std::string name = fmt::format("{}_{}", s, part);
      const bool base = part == std::string_view("base");
      const bool there = std::any_of(registers_.begin(), registers_.end(),
                                     [&](const Register& r) { return r.name == name; });
      if (!there) state(name, fmt::format("{}.{}", s, part), base ? whole : 4);
    }
  }
  for (const char* const t : {"gdtr", "idtr"}) {
    for (const char* const part : {"base", "limit"}) {
      const bool base = part == std::string_view("base");
      state(fmt::format("{}_{}", t, part), fmt::format("{}.{}", t, part), base ? whole : 4);
    }
  }
  state("a20_mask", "a20_mask");
  state("smbase", "smbase");
  state("tsc", "tsc", 8);
  run("in_smm", 4, kSmm);
  run("halted", 4, kHalted);
}

std::string RegisterFile::description(bool bits16) const {
  std::string xml =
      "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target "
      "version=\"1.0\">\n";
  xml += fmt::format("<architecture>{}</architecture>\n", wide_    ? "i386:x86-64"
                                                          : bits16 ? "i8086"
                                                                   : "i386");
  for (unsigned feature = 0; feature < kFeatures.size(); ++feature) {
    const bool any = std::any_of(registers_.begin(), registers_.end(),
                                 [&](const Register& r) { return r.feature == feature; });
    if (!any) continue;
    xml += fmt::format("<feature name=\"{}\">\n", kFeatures[feature]);
    if (feature == kCore) xml += kFlagsType;
    if (feature == kSse) xml += kSseTypes;
    for (std::size_t i = 0; i < registers_.size(); ++i) {
      const Register& r = registers_[i];
      if (r.feature != feature) continue;
      const char* const group = feature == kSystem ? " group=\"system\""
                                : r.source == Source::control || r.source == Source::tags
                                    ? " group=\"float\""
                                    : "";
      xml += fmt::format("<reg name=\"{}\" bitsize=\"{}\" type=\"{}\" regnum=\"{}\"{}/>\n", r.name,
                         r.bytes * 8, r.type, i, group);
    }
    xml += "</feature>\n";
  }
  return xml + "</target>\n";
}

std::optional<std::vector<std::uint8_t>> RegisterFile::value(std::size_t number,
                                                             const RegisterView& view) const {
  const Register& r = registers_[number];
  const CpuState& cpu = view.cpu;
  if (!r.state.empty() && is_unknown(cpu, r.state)) return std::nullopt;
  const auto as_number = [&](std::uint64_t value) { return little_endian(value, r.bytes); };
  switch (r.source) {
    case Source::eip:
      if (is_unknown(cpu, "cs.base")) return std::nullopt;
      return as_number(next_instruction(cpu).value);
    case Source::msr: {
      const auto msr = std::find_if(cpu.msrs.begin(), cpu.msrs.end(),
                                    [&](const Msr& m) { return m.index == r.index; });
      if (msr == cpu.msrs.end()) return std::nullopt;
      return as_number(msr->value);
    }
    case Source::x87:
      return slice(cpu, fx_image::kRegisters + fx_image::kSlot * r.index, r.bytes);
    case Source::control: {
      auto bytes = slice(cpu, kX87Control[r.index].first, control_bytes(r.index, wide_));
      bytes.resize(r.bytes);
      return bytes;
    }
    case Source::tags:
      return as_number(whole_tags(cpu));
    case Source::xmm:
      return slice(cpu, fx_image::kXmm + fx_image::kSlot * r.index, r.bytes);
    case Source::mxcsr:
      return slice(cpu, fx_image::kMxcsr, r.bytes);
    case Source::state:
      return as_number(get_register(cpu, r.state).value_or(0));
    case Source::run:
      break;
  }
  switch (r.index) {
    case kInstruction:
      return as_number(view.moment.position.instruction);
    case kIteration:
      return as_number(view.moment.position.iteration);
    case kDeliveries:
      return as_number(view.moment.deliveries);
    case kHalted:
      return as_number(cpu.halted ? 1 : 0);
    default:
      return as_number(cpu.in_smm ? 1 : 0);
  }
}

bool RegisterFile::set(std::size_t number, std::span<const std::uint8_t> value,
                       CpuState& cpu) const {
  const Register& r = registers_[number];
  if (value.size() != r.bytes || r.source == Source::run || r.source == Source::msr) return false;
  const auto put = [&](std::size_t at, std::size_t bytes) {
    std::copy_n(value.begin(), bytes, cpu.fx.begin() + static_cast<std::ptrdiff_t>(at));
  };
  switch (r.source) {
    case Source::eip:
      if (is_in_64_bit_mode(cpu)) {
        set_register(cpu, "rip", number_from(value));
      } else {
        cpu.eip = static_cast<std::uint32_t>(number_from(value)) - cpu.segment[kCs].base;
      }
      break;
    case Source::x87:
      put(fx_image::kRegisters + fx_image::kSlot * r.index, r.bytes);
      break;
    case Source::control:
      put(kX87Control[r.index].first, control_bytes(r.index, wide_));
      break;
    case Source::tags:
      cpu.fx[fx_image::kTags] = abridged_tags(number_from(value));
      break;
    case Source::xmm:
      put(fx_image::kXmm + fx_image::kSlot * r.index, r.bytes);
      break;
    case Source::mxcsr:
      put(fx_image::kMxcsr, r.bytes);
      break;
    default:
      if (!set_register(cpu, r.state, number_from(value))) return false;
  }
  std::erase(cpu.unknown, r.state);
  return true;
}

}  // namespace citcat
