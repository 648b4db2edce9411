#pragma once
// The words of an emulator's command line: which are options, which are values, and what is in a
// value.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace citcat {

/// An option with its value, or a word that is an image of a disk: its name is "" then.
struct EmulatorOption {
  std::string name;  ///< without dashes
  std::optional<std::string> value;
};

/// The options of a command line, without its first word.
std::vector<EmulatorOption> emulator_options(const std::vector<std::string>& command);

/// Whether an image is no file but what a protocol of QEMU's reaches: "nbd:host:10809",
/// "fat:rw:dir".
bool has_protocol(const std::string& image);

/// A value inside an option with several: QEMU takes a doubled comma for one.
std::string escaped(const std::string& text);

/// "file=a,,b.img,if=ide" as the parts "file=a,b.img" and "if=ide", and back.
std::vector<std::string> parts_of_value(const std::string& text);
std::string value_of_parts(const std::vector<std::string>& parts);

/// "file=a,,b.img,if=ide" as pairs; a word without a "=" has no value. Doubled commas are
/// single ones here.
class OptionValue {
 public:
  explicit OptionValue(const std::string& text);

  /// The word before the first comma where it has no "=": "user" of "user,id=net".
  std::string head() const;
  std::optional<std::string> get(const std::string& key) const;
  /// For -drive: whether keys like "file.filename" say what is in it.
  bool names_file_otherwise() const;
  void remove(const std::string& key);
  /// Replaces what the key has, or adds it at the end.
  void set(const std::string& key, const std::string& value);
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> parts_;
};

}  // namespace citcat
