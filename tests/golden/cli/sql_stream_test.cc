// SQL over the shared captures, held to a decoding of their golden streams that shares no code with
// what it checks (../shared/data/machine/FORMAT.md, section 5).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "formats/io/input.h"
#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using Rows = std::vector<std::vector<std::string>>;

struct StreamInstruction {
  std::uint64_t position = 0, linear = 0, physical = 0;
  unsigned level = 0;
  std::string bytes;
};
struct StreamAccess {
  std::uint64_t position = 0, linear = 0, physical = 0;
  unsigned size = 0, port_value = 0;
  bool write = false;
};
struct StreamEvent {
  std::uint64_t position = 0;
  std::string kind;
  unsigned vector = 0;
};

/// The first instructions of a capture.
struct GoldenStream {
  std::vector<StreamInstruction> instructions;  ///< that completed, by position
  std::vector<StreamAccess> accesses, ports;
  std::vector<StreamEvent> events;
};

template <class T>
T stream_field(const std::vector<std::uint8_t>& r, std::size_t at) {
  T value;
  std::memcpy(&value, r.data() + at, sizeof value);
  return value;
}

std::string stream_hex(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

/// `wide`: of data/machine64, whose records have 64 bytes.
GoldenStream read_stream(const std::string& folder, bool wide) {
  GoldenStream stream;
  InputStream in(folder + "/golden.bin.zst");
  std::vector<std::uint8_t> r(wide ? 64 : 40);
  std::map<std::uint64_t, StreamInstruction> last;  // the start that completes is the last one
  while (in.read(r) == r.size()) {
    const auto icount = stream_field<std::uint64_t>(r, wide ? 16 : 32);
    const auto linear = wide ? stream_field<std::uint64_t>(r, 8) : 0;
    if (r[0] == 1) {
      StreamInstruction i;
      i.position = icount;
      i.linear = wide ? linear : stream_field<std::uint32_t>(r, 8);
      i.physical = stream_field<std::uint32_t>(r, wide ? 4 : 12);
      i.level = stream_field<std::uint16_t>(r, 2) & 3;
      i.bytes = stream_hex(r.data() + (wide ? 24 : 16), r[1]);
      last[icount] = i;
    } else if (r[0] == 2) {
      StreamAccess a;
      a.position = icount;
      a.size = r[1];
      a.write = r[2] == 1;
      a.linear = wide ? linear : stream_field<std::uint32_t>(r, 4);
      a.physical = stream_field<std::uint32_t>(r, wide ? 4 : 8);
      std::memcpy(&a.port_value, r.data() + (wide ? 24 : 16), std::min(a.size, 4u));
      if (r[3] == 0) stream.accesses.push_back(a);
      if (r[3] == 2) stream.ports.push_back(a);
    } else if (r[0] == 3) {
      static const std::map<int, std::string> kKinds = {
          {1, "exception"}, {2, "interrupt"}, {3, "software interrupt"}, {4, "halt"}};
      const auto kind = kKinds.find(r[1]);
      if (kind != kKinds.end()) stream.events.push_back({icount, kind->second, r[2]});
    }
  }
  for (auto& [icount, i] : last) stream.instructions.push_back(std::move(i));
  return stream;
}

struct StreamCase {
  std::string name;
  bool wide = false;
};

class SqlStream : public CitcatTest, public ::testing::WithParamInterface<StreamCase> {
 protected:
  void SetUp() override {
    const StreamCase& which = GetParam();
    const std::string folder = std::string(CITCAT_SOURCE_DIR) + "/../shared/data/" +
                               (which.wide ? "machine64/" : "machine/") + which.name;
    if (!std::filesystem::exists(folder + "/golden.bin.zst")) {
      GTEST_SKIP() << folder << " is not there";
    }
    good({"import", folder + "/busC.bin.zst", "--format", "machine", "--internal",
          folder + "/side.csv.zst", "-o", "r.citcat", "-q"});
    stream_ = read_stream(folder, which.wide);
    // Perhaps not all of the last instruction is told, and the bus may not show the last ones.
    const auto info = nlohmann::json::parse(good({"info", "r.citcat", "--json"}));
    end_ = std::min({stream_.instructions.back().position, std::uint64_t{200'000},
                     info.at("instructions").get<std::uint64_t>()});
    std::erase_if(stream_.instructions, [this](const auto& i) { return i.position >= end_; });
    const auto is_behind = [this](const auto& row) { return row.position >= end_; };
    std::erase_if(stream_.accesses, is_behind);
    std::erase_if(stream_.ports, is_behind);
    std::erase_if(stream_.events, is_behind);
  }
  /// What the program finds before the end of the stream: the query has "WHERE" for that.
  Rows ask(std::string query) const {
    const std::string before = "where position < " + std::to_string(end_);
    if (const auto at = query.find("WHERE"); at != std::string::npos) query.replace(at, 5, before);
    const std::string out = good({"sql", "r.citcat", query, "--csv", "-q"});
    Rows rows;
    std::istringstream lines(out);
    std::string line;
    std::getline(lines, line);  // names
    while (std::getline(lines, line)) {
      std::vector<std::string> fields;
      std::istringstream cells(line + ",");
      for (std::string field; std::getline(cells, field, ',');) fields.push_back(field);
      rows.push_back(std::move(fields));
    }
    return rows;
  }

  GoldenStream stream_;
  std::uint64_t end_ = 0;
};

std::string sql_number(std::uint64_t n) { return std::to_string(static_cast<std::int64_t>(n)); }

/// Counts of each key, as rows ordered by the key.
template <class T, class Key>
Rows counted_by(const std::vector<T>& all, Key&& key) {
  std::map<std::invoke_result_t<Key, const T&>, std::uint64_t> counts;
  for (const T& one : all) ++counts[key(one)];
  Rows rows;
  for (const auto& [k, n] : counts) {
    if constexpr (std::is_same_v<std::decay_t<decltype(k)>, std::string>) {
      rows.push_back({k, sql_number(n)});
    } else {
      rows.push_back({std::to_string(k), sql_number(n)});
    }
  }
  return rows;
}

TEST_P(SqlStream, InstructionsAreThoseOfTheStream) {
  const auto& all = stream_.instructions;
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(ask("select count(*) from instructions WHERE"), (Rows{{sql_number(all.size())}}));
  EXPECT_EQ(ask("select count(position) from instructions WHERE"),
            (Rows{{sql_number(all.size())}}));
  Rows rows;
  for (const auto& i : all) {
    if (rows.size() == 3000) break;
    rows.push_back({sql_number(i.position), sql_number(i.linear), i.bytes, sql_number(i.physical),
                    sql_number(i.bytes.size() / 2)});
  }
  EXPECT_EQ(
      ask("select position, address, bytes, physical, size from instructions WHERE limit 3000"),
      rows);
  // From the middle, where a replay goes past what comes before.
  const auto& middle = all[all.size() / 2];
  EXPECT_EQ(ask("select address, bytes from instructions where position = " +
                sql_number(middle.position)),
            (Rows{{sql_number(middle.linear), middle.bytes}}));
  EXPECT_EQ(ask("select level, count(*) from instructions WHERE group by 1 order by 1"),
            counted_by(all, [](const auto& i) { return i.level; }));
  EXPECT_EQ(ask("select level, count(position) from instructions WHERE group by 1 order by 1"),
            counted_by(all, [](const auto& i) { return i.level; }));
  EXPECT_EQ(ask("select size, count(*) from instructions WHERE group by 1 order by 1"),
            counted_by(all, [](const auto& i) { return i.bytes.size() / 2; }));
  EXPECT_EQ(ask("select bytes, count(*) from instructions WHERE group by 1 order by 1"),
            counted_by(all, [](const auto& i) { return i.bytes; }));
  EXPECT_EQ(ask("select position / 1000, count(*) from instructions WHERE group by 1 order by 1"),
            counted_by(all, [](const auto& i) { return i.position / 1000; }));
  std::set<std::uint64_t> addresses, pages;
  for (const auto& i : all) {
    addresses.insert(i.linear);
    pages.insert(i.physical / 4096);
  }
  EXPECT_EQ(
      ask("select count(distinct address), count(distinct physical / 4096), "
          "count(*) from instructions WHERE"),
      (Rows{{sql_number(addresses.size()), sql_number(pages.size()), sql_number(all.size())}}));
  // A range of addresses, at both of its ends.
  const std::uint64_t low = *std::next(addresses.begin(), static_cast<long>(addresses.size() / 3));
  const std::uint64_t high =
      *std::next(addresses.begin(), static_cast<long>(2 * addresses.size() / 3));
  const auto in_range = std::count_if(all.begin(), all.end(), [&](const auto& i) {
    const auto a = static_cast<std::int64_t>(i.linear);
    return a >= static_cast<std::int64_t>(low) && a < static_cast<std::int64_t>(high);
  });
  const std::string range =
      " and address >= " + sql_number(low) + " and address < " + sql_number(high);
  const Rows expected{{sql_number(static_cast<std::uint64_t>(in_range))}};
  EXPECT_EQ(ask("select count(*) from instructions WHERE" + range), expected);
  EXPECT_EQ(ask("select count(position) from instructions WHERE" + range), expected);
}

TEST_P(SqlStream, AccessesAreThoseOfTheStream) {
  // Descriptors are read in words, and states of the x87 stored as a whole, where the stream has
  // pieces of other sizes: what is stored in up to four bytes, and single bytes that are read, are
  // the same in both.
  const auto is_small = [](const StreamAccess& a) { return a.write ? a.size <= 4 : a.size == 1; };
  std::vector<StreamAccess> small;
  std::copy_if(stream_.accesses.begin(), stream_.accesses.end(), std::back_inserter(small),
               is_small);
  const auto by_kind = [](const StreamAccess& a) {
    return std::string(a.write ? "write " : "read ") + std::to_string(a.size);
  };
  const std::string those = " and (kind = 'write' and size <= 4 or size = 1)";
  const std::string columns = "select kind || ' ' || size, ";
  EXPECT_EQ(ask(columns + "count(*) from refs WHERE" + those + " group by 1 order by 1"),
            counted_by(small, by_kind));
  EXPECT_EQ(ask(columns + "count(position) from refs WHERE" + those + " group by 1 order by 1"),
            counted_by(small, by_kind));
  std::vector<StreamAccess> stores;
  std::copy_if(small.begin(), small.end(), std::back_inserter(stores),
               [](const auto& a) { return a.write; });
  EXPECT_EQ(ask("select physical / 4096, count(*) from refs WHERE and kind = 'write' and size <= 4 "
                "group by 1 order by 1"),
            counted_by(stores, [](const auto& a) { return a.physical / 4096; }));
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> there;
  for (const auto& a : stores) {
    if (there.size() < 2000) there.emplace_back(a.position, a.physical, a.size);
  }
  std::sort(there.begin(), there.end());
  // The last position may have more than were taken.
  while (!there.empty() && std::get<0>(there.back()) ==
                               stores[std::min<std::size_t>(stores.size(), 2000) - 1].position)
    there.pop_back();
  Rows rows;
  for (const auto& [position, physical, size] : there) {
    rows.push_back({sql_number(position), sql_number(physical), sql_number(size)});
  }
  EXPECT_EQ(
      ask("select position, physical, size from refs where kind = 'write' and size <= 4 and "
          "position <= " +
          (there.empty() ? "-1" : sql_number(std::get<0>(there.back()))) + " order by 1, 2, 3"),
      rows);
  std::set<std::uint64_t> storing;
  for (const auto& a : stores) storing.insert(a.position);
  EXPECT_EQ(ask("select count(distinct position) from refs WHERE and kind = 'write' and size <= 4"),
            (Rows{{sql_number(storing.size())}}));
}

TEST_P(SqlStream, EventsAndPortsAreThoseOfTheStream) {
  Rows rows;
  for (const auto& e : stream_.events) {
    rows.push_back(
        {sql_number(e.position), e.kind, e.kind == "halt" ? "" : std::to_string(e.vector)});
  }
  EXPECT_EQ(ask("select position, kind, vector from events WHERE and kind in ('exception', "
                "'interrupt', 'software interrupt', 'halt')"),
            rows);
  Rows ports;
  for (const auto& p : stream_.ports) {
    ports.push_back({sql_number(p.position), sql_number(p.physical), std::to_string(p.size),
                     p.write ? "write" : "read", std::to_string(p.port_value)});
  }
  EXPECT_EQ(ask("select position, port, size, direction, value from ports WHERE"), ports);
  // Where handlers begin: the instruction at the position of each interrupt.
  Rows handlers;
  for (const auto& e : stream_.events) {
    if (e.kind != "interrupt") continue;
    const auto at = std::find_if(stream_.instructions.begin(), stream_.instructions.end(),
                                 [&](const auto& i) { return i.position == e.position; });
    if (at != stream_.instructions.end()) handlers.push_back({sql_number(e.position), at->bytes});
  }
  EXPECT_EQ(ask("select e.position, i.bytes from events e join instructions i using (position) "
                "WHERE and kind = 'interrupt' order by 1"),
            handlers);
}

TEST_P(SqlStream, SystemEventsHaveTheLevelAndTheProcessBeforeThem) {
  Rows levels;
  const Rows all = ask("select position, level from system WHERE and level is not null");
  std::size_t known = 0;
  for (const auto& row : all) {
    const auto at =
        std::find_if(stream_.instructions.begin(), stream_.instructions.end(),
                     [&](const auto& i) { return sql_number(i.position) == row.at(0); });
    if (at == stream_.instructions.end()) continue;
    ++known;
    EXPECT_EQ(row.at(1), std::to_string(at->level)) << row.at(0);
  }
  EXPECT_EQ(ask("select count(*) from system WHERE"), (Rows{{std::to_string(known)}}));
  // A load of page tables is told before its instruction, which has the new ones.
  EXPECT_EQ(ask("select s.position, s.kind, s.process, i.process from system s join instructions i "
                "using (position) WHERE and s.process != i.process and kind not like 'load%'"),
            Rows{});
}

INSTANTIATE_TEST_SUITE_P(Captures, SqlStream,
                         ::testing::Values(StreamCase{"lin_procs_small"},
                                           StreamCase{"lin_kentry_tiny"},
                                           StreamCase{"bios486_tiny"}, StreamCase{"lin_user_tiny"}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace citcat::testing
