#pragma once
// The part of QEMU's TCG plugin interface that this monitor uses, versions 4, 5 and 7 (QEMU 9.2 to
// 10.1, and 11), declared here because Debian ships no header for it. Names, types and numbers are
// those of the interface documented in QEMU's "TCG Plugins" manual; the functions are in the QEMU
// that loads the monitor.
//
// Since version 7 some functions take one more word, which QEMU hands to the callback in place of
// the plugin's number or after all other arguments. One declaration serves all versions on x86-64,
// where these arguments travel in registers: a callback that expects fewer ignores the others
// (System V ABI, AMD64 supplement, 3.2.3).

#include <cstddef>
#include <cstdint>

extern "C" {

using qemu_plugin_id_t = std::uint64_t;
using qemu_plugin_meminfo_t = std::uint32_t;

struct qemu_info_t {
  const char* target_name;
  struct {
    int min;
    int cur;
  } version;
  bool system_emulation;
  struct {
    int smp_vcpus;
    int max_vcpus;
  } system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_register;

enum qemu_plugin_cb_flags {
  QEMU_PLUGIN_CB_NO_REGS,
  QEMU_PLUGIN_CB_R_REGS,
  QEMU_PLUGIN_CB_RW_REGS,
};
enum qemu_plugin_mem_rw {
  QEMU_PLUGIN_MEM_R = 1,
  QEMU_PLUGIN_MEM_W,
  QEMU_PLUGIN_MEM_RW,
};

enum qemu_plugin_op {
  QEMU_PLUGIN_INLINE_ADD_U64,
  QEMU_PLUGIN_INLINE_STORE_U64,
};
struct qemu_plugin_scoreboard;
/// A counter of each processor.
struct qemu_plugin_u64 {
  qemu_plugin_scoreboard* score;
  std::size_t offset;
};

struct qemu_plugin_mem_value {
  int type;
  union {
    std::uint8_t u8;
    std::uint16_t u16;
    std::uint32_t u32;
    std::uint64_t u64;
    struct {
      std::uint64_t low;
      std::uint64_t high;
    } u128;
  } data;
};

/// How it begins: later versions have more, so that elements of an array lie further apart.
struct qemu_plugin_reg_descriptor {
  qemu_plugin_register* handle;
  const char* name;
  const char* feature;
};

// GLib's arrays, as its reference manual lays them open.
struct GArray {
  char* data;
  unsigned len;
};
struct GByteArray {
  std::uint8_t* data;
  unsigned len;
};
GByteArray* g_byte_array_new();
GByteArray* g_byte_array_set_size(GByteArray* array, unsigned length);
unsigned g_array_get_element_size(GArray* array);
char* g_array_free(GArray* array, int free_segment);

/// Called with two words whose meaning depends on the version.
using qemu_plugin_words_cb_t = void (*)(std::uintptr_t, std::uintptr_t);
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned, void*);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned, qemu_plugin_meminfo_t, std::uint64_t, void*);

/// The last word of these: see above. The callback gets it from version 7 on.
void qemu_plugin_reset(qemu_plugin_id_t, qemu_plugin_words_cb_t, void*);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_words_cb_t, void*);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_words_cb_t, void*);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_words_cb_t, void*);
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb_t,
                                          qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb_t,
                                            qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(qemu_plugin_insn*, qemu_plugin_op,
                                                         qemu_plugin_u64, std::uint64_t);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_vcpu_mem_cb_t,
                                      qemu_plugin_cb_flags, qemu_plugin_mem_rw, void*);

qemu_plugin_scoreboard* qemu_plugin_scoreboard_new(std::size_t);
void* qemu_plugin_scoreboard_find(qemu_plugin_scoreboard*, unsigned);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
std::size_t qemu_plugin_insn_data(const qemu_plugin_insn*, void*, std::size_t);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
void* qemu_plugin_insn_haddr(const qemu_plugin_insn*);

unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
qemu_plugin_mem_value qemu_plugin_mem_get_value(qemu_plugin_meminfo_t);
qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, std::uint64_t);
bool qemu_plugin_hwaddr_is_io(const qemu_plugin_hwaddr*);
std::uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr*);

GArray* qemu_plugin_get_registers();
int qemu_plugin_read_register(qemu_plugin_register*, GByteArray*);
bool qemu_plugin_read_memory_vaddr(std::uint64_t, GByteArray*, std::size_t);

}  // extern "C"
