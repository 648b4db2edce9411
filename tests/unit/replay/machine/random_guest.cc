#include "unit/replay/machine/random_guest.h"

#include <array>
#include <initializer_list>
#include <vector>

#include "replay/session/replayer.h"
#include "unit/replay/machine/random_code.h"
#include "unit/replay/machine/random_draws.h"

namespace citcat {
namespace {

using namespace random_layout;

// As there.
constexpr std::uint32_t kGdt = 0x1000, kIdt = 0x1800, kTss = 0x2000, kStubs = 0x3000,
                        kSkip = 0x3800, kRepair = 0x3900, kNmi = 0x3a00, kState = 0x5000,
                        kDirectory = 0x8000, kTable = 0x9000, kKernelStack = 0x34f00,
                        kRealHandler = 0x600;
constexpr std::uint32_t kMemory = 0x40000;

class NarrowGuest : private RandomDraws {
 public:
  NarrowGuest(GuestMode mode, bool patches, std::mt19937_64& random)
      : RandomDraws(random), mode_(mode), patches_(patches), random_(random), ram_(kMemory) {
    wide_ = is_wide(mode);
  }

  Recording make(std::uint64_t instructions, bool events) {
    for (std::uint32_t a = kDataAt; a < kDataAt + kDataPages * kPageSize; ++a) ram_[a] = byte();
    tables();
    handlers();
    patchable_ = put_random_code(mode_, patches_, random_, ram_);
    Recording r;
    r.initial = state();
    for (std::uint32_t a = 0; a < kMemory; a += kPageSize) {
      r.image.set(PhysAddr{a}, std::span(ram_).subspan(a, kPageSize));
    }
    r.instructions = instructions;
    if (events) add_random_events(r, instructions, patchable_, random_);
    return r;
  }

 private:
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) ram_[at++] = static_cast<std::uint8_t>(b);
  }
  void put32(std::uint32_t at, std::uint32_t v) {
    for (int i = 0; i < 4; ++i)
      ram_[at + static_cast<unsigned>(i)] = static_cast<std::uint8_t>(v >> 8 * i);
  }

  // --- surroundings ---------------------------------------------------------------------------

  void descriptor(int index, std::uint32_t base, std::uint32_t limit, std::uint32_t access,
                  std::uint32_t flags) {
    const std::uint32_t at = kGdt + 8 * static_cast<std::uint32_t>(index);
    put32(at, (limit & 0xffff) | base << 16);
    put32(at + 4, (base >> 16 & 0xff) | access << 8 | (limit & 0xf0000) | flags << 20 |
                      (base & 0xff000000));
  }

  void tables() {
    descriptor(1, 0, 0xfffff, 0x9b, 0xc);  // 08: code 32, ring 0
    descriptor(2, 0, 0xfffff, 0x93, 0xc);  // 10: data, ring 0
    descriptor(3, 0, 0xfffff, 0xfb, 0xc);  // 1b: code 32, ring 3
    descriptor(4, 0, 0xfffff, 0xf3, 0xc);  // 23: data, ring 3
    descriptor(5, kTss, 0x67, 0x8b, 0);
    descriptor(6, kCodeAt, 0xfffff, 0xfb, 0x8);  // 33: code 16, ring 3
    descriptor(7, 0x20, 0xfffff, 0x92, 0xc);     // 38: data, base 20h, not yet accessed
    descriptor(8, kDataAt, 0xfffff, 0xf3, 0x8);  // 43: data 16, ring 3
    put32(kTss + 4, kKernelStack);
    put32(kTss + 8, 0x10);
    put32(kTss + 0x64, 0x680000);
    for (std::uint32_t v = 0; v < 256; ++v) {
      const std::uint32_t stub = kStubs + (v < 32 ? 16 * v : 16 * 31);
      put32(kIdt + 8 * v, 0x80000 | (stub & 0xffff));
      put32(kIdt + 8 * v + 4, (stub & 0xffff0000) | 0xee00);
      if (mode_ == GuestMode::real) put32(4 * v, kRealHandler);
    }
    // 4 MiB are as many pages as the TLB for code has entries.
    for (std::uint32_t d = 0; d < 1024; ++d) put32(kDirectory + 4 * d, kTable | 7);
    for (std::uint32_t p = 0; p < kMemory / kPageSize; ++p) put32(kTable + 4 * p, p << 12 | 7);
    // Data pages: absent, read-only, never used, dirty.
    for (std::uint32_t p = 0; p < kDataPages; ++p) {
      constexpr std::array<std::uint32_t, 4> kRights{6, 5, 7, 0x67};
      put32(kTable + 4 * (kDataAt / kPageSize + p), (kDataAt + p * kPageSize) | kRights[pick(4)]);
    }
    put32(kState + 4, wide_ ? kCodeAt : 0);
  }

