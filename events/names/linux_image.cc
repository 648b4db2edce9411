#include "events/names/linux_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <optional>

#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kSetupSectors = 0x1f1, kMagicAt = 0x202, kVersionAt = 0x206,
                      kPayloadOffset = 0x248;
constexpr std::uint16_t kFirstWithPayload = 0x208;
constexpr std::size_t kSectorBytes = 512, kDefaultSetupSectors = 4;
/// After what is compressed, by all but gzip: the size of what it was.
constexpr std::size_t kSizeBytes = 4;
/// A kernel with everything that a debugger needs has some 500 MB.
constexpr std::uint64_t kMaxKernelBytes = std::uint64_t{1} << 30;

// scripts/kallsyms.c.
constexpr std::size_t kTokens = 256, kMarkerStep = 256;
constexpr std::size_t kLongestToken = 64;
/// More than any name takes, compressed, with its length.
constexpr std::size_t kLongestEntry = 514;
constexpr std::uint32_t kMostSymbols = 1u << 22;
/// Places that look like markers and are none: there are few in a kernel.
constexpr unsigned kMostTries = 1024;

std::uint32_t u32(Bytes image, std::size_t at) {
  return std::uint32_t{image[at]} | std::uint32_t{image[at + 1]} << 8 |
         std::uint32_t{image[at + 2]} << 16 | std::uint32_t{image[at + 3]} << 24;
}
std::uint16_t u16(Bytes image, std::size_t at) {
  return static_cast<std::uint16_t>(image[at] | image[at + 1] << 8);
}
std::size_t aligned(std::size_t at, std::size_t to) { return (at + to - 1) / to * to; }

/// A kernel's tables of names, found one after the other.
class Kallsyms {
 public:
  explicit Kallsyms(Bytes image) : image_(image) {}

  std::string text() {
    for (std::size_t at = 0; at + 2 * kTokens <= image_.size(); at += 4) {
      if (!is_token_index(at) || !find_tokens(at) || !find_names()) continue;
      for (const std::size_t word : {4u, 8u}) {
        if (find_addresses(word)) return make_text();
      }
    }
    return "";
  }

 private:
  /// 256 numbers, the first 0, each larger than the one before by a token's length.
  bool is_token_index(std::size_t at) const {
    if (u16(image_, at) != 0) return false;
    for (std::size_t i = 1; i < kTokens; ++i) {
      const int step = u16(image_, at + 2 * i) - u16(image_, at + 2 * i - 2);
      if (step < 2 || step > static_cast<int>(kLongestToken)) return false;
    }
    return true;
  }

  /// The tokens, each with a zero after it, lie before their index. Digits, of which every kernel
  /// has names, stand for themselves.
  bool find_tokens(std::size_t index) {
    const std::size_t last = u16(image_, index + 2 * (kTokens - 1));
    for (std::size_t size = last + 2; size <= last + kLongestToken + 8 && size <= index; ++size) {
      const std::size_t table = index - size;
      if (table % 4 == 0 && reads_as_tokens(table, index)) {
        tokens_at_ = table;
        index_at_ = index;
        return true;
      }
    }
    return false;
  }
  bool reads_as_tokens(std::size_t table, std::size_t index) {
    for (std::size_t i = 0; i < kTokens; ++i) {
      const std::size_t begin = table + u16(image_, index + 2 * i);
      const void* const zero = std::memchr(&image_[begin], 0, index - begin);
      if (zero == nullptr) return false;
      const auto end =
          static_cast<std::size_t>(static_cast<const std::uint8_t*>(zero) - &image_[0]);
      const std::size_t next = i + 1 < kTokens ? table + u16(image_, index + 2 * i + 2) : end + 1;
      if (end == begin || end + 1 != next) return false;
      tokens_[i].assign(reinterpret_cast<const char*>(&image_[begin]), end - begin);
    }
    return tokens_['0'] == "0" && tokens_['1'] == "1";
  }

