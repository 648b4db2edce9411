// A TCG plugin that traces like many do: each instruction's address and each data address, as
// 8-byte records, in a buffer that is written when it is full.
//
//   qemu-system-i386 -plugin trace_plugin.so,out=FILE

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "monitor/qemu/qemu_plugin_api.h"

namespace {

struct Record {
  std::uint32_t kind;  // 0 instruction, 1 read, 2 write
  std::uint32_t address;
};

constexpr std::size_t kRecords = 1 << 16;
Record records[kRecords];
std::size_t used = 0;
std::uint64_t instructions = 0, accesses = 0;
std::FILE* out = nullptr;

void put(std::uint32_t kind, std::uint64_t address) {
  records[used++] = {kind, static_cast<std::uint32_t>(address)};
  if (used < kRecords) return;
  if (std::fwrite(records, sizeof(Record), used, out) != used) std::abort();
  used = 0;
}

void executed(unsigned, void* address) {
  ++instructions;
  put(0, reinterpret_cast<std::uintptr_t>(address));
}

void accessed(unsigned, qemu_plugin_meminfo_t info, std::uint64_t address, void*) {
  ++accesses;
  put(qemu_plugin_mem_is_store(info) ? 2 : 1, address);
}

void translated(qemu_plugin_id_t, qemu_plugin_tb* tb) {
  for (std::size_t i = 0; i < qemu_plugin_tb_n_insns(tb); ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    const auto address = static_cast<std::uintptr_t>(qemu_plugin_insn_vaddr(insn));
    qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, QEMU_PLUGIN_CB_NO_REGS,
                                           reinterpret_cast<void*>(address));
    qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                     nullptr);
  }
}

void finished(qemu_plugin_id_t, void*) {
  if (used != 0) std::fwrite(records, sizeof(Record), used, out);
  std::fclose(out);
  std::fprintf(stderr, "instructions %llu accesses %llu\n",
               static_cast<unsigned long long>(instructions),
               static_cast<unsigned long long>(accesses));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int qemu_plugin_version = 4;

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t*, int argc,
                                                               char** argv) {
  for (int i = 0; i < argc; ++i) {
    if (std::strncmp(argv[i], "out=", 4) == 0) out = std::fopen(argv[i] + 4, "wb");
  }
  if (out == nullptr) {
    std::fputs("trace_plugin: out=FILE is missing or cannot be written\n", stderr);
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, finished, nullptr);
  return 0;
}
}
