#pragma once
// The state of a 386 in protected mode, each segment all of memory: for runs of few instructions.

#include <nlohmann/json.hpp>
#include <string>

namespace citcat::testing {

/// Code begins at 5000h; ESP is 8000h, the table of interrupts has no entry. For `--initial-state`.
inline std::string flat_machine(int eax) {
  return R"({"cpu": "386", "registers": {"eax": )" + std::to_string(eax) + R"(,
  "ecx": 0, "edx": 0, "ebx": 0, "esp": 32768, "ebp": 0, "esi": 0, "edi": 0,
  "eip": 20480, "eflags": 2, "cr0": 17, "cr3": 0, "cr4": 0, "cr2": 0, "smbase": "0x30000",
  "cs": 8, "cs.base": 0, "cs.limit": 4294967295, "cs.attributes": "0xc09b",
  "ss": 16, "ss.base": 0, "ss.limit": 4294967295, "ss.attributes": "0xc093",
  "ds": 16, "ds.base": 0, "ds.limit": 4294967295, "ds.attributes": "0xc093",
  "es": 16, "es.base": 0, "es.limit": 4294967295, "es.attributes": "0xc093",
  "fs": 16, "fs.base": 0, "fs.limit": 4294967295, "fs.attributes": "0xc093",
  "gs": 16, "gs.base": 0, "gs.limit": 4294967295, "gs.attributes": "0xc093",
  "idtr.base": 0, "idtr.limit": 0}, "ram_bytes": 1048576})";
}

/// The same with other parts: of the state, or of its registers.
inline std::string flat_machine(const nlohmann::json& state, const nlohmann::json& registers) {
  nlohmann::json json = nlohmann::json::parse(flat_machine(0));
  json.update(state);
  json["registers"].update(registers);
  return json.dump();
}

}  // namespace citcat::testing