  /// Where every 256th name begins among the names: numbers from 0 on that grow by what 256 names
  /// take. They lie before the tokens, since 6.2 with three bytes for each symbol in between.
  bool find_names() {
    std::size_t end = tokens_at_ & ~std::size_t{3};
    for (unsigned tries = 0; end >= 8 && tries < kMostTries;) {
      std::size_t begin = end - 4;
      while (begin >= 4 && follows(u32(image_, begin - 4), u32(image_, begin))) begin -= 4;
      if (u32(image_, begin) == 0 && end - begin >= 8) {
        if (find_names_before(begin, end)) return true;
        ++tries;
      }
      end = begin == end - 4 ? end - 4 : begin + 4;
    }
    return false;
  }
  static bool follows(std::uint32_t before, std::uint32_t marker) {
    return marker > before && marker - before >= 2 * kMarkerStep &&
           marker - before <= kLongestEntry * kMarkerStep;
  }
  bool find_names_before(std::size_t markers, std::size_t end) {
    const std::size_t count = (end - markers) / 4;
    const std::size_t last = u32(image_, end - 4), most = last + kLongestEntry * kMarkerStep + 8;
    if (last > markers) return false;
    for (std::size_t at = (markers - last) & ~std::size_t{3}; at >= 8 && markers - at <= most;
         at -= 4) {
      for (const std::size_t word : {4u, 8u}) {
        const std::uint32_t symbols = u32(image_, at - word);
        if (symbols > kMostSymbols || (symbols + kMarkerStep - 1) / kMarkerStep != count) continue;
        if (!names_agree(at, symbols, markers)) continue;
        names_at_ = at;
        count_at_ = at - word;
        symbols_ = symbols;
        return true;
      }
    }
    return false;
  }
  /// The entry of a name: where its tokens are, and how many.
  struct Entry {
    std::size_t begin = 0, tokens = 0;
  };
  /// Nullopt where it would go beyond `end`.
  std::optional<Entry> entry_at(std::size_t at, std::size_t end) const {
    if (at >= end) return std::nullopt;
    Entry entry{at + 1, image_[at]};
    if ((entry.tokens & 0x80) != 0) {
      if (entry.begin >= end) return std::nullopt;
      entry.tokens = (entry.tokens & 0x7f) | std::size_t{image_[entry.begin++]} << 7;
    }
    if (entry.tokens == 0 || entry.tokens > end - entry.begin) return std::nullopt;
    return entry;
  }
  bool names_agree(std::size_t names, std::uint32_t symbols, std::size_t markers) const {
    std::size_t at = names;
    for (std::uint32_t i = 0; i < symbols; ++i) {
      if (i % kMarkerStep == 0 && u32(image_, markers + i / kMarkerStep * 4) != at - names) {
        return false;
      }
      const auto entry = entry_at(at, markers);
      if (!entry) return false;
      at = entry->begin + entry->tokens;
    }
    return aligned(at, 8) >= markers;
  }

  /// Addresses are differences to a base: before the names, or after the tokens' index.
  bool find_addresses(std::size_t word) {
    const std::size_t size = std::size_t{symbols_} * 4;
    const std::size_t behind = aligned(index_at_ + 2 * kTokens, word);
    if (count_at_ >= word && size <= count_at_ - word &&
        addresses_agree((count_at_ - word - size) & ~(word - 1), count_at_ - word, word)) {
      return true;
    }
    return addresses_agree(behind, aligned(behind + size, word), word);
  }
  /// They grow, the first of a kernel's code being the base.
  bool addresses_agree(std::size_t offsets, std::size_t base_at, std::size_t word) {
    if (base_at + word > image_.size() || offsets + std::size_t{symbols_} * 4 > image_.size()) {
      return false;
    }
    base_ = u32(image_, base_at);
    if (word == 8) base_ |= std::uint64_t{u32(image_, base_at + 4)} << 32;
    offsets_at_ = offsets;
    if (base_ == 0 || (base_ & 0xfff) != 0) return false;
    std::uint64_t before = 0;
    for (std::uint32_t i = 0; i < symbols_; ++i) {
      const std::uint64_t address = address_of(i);
      if (address < before) return false;
      before = address;
    }
    return before > base_;
  }
  /// kernel/kallsyms.c, kallsyms_sym_address(): with absolute addresses among them, of a
  /// processor's own variables, the differences are negative and count from one below.
  std::uint64_t address_of(std::uint32_t i) const {
    const std::uint32_t stored = u32(image_, offsets_at_ + std::size_t{i} * 4);
    const auto offset = static_cast<std::int32_t>(stored);
    if (offset < 0) return base_ - 1 - static_cast<std::uint64_t>(std::int64_t{offset});
    return has_absolute() ? stored : base_ + stored;
  }
  bool has_absolute() const {
    return (u32(image_, offsets_at_ + std::size_t{symbols_ - 1} * 4) & 0x80000000) != 0;
  }

