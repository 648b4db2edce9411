// Causes in the registers at the beginning of the recording: the state dump may be wrong.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <span>

#include "events/machine/cpu_traits.h"
#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_prices.h"
#include "replay/infer/registers/page_map.h"
#include "replay/machine/code_place.h"

namespace citcat {
namespace {

// Prices of a register, besides those in cause_prices.h.
constexpr double kMistyped = 1.45;
constexpr double kExchanged = 1.5;
constexpr double kPointer = 1.75;  ///< it may point near what the bus shows
constexpr std::int64_t kFurthestField = 32;
constexpr std::size_t kPointedTo = 3;  ///< accesses that show what registers pointed to

constexpr const char* kGeneral32[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
constexpr const char* kGeneral64[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
constexpr const char* kSegments[] = {"es", "ss", "ds", "fs", "gs"};

std::uint64_t little_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = std::min<std::size_t>(bytes.size(), 8); i-- > 0;)
    value = value << 8 | bytes[i];
  return value;
}

class RegisterCauses : private CauseGenerator {
 public:
  using CauseGenerator::CauseGenerator;
  void register_sources();
  void solve_registers();

 private:
  std::span<const char* const> general_registers() const;
  bool has_long_mode() const { return c_.recording().initial.long_mode.has_value(); }
  std::string name_of(const LineageSource& source) const {
    return flow_register_name(static_cast<unsigned>(source.number), has_long_mode());
  }
  void flip_register(const std::string& name, double price);
  bool is_unknown(const std::string& name) const;
  std::vector<std::uint64_t> pointed_to() const;
  void suspect_register(const std::string& name, std::uint64_t value, double price);
  void solve_register(const std::string& name, double price, bool general);
  std::uint32_t stack_or_data_base(const std::string& name) const;
  void exchange_registers(std::span<const char* const> names, double price);

