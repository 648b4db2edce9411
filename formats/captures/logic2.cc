#include "formats/captures/logic2.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "formats/captures/channel_changes.h"
#include "formats/captures/saleae.h"
#include "formats/io/error.h"
#include "formats/io/zip_reader.h"

namespace citcat {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kOldForm = 1, kNewForm = 3;
constexpr std::uint32_t kDigitalData = 100;
constexpr std::size_t kMostMetaBytes = std::size_t{64} << 20;
/// Logic 2 itself begins a new chunk after some millions of samples.
constexpr std::uint64_t kMostRunBytes = std::uint64_t{256} << 20;

constexpr const char* kExportInstead =
    "; open the capture in Logic 2 and export its raw data (File, Export Raw Data)";

/// A member of the ZIP file, a few bytes at a time.
class MemberBytes {
 public:
  MemberBytes(const ZipReader& zip, std::size_t entry) : member_(zip, entry), buffer_(1 << 16) {}

  const std::string& name() const { return member_.name(); }
  std::uint64_t offset() const { return before_ + at_; }
  bool at_end() { return at_ == held_ && !fill(); }

  void read(std::span<std::uint8_t> out, const char* field) {
    for (std::uint8_t& byte : out) {
      if (at_end())
        throw FormatError(name(), offset(), std::string("expected ") + field + ", found the end");
      byte = buffer_[at_++];
    }
  }
  void skip(std::uint64_t bytes, const char* field) {
    for (std::uint8_t byte = 0; bytes != 0; --bytes) read({&byte, 1}, field);
  }
  template <std::size_t kBytes>
  std::uint64_t number(const char* field) {
    std::array<std::uint8_t, kBytes> bytes;
    read(bytes, field);
    std::uint64_t value = 0;
    for (std::size_t i = kBytes; i-- != 0;) value = value << 8 | bytes[i];
    return value;
  }

 private:
  bool fill() {
    before_ += held_;
    at_ = 0;
    held_ = member_.read(buffer_);
    return held_ != 0;
  }

  ZipReader::Member member_;
  std::vector<std::uint8_t> buffer_;
  std::size_t at_ = 0, held_ = 0;
  std::uint64_t before_ = 0;
};

/// The changes of one channel: chunks of runs, which say for how many samples the level stays.
class SavedChannel final : public ChannelChanges {
 public:
  SavedChannel(const ZipReader& zip, std::size_t entry) : bytes_(zip, entry) {
    read_head();
    if (chunks_ == 0) fail(bytes_.offset() - 8, "expected at least one chunk, found none");
    read_chunk();
    initial_ = level_;
    begin_ = position_;
  }

  double rate() const { return rate_; }
  std::uint64_t begin() const { return begin_; }
  const std::string& name() const { return bytes_.name(); }
  /// Sample 0 of the capture is Logic 2's sample `origin`. To be called before next().
  void count_from(std::uint64_t origin) { origin_ = origin; }

  bool initial() const override { return initial_; }

  std::optional<std::uint64_t> next() override {
    for (;;) {
      if (at_ == runs_.size()) {
        if (position_ != end_)
          fail(bytes_.offset(), "expected runs of " + std::to_string(end_ - position_) +
                                    " more samples, found the end of the chunk");
        if (chunks_ == 0) return end();
        const bool before = level_;
        read_chunk();
        if (level_ != before) return position_ - origin_;
        continue;
      }
      const std::uint64_t run = next_run();
      if (run > end_ - position_)
        fail(bytes_.offset(), "expected a run of at most " + std::to_string(end_ - position_) +
                                  " samples, found one of " + std::to_string(run));
      position_ += run;
      if (at_ == runs_.size()) continue;  // goes on in the next chunk, or changes there
      level_ = !level_;
      return position_ - origin_;
    }
  }

