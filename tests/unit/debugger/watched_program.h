#pragma once
// A program in which everything is that a watchpoint may meet: a store in a loop, one of 16 bytes,
// a string, a fault whose handler stores, a call. It is in flat protected mode, without paging.

#include <cstdint>
#include <initializer_list>
#include <string>

#include "events/archive/recording_file.h"
#include "events/recording.h"

namespace citcat::test {

class WatchedProgram {
 public:
  static constexpr std::uint32_t kBegin = 0x7c00, kStore = 0x7c0f, kBehindStore = 0x7c15,
                                 kBehindLoop = 0x7c18, kBehindRead = 0x7c1d, kBehindWide = 0x7c24,
                                 kString = 0x7c33, kFault = 0x7c35, kCall = 0x7c37,
                                 kFunction = 0x7c40, kHandler = 0x9000,
                                 kBehindHandlersStore = 0x9006;
  /// The dword that the loop counts in, five times, and the handler once more; 16 bytes that are
  /// stored at once; four dwords of the string; the top of the stack.
  static constexpr std::uint32_t kCount = 0x600, kWide = 0x700, kFilled = 0x800, kStack = 0x7000;
  static constexpr std::uint64_t kInstructions = 31;

  WatchedProgram() {
    for (std::uint32_t a = 0; a < 0xa000; ++a) recording_.image.set(PhysAddr{a}, 0);
    put_code();
    for (std::uint32_t i = 0; i < 16; ++i) put(kWide + i, {0xff});
    for (std::uint32_t vector = 0; vector < 32; ++vector) {
      put(0x1000 + 8 * vector, {0x00, 0x90, 0x08, 0x00, 0x00, 0x8e, 0x00, 0x00});
    }
    put(0x2008, {0xff, 0xff, 0, 0, 0, 0x9b, 0xcf, 0});
    put(0x2010, {0xff, 0xff, 0, 0, 0, 0x93, 0xcf, 0});
    CpuState& s = recording_.initial;
    s.model = CpuModel::p6;
    s.ram_bytes = 0x100000;
    s.cr0 = 0x11;
    s.cr4 = 0x200;
    s.eip = kBegin;
    s.eflags = 2;
    s.gpr[kEsp] = kStack;
    s.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
    s.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
    s.gdtr = {0x2000, 0x17};
    s.idtr = {0x1000, 0xff};
    recording_.instructions = kInstructions;
  }

  Recording& recording() { return recording_; }
  void store(const std::string& path) const { RecordingFileWriter(path).finish(recording_); }
  /// Its source for GNU as, in which the loop is one line: the same bytes, linked at kBegin.
  static std::string source() {
    return R"(.globl _start, function
.type _start, @function
.type function, @function
_start:
.cfi_startproc
.cfi_undefined %eip
movl $0, 0x600
movl $5, %ecx
0: incl 0x600; nop; loop 0b
movl 0x600, %eax
movups %xmm0, 0x700
movl $0x800, %edi
movl $4, %ecx
movl $0x11223344, %eax
rep stosl
ud2
call function
nop
.cfi_endproc
.size _start, . - _start
.org 0x40
function:
.cfi_startproc
push %eax
.cfi_adjust_cfa_offset 4
pop %eax
.cfi_adjust_cfa_offset -4
ret
.cfi_endproc
.size function, . - function
)";
  }

 private:
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) recording_.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  void put_code() {
    put(kBegin, {0xc7, 0x05, 0x00, 0x06, 0, 0, 0, 0, 0, 0});  // mov dword [600h], 0
    put(0x7c0a, {0xb9, 5, 0, 0, 0});                          // mov ecx, 5
    put(kStore, {0xff, 0x05, 0x00, 0x06, 0, 0});              // inc dword [600h]
    put(kBehindStore, {0x90, 0xe2, 0xf7});                    // nop; loop 7c0fh
    put(kBehindLoop, {0xa1, 0x00, 0x06, 0, 0});               // mov eax, [600h]
    put(kBehindRead, {0x0f, 0x11, 0x05, 0x00, 0x07, 0, 0});   // movups [700h], xmm0
    put(kBehindWide, {0xbf, 0x00, 0x08, 0, 0});               // mov edi, 800h
    put(0x7c29, {0xb9, 4, 0, 0, 0});                          // mov ecx, 4
    put(0x7c2e, {0xb8, 0x44, 0x33, 0x22, 0x11});              // mov eax, 11223344h
    put(kString, {0xf3, 0xab});                               // rep stosd
    put(kFault, {0x0f, 0x0b});                                // ud2
    put(kCall, {0xe8, 4, 0, 0, 0, 0x90});                     // call 7c40h; nop
    put(kFunction, {0x50, 0x58, 0xc3});                       // push eax; pop eax; ret
    put(kHandler, {0xff, 0x05, 0x00, 0x06, 0, 0});            // inc dword [600h]
    put(kBehindHandlersStore, {0x83, 0x04, 0x24, 2, 0xcf});   // add dword [esp], 2; iretd
  }

  Recording recording_;
};

}  // namespace citcat::test
