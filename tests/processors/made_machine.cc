#include "processors/made_machine.h"

#include <cstring>
#include <map>

#include "driver-kmod/uapi/citcat_dump.h"

namespace citcat::test {
namespace {

constexpr std::uint8_t kCodeRead = 1, kDataRead = 2, kDataWrite = 3, kHalt = 7;
constexpr std::uint8_t kInit = 18, kSipi = 19;
constexpr std::uint8_t kUncached = 4, kDump = 16;
constexpr std::uint32_t kWindow = 0xfef00000, kApicId = 0xfee00020;
constexpr std::uint32_t kNowhere = 1;  // no dword's address

std::string bytes_of(const void* from, std::size_t n) {
  return {static_cast<const char*>(from), n};
}

/// One of the two: where it is, and what it has done.
struct Processor {
  std::uint8_t number = 0;
  std::uint32_t base = 0, ip = 0;
  std::vector<std::uint8_t> code;
  std::uint8_t al = 0;
  bool equal = false, halted = false;
  std::uint64_t count = 0;
  std::uint32_t fetched = kNowhere;
};

class Machine {
 public:
  MadeMachine run(const std::vector<unsigned>& turns, bool again, bool hears) {
    dump(0, 0x1000, 0);
    dump(1, 0x0000, 3);                                                     // waits for SIPI
    Processor one{0, 0x1000, 0, {0xb0, 0x2a,                                // mov al, 2Ah
                                 0xa2, 0x00, 0x05,                          // mov [500h], al
                                 0xa0, 0x04, 0x05,                          // 5: mov al, [504h]
                                 0x3c, 0x2b,                                // cmp al, 2Bh
                                 0x75, 0xf9,                                // jne 5
                                 0x67, 0x66, 0xa1, 0x20, 0x00, 0xe0, 0xfe,  // mov eax, [FEE00020h]
                                 0xa2, 0x08, 0x05,                          // mov [508h], al
                                 0xf4}};
    Processor two{1,
                  0x2000,
                  0,
                  {0xa0, 0x00, 0x05,  // 0: mov al, [500h]
                   0x3c, 0x2a,        // cmp al, 2Ah
                   0x75, 0xf9,        // jne 0
                   0xfe, 0xc0,        // inc al
                   0xa2, 0x04, 0x05,  // mov [504h], al
                   0xf4}};
    if (hears) {
      const std::vector<std::uint8_t> load{0xa0, 0x08, 0x05};  // mov al, [508h]
      two.code.insert(two.code.begin(), load.begin(), load.end());
      two.code.insert(two.code.end() - 1, load.begin(), load.end());
    }
    add(two, kSipi, 0, {2}, 0);
    for (std::size_t turn = 0; !one.halted || !two.halted; ++turn) {
      Processor& p = turn % 2 == 0 ? one : two;
      for (unsigned i = 0; i < turns[turn % turns.size()] && !p.halted; ++i) step(p);
    }
    if (again) {
      add(two, kInit, 0, {}, 0);
      add(two, kSipi, 0, {2}, 0);
      two.ip = 0;
      two.fetched = kNowhere;
      two.halted = false;
      while (!two.halted) step(two);
    }
    made_.internal[0] = "icount,op,eip,eax,ebx,ecx,edx\n" + apic_row_;
    made_.internal[1] = "icount,op,eip,eax,ebx,ecx,edx\n";
    made_.instructions[0] = one.count;
    made_.instructions[1] = two.count;
    return made_;
  }

 private:
  void add(const Processor& p, std::uint8_t type, std::uint32_t address,
           const std::vector<std::uint8_t>& data, std::uint8_t flags) {
    MadeRecord r;
    r.count = p.count;
    r.clock = clock_ += 3;
    r.address = address;
    r.type = type;
    r.size = static_cast<std::uint8_t>(data.size());
    r.flags = flags;
    r.place = static_cast<std::uint8_t>(p.number << 4);
    std::memcpy(r.data, data.data(), data.size());
    made_.records.push_back(r);
  }

