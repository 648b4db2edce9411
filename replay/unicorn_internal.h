#pragma once
// Unicorn's functions, found when an engine is first wanted: to bind the library's 22,700 symbols
// takes longer than most commands that make no engine.

#include <unicorn/unicorn.h>
#include <unicorn/x86.h>

namespace citcat {

/// Loads the library that the headers are of, once. Wants to be called before any of those below.
/// Throws IoError when it is not there or lacks a function.
void load_unicorn();

// Named as the library names them: in this namespace they hide its own declarations, in its macros
// too. Null before load_unicorn().
extern decltype(&::uc_close) uc_close;
extern decltype(&::uc_context_alloc) uc_context_alloc;
extern decltype(&::uc_context_free) uc_context_free;
extern decltype(&::uc_context_save) uc_context_save;
extern decltype(&::uc_ctl) uc_ctl;
extern decltype(&::uc_emu_start) uc_emu_start;
extern decltype(&::uc_emu_stop) uc_emu_stop;
extern decltype(&::uc_hook_add) uc_hook_add;
extern decltype(&::uc_mem_map) uc_mem_map;
extern decltype(&::uc_mem_map_ptr) uc_mem_map_ptr;
extern decltype(&::uc_mem_write) uc_mem_write;
extern decltype(&::uc_open) uc_open;
extern decltype(&::uc_reg_read) uc_reg_read;
extern decltype(&::uc_reg_write) uc_reg_write;
extern decltype(&::uc_strerror) uc_strerror;
extern decltype(&::uc_version) uc_version;

}  // namespace citcat
