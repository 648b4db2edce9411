#include "golden/pins/pin_programs.h"

#include <bit>
#include <random>
#include <string>
#include <utility>

namespace citcat::testing {
namespace {

constexpr int kTimerHandler = 0xe800, kUndefinedHandler = 0xe840;

void put(ModelProcessor& processor, std::uint32_t address, const std::vector<std::uint8_t>& code) {
  for (const std::uint8_t byte : code) processor.memory.at(address++) = byte;
}

void set_up(CodeText& text, bool odd_stack) {
  text.bytes({0xfa,                                 // cli
              0xb8, 0x00, 0x03, 0x8e, 0xd8,         // mov ax,300h; mov ds,ax
              0xb8, 0x00, 0x02, 0x8e, 0xd0,         // mov ax,200h; mov ss,ax
              0xbc, odd_stack ? 0x01 : 0x00, 0x01,  // mov sp,100h
              0x31, 0xc0, 0x8e, 0xc0});             // xor ax,ax; mov es,ax
  for (const auto& [vector, handler] :
       {std::pair{int{kProgramVector}, kTimerHandler}, {6, kUndefinedHandler}}) {
    text.bytes({0x26, 0xc7, 0x06, vector * 4, 0x00, handler & 0xff, handler >> 8});
    text.bytes({0x26, 0xc7, 0x06, vector * 4 + 2, 0x00, 0x00, kProgramSegment >> 8});
  }
  text.bytes({0x31, 0xdb, 0x31, 0xc9, 0x31, 0xd2, 0x31, 0xed});  // xor bx,cx,dx,bp
  text.bytes({0xc6, 0x06, 0x70, 0x00, 0x00});                    // mov byte [70],0
  text.bytes({0x89, 0x1e, 0x50, 0x00, 0x89, 0x1e, 0x52, 0x00});  // mov [50],bx; mov [52],bx
  text.bytes({0x89, 0x1e, 0x54, 0x00, 0x89, 0x1e, 0x56, 0x00});  // mov [54],bx; mov [56],bx
}

void strings(CodeText& text) {
  text.bytes({0x1e, 0x07, 0xfc,                    // push ds; pop es; cld
              0xbf, 0x11, 0x00, 0xb9, 0x09, 0x00,  // mov di,11h; mov cx,9
              0xb8, 0x34, 0x12, 0xf3, 0xab,        // mov ax,1234h; rep stosw
              0xb8, 0x00, 0x04, 0x8e, 0xc0, 0xfb,  // mov ax,400h; mov es,ax; sti
              0xbe, 0x11, 0x00, 0xbf, 0x02, 0x00,  // mov si,11h; mov di,2
              0xb9, 0x08, 0x00, 0xf3, 0xa5,        // mov cx,8; rep movsw
              0xbe, 0x11, 0x00, 0xbf, 0x15, 0x00,  // mov si,11h; mov di,15h
              0xb9, 0x05, 0x00, 0xf3, 0xa4,        // mov cx,5; rep movsb
              0xbe, 0x11, 0x00, 0xbf, 0x02, 0x00,  // mov si,11h; mov di,2
              0xb9, 0x06, 0x00, 0xf3, 0xa7,        // mov cx,6; repe cmpsw
              0xbf, 0x03, 0x00, 0xb0, 0x34,        // mov di,3; mov al,34h
              0xb9, 0x08, 0x00, 0xf2, 0xae,        // mov cx,8; repne scasb
              0xfd, 0xbe, 0x12, 0x00, 0xad, 0xfc,  // std; mov si,12h; lodsw; cld
              0x31, 0xc9, 0xf3, 0xa4});            // xor cx,cx; rep movsb
}

void loops_and_ports(CodeText& text) {
  text.bytes({0xb9, 0x04, 0x00});  // mov cx,4
  text.label("again");
  text.bytes({0x01, 0x0e, 0x50, 0x00, 0xd1, 0xe0});      // add [50],cx; shl ax,1
  text.near(0xe2, "again");                              // loop
  text.near(0xe8, "subroutine", 2);                      // call
  text.bytes({0xf0, 0x87, 0x06, 0x53, 0x00,              // lock xchg [53],ax
              0xe4, 0x60, 0xe5, 0x41,                    // in al,60h; in ax,41h
              0xba, 0xc8, 0x03, 0xec, 0xed,              // mov dx,3c8h; in al,dx; in ax,dx
              0xe6, 0x80, 0xef, 0xe7, 0x43,              // out 80h,al; out dx,ax; out 43h,ax
              0x81, 0x06, 0x53, 0x00, 0x34, 0x12,        // add word [53],1234h
              0x80, 0x2e, 0x54, 0x00, 0x07,              // sub byte [54],7
              0x83, 0x16, 0x56, 0x00, 0xfe,              // adc word [56],-2
              0xf7, 0x06, 0x53, 0x00, 0x01, 0x00,        // test word [53],1
              0xc7, 0x06, 0x59, 0x00, 0x78, 0x56,        // mov word [59],5678h
              0xf0, 0xff, 0x06, 0x59, 0x00,              // lock inc word [59]
              0xa1, 0x60, 0x00, 0x03, 0x06, 0x50, 0x00,  // mov ax,[60]; add ax,[50]
              0xa3, 0x64, 0x00,                          // mov [64],ax
              0x9c, 0x9d, 0x54, 0x5d, 0x31, 0xed});      // pushf; popf; push sp; pop bp; xor bp,bp
  text.near(0x75, "ahead");                              // jne
  text.bytes({0x40});                                    // inc ax
  text.label("ahead");
  text.bytes({0xbb, 0x05, 0x00, 0xf7, 0xe3, 0x31, 0xc0});  // mov bx,5; mul bx; xor ax,ax
  text.bytes({0xcd, kProgramVector});                      // int 8
  text.bytes({0x9a});                                      // call far
  text.bytes({0x80, 0xe8, 0x00, 0xf0});
}

void instructions_of_the_186(CodeText& text) {
  text.bytes({0x60, 0x61, 0xc8, 0x06, 0x00, 0x00, 0xc9,  // pusha; popa; enter 6,0; leave
              0x68, 0x34, 0x12, 0x6a, 0xff, 0x58, 0x58,  // push 1234h; push -1; pop ax; pop ax
              0x6b, 0xc3, 0x05,                          // imul ax,bx,5
              0x69, 0x0e, 0x59, 0x00, 0x02, 0x00,        // imul cx,[59],2
              0x31, 0xc9,                                // xor cx,cx
              0xc1, 0xe3, 0x03, 0xc0, 0x26, 0x54, 0x00, 0x01,  // shl bx,3; shl byte [54],1
              0x31, 0xdb,                                      // xor bx,bx
              0xba, 0x00, 0x01, 0xbf, 0x20, 0x00,              // mov dx,100h; mov di,20h
              0xb9, 0x03, 0x00, 0xf3, 0x6c,                    // mov cx,3; rep insb
              0xbe, 0x11, 0x00, 0xb9, 0x03, 0x00, 0xf3, 0x6f,  // mov si,11h; cx,3; rep outsw
              0x31, 0xc0, 0xc7, 0x06, 0x58, 0x00, 0x00, 0x00,  // xor ax,ax; mov word [58],0
              0xc7, 0x06, 0x5a, 0x00, 0x09, 0x00,              // mov word [5a],9
              0x62, 0x06, 0x58, 0x00});                        // bound ax,[58]
}

void instructions_of_nec(CodeText& text) {
  text.bytes({0x0f, 0x18, 0xc0, 0x03,                          // test1 al,3
              0x0f, 0x1d, 0x06, 0x53, 0x00, 0x05,              // set1 word [53],5
              0xb9, 0x03, 0x00, 0x0f, 0x16, 0xc3,              // mov cx,3; not1 bl,cl
              0x0f, 0x1b, 0x06, 0x56, 0x00, 0x01,              // clr1 word [56],1
              0x0f, 0x28, 0x06, 0x54, 0x00, 0x0f, 0x2a, 0xc3,  // rol4 [54]; ror4 bl
              0xbf, 0x31, 0x00, 0x65, 0xaa, 0x31, 0xdb});      // mov di,31h; repc stosb; xor bx,bx
}

void instructions_of_the_8087(CodeText& text) {
  text.bytes({0xdb, 0xe3, 0x9b, 0xdd, 0x06, 0x80, 0x00,  // fninit; fwait; fld qword [80]
              0x9b, 0xdc, 0x06, 0x89, 0x00,              // fwait; fadd qword [89]
              0x9b, 0xdd, 0x1e, 0x91, 0x00, 0x9b,        // fwait; fstp qword [91]; fwait
              0xa1, 0x93, 0x00, 0x03, 0x06, 0x95, 0x00,  // mov ax,[93]; add ax,[95]
              0xa3, 0x9c, 0x00, 0x31, 0xc0});            // mov [9c],ax; xor ax,ax
}

/// Waits for three interrupts more, and ends.
void waiting(CodeText& text) {
  text.bytes({0xf4});                          // hlt
  text.bytes({0xa0, 0x70, 0x00, 0x04, 0x02});  // mov al,[70]; add al,2
  text.label("wait");
  text.bytes({0x38, 0x06, 0x70, 0x00});                          // cmp [70],al
  text.near(0x72, "wait");                                       // jb
  text.bytes({0xa1, 0x60, 0x00, 0xa3, 0x66, 0x00});              // mov ax,[60]; mov [66],ax
  text.bytes({0xfa, 0xf4, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90});  // cli; hlt
  text.label("subroutine");
  text.bytes({0x55, 0x89, 0xe5, 0xff, 0x46, 0x02, 0xff, 0x4e,
              0x02,          // push bp; mov bp,sp; inc, dec [bp+2]
              0x5d, 0xc3});  // pop bp; ret
}

/// A stretch of the long program: what a compiler might make, at random.
class LongStretch {
 public:
  /// `labels`: begins their names. A subroutine calls no other, and does not loop.
  LongStretch(std::mt19937_64& random, CodeText& text, std::string labels = {})
      : random_(random), text_(text), name_(std::move(labels)) {}