  std::string make_text() const {
    std::string text;
    std::size_t at = names_at_;
    for (std::uint32_t i = 0; i < symbols_; ++i) {
      const Entry entry = *entry_at(at, image_.size());
      std::string name;
      for (std::size_t t = 0; t < entry.tokens; ++t) name += tokens_[image_[entry.begin + t]];
      at = entry.begin + entry.tokens;
      if (name.size() < 2) continue;
      text += fmt::format("{:08x} {} {}\n", address_of(i), name[0], name.substr(1));
    }
    return text;
  }

  Bytes image_;
  std::array<std::string, kTokens> tokens_;
  std::size_t tokens_at_ = 0, index_at_ = 0, names_at_ = 0, count_at_ = 0, offsets_at_ = 0;
  std::uint32_t symbols_ = 0;
  std::uint64_t base_ = 0;
};

}  // namespace

bool is_boot_image(std::span<const std::uint8_t> head) {
  return head.size() >= kBootImageHead && std::memcmp(&head[kMagicAt], "HdrS", 4) == 0;
}

std::vector<std::uint8_t> unpack_boot_image(std::span<const std::uint8_t> file,
                                            const std::string& source) {
  if (!is_boot_image(file)) throw FormatError(source, 0, "expected a kernel, found another file");
  const std::uint16_t version = u16(file, kVersionAt);
  if (version < kFirstWithPayload) {
    throw FormatError(source, kVersionAt,
                      "expected a kernel from Linux 2.6.26 on, found an older one");
  }
  const std::size_t sectors = file[kSetupSectors] != 0 ? file[kSetupSectors] : kDefaultSetupSectors;
  ByteReader in(file, source);
  in.skip((sectors + 1) * kSectorBytes, "setup code");
  in.skip(u32(file, kPayloadOffset), "code before the kernel");
  const std::uint64_t at = in.offset();
  Bytes payload = in.bytes(u32(file, kPayloadOffset + 4), "compressed kernel");
  constexpr std::array<std::uint8_t, 2> kGzip{0x1f, 0x8b};
  const bool gzip =
      payload.size() > kSizeBytes && std::equal(kGzip.begin(), kGzip.end(), payload.begin());
  if (!gzip && payload.size() > kSizeBytes) payload = payload.first(payload.size() - kSizeBytes);
  InputStream stream(payload, source + " (the kernel in it)");
  if (stream.compression() == Compression::none) {
    throw FormatError(
        source, at,
        "expected a kernel compressed by gzip, xz or zstd, found one compressed otherwise");
  }
  std::vector<std::uint8_t> kernel;
  for (Bytes block = stream.next_block(); !block.empty(); block = stream.next_block()) {
    if (kernel.size() + block.size() > kMaxKernelBytes) {
      throw FormatError(source, at, "expected a kernel of at most 1 GiB, found a larger one");
    }
    kernel.insert(kernel.end(), block.begin(), block.end());
  }
  return kernel;
}

std::string kallsyms_of_image(std::span<const std::uint8_t> image) {
  return Kallsyms(image).text();
}

}  // namespace citcat
