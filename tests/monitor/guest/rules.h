#pragma once
// Which instructions random programs are made of.

#include <stdint.h>

// What follows an opcode.
enum form {
  kNone,
  kModrm,     // any register and operand
  kMemory,    // the operand is memory
  kRegister,  // the operand is a register
  kByte,      // an immediate byte
  kCount,     // one from 1 to 7, which no width makes zero
  kOperand,   // an immediate of the operand's size
  kModrmByte,
  kModrmCount,
  kModrmOperand,
  kShort,   // a jump of 8 bits
  kNear,    // a jump of the operand's size
  kOffset,  // an offset of the address's size
};

enum {
  kLock = 1,      // LOCK is allowed where the operand is memory
  kUserOnly = 2,  // not at level 0
  kRepeats = 4,
  kSecond = 8,  // behind 0F
  kNoStackReg = 16,
  kWide = 32,     // not with operands of 16 bits, where its result is undefined
  kVague = 64,    // leaves flags of which the manual says nothing
  kBare = 128,    // without a prefix for the size of operands, so that stacks stay aligned
  kNot64 = 256,   // not in 64-bit mode
  kOnly64 = 512,  // in that alone
  kAll = 0xff,    // of digits
};

// Opcodes `first` to `last`; of groups those whose /digit is set in `digits`.
struct rule {
  uint8_t first, last, form;
  uint16_t flags;
  uint8_t digits, weight;
};

