#include "cli/record/live_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "cli/record/emulator_program.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"
#include "formats/io/stored_bytes.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKind = "citcat live session";
constexpr std::uint64_t kMostText = std::uint64_t{16} << 20;

std::string session_file(const std::string& folder) { return folder + "/session.json"; }

/// All of a small file.
std::string text_of(const std::string& path) {
  StoredBytes bytes(path, path);
  std::string text;
  std::vector<std::uint8_t> part(std::size_t{1} << 16);
  for (std::size_t size; (size = bytes.take(part)) != 0;) {
    text.append(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(size));
    if (text.size() > kMostText)
      throw FormatError(path, kMostText, "expected the description of a session, found more");
  }
  return text;
}

LiveSession::Image hashed(const std::string& path) {
  StoredBytes bytes(path, path);
  Hasher128 hasher;
  LiveSession::Image image{path, 0, ""};
  std::vector<std::uint8_t> part(std::size_t{1} << 20);
  for (std::size_t size; (size = bytes.take(part)) != 0; image.bytes += size)
    hasher.update(std::span(part).first(size));
  image.xxh3 = hasher.value().hex();
  return image;
}

std::uint64_t big_endian(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (const std::uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

/// The image that a qcow2 file changes, by its header (QEMU, docs/interop/qcow2.rst): the offset of
/// the name at 8, its length at 16.
std::optional<std::string> backing_file(const std::string& path) {
  constexpr std::size_t kHead = 20, kMostName = 1023;
  constexpr std::array<std::uint8_t, 4> kMagic{'Q', 'F', 'I', 0xfb};
  std::array<std::uint8_t, kHead> head{};
  StoredBytes file(path, path);
  if (file.take(head) != kHead || !std::equal(kMagic.begin(), kMagic.end(), head.begin()))
    return std::nullopt;
  const std::uint64_t at = big_endian(std::span(head).subspan(8, 8));
  const std::uint64_t size = big_endian(std::span(head).subspan(16, 4));
  if (at == 0 || size == 0 || size > kMostName) return std::nullopt;
  StoredBytes named(path, path);
  named.seek(at);
  std::vector<std::uint8_t> name(size);
  if (named.take(name) != size) return std::nullopt;
  const std::string text(name.begin(), name.end());
  if (text.starts_with("json:") || text.find("://") != std::string::npos) return std::nullopt;
  return (fs::path(path).parent_path() / text).lexically_normal().string();
}

}  // namespace

std::vector<LiveSession::Image> hashed_images(const std::vector<std::string>& paths) {
  std::vector<LiveSession::Image> images;
  for (const std::string& given : paths) {
    for (std::optional<std::string> path = given; path; path = backing_file(*path)) {
      const bool known = std::any_of(images.begin(), images.end(),
                                     [&](const auto& image) { return image.path == *path; });
      if (known) break;
      images.push_back(hashed(*path));
    }
  }
  return images;
}

void write_session(const LiveSession& session) {
  nlohmann::ordered_json json;
  json["kind"] = kKind;
  json["version"] = 1;
  json["emulator"] = session.version;
  json["clock"] = session.clock;
  json["command"] = session.command;
  json["images"] = nlohmann::ordered_json::array();
  for (const LiveSession::Image& image : session.images)
    json["images"].push_back({{"path", image.path}, {"bytes", image.bytes}, {"xxh3", image.xxh3}});
  for (const KeptMoment& moment : session.kept)
    json["kept"].push_back({{"name", moment.name},
                            {"offset", moment.place.offset},
                            {"instructions", moment.place.instructions},
                            {"sent", moment.place.sent},
                            {"disk_requests", moment.place.disk_requests}});
  const std::string text = json.dump(2) + "\n";
  AtomicFile file(session_file(session.folder));
  file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  file.commit();
}

LiveSession open_session(const std::string& folder) {
  const std::string path = session_file(folder);
  std::error_code error;
  if (!fs::exists(path, error))
    throw IoError(
        fmt::format("{}: expected a session of record --live, found no session.json", folder));
  try {
    const auto json = nlohmann::json::parse(text_of(path));
    LiveSession session;
    session.folder = folder;
    if (json.at("kind") != kKind || json.at("version") != 1)
      throw FormatError(path, 0, "expected a live session of version 1, found another");
    session.version = json.at("emulator");
    session.clock = json.at("clock");
    session.command = json.at("command").get<std::vector<std::string>>();
    if (session.command.empty()) throw FormatError(path, 0, "expected a command line, found none");
    for (const auto& image : json.at("images"))
      session.images.push_back({image.at("path"), image.at("bytes"), image.at("xxh3")});
    if (json.contains("kept"))
      for (const auto& moment : json.at("kept"))
        session.kept.push_back({moment.at("name"),
                                {moment.at("offset"), moment.at("instructions"), moment.at("sent"),
                                 moment.at("disk_requests")}});
    return session;
  } catch (const nlohmann::json::exception& problem) {
    throw FormatError(path, 0,
                      fmt::format("expected the description of a session: {}", problem.what()));
  }
}

void check_session(const LiveSession& session, const std::string& program) {
  const std::string version = emulator_banner(program);
  if (version != session.version)
    throw IoError(fmt::format(
        "{}: expected \"{}\", which the session was made with, found {}; name that emulator after "
        "--",
        program, session.version, version.empty() ? "no emulator" : "\"" + version + "\""));
  for (const LiveSession::Image& image : session.images) {
    std::error_code error;
    if (!fs::exists(image.path, error))
      throw IoError(image.path + ": does not exist any more; the session began with it");
    if (hashed(image.path).xxh3 != image.xxh3)
      throw IoError(image.path +
                    ": was changed since the session began with it; its run cannot be repeated");
  }
}

}  // namespace citcat
