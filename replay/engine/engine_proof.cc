#include "replay/engine/engine_proof.h"

#include <array>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "formats/io/error.h"
#include "replay/engine/engine.h"
#include "replay/engine/unicorn_internal.h"

namespace citcat {

namespace {

constexpr std::uint32_t kCode = 0x1000;
constexpr std::uint32_t kFunction = 0x1080;
constexpr std::uint32_t kStack = 0x8000;
constexpr std::uint32_t kAbsent = 0x5000, kMoved = 0x6000, kMovedTo = 0x7000;
constexpr std::uint32_t kDataPage = 0x9000;

/// Stops at the first exception and keeps what was said of it.
class ProofClient : public EngineClient {
 public:
  void on_instruction(LinearAddr linear, std::uint32_t) override {
    ++instructions;
    if (linear.value == shortened && engine->gpr(kEcx) > 1) engine->set_gpr(kEcx, 1);
  }
  void on_translation(LinearAddr linear) override { translated.push_back(linear.low32()); }
  std::span<const PhysAddr> hides(LinearAddr linear) override {
    asked.push_back(linear.low32());
    return {};
  }
  void on_exception(std::uint32_t vector_, bool software_) override {
    vector = vector_;
    software = software_;
    eip = engine->eip();
    error = engine->error_code();
    down = engine->strings_run_down();
    engine->stop();
  }
  std::optional<Translation> on_translate(LinearAddr linear, EngineAccess) override {
    if (linear.value == kAbsent) return std::nullopt;
    return Translation{PhysAddr{linear.value == kMoved ? kMovedTo : linear.low32()}, true,
                       linear.value == kDataPage && data_only};
  }
  std::uint32_t on_in(std::uint16_t port, std::uint32_t) override { return port + 1u; }
  void on_out(std::uint16_t, std::uint32_t, std::uint32_t value) override { out = value; }

  Engine* engine = nullptr;
  std::uint32_t vector = 0, eip = 0, error = 0, out = 0, instructions = 0;
  bool software = false, down = false;
  bool data_only = true;        ///< no code was translated from kDataPage
  std::uint32_t shortened = 0;  ///< a repeated string, of which one iteration is left
  std::vector<std::uint32_t> translated, asked;
};

void expect(bool holds, const char* property) {
  if (!holds) {
    throw InternalError("engine: Unicorn " + Engine::version() +
                        " is not one this program can rely on: " + property);
  }
}

Segment flat(std::uint16_t selector, std::uint16_t attributes) {
  return {selector, 0, 0xffffffff, attributes, false};
}

/// A fresh engine, what it told, and the memory it runs a few instructions in.
struct Proof {
  ProofClient& client;
  Engine& engine;
  std::uint8_t* ram;