  void handlers() {
    for (std::uint32_t v = 0; v < 32; ++v) {
      const bool has_code = v == 8 || (v >= 10 && v <= 14) || v == 17;
      const std::uint32_t at = kStubs + 16 * v;
      const std::uint32_t target = v == 14 ? kRepair : v == 2 ? kNmi : kSkip;
      std::uint32_t jump = at;
      if (!has_code && v != 2) {
        put(at, {0x6a, 0});
        jump = at + 2;
      }
      put(jump, {0xe9});
      put32(jump + 1, target - (jump + 5));
    }
    // To the next chunk, without single steps.
    put(kSkip,
        {0x50, 0x51, 0x36, 0xff, 0x05, 0x00, 0x50, 0,    0,    0x36, 0xa1, 0x00, 0x50, 0,    0,
         0x83, 0xe0, 0x3f, 0xc1, 0xe0, 0x07, 0x36, 0x03, 0x05, 0x04, 0x50, 0,    0,    0x89, 0x44,
         0x24, 0x0c, 0x80, 0x64, 0x24, 0x15, 0xfe, 0x59, 0x58, 0x83, 0xc4, 0x04, 0xcf});
    // A data page is made present and writable; other page faults are skipped.
    put(kRepair, {0x50, 0x51, 0x0f, 0x20, 0xd0, 0x89, 0xc1, 0xc1, 0xe9, 0x0f, 0x83, 0xf9, 0x04,
                  0x74, 0x05, 0xe9});
    put32(kRepair + 16, kSkip + 2 - (kRepair + 20));
    put(kRepair + 20, {0x89, 0xc1, 0xc1, 0xe9, 0x0c, 0x36, 0x80, 0x0c, 0x8d, 0x00, 0x90, 0,
                       0,    0x07, 0x36, 0x0f, 0x01, 0x38, 0x59, 0x58, 0x83, 0xc4, 0x04, 0xcf});
    // One data page goes, one loses its marks, a code page moves, and the TLB is dropped.
    put(kNmi, {0x50, 0x36, 0x80, 0x25, 0x84, 0x90, 0,    0,    0xf8, 0x36, 0x80,
               0x25, 0x8c, 0x90, 0,    0,    0x9f, 0x36, 0x80, 0x35, 0x45, 0x90,
               0,    0,    0x20, 0x0f, 0x20, 0xd8, 0x0f, 0x22, 0xd8, 0x58, 0xcf});
    put(kRealHandler,
        {0x50, 0x2e, 0xff, 0x06, 0x00, 0x50, 0x2e, 0xa1, 0x00, 0x50, 0x83, 0xe0, 0x3f, 0xc1, 0xe0,
         0x07, 0x55, 0x89, 0xe5, 0x89, 0x46, 0x04, 0x80, 0x66, 0x09, 0xfe, 0x5d, 0x58, 0xcf});
  }