  std::string warning() const override {
    return gaps_ ? "the capture has gaps: what happened in them is not known" : "";
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const {
    throw FormatError(bytes_.name(), offset, what);
  }

  void read_head() {
    std::array<std::uint8_t, 8> magic;
    bytes_.read(magic, "'<SALEAE>'");
    if (!is_saleae(magic)) fail(0, "expected '<SALEAE>', found something else");
    version_ = static_cast<std::uint32_t>(bytes_.number<4>("version"));
    const std::uint64_t type = bytes_.number<4>("type");
    if (version_ != kOldForm && version_ != kNewForm)
      fail(8, "expected version 1 or 3 of what Logic 2 saves, found " + std::to_string(version_) +
                  kExportInstead);
    if (type != kDigitalData)
      fail(12, "expected digital data (type 100), found type " + std::to_string(type));
    if (const std::uint64_t form = bytes_.number<1>("form"); form != 1)
      fail(16, "expected form 1, found " + std::to_string(form) + kExportInstead);
    rate_ = std::bit_cast<double>(bytes_.number<8>("sample rate"));
    if (!(rate_ > 0 && rate_ < 1e15)) fail(17, "expected a sample rate in hertz");
    bytes_.skip(16, "time of the capture");
    for (int i = 0; i < 2; ++i) {  // the part that was asked for around a trigger
      if (bytes_.number<1>("mark of the trigger") != 0) bytes_.skip(8, "place of the trigger");
    }
    chunks_ = bytes_.number<8>("number of chunks");
  }

  void read_chunk() {
    --chunks_;
    const std::uint64_t offset = bytes_.offset();
    const std::uint64_t start = bytes_.number<8>("first sample of a chunk");
    const std::uint64_t end = bytes_.number<8>("last sample of a chunk");
    if (start > end || start < end_)
      fail(offset, "expected a chunk of samples from " + std::to_string(end_) + " on, found " +
                       std::to_string(start) + " to " + std::to_string(end));
    gaps_ = gaps_ || (end_ != 0 && start != end_);
    position_ = start;
    end_ = end;
    at_ = 0;
    if (version_ == kNewForm) {
      level_ = bytes_.number<2>("level") != 0;
      read_runs();
    } else {
      bytes_.skip(24, "length and rate of a chunk");
      read_runs();
      read_index();
    }
  }

  void read_runs() {
    const std::uint64_t size = bytes_.number<8>("size of the runs");
    if (size > kMostRunBytes)
      fail(bytes_.offset() - 8, "expected at most 256 MiB of runs, found " + std::to_string(size));
    runs_.clear();
    while (runs_.size() < size) {
      // Little by little: a damaged size shall not take memory that the file does not fill.
      const std::size_t more = std::min<std::size_t>(size - runs_.size(), 1 << 16);
      runs_.resize(runs_.size() + more);
      bytes_.read(std::span(runs_).last(more), "runs");
    }
  }

  /// Places within the runs, for who wants to begin there; the first has the level of the chunk.
  void read_index() {
    const std::uint64_t places = bytes_.number<8>("number of places");
    if (places == 0) fail(bytes_.offset() - 8, "expected at least one place, found none");
    bytes_.skip(16, "place");
    level_ = bytes_.number<4>("level") != 0;
    for (std::uint64_t i = 1; i < places; ++i) bytes_.skip(20, "place");
  }

  /// Big-endian digits to base 128 of the run less one sample: the first byte has 6 bits of them
  /// and says in bit 6 whether there are more; each further one says so in bit 7.
  std::uint64_t next_run() {
    std::uint8_t byte = runs_[at_++];
    if (byte >= 0x80) fail(bytes_.offset(), "expected a run, found the middle of one");
    std::uint64_t value = byte & 0x3f;
    for (bool more = byte >= 0x40; more; more = byte >= 0x80) {
      if (at_ == runs_.size() || value >> 56 != 0)
        fail(bytes_.offset(), "expected the last byte of a run within its chunk");
      byte = runs_[at_++];
      value = value << 7 | (byte & 0x7f);
    }
    return value + 1;
  }

  std::optional<std::uint64_t> end() {
    if (!bytes_.at_end())
      fail(bytes_.offset(),
           std::string("expected the end after the last chunk, found more") + kExportInstead);
    return std::nullopt;
  }

  MemberBytes bytes_;
  std::uint32_t version_ = 0;
  std::uint64_t chunks_ = 0;  ///< still to be read
  double rate_ = 0;
  std::vector<std::uint8_t> runs_;  ///< of this chunk
  std::size_t at_ = 0;              ///< in runs_
  std::uint64_t position_ = 0, end_ = 0, begin_ = 0, origin_ = 0;
  bool level_ = false, initial_ = false, gaps_ = false;
};

const Json& member_of(const Json& object, const char* name) {
  static const Json kNothing;
  const auto it = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && it != object.end() ? *it : kNothing;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<std::uint64_t> channel_number(const Json& channel) {
  for (const char* const name : {"deviceChannel", "index"}) {
    if (const Json& number = member_of(channel, name); number.is_number_unsigned())
      return number.get<std::uint64_t>();
  }
  return std::nullopt;
}

bool is_digital(const Json& channel) { return text_of(member_of(channel, "type")) == "Digital"; }

/// The names that somebody gave the channels, by their numbers.
std::map<std::uint64_t, std::string> given_names(const Json& meta) {
  std::map<std::uint64_t, std::string> names;
  for (const Json& row : member_of(member_of(meta, "data"), "rowsSettings")) {
    const Json& channel = member_of(row, "channel");
    const std::optional<std::uint64_t> number = channel_number(channel);
    if (number && is_digital(channel)) names.emplace(*number, text_of(member_of(row, "name")));
  }
  return names;
}

struct NamedMember {
  std::string channel, file;
};

std::vector<NamedMember> digital_members(const ZipReader& zip) {
  const Json meta = Json::parse(zip.read_text("meta.json", kMostMetaBytes), nullptr, false);
  if (!meta.is_object())
    throw FormatError(zip.name(), 0, "expected a JSON object in meta.json, found something else");
  const std::map<std::uint64_t, std::string> names = given_names(meta);
  std::vector<NamedMember> members;
  for (const Json& part : member_of(meta, "binData")) {
    if (!is_digital(part)) continue;
    std::string file = text_of(member_of(part, "file"));
    if (file.starts_with("./")) file.erase(0, 2);
    std::string name = file;
    if (const auto number = channel_number(part)) {
      const auto given = names.find(*number);
      name =
          given != names.end() && !given->second.empty() ? given->second : std::to_string(*number);
    }
    members.push_back({std::move(name), std::move(file)});
  }
  if (members.empty())
    throw FormatError(zip.name(), 0,
                      "expected digital channels in 'binData' of meta.json, found none");
  return members;
}

/// Reads from a ZIP file that it keeps open.
class SavedCapture final : public SampleSource {
 public:
  explicit SavedCapture(std::unique_ptr<ZipReader> zip) : zip_(std::move(zip)) {
    SampleInfo info;
    info.name = zip_->name();
    std::vector<std::unique_ptr<ChannelChanges>> channels;
    std::vector<SavedChannel*> saved;
    for (NamedMember& member : digital_members(*zip_)) {
      info.channels.push_back(std::move(member.channel));
      auto channel = std::make_unique<SavedChannel>(*zip_, entry_of(member.file));
      saved.push_back(channel.get());
      channels.push_back(std::move(channel));
    }
    info.sample_rate_hz = saved[0]->rate();
    std::uint64_t begin = saved[0]->begin();
    for (SavedChannel* channel : saved) {
      begin = std::min(begin, channel->begin());
      if (channel->rate() != info.sample_rate_hz)
        throw FormatError(channel->name(), 17, "expected the sample rate of the other channels");
    }
    for (SavedChannel* channel : saved) channel->count_from(begin);
    merged_ = merge_channels(std::move(info), std::move(channels));
  }

  const SampleInfo& info() const override { return merged_->info(); }
  bool next(SampleBlock& out) override { return merged_->next(out); }
  std::vector<std::string> warnings() const override { return merged_->warnings(); }

 private:
  std::size_t entry_of(const std::string& file) const {
    const int entry = zip_->find(file);
    if (entry < 0)
      throw FormatError(zip_->name(), 0,
                        "expected a member '" + file + "', which meta.json names, found none");
    return static_cast<std::size_t>(entry);
  }

  std::unique_ptr<ZipReader> zip_;
  std::unique_ptr<SampleSource> merged_;
};

}  // namespace

std::unique_ptr<SampleSource> open_logic2(const std::string& path) {
  return std::make_unique<SavedCapture>(std::make_unique<ZipReader>(path));
}

std::unique_ptr<SampleSource> open_logic2(std::string name, std::span<const std::uint8_t> bytes) {
  return std::make_unique<SavedCapture>(std::make_unique<ZipReader>(std::move(name), bytes));
}

}  // namespace citcat