  std::vector<std::uint64_t> pointers_;                        ///< pointed_to()
  std::set<std::pair<std::string, std::uint64_t>> suspected_;  ///< names and values
};

std::span<const char* const> RegisterCauses::general_registers() const {
  if (has_long_mode()) return kGeneral64;
  return kGeneral32;
}

void RegisterCauses::flip_register(const std::string& name, double price) {
  const auto value = get_register(c_.recording().initial, name);
  if (!value) return;
  const auto& unknown = c_.recording().initial.unknown;
  if (std::find(unknown.begin(), unknown.end(), name) != unknown.end()) price += 0.5;
  // In real mode the hidden parts of a segment follow from its selector.
  const bool real = (c_.recording().initial.cr0 & 1) == 0;
  if (real && name.find('.') == 2) price += 0.5;
  const unsigned bits = has_long_mode() ? 64 : 32;
  for (unsigned bit = 0; bit < bits; ++bit) {
    CpuState changed = c_.recording().initial;
    const std::uint64_t other = *value ^ std::uint64_t{1} << bit;
    // Registers that have no such bit.
    if (!set_register(changed, name, other) || get_register(changed, name) == value) continue;
    Hint hint;
    hint.kind = Hint::Kind::register_value;
    hint.name = name;
    hint.value = other;
    out_.add(
        {CauseKind::initial_register,
         fmt::format("{} was {:x} at the start and the state dump has {:x}", name, other, *value),
         {hint},
         {{0, 0}, 0},
         std::nullopt,
         price});
  }
}

void RegisterCauses::register_sources() {
  if (!c_.trials().history_from_start()) return;
  constexpr double kDumped = 1.3;
  std::set<std::string> done;
  for (const LineageSource& s : c_.lineage()) {
    if (s.kind != LineageSource::Kind::reg) continue;
    const std::string name = name_of(s);
    if (!get_register(c_.recording().initial, name) || !done.insert(name).second) continue;
    flip_register(name, kDumped + 0.02 * s.distance);
  }
  if (c_.divergence().position.instruction > kYoung) return;
  // SMBASE is read by no instruction, and the import holds it to what the first SMI shows.
  for (const std::string& name : register_names(c_.recording().initial.model)) {
    if (name == "tsc" || name == "fx" || name == "a20_mask" || name == "smbase" ||
        !done.insert(name).second)
      continue;
    flip_register(name, kDumped + 0.4);
  }
}

/// Linear addresses of what the bus shows next.
std::vector<std::uint64_t> RegisterCauses::pointed_to() const {
  const Engine& engine = c_.machine().engine();
  const Memory& memory = c_.memory();
  const auto read = [&](PhysAddr at) -> std::optional<std::uint32_t> {
    if (!memory.is_mapped(at.page()) || !memory.is_defined(at, 4)) return std::nullopt;
    std::uint32_t value = 0;
    std::memcpy(&value, memory.host(at), 4);
    return value;
  };
  const bool paging = engine.cr(0) >> 31 != 0;
  const PageTables tables = in_long_mode(engine) ? kFourLevels : kTwoLevels;
  const PageMap pages = paging ? PageMap(tables, engine.wide().cr(3), read) : PageMap();
  std::set<std::uint64_t> seen;
  std::vector<std::uint64_t> found;
  std::uint64_t end = 0;
  for (const BusTransaction& t : c_.upcoming()) {
    const bool data = t.op == BusOp::data_read || t.op == BusOp::data_write;
    const bool goes_on = t.address.value == std::exchange(end, t.address.value + t.size) ||
                         t.address.value + 2 * std::uint64_t{t.size} == end;
    if (!data || t.has(kWriteBack) || goes_on || !seen.insert(t.address.value).second) continue;
    if (seen.size() > kPointedTo) break;
    for (const LinearAddr linear : pages.linear_of(t.address)) found.push_back(linear.value);
  }
  return found;
}

void RegisterCauses::suspect_register(const std::string& name, std::uint64_t value, double price) {
  CpuState changed = c_.recording().initial;
  if (!set_register(changed, name, value)) return;
  const auto before = get_register(c_.recording().initial, name), now = get_register(changed, name);
  if (!now || now == before || !suspected_.insert({name, *now}).second) return;
  Hint hint;
  hint.kind = Hint::Kind::register_value;
  hint.name = name;
  hint.value = *now;
  out_.add(
      {CauseKind::initial_register,
       fmt::format("{} was {:x} at the start and the state dump has {:x}", name, *now, *before),
       {hint},
       {{0, 0}, 0},
       std::nullopt,
       price});
}

/// Whatever the bus shows of it, moved, added to, or as the segment or pointer to it.
void RegisterCauses::solve_register(const std::string& name, double price, bool general) {
  const auto value = get_register(c_.recording().initial, name);
  if (!value) return;
  const bool narrow = cpu_traits(c_.recording().initial.model).sixteen_bit;
  const unsigned bits = !general || narrow ? 16 : has_long_mode() ? 64 : 32;
  for (const std::uint64_t v : solved_values(*value, bits, c_.differences())) {
    suspect_register(name, v, kSolvedValue + price);
  }
  for (const std::uint64_t v : mistyped_values(*value, bits))
    suspect_register(name, v, kMistyped + price);
  // What is stored soon may be the register itself.
  for (const BusTransaction& t : c_.upcoming()) {
    if (t.op == BusOp::data_write && t.size >= 2 && t.size <= std::max(bits / 8, 4u)) {
      suspect_register(name, little_endian(t.bytes()), kPointer + price);
    }
  }
  for (const std::uint64_t pointer : pointers_) {
    if (!general) {
      suspect_register(name, pointer >> 4, kPointer + price);
      continue;
    }
    const bool real = bits == 16;
    for (std::int64_t field = -kFurthestField; field <= kFurthestField; field += 2) {
      const std::uint64_t base = real ? stack_or_data_base(name) : 0;
      const std::uint64_t v = pointer - base + static_cast<std::uint64_t>(field);
      if (real && pointer - base > 0xffff) continue;
      suspect_register(name, v, kPointer + price + 0.001 * static_cast<double>(std::abs(field)));
    }
  }
}

/// The base of the segment in which a 16-bit register is an offset by default.
std::uint32_t RegisterCauses::stack_or_data_base(const std::string& name) const {
  const bool stack = name == "esp" || name == "ebp";
  return c_.recording().initial.segment[stack ? kSs : name == "edi" ? kEs : kDs].base;
}

bool RegisterCauses::is_unknown(const std::string& name) const {
  const auto& unknown = c_.recording().initial.unknown;
  return std::find(unknown.begin(), unknown.end(), name) != unknown.end();
}

void RegisterCauses::exchange_registers(std::span<const char* const> names, double price) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t k = i + 1; k < names.size(); ++k) {
      const auto a = get_register(c_.recording().initial, names[i]);
      const auto b = get_register(c_.recording().initial, names[k]);
      if (!a || !b || a == b || is_unknown(names[i]) || is_unknown(names[k])) continue;
      Hint first, second;
      first.kind = second.kind = Hint::Kind::register_value;
      first.name = names[i];
      first.value = *b;
      second.name = names[k];
      second.value = *a;
      out_.add({CauseKind::initial_register,
                fmt::format("{} was {:x} and {} was {:x} at the start, and the state dump has them "
                            "exchanged",
                            names[i], *b, names[k], *a),
                {first, second},
                {{0, 0}, 0},
                std::nullopt,
                price});
    }
  }
}

void RegisterCauses::solve_registers() {
  if (!c_.trials().history_from_start()) return;
  pointers_ = pointed_to();
  std::set<std::string> done;
  for (const LineageSource& s : c_.lineage()) {
    if (s.kind != LineageSource::Kind::reg) continue;
    const std::string name = name_of(s);
    const auto names = general_registers();
    const bool general = std::find(names.begin(), names.end(), name) != names.end();
    const bool segment =
        std::find(std::begin(kSegments), std::end(kSegments), name) != std::end(kSegments);
    if ((!general && !segment) || !done.insert(name).second) continue;
    solve_register(name, steps_price(s.distance), general);
  }
  if (c_.divergence().position.instruction > kYoung) return;
  // What an interrupt uses although no instruction names it.
  const std::string stack = has_long_mode() ? "rsp" : "esp";
  if (done.insert(stack).second) solve_register(stack, kPerStep, true);
  if (done.insert("ss").second) solve_register("ss", kPerStep, false);
  exchange_registers(general_registers(), kExchanged);
  exchange_registers(kSegments, kExchanged);
}

}  // namespace

void register_bits(const CauseContext& context, CauseList& out) {
  RegisterCauses(context, out).register_sources();
}

void solved_registers(const CauseContext& context, CauseList& out) {
  RegisterCauses(context, out).solve_registers();
}

}  // namespace citcat