// Left out, because the emulator is known to do otherwise (docs/monitor.md): CMPS and loads of far
// pointers ask for their operands in another order, ARPL for another right, PUSHA and POPA begin at
// the other end; CMPXCHG8B reads its operand in two parts, and TEST by its second opcode is
// refused; the x87 does not compute C1. SGDT and SIDT, of ten bytes in 64-bit mode, have stored two
// where the page of the others faults.
static const struct rule rules[] = {
    {0x80, 0x83, kModrmByte, kLock, 0x7f, 3},  // 81 is made kModrmOperand
    {0x80, 0x83, kModrmByte, 0, 0x80, 1},
    {0x84, 0x85, kModrm, 0, kAll, 2},
    {0x86, 0x87, kModrm, kLock, kAll, 2},
    {0x88, 0x8b, kModrm, 0, kAll, 6},
    {0x8c, 0x8c, kModrm, 0, 0x3f, 1},
    {0x8d, 0x8d, kMemory, 0, kAll, 1},
    {0x8f, 0x8f, kModrm, kBare, 1, 1},
    {0x40, 0x4f, kNone, kNoStackReg | kNot64, kAll, 2},
    {0x50, 0x5f, kNone, kNoStackReg | kBare, kAll, 4},
    {0x62, 0x62, kMemory, kNot64, kAll, 1},
    {0x63, 0x63, kModrm, kOnly64, kAll, 1},
    {0x68, 0x69, kOperand, kVague | kBare, kAll, 1},  // 69 is made kModrmOperand
    {0x6a, 0x6b, kByte, kVague | kBare, kAll, 1},     // 6B is made kModrmByte
    {0x70, 0x7f, kShort, 0, kAll, 4},
    {0x90, 0x97, kNone, kNoStackReg, kAll, 1},
    {0x98, 0x99, kNone, 0, kAll, 1},
    {0x9b, 0x9c, kNone, kBare, kAll, 1},
    {0x9d, 0x9d, kNone, kUserOnly | kBare, kAll, 1},
    {0x9e, 0x9f, kNone, 0, kAll, 1},
    {0xa0, 0xa3, kOffset, 0, kAll, 1},
    {0xa4, 0xa5, kNone, kRepeats, kAll, 3},
    {0xa8, 0xa8, kByte, 0, kAll, 1},
    {0xaa, 0xaf, kNone, kRepeats, kAll, 3},
    {0xb0, 0xb7, kByte, 0, kAll, 1},
    {0xb8, 0xbf, kOperand, kNoStackReg, kAll, 1},
    {0xc0, 0xc1, kModrmCount, kVague, kAll, 2},
    {0xc6, 0xc7, kModrmByte, 0, 1, 1},  // C7 is made kModrmOperand
    {0xc9, 0xc9, kNone, kUserOnly | kNot64, kAll, 1},
    {0xcc, 0xcc, kNone, kUserOnly, kAll, 1},
    {0xcd, 0xcd, kByte, kUserOnly, kAll, 1},
    {0xce, 0xce, kNone, kUserOnly | kNot64, kAll, 1},
    {0xd0, 0xd1, kModrm, kVague, kAll, 2},
    {0xd2, 0xd3, kRegister, kVague, kAll, 2},
    {0xd4, 0xd4, kCount, kVague | kNot64, kAll, 1},
    {0xd5, 0xd5, kByte, kVague | kNot64, kAll, 1},
    {0xd6, 0xd7, kNone, kNot64, kAll, 1},
    {0xd7, 0xd7, kNone, kOnly64, kAll, 1},
    {0xe0, 0xe3, kShort, 0, kAll, 1},
    {0xe8, 0xe9, kNear, 0, kAll, 1},
    {0xeb, 0xeb, kShort, 0, kAll, 1},
    {0xf5, 0xf5, kNone, 0, kAll, 1},
    {0xf6, 0xf7, kModrmByte, 0, 1, 1},  // F7 is made kModrmOperand
    {0xf6, 0xf7, kModrm, kLock, 0x0c, 2},
    {0xf6, 0xf7, kModrm, kVague, 0xf0, 2},
    {0xf8, 0xf9, kNone, 0, kAll, 1},
    {0xfa, 0xfb, kNone, kUserOnly, kAll, 1},
    {0xfc, 0xfd, kNone, 0, kAll, 1},
    {0xfe, 0xff, kModrm, kLock, 3, 2},
    {0xff, 0xff, kModrm, kBare, 0x40, 1},
    {0x00, 0x00, kModrm, kSecond | kUserOnly, 0x3f, 1},
    {0x00, 0x00, kModrm, kSecond, 0x33, 1},
    {0x01, 0x01, kMemory, kSecond | kUserOnly | kNot64, 0x8f, 1},
    {0x01, 0x01, kMemory, kSecond | kNot64, 0x83, 1},
    {0x01, 0x01, kMemory, kSecond | kUserOnly | kOnly64, 0x8c, 1},
    {0x01, 0x01, kModrm, kSecond, 0x10, 1},
    {0x02, 0x03, kModrm, kSecond, kAll, 2},
    {0x06, 0x06, kNone, kSecond, kAll, 1},
    {0x0b, 0x0b, kNone, kSecond, kAll, 1},
    {0x31, 0x31, kNone, kSecond, kAll, 1},
    {0x40, 0x4f, kModrm, kSecond, kAll, 2},
    {0x80, 0x8f, kNear, kSecond, kAll, 1},
    {0x90, 0x9f, kRegister, kSecond, kAll, 1},
    {0xa0, 0xa0, kNone, kSecond | kBare, kAll, 1},
    {0xa2, 0xa2, kNone, kSecond, kAll, 1},
    {0xa3, 0xa3, kModrm, kSecond | kVague, kAll, 1},
    {0xa4, 0xa4, kModrmCount, kSecond | kVague, kAll, 1},
    {0xa5, 0xa5, kRegister, kSecond | kVague, kAll, 1},
    {0xa8, 0xa8, kNone, kSecond | kBare, kAll, 1},
    {0xab, 0xab, kModrm, kSecond | kVague, kAll, 1},
    {0xac, 0xac, kModrmCount, kSecond | kVague, kAll, 1},
    {0xad, 0xad, kRegister, kSecond | kVague, kAll, 1},
    {0xaf, 0xaf, kModrm, kSecond | kVague, kAll, 1},
    {0xb0, 0xb1, kModrm, kSecond | kLock, kAll, 1},
    {0xb3, 0xb3, kModrm, kSecond | kVague, kAll, 1},
    {0xb6, 0xb7, kModrm, kSecond, kAll, 1},
    {0xba, 0xba, kModrmByte, kSecond | kVague, 0xf0, 1},
    {0xbb, 0xbb, kModrm, kSecond | kVague, kAll, 1},
    {0xbc, 0xbd, kModrm, kSecond | kVague, kAll, 1},
    {0xbe, 0xbf, kModrm, kSecond, kAll, 1},
    {0xc0, 0xc1, kModrm, kSecond | kLock, kAll, 1},
    {0xc8, 0xcf, kNone, kSecond | kNoStackReg | kWide, kAll, 1},
};