  CpuState state() const {
    CpuState s;
    s.model = CpuModel::p6;
    s.ram_bytes = kMemory;
    // No leaf has TZCNT or LZCNT: BSF and BSR are what they are behind F3 as well.
    s.cpuid = {{0, 1, 0, 0, 0}, {0x80000000, 0x80000000, 0, 0, 0}};
    s.cr0 = 0x11;
    s.cr4 = 0x200;
    s.cr3 = kDirectory;
    s.gdtr = {kGdt, 0x47};
    s.idtr = {kIdt, 0x7ff};
    s.tr = {0x28, kTss, 0x67, 0x8b, false};
    s.eip = wide_ ? kCodeAt : 0;
    const Segment code0{8, 0, 0xffffffff, 0xc09b, false}, data0{0x10, 0, 0xffffffff, 0xc093, false};
    s.segment.fill(data0);
    s.segment[kCs] = code0;
    switch (mode_) {
      case GuestMode::kernel:
        s.cr0 |= 0x80010000;
        break;
      case GuestMode::user:
        s.cr0 |= 0x80000000;
        s.segment.fill({0x23, 0, 0xffffffff, 0xc0f3, false});
        s.segment[kCs] = {0x1b, 0, 0xffffffff, 0xc0fb, false};
        break;
      case GuestMode::flat:
        break;
      case GuestMode::protected16:
        s.cr0 |= 0x80000000;
        s.segment.fill({0x43, kDataAt, 0xffffffff, 0x80f3, false});
        s.segment[kCs] = {0x33, kCodeAt, 0xffffffff, 0x80fb, false};
        break;
      case GuestMode::real:
        s.cr0 = 0x10;
        s.idtr = {0, 0x3ff};
        s.segment.fill({kDataAt >> 4, kDataAt, 0xffff, 0x93, false});
        s.segment[kCs] = {kCodeAt >> 4, kCodeAt, 0xffff, 0x9b, false};
        break;
      case GuestMode::virtual8086:
        s.cr0 |= 0x80000000;
        s.eflags |= 0x23000;
        s.segment.fill({kDataAt >> 4, kDataAt, 0xffff, 0xf3, false});
        s.segment[kCs] = {kCodeAt >> 4, kCodeAt, 0xffff, 0xf3, false};
        break;
      case GuestMode::kernel64:
      case GuestMode::user64:
      case GuestMode::compatibility:
        break;  // random_wide_guest.cc
    }
    return s;
  }

  GuestMode mode_;
  bool patches_;
  std::mt19937_64& random_;
  std::vector<std::uint8_t> ram_;
  std::vector<std::uint32_t> patchable_;
  bool wide_ = false;
};

class RandomEvents : private RandomDraws {
 public:
  using RandomDraws::RandomDraws;

  void add(Recording& r, std::uint64_t instructions, std::span<const std::uint32_t> patchable) {
    for (std::uint64_t at = 50 + pick(3000); at < instructions; at += 1 + pick(6000)) {
      Interrupt nmi;
      nmi.kind = Interrupt::Kind::nmi;
      nmi.vector = 2;
      nmi.position_known = true;
      nmi.position = {at, 0};
      r.interrupts.push_back(nmi);
    }
    for (std::uint64_t at = 50 + pick(3000); at < instructions; at += 1 + pick(6000)) {
      ExternalWrite w;
      w.position_known = true;
      w.position = {at, 0};
      if (!patchable.empty() && chance(2)) {
        w.address = PhysAddr{patchable[pick(static_cast<std::uint32_t>(patchable.size()))]};
        w.data = {byte()};
      } else {
        w.address = PhysAddr{kDataAt + pick(kDataPages * kPageSize - 8)};
        w.data = {byte(), byte(), byte(), byte()};
      }
      r.external_writes.push_back(w);
    }
  }
};

}  // namespace

void add_random_events(Recording& r, std::uint64_t instructions,
                       std::span<const std::uint32_t> patchable, std::mt19937_64& random) {
  RandomEvents(random).add(r, instructions, patchable);
}

std::string guest_mode_name(GuestMode mode) {
  constexpr std::array<const char*, 9> kNames{"Kernel",      "User",   "Flat",
                                              "Protected16", "Real",   "Virtual8086",
                                              "Kernel64",    "User64", "Compatibility"};
  return kNames[static_cast<std::size_t>(mode)];
}

Recording random_guest(GuestMode mode, std::uint64_t seed, std::uint64_t instructions,
                       bool events) {
  std::mt19937_64 random(seed * 2654435761u + static_cast<unsigned>(mode));
  // Less code runs unreported where it stores to itself.
  const bool patches = seed % 2 != 0;
  if (is_long_mode(mode)) return random_wide_guest(mode, patches, random, instructions, events);
  return NarrowGuest(mode, patches, random).make(instructions, events);
}

Recording long_random_guest(GuestMode mode, std::uint64_t instructions) {
  for (std::uint64_t seed = 1;; ++seed) {
    Recording recording = random_guest(mode, seed, instructions, true);
    if (Replayer(recording, nullptr, {}).run().instructions == instructions) return recording;
  }
}

}  // namespace citcat
