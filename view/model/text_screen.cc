#include "view/model/text_screen.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace citcat::view {

namespace {

/// Code page 437, the character set of the PC's display adapters (IBM PC Technical Reference,
/// appendix "Of Characters, Keystrokes, and Color").
constexpr std::array<std::u32string_view, 5> kCharacters{
    U" ☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼", U"ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒ",
    U"áíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐", U"└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀",
    U"αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■ "};
constexpr char32_t kDelete = U'\u2302', kUnknown = U'\u00b7';

constexpr std::uint32_t kColorText = 0xb8000, kMonochromeText = 0xb0000;
constexpr std::uint32_t kTextColumns = 80, kTextRows = 25;
/// Characters that must be seen for a screen to be one.
constexpr unsigned kFewest = 4;

/// The CRT controller's ports, and its registers 0Ch and 0Dh: where the screen begins in memory, in
/// characters (IBM EGA Technical Reference, "CRT Controller").
constexpr std::uint16_t kColorPort = 0x3d4, kMonochromePort = 0x3b4;
constexpr std::uint32_t kStartHigh = 0x0c, kStartLow = 0x0d;

char32_t character_of(std::uint8_t code) {
  if (code < 0x20) return kCharacters[0][code];
  if (code < 0x7f) return code;
  if (code == 0x7f) return kDelete;
  return kCharacters[1 + (code - 0x80u) / 32][code % 32];
}

void append_utf8(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xc0 | c >> 6);
    text += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    text += static_cast<char>(0xe0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (c & 0x3f));
  }
}

/// The CRT controller, as far as the program has set it.
struct ScreenStart {
  std::uint32_t index = 0;  ///< of the register that is written next
  std::uint32_t start = 0;  ///< where the screen begins, in characters
};

ScreenStart screen_start(const RunView& view, std::uint64_t instruction, std::uint16_t base) {
  ScreenStart screen;
  const auto set = [&](std::uint32_t number, std::uint32_t value) {
    if (number == kStartHigh) screen.start = (screen.start & 0xff) | (value & 0xff) << 8;
    if (number == kStartLow) screen.start = (screen.start & 0xff00) | (value & 0xff);
  };
  for (const RunEvent& event : view.index().events()) {
    if (event.instruction >= instruction) break;
    if (event.kind != RunEvent::Kind::port_write) continue;
    const auto value = static_cast<std::uint32_t>(event.value);
    if (event.port == base) {
      screen.index = value & 0xff;
      if (event.size == 2) set(screen.index, value >> 8);
    } else if (event.port == base + 1) {
      set(screen.index, value);
    }
  }
  return screen;
}

Json screen_at(const RunView& view, std::uint32_t memory, std::uint32_t start) {
  Json lines = Json::array();
  unsigned seen = 0;
  for (std::uint32_t row = 0; row < kTextRows; ++row) {
    std::string line;
    for (std::uint32_t column = 0; column < kTextColumns; ++column) {
      const std::uint32_t cell = (start + row * kTextColumns + column) & 0x3fff;
      const auto code = view.machine().memory().defined_byte(PhysAddr{memory + 2 * cell});
      if (code && *code > 0x20 && *code < 0x7f) ++seen;
      append_utf8(line, code ? character_of(*code) : kUnknown);
    }
    lines.push_back(line);
  }
  if (seen < kFewest) return nullptr;
  return {{"columns", kTextColumns}, {"rows", kTextRows}, {"lines", std::move(lines)}};
}

}  // namespace

Json text_screen(const RunView& view) {
  const std::uint64_t now = view.machine().position().instruction;
  Json screen = screen_at(view, kColorText, screen_start(view, now, kColorPort).start);
  if (!screen.is_null()) return screen;
  return screen_at(view, kMonochromeText, screen_start(view, now, kMonochromePort).start);
}

Json screen_starts(const RunView& view, std::uint64_t instruction) {
  Json json = Json::array();
  for (const std::uint16_t port : {kColorPort, kMonochromePort}) {
    const ScreenStart screen = screen_start(view, instruction, port);
    json.push_back({screen.index, screen.start});
  }
  return json;
}

}  // namespace citcat::view