  void poke(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) ram[at++] = static_cast<std::uint8_t>(b);
  }
  void start(std::uint32_t eip) {
    engine.invalidate_code(PhysAddr{kCode}, kFunction - kCode);
    engine.set_eip(eip);
    engine.set_gpr(kEsp, kStack);
    expect(engine.run() == EngineStop::requested, "a short program did not run");
  }
};

/// Code patched after data was stored beside it: the function returns 1, 1, then 2.
void prove_coherent_code(Proof& on) {
  on.poke(kFunction, {0xb8, 1, 0, 0, 0, 0xc3});
  on.poke(kCode, {0xe8, 0x7b, 0,    0,    0, 0xa3, 0, 0x11, 0,    0, 0xe8, 0x71, 0,    0,   0,
                  0xc6, 0x05, 0x81, 0x10, 0, 0,    2, 0xe8, 0x65, 0, 0,    0,    0xcd, 0x21});
  on.start(kCode);
  expect(on.client.vector == 0x21 && on.client.software,
         "INT n is not reported as software interrupt");
  expect(on.client.eip == kCode + 29, "INT n does not leave EIP after it");
  expect(on.engine.gpr(kEax) == 2, "patched code is not noticed");
}

/// Stores that are not checked reach the memory that everybody sees; once the page holds code,
/// they are. The function is called before and after the store that patches it.
void prove_second_address(Proof& on) {
  on.poke(kCode, {0xb8, 0x78, 0x56, 0x34, 0x12, 0xa3, 0x10, 0x90, 0, 0, 0x8b, 0x0d, 0x10, 0x90, 0,
                  0, 0xcd, 0x21});
  on.start(kCode);
  expect(std::memcmp(&on.ram[kDataPage + 0x10], "\x78\x56\x34\x12", 4) == 0 &&
             on.engine.gpr(kEcx) == 0x12345678,
         "memory is not the same at both of its addresses");
  on.poke(kDataPage, {0xb8, 1, 0, 0, 0, 0xc3});
  on.poke(kCode, {0xe8, 0xfb, 0x7f, 0, 0, 0xc6, 0x05, 1, 0x90, 0, 0, 2, 0xe8, 0xef, 0x7f, 0, 0,
                  0xcd, 0x21});
  on.client.data_only = false;
  on.engine.flush_tlb();
  on.start(kCode);
  expect(on.engine.gpr(kEax) == 2,
         "patched code is not noticed where stores went unchecked before");
}

/// The direction of strings can be known inside a run.
void prove_strings(Proof& on) {
  on.poke(kCode, {0xfd, 0xcd, 0x21});
  on.start(kCode);
  expect(on.client.down, "EFLAGS.DF is not at its place after STD");
  on.poke(kCode, {0xfc, 0xcd, 0x21});
  on.start(kCode);
  expect(!on.client.down, "EFLAGS.DF is not at its place after CLD");
}

/// A general register that is written before an instruction is what the instruction finds.
void prove_registers(Proof& on) {
  on.poke(kCode, {0xb9, 5, 0, 0, 0, 0xbf, 0, 0x98, 0, 0, 0xf3, 0xaa, 0xcd, 0x21});
  on.client.shortened = kCode + 10;
  on.start(kCode);
  expect(on.engine.gpr(kEcx) == 0 && on.engine.gpr(kEdi) == kDataPage + 0x801,
         "a register written before an instruction is not what it finds");
  on.client.shortened = 0;
}

/// Port values travel both ways.
void prove_ports(Proof& on) {
  on.poke(kCode, {0xe5, 0x60, 0xe7, 0x80, 0xcd, 0x21});
  on.start(kCode);
  expect(on.client.out == 0x61, "port accesses are not reported");
}

/// A bad selector faults with its error code, at the instruction.
void prove_exceptions(Proof& on) {
  on.poke(kCode, {0x66, 0xb8, 0xf4, 0x0f, 0x8e, 0xd8, 0xf4});
  on.start(kCode);
  expect(on.client.vector == 13 && !on.client.software, "a bad selector does not raise #GP");
  expect(on.client.error == 0xff4 && on.client.eip == kCode + 4, "#GP lacks error code or place");

  // An undefined opcode needs no other hook.
  on.poke(kCode, {0x0f, 0x0b});
  on.start(kCode);
  expect(on.client.vector == 6 && on.client.eip == kCode, "UD2 does not raise #UD");
}

/// Each block is told before it is translated, then each of its instructions; all are reported.
void prove_blocks(Proof& on) {
  on.poke(kCode, {0x90, 0x90, 0x90, 0xe2, 0xfd, 0xcd, 0x21});
  on.client.translated.clear();
  on.client.asked.clear();
  on.client.instructions = 0;
  on.engine.set_gpr(kEcx, 2);
  on.start(kCode);
  expect(on.client.translated == std::vector{kCode, kCode + 2, kCode + 5},
         "blocks are not announced before they are translated");
  expect(on.client.asked ==
             std::vector{kCode, kCode + 1, kCode + 2, kCode + 3, kCode + 2, kCode + 3, kCode + 5},
         "instructions are not announced before they are translated");
  expect(on.client.instructions == 7, "instructions are not reported");
  const std::size_t before = on.client.translated.size();
  on.engine.forget_code(LinearAddr{kCode});
  on.engine.set_gpr(kEcx, 1);
  on.engine.set_eip(kCode);
  expect(on.engine.run() == EngineStop::requested && on.client.instructions == 7 + 5,
         "instructions are not reported once more");
  expect(on.client.translated.size() > before && on.client.translated[before] == kCode,
         "forgotten code is not translated again");
}

/// Translation is ours: a page may lie elsewhere, or be absent, and then the run ends before the
/// instruction.
void prove_translation(Proof& on) {
  on.ram[kMovedTo + 0x123] = 0x5a;
  on.poke(kCode, {0xa0, 0x23, 0x61, 0, 0, 0x8a, 0x0d, 0x23, 0x51, 0, 0});
  on.engine.invalidate_code(PhysAddr{kCode}, kFunction - kCode);
  on.engine.set_eip(kCode);
  on.engine.set_gpr(kEcx, 0x77);
  expect(on.engine.run() == EngineStop::translation_fault, "an absent page does not end the run");
  expect(on.engine.gpr(kEax) % 256 == 0x5a, "translations given are not used");
  expect(on.engine.translation_fault().page.value == kAbsent &&
             on.engine.translation_fault().access == EngineAccess::read &&
             on.engine.eip() == kCode + 5 && on.engine.gpr(kEcx) == 0x77,
         "the place of an absent page is not precise");
}

}  // namespace

