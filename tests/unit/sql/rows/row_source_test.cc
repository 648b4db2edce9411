// How often a statement has the run replayed.

#include "sql/rows/row_source.h"

#include <gtest/gtest.h>

#include "unit/debugger/watched_program.h"
#include "unit/temporary_folder.h"

namespace citcat::sql {
namespace {

class RowsOfARun : public test::TemporaryFolder {
 protected:
  RowsOfARun() : archive_(path("watched.citcat")) {
    test::WatchedProgram().store(archive_);
    file_.emplace(RecordingFile::open(archive_));
    SourceOptions options;
    options.path = archive_;
    options.check = false;
    source_.emplace(*file_, symbols_, std::move(options));
    source_->begin_statement();
    RowNeeds needs;
    needs.instructions = true;
    source_->need(needs);
    source_->add_reader();
  }
  /// The rows of one position, as an inner scan of a join asks for them.
  std::shared_ptr<const Stretch> at(std::uint64_t position) {
    RowFilter filter;
    filter.positions = {static_cast<std::int64_t>(position), static_cast<std::int64_t>(position)};
    return source_->stretch_at(position, filter);
  }

  const std::string archive_;
  const Symbols symbols_;
  std::optional<RecordingFile> file_;
  std::optional<RowSource> source_;
};

TEST_F(RowsOfARun, OfOnePositionAreReplayedAlone) {
  const auto only = at(3);
  ASSERT_NE(only, nullptr);
  EXPECT_EQ(only->to, 4u);
  EXPECT_EQ(at(3), only);
}

TEST_F(RowsOfARun, OfOnePositionAfterTheOtherComeFromOneReplay) {
  at(3);
  const auto second = at(5), third = at(9), last = at(30);
  ASSERT_NE(second, nullptr);
  ASSERT_NE(third, nullptr);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(second->pass, third->pass);
  EXPECT_EQ(second->pass, last->pass);
  // Back to what lies before it.
  ASSERT_NE(at(1), nullptr);
  EXPECT_EQ(at(1)->from, 1u);
}

}  // namespace
}  // namespace citcat::sql
