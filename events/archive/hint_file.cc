// Hints as JSON, for people to review.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "events/hint.h"
#include "formats/io/error.h"
#include "formats/io/input.h"
#include "formats/io/json_text.h"

namespace citcat {
namespace {

constexpr int kVersion = 1;

/// A hint changes no more than another bus master writes at once in any capture.
constexpr std::size_t kMaxData = 4096;
/// Thousands of hints: nobody reviews more.
constexpr std::uint64_t kMaxHintFileBytes = std::uint64_t{16} << 20;

/// What a kind of hint says besides its kind.
enum Field : std::uint8_t {
  kPosition = 1,
  kTransaction = 2,
  kAddress = 4,
  kData = 8,
  kName = 16,
  kValue = 32,
};
struct KindRow {
  Hint::Kind kind;
  const char* name;
  unsigned fields;
};
constexpr std::array<KindRow, 13> kKinds{{
    {Hint::Kind::memory, "memory", kAddress | kData},
    {Hint::Kind::register_value, "register", kName | kValue},
    {Hint::Kind::external_write, "external_write", kPosition | kTransaction | kAddress | kData},
    {Hint::Kind::no_external_write, "no_external_write", kTransaction | kAddress},
    {Hint::Kind::port_read, "port_read", kTransaction | kValue},
    {Hint::Kind::internal_read, "internal_read", kPosition | kValue},
    {Hint::Kind::interrupt, "interrupt", kPosition | kTransaction | kValue},
    {Hint::Kind::added_interrupt, "added_interrupt", kPosition | kTransaction | kName | kValue},
    {Hint::Kind::no_interrupt, "no_interrupt", kTransaction},
    {Hint::Kind::captured_write, "captured_write", kTransaction | kAddress | kData},
    {Hint::Kind::added_captured_write, "added_captured_write",
     kPosition | kTransaction | kAddress | kData},
    {Hint::Kind::no_captured_write, "no_captured_write", kTransaction},
    {Hint::Kind::result, "result", kPosition | kTransaction | kAddress | kData},
}};

const KindRow& row_of(Hint::Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

class HintParser {
 public:
  HintParser(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  HintFile parse() {
    const nlohmann::json root = parse_json();
    if (!root.is_object() || !root.contains("citcat_hints"))
      fail("citcat_hints", "expected a file of hints, found no such key");
    if (number(root, "citcat_hints") != kVersion) {
      fail("citcat_hints", fmt::format("expected version {}, found another", kVersion));
    }
    HintFile file;
    if (root.contains("recording")) file.recording = string(root, "recording");
    const auto hints = root.find("hints");
    if (hints == root.end() || !hints->is_array()) fail("hints", "expected a list");
    for (const nlohmann::json& hint : *hints) file.hints.push_back(parse_hint(hint));
    return file;
  }

 private:
  nlohmann::json parse_json() const {
    try {
      return nlohmann::json::parse(text_);
    } catch (const nlohmann::json::parse_error& error) {
      throw FormatError(source_, error.byte > 0 ? error.byte - 1 : 0,
                        "expected JSON text, found something else");
    } catch (const nlohmann::json::exception&) {
      throw FormatError(source_, 0, "expected JSON text with ordinary numbers, found another");
    }
  }

  Hint parse_hint(const nlohmann::json& json) const {
    if (!json.is_object()) fail("hints", "expected objects");
    const std::string kind = string(json, "kind");
    const auto row = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const KindRow& r) { return kind == r.name; });
    if (row == kKinds.end()) fail("kind", "expected a kind of hint, found " + kind);
    Hint hint;
    hint.kind = row->kind;
    if ((row->fields & kPosition) != 0) {
      const auto position = json.find("position");
      if (position == json.end() || !position->is_object()) fail("position", "expected an object");
      hint.position.instruction = number(*position, "instruction");
      hint.position.iteration = static_cast<std::uint32_t>(number(*position, "iteration"));
    }
    if ((row->fields & kTransaction) != 0) hint.transaction = number(json, "transaction");
    if ((row->fields & kAddress) != 0) {
      hint.address.value = number(json, "address", kAddressBits);
    }
    if ((row->fields & kData) != 0) hint.data = bytes(json, "data");
    if ((row->fields & kName) != 0) hint.name = string(json, "name");
    if ((row->fields & kValue) != 0) hint.value = number(json, "value");
    if (hint.kind == Hint::Kind::internal_read && json.contains("number")) {
      hint.number = number(json, "number");
    }
    if (hint.kind == Hint::Kind::no_captured_write && json.contains("data")) {
      hint.data = bytes(json, "data");
    }
    if (json.contains("write_back")) hint.write_back = number(json, "write_back") != 0;
    if (json.contains("because")) hint.because = string(json, "because");
    return hint;
  }

  std::string string(const nlohmann::json& json, const char* key) const {
    const auto value = json.find(key);
    if (value == json.end() || !value->is_string()) fail(key, "expected a text");
    return value->get<std::string>();
  }

  std::uint64_t number(const nlohmann::json& json, const char* key, unsigned bits = 64) const {
    const auto value = json.find(key);
    if (value == json.end()) fail(key, "expected a number, found no such key");
    std::uint64_t result = 0;
    bool good = value->is_number_unsigned();
    if (good) result = value->get<std::uint64_t>();
    if (value->is_string()) {
      const std::string text = value->get<std::string>();
      const bool hexadecimal = text.starts_with("0x");
      const char* const begin = text.data() + (hexadecimal ? 2 : 0);
      const char* const end = text.data() + text.size();
      const auto parsed = std::from_chars(begin, end, result, hexadecimal ? 16 : 10);
      good = begin != end && parsed.ec == std::errc() && parsed.ptr == end;
    }
    if (!good || (bits < 64 && result >> bits != 0))
      fail(key, fmt::format("expected a number of {} bits, found another", bits));
    return result;
  }

  std::vector<std::uint8_t> bytes(const nlohmann::json& json, const char* key) const {
    const std::string text = string(json, key);
    std::vector<std::uint8_t> result(text.size() / 2);
    bool good = text.size() % 2 == 0 && !result.empty() && result.size() <= kMaxData;
    for (std::size_t i = 0; good && i < result.size(); ++i) {
      const char* const digits = text.data() + 2 * i;
      const auto parsed = std::from_chars(digits, digits + 2, result[i], 16);
      good = parsed.ec == std::errc() && parsed.ptr == digits + 2;
    }
    if (!good) fail(key, "expected 1 to 4096 bytes of two hexadecimal digits each");
    return result;
  }

  [[noreturn]] void fail(const std::string& key, const std::string& message) const {
    const std::size_t at = text_.find('"' + key + '"');
    throw FormatError(source_, at == std::string::npos ? 0 : at, "\"" + key + "\": " + message);
  }

  const std::string& text_;
  const std::string& source_;
};

nlohmann::ordered_json hint_json(const Hint& hint) {
  const KindRow& row = row_of(hint.kind);
  nlohmann::ordered_json json;
  json["kind"] = row.name;
  if ((row.fields & kPosition) != 0) {
    json["position"] = {{"instruction", hint.position.instruction},
                        {"iteration", hint.position.iteration}};
  }
  if ((row.fields & kTransaction) != 0) json["transaction"] = hint.transaction;
  if ((row.fields & kAddress) != 0) json["address"] = fmt::format("0x{:08x}", hint.address.value);
  if ((row.fields & kData) != 0 || !hint.data.empty()) {
    std::string digits;
    for (const std::uint8_t b : hint.data) digits += fmt::format("{:02x}", b);
    json["data"] = digits;
  }
  if ((row.fields & kName) != 0) json["name"] = hint.name;
  if ((row.fields & kValue) != 0) json["value"] = fmt::format("0x{:x}", hint.value);
  if (hint.number) json["number"] = *hint.number;
  if (hint.write_back) json["write_back"] = 1;
  if (!hint.because.empty()) json["because"] = hint.because;
  return json;
}

}  // namespace

std::string_view hint_kind_name(Hint::Kind kind) { return row_of(kind).name; }

HintFile parse_hints(const std::string& text, const std::string& source) {
  return HintParser(text, source).parse();
}

HintFile load_hints(const std::string& path) {
  const std::vector<std::uint8_t> bytes = read_whole_file(path, kMaxHintFileBytes);
  return parse_hints({bytes.begin(), bytes.end()}, path);
}

std::string hints_text(const HintFile& file) {
  nlohmann::ordered_json json;
  json["citcat_hints"] = kVersion;
  if (!file.recording.empty()) json["recording"] = file.recording;
  json["hints"] = nlohmann::ordered_json::array();
  for (const Hint& hint : file.hints) json["hints"].push_back(hint_json(hint));
  return json_text(json, 1) + "\n";
}

}  // namespace citcat