  void add(unsigned instructions) {
    for (unsigned i = 0; i < instructions; ++i) one();
  }

 private:
  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  int byte() { return static_cast<int>(draw(256)); }
  /// One of AX, BX, DX, SI and DI: the others count and point.
  int register_number() {
    constexpr int kNumbers[] = {0, 2, 3, 6, 7};
    return kNumbers[draw(5)];
  }
  /// Not CL or CH.
  int byte_register() {
    constexpr int kNumbers[] = {0, 2, 3, 4, 6, 7};
    return kNumbers[draw(6)];
  }
  /// ModRM of two of them.
  int pair() { return 0xc0 | register_number() << 3 | register_number(); }

  void one() {
    constexpr int kAlu[] = {0x03, 0x2b, 0x33, 0x0b, 0x23, 0x3b};
    const int place = static_cast<int>(0x100 + draw(0x1200));
    switch (draw(name_.empty() && !in_loop_ ? 16 : 12)) {
      case 0:
      case 1:
        return text_.bytes({0xb8 + register_number(), byte(), byte()});  // mov r,imm
      case 2:
        return text_.bytes({0x8b, pair()});
      case 3:
        return text_.bytes({kAlu[draw(6)], pair()});
      case 4:
        return text_.bytes({0xa1 + 2 * static_cast<int>(draw(2)), place & 0xff, place >> 8});
      case 5:
        return text_.bytes({0x8a - 2 * static_cast<int>(draw(2)), 0x06 | byte_register() << 3,
                            place & 0xff, place >> 8});
      case 6:
        return text_.bytes({0x8b - 2 * static_cast<int>(draw(2)), 0x06 | register_number() << 3,
                            place & 0xff, place >> 8});
      case 7: {
        const int number = register_number();
        text_.bytes({0x50 + number});
        add(draw(3));
        return text_.bytes({0x58 + number});
      }
      case 8:
        return text_.bytes({0x40 + register_number()});
      case 9:
        return text_.bytes({0x83, 0xc0 | register_number(), byte() & 0x7f});
      case 10: {
        const std::string name = new_label();
        text_.near(0x70 + static_cast<int>(draw(16)), name);  // jcc
        add(1 + draw(3));
        return text_.label(name);
      }
      case 11: {
        const std::string name = new_label();
        text_.near(0xeb, name);
        text_.bytes({byte(), byte()});
        return text_.label(name);
      }
      case 12: {
        text_.bytes({0xb9, static_cast<int>(2 + draw(2)), 0x00});  // mov cx,n
        const std::string name = new_label();
        text_.label(name);
        in_loop_ = true;
        add(1 + draw(2));
        in_loop_ = false;
        return text_.near(0xe2, name);  // loop
      }
      case 13:
        return text_.bytes({0xe4 + 2 * static_cast<int>(draw(2)), byte()});  // in al / out
      case 14:
        return text_.near(0xe8, "subroutine", 2);
      default:
        return text_.bytes({0xf7, 0xd0 | register_number()});  // not
    }
  }
  std::string new_label() { return name_ + std::to_string(labels_++); }

