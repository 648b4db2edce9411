#pragma once
// Samples written as other programs save them, from what docs/formats/ says of those programs; for
// tests of the readers, with which it shares no code.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace citcat::test {

/// Samples of a few channels, each 0 or 1.
struct Samples {
  std::vector<std::string> names;
  std::size_t unit = 0;             ///< bytes of a sample
  std::vector<std::uint8_t> bytes;  ///< channel c is bit c % 8 of byte c / 8
  double rate = 1e7;                ///< of the sampling, Hz

  std::size_t count() const { return bytes.size() / unit; }
  bool level(std::size_t sample, std::size_t channel) const {
    return ((bytes[sample * unit + channel / 8] >> (channel % 8)) & 1) != 0;
  }
  void set(std::size_t sample, std::size_t channel, bool level);
  bool changes(std::size_t sample) const;  ///< from the sample before
  std::size_t channel(const std::string& name) const;
};

/// The first samples of a sigrok session.
Samples read_samples(const std::string& session, std::size_t count);

using ZipMembers = std::vector<std::pair<std::string, std::vector<char>>>;
void write_zip(const std::filesystem::path& path, const ZipMembers& members);

void write_sigrok(const Samples& samples, const std::filesystem::path& path);
/// Version 3, its planes in two blocks each.
void write_dsview(const Samples& samples, const std::filesystem::path& path);
void write_dsview_csv(const Samples& samples, const std::filesystem::path& path);
/// A folder of one file a channel, version 0 or 1.
void write_saleae(const Samples& samples, const std::filesystem::path& folder, int version);
/// What Logic 2 itself saves (.sal), version 1 or 3, in chunks of 7,001 samples: the first one is
/// Logic 2's sample 5,000.
void write_logic2(const Samples& samples, const std::filesystem::path& path, int version);
void write_saleae_csv(const Samples& samples, const std::filesystem::path& path);
/// Channels lose their names; at most 64.
void write_ols(const Samples& samples, const std::filesystem::path& path);
/// Samples of an 8088, every second one, as labels of an HP 16500 or 1670, and the channel map that
/// names them.
void write_hp_listing(const Samples& samples, const std::filesystem::path& folder,
                      const std::filesystem::path& map);

}  // namespace citcat::test