void prove_engine() {
  ProofClient client;
  Engine engine(Engine::RawTag{}, CpuModel::p6, client);
  client.engine = &engine;
  engine.map(PhysAddr{0}, 0x20000);
  engine.map(PhysAddr{0x40000}, 0x1000);  // the first region must stay as it is

  // Named registers must be where the accessors look.
  std::uint32_t value = 0x00345000;
  uc_reg_write(engine.uc_, UC_X86_REG_CR3, &value);
  expect(engine.cr(3) == value, "CR3 is elsewhere");
  value = 0xd1b2c3d4;
  uc_reg_write(engine.uc_, UC_X86_REG_DR1, &value);
  expect(engine.get<std::uint32_t>(env_layout::kDr + 8) == value, "DR1 is elsewhere");
  uc_x86_mmr table{0, 0x87654321, 0x7ff, 0};
  uc_reg_write(engine.uc_, UC_X86_REG_IDTR, &table);
  expect(engine.idtr() == (TableRegister{0x87654321, 0x7ff}), "IDTR is elsewhere");
  table.base = 0x2000;
  uc_reg_write(engine.uc_, UC_X86_REG_GDTR, &table);
  expect(engine.gdtr() == (TableRegister{0x2000, 0x7ff}), "GDTR is elsewhere");
  std::array<std::uint64_t, 2> xmm = {0x1122334455667788, 0x99aabbccddeeff00};
  uc_reg_write(engine.uc_, UC_X86_REG_XMM1, xmm.data());
  std::array<std::uint8_t, 512> fx{};
  engine.read_fx(fx);
  expect(std::memcmp(&fx[160 + 16], xmm.data(), 16) == 0, "XMM1 is elsewhere");
  value = 0x3fa5;
  uc_reg_write(engine.uc_, UC_X86_REG_MXCSR, &value);
  expect(*engine.mxcsr() == value, "MXCSR is elsewhere");

  engine.set_segment(kCs, flat(8, 0xc09b));
  for (const int s : {kEs, kSs, kDs, kFs, kGs}) engine.set_segment(s, flat(16, 0xc093));
  engine.set_cr(0, 0x11);
  engine.set_cr(3, 0);
  engine.sync_mode();

  Proof on{client, engine, engine.host_page(0)};
  prove_coherent_code(on);
  prove_second_address(on);
  prove_strings(on);
  prove_registers(on);
  prove_ports(on);
  prove_exceptions(on);
  prove_blocks(on);
  prove_translation(on);
}

}  // namespace citcat
