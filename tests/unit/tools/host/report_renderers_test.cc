#include "tools/host/report_renderers.h"

#include <gtest/gtest.h>

#include <string>

namespace citcat::tools {
namespace {

TEST(ReportText, KeepsHeadingsThatFitOnOneLine) {
  Report report;
  Table& table =
      report.table("lines", "lines", {{"line", "line", ""}, {"moves", "times that it moved", ""}});
  table.row({std::string("500"), std::uint64_t{3}});
  EXPECT_EQ(report_text(report),
            "lines\n"
            "  line times that it moved\n"
            "  500                    3\n");
}

TEST(ReportText, BreaksHeadingsAtTheirWordsWhereALineWouldBeTooLong) {
  Report report;
  Table& table = report.table("stretches", "stretches",
                              {{"from", "from", ""},
                               {"one", "software interrupts and calls of the system", ""},
                               {"two", "writes by other bus masters, device by device", ""},
                               {"three", "an-unbreakable-heading-of-a-single-word", ""}});
  table.row({std::uint64_t{1000000}, std::uint64_t{1}, std::uint64_t{22}, std::uint64_t{3}});
  EXPECT_EQ(report_text(report),
            "stretches\n"
            "                software\n"
            "          interrupts and  writes by other\n"
            "            calls of the     bus masters,\n"
            "     from         system device by device an-unbreakable-heading-of-a-single-word\n"
            "  1000000              1               22                                       3\n");
}

TEST(ReportText, SaysAUnitThatTheHeadingIsOnlyOnce) {
  Report report;
  report.table("routes", "routes", {{"bytes", "bytes", "bytes"}, {"size", "size", "bytes"}})
      .row({std::uint64_t{7}, std::uint64_t{8}});
  EXPECT_EQ(report_text(report),
            "routes\n"
            "  bytes size bytes\n"
            "      7          8\n");
}

}  // namespace
}  // namespace citcat::tools