  void dump(std::uint8_t number, std::uint32_t base, std::uint32_t activity) {
    std::vector<std::uint32_t> words(CITCAT_STATE_CPUID_COUNT / 4);
    const auto set = [&](std::uint32_t offset, std::uint32_t value) { words[offset / 4] = value; };
    set(CITCAT_STATE_MAGIC_OFFSET, CITCAT_STATE_MAGIC);
    set(CITCAT_STATE_VERSION_OFFSET, CITCAT_STATE_VERSION);
    set(CITCAT_STATE_EFLAGS, 2);
    for (std::uint32_t i = 0; i < 8; ++i) {
      const bool code = i == 1;
      set(CITCAT_STATE_SEGMENT(i), code ? base >> 4 : 0);
      set(CITCAT_STATE_SEGMENT(i) + CITCAT_SEGMENT_BASE, code ? base : 0);
      // Wide enough for the APIC.
      set(CITCAT_STATE_SEGMENT(i) + CITCAT_SEGMENT_LIMIT, code ? 0xffff : 0xffffffff);
      set(CITCAT_STATE_SEGMENT(i) + CITCAT_SEGMENT_ATTRIBUTES, code ? 0x93 : 0x8093);
    }
    set(CITCAT_STATE_CR0, 0x10);
    set(CITCAT_STATE_A20_MASK, 0xffffffff);
    set(CITCAT_STATE_ACTIVITY, activity);
    set(CITCAT_STATE_RAM_BYTES, 0x100000);
    words.insert(words.end(), {1, 0, 1, 0x756e6547, 0x6c65746e, 0x49656e69, 0, CITCAT_STATE_END});
    Processor p;
    p.number = number;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::vector<std::uint8_t> bytes(4);
      std::memcpy(bytes.data(), &words[i], 4);
      add(p, kDataWrite, kWindow + 4 * static_cast<std::uint32_t>(i), bytes, kDump | kUncached);
    }
  }

  /// Whole dwords, through a buffer of one.
  void fetch(Processor& p, std::size_t size) {
    const std::uint32_t begin = p.base + p.ip;
    for (std::uint32_t a = begin & ~3U; a < begin + size; a += 4) {
      if (a == p.fetched) continue;
      std::vector<std::uint8_t> bytes(4);
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint32_t at = a + i - p.base;
        bytes[i] = a + i >= p.base && at < p.code.size() ? p.code[at] : 0;
      }
      add(p, kCodeRead, a, bytes, 0);
      p.fetched = a;
    }
    p.ip += static_cast<std::uint32_t>(size);
  }

  void step(Processor& p) {
    const std::uint8_t* const at = &p.code[p.ip];
    const std::uint32_t address = at[0] == 0xa0 || at[0] == 0xa2 ? at[1] | at[2] << 8 : 0U;
    switch (at[0]) {
      case 0xb0:
        fetch(p, 2);
        p.al = at[1];
        break;
      case 0x3c:
        fetch(p, 2);
        p.equal = p.al == at[1];
        break;
      case 0x75:
        fetch(p, 2);
        if (!p.equal) {
          p.ip = p.ip + static_cast<std::uint32_t>(static_cast<std::int8_t>(at[1]));
          p.fetched = kNowhere;
        }
        break;
      case 0xfe:
        fetch(p, 2);
        ++p.al;
        break;
      case 0xa0:
        fetch(p, 3);
        p.al = memory_[address];
        add(p, kDataRead, address, {p.al}, 0);
        break;
      case 0xa2:
        fetch(p, 3);
        memory_[address] = p.al;
        add(p, kDataWrite, address, {p.al}, 0);
        break;
      case 0x67:
        apic_row_ = std::to_string(p.count) + ",APICRD,c,05000000,00000004,fee00020,00000000\n";
        fetch(p, 7);
        p.al = 0;
        break;
      default:
        fetch(p, 1);
        add(p, kHalt, 2, {}, 0);
        p.halted = true;
        break;
    }
    ++p.count;
  }

  MadeMachine made_;
  std::map<std::uint32_t, std::uint8_t> memory_;
  std::string apic_row_;
  std::uint32_t clock_ = 0;
};

}  // namespace

std::string MadeMachine::headerless() const {
  return bytes_of(records.data(), records.size() * sizeof(MadeRecord));
}

std::string MadeMachine::native(std::uint16_t flags, bool write_back) const {
  std::string header(72, '\0');
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t n) {
    std::memcpy(&header[at], &value, n);
  };
  std::memcpy(header.data(),
              "\x93"
              "CITCAP\n",
              8);
  put(8, 3, 2);
  put(10, 72, 2);
  put(12, 40, 2);
  put(14, flags, 2);
  put(16, 6, 1);  // P6
  put(17, write_back ? 3 : 1, 1);
  put(18, 4, 1);
  put(19, write_back ? 32 : 0, 1);
  put(20, 0xffffffff, 4);
  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < 64; ++i)
    sum = (sum ^ static_cast<std::uint8_t>(header[i])) * 0x100000001b3;
  put(64, sum, 8);
  const std::string body = headerless();
  std::uint64_t a = 0, b = 0;
  for (std::size_t at = 0; at < body.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, &body[at], 8);
    a += word;
    b += a;
  }
  MadeRecord end;
  end.count = records.size();
  end.type = 255;
  end.size = 16;
  std::memcpy(end.data, &a, 8);
  std::memcpy(end.data + 8, &b, 8);
  return header + body + bytes_of(&end, sizeof end);
}

MadeMachine made_machine(const std::vector<unsigned>& turns, bool again, bool hears) {
  return Machine().run(turns, again, hears);
}

}  // namespace citcat::test