  std::mt19937_64& random_;
  CodeText& text_;
  std::string name_;
  unsigned labels_ = 0;
  bool in_loop_ = false;
};

}  // namespace

void CodeText::near(int opcode, const std::string& to, unsigned distance_bytes) {
  code_.push_back(static_cast<std::uint8_t>(opcode));
  fixups_.push_back({code_.size(), distance_bytes, to});
  code_.resize(code_.size() + distance_bytes);
}

std::vector<std::uint8_t> CodeText::finish() const {
  std::vector<std::uint8_t> code = code_;
  for (const Fixup& fixup : fixups_) {
    const std::size_t distance = labels_.at(fixup.to) - (fixup.at + fixup.bytes);
    for (unsigned i = 0; i < fixup.bytes; ++i)
      code.at(fixup.at + i) = static_cast<std::uint8_t>(distance >> (8 * i));
  }
  return code;
}

void load_long_program(ModelProcessor& processor, unsigned seed) {
  constexpr unsigned kStretches = 14, kInstructions = 110;
  std::mt19937_64 random(seed);
  std::uint16_t segment = kProgramSegment, offset = kProgramOffset;
  put(processor, 0xffff0, {0xea, 0x00, 0xe0, 0x00, 0xf0});  // jmp F000:E000
  for (unsigned n = 0; n <= kStretches; ++n) {
    CodeText text;
    if (n == 0) {
      set_up(text, seed % 2 != 0);
      text.bytes({0xfb});  // sti
    }
    // Where the next one is: any segment of memory that neither data nor code is in.
    const auto next = static_cast<std::uint16_t>((n * 0x1000 + 0x1000 + random() % 0x700) & 0xffff);
    const auto next_offset = static_cast<std::uint16_t>(random() % 0x7000);
    if (n == kStretches) {
      waiting(text);
    } else {
      LongStretch(random, text).add(kInstructions);
      text.bytes({0xea, next_offset & 0xff, next_offset >> 8, next & 0xff, next >> 8});
      text.label("subroutine");
      text.bytes({0x51});  // push cx
      LongStretch(random, text, "s").add(3);
      text.bytes({0x59, 0xc3});  // pop cx; ret
    }
    put(processor, segment * 16u + offset, text.finish());
    segment = next;
    offset = next_offset;
  }
  put(processor, 0xf0000 + kTimerHandler,
      {0x50, 0x1e, 0xb8, 0x00, 0x03, 0x8e, 0xd8,        // push ax; push ds; mov ax,300h; mov ds,ax
       0xfe, 0x06, 0x70, 0x00, 0xb0, 0x20, 0xe6, 0x20,  // inc byte [70]; mov al,20h; out 20h,al
       0x1f, 0x58, 0xcf});                              // pop ds; pop ax; iret
}

void load_program(ModelProcessor& processor, const ModelTraits& traits, bool odd_stack) {
  CodeText text;
  set_up(text, odd_stack);
  strings(text);
  loops_and_ports(text);
  if (traits.has_186) instructions_of_the_186(text);
  if (traits.has_nec) instructions_of_nec(text);
  if (traits.has_8087) instructions_of_the_8087(text);
  waiting(text);
  put(processor, 0xffff0, {0xea, 0x00, 0xe0, 0x00, 0xf0});  // jmp F000:E000
  put(processor, 0xf0000 + kProgramOffset, text.finish());
  put(processor, 0xf0000 + kTimerHandler,
      {0x50, 0x1e, 0xb8, 0x00, 0x03, 0x8e, 0xd8,        // push ax; push ds; mov ax,300h; mov ds,ax
       0xfe, 0x06, 0x70, 0x00, 0xb0, 0x20, 0xe6, 0x20,  // inc byte [70]; mov al,20h; out 20h,al
       0x1f, 0x58, 0xcf});                              // pop ds; pop ax; iret
  put(processor, 0xf0000 + kUndefinedHandler,
      {0x55, 0x89, 0xe5, 0xff, 0x46, 0x02, 0x5d, 0xcf});  // inc the return address; iret
  put(processor, 0xf0000 + 0xe880, {0x50, 0x58, 0xcb});   // push ax; pop ax; retf
  for (unsigned i = 0; i < 8; ++i) {
    processor.memory[0x3080 + i] =
        static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(1.5) >> (8 * i));
    processor.memory[0x3089 + i] =
        static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(2.0625) >> (8 * i));
  }
  processor.ports[0x60] = {0x1c};
  processor.ports[0x41] = {0x12};
  processor.ports[0x42] = {0x34};
  processor.ports[0x3c8] = {0x56, 0x78};
  processor.ports[0x3c9] = {0x9a};
  processor.ports[0x100] = {0xa1, 0xa2, 0xa3};
}

}  // namespace citcat::testing
