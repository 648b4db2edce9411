// Programs from their pins to a match: a model executes them, its bus is drawn pin by pin, and what
// `import`, `verify` and `replay` make of the samples is the model's own trace, byte for byte. Each
// processor of 16 bits, in both forms of its bus, with words at even and odd addresses, wait
// states, LOCK, other bus masters, interrupts and HLT; and with a few of the probes only.

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "golden/citcat_test.h"
#include "golden/pins/pin_drawing.h"
#include "golden/pins/pin_programs.h"
#include "golden/pins/pin_run.h"
#include "unit/capture/bus/bus_generators.h"

namespace citcat::testing {
namespace {

std::function<bool(const std::string&)> left_out(Probes probes) {
  const bool lines = probes == Probes::no_upper_lines || probes == Probes::no_upper_lines_no_queue;
  const bool queue = probes == Probes::no_queue || probes == Probes::no_upper_lines_no_queue;
  return [=](const std::string& name) {
    if (lines && name[0] == 'A' && std::isdigit(name[1]) != 0) return true;
    return queue && name.substr(0, 2) == "QS";
  };
}

class PinsToMatch : public CitcatTest, public ::testing::WithParamInterface<PinCase> {
 protected:
  static bool shows_queue() {
    const Probes probes = GetParam().probes;
    return GetParam().form == PinForm::status &&
           (probes == Probes::all || probes == Probes::no_upper_lines);
  }
  void import_pins(const PinCase& c, unsigned seed, const ModelRun& run) const {
    test::Random random(seed);
    const auto wave = draw_pins(c, run.unit, random);
    test::write_sigrok(samples_of(*wave, left_out(c.probes)), file("pins.sr"));
    std::string state = "reset";
    if (c.form == PinForm::bus_286 || c.form == PinForm::bus_386sx) {
      state = "state.json";
      nlohmann::json json = {{"cpu", c.cpu},
                             {"registers", {{"cs", "0xf000"}, {"ip", "0xe000"}, {"flags", "0x2"}}}};
      for (const char* name : {"ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ds", "es", "ss"})
        json["registers"][name] = "0x0";
      write_file(file(state), json.dump());
    }
    good({"import", "pins.sr", "--cpu", c.cpu, "--initial-state", state, "-o", "pins.citcat"});
  }

  /// Without the queue's status nothing shows that the last instruction was begun.
  void expect_trace(const ModelRun& run) const {
    good({"replay", "pins.citcat", "-o", "pins.kt"});
    const std::string trace = read_file(file("pins.kt"));
    std::size_t at = 0;
    for (std::size_t i = 0; i < run.records.size(); ++i) {
      const std::string& record = run.records[i];
      if (i + 1 == run.records.size() && at == trace.size() && !shows_queue()) break;
      ASSERT_EQ(::testing::PrintToString(trace.substr(at, record.size())),
                ::testing::PrintToString(record))
          << "record " << i << " of " << run.records.size();
      at += record.size();
    }
    EXPECT_EQ(trace.size(), at);
  }
};

TEST_P(PinsToMatch, GivesTheTraceOfTheModel) {
  for (const unsigned seed : {1u, 2u}) {
    SCOPED_TRACE(seed);
    const ModelRun run(GetParam(), seed);
    EXPECT_GT(run.interrupts, 5u);
    import_pins(GetParam(), seed, run);
    const ProcessResult verdict = this->run({"verify", "pins.citcat"});
    ASSERT_EQ(verdict.exit_code, 0) << verdict.out << verdict.err;
    expect_trace(run);
  }
}

/// Without A16 and A17 an 8086 in minimum mode does not show what is code.
TEST(PinsRefused, WithoutTheStatusThatTellsCodeFromData) {
  const PinCase c{"8086", PinForm::strobes, Probes::no_upper_lines};
  const ModelRun run(c, 1);
  test::Random random(1);
  const TemporaryFolder folder;
  test::write_sigrok(samples_of(*draw_pins(c, run.unit, random), left_out(c.probes)),
                     folder.path() / "pins.sr");
  const ProcessResult result = run_citcat(
      {"import", "pins.sr", "--cpu", "8086", "--initial-state", "reset", "-o", "x"}, folder.path());
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("expected A16 and A17"), std::string::npos) << result.err;
}

/// Two channels have each other's names.
struct ExchangedCase {
  PinCase pins;
  const char* first;
  const char* second;
};

class ExchangedNames : public CitcatTest, public ::testing::WithParamInterface<ExchangedCase> {};

TEST_P(ExchangedNames, AreToldByHowCodeIsFetched) {
  const ExchangedCase& c = GetParam();
  const ModelRun run(c.pins, 3);
  test::Random random(3);
  const auto wave = draw_pins(c.pins, run.unit, random);
  test::Samples samples = samples_of(*wave, left_out(Probes::all));
  const std::size_t first = samples.channel(c.first), second = samples.channel(c.second);
  std::swap(samples.names[first], samples.names[second]);
  test::write_sigrok(samples, file("exchanged.sr"));
  const ProcessResult lint = this->run({"lint", "exchanged.sr", "--cpu", c.pins.cpu});
  const auto bare = [](std::string name) {
    std::erase_if(name, [](char letter) { return letter == '#' || letter == '/'; });
    return name;
  };
  EXPECT_NE(lint.out.find(bare(c.first) + " and " + bare(c.second) + " look exchanged"),
            std::string::npos)
      << lint.out << lint.err;
  good({"import", "exchanged.sr", "--cpu", c.pins.cpu, "--match-channels", "map.json"});
  const auto map = nlohmann::json::parse(read_file(file("map.json"))).at("pins");
  EXPECT_EQ(map.at(bare(c.first)), c.second);
  EXPECT_EQ(map.at(bare(c.second)), c.first);
}

INSTANTIATE_TEST_SUITE_P(Processors, ExchangedNames,
                         ::testing::Values(ExchangedCase{{"8086", PinForm::status}, "AD2", "AD9"},
                                           ExchangedCase{{"80186", PinForm::status}, "S0#", "S2#"},
                                           ExchangedCase{{"v30", PinForm::strobes}, "AD1", "AD4"},
                                           ExchangedCase{{"v20", PinForm::strobes}, "AD0", "AD3"},
                                           ExchangedCase{{"286", PinForm::bus_286}, "A3", "A5"},
                                           ExchangedCase{{"386", PinForm::bus_386sx}, "A2", "A4"}),
                         [](const auto& test) {
                           return std::string("case") + std::to_string(test.index);
                         });

std::string pin_case_name(const PinCase& c) {
  constexpr const char* kForms[] = {"status", "strobes", "286", "386sx"};
  constexpr const char* kProbes[] = {"", "_without_upper_lines", "_without_queue",
                                     "_without_upper_lines_and_queue"};
  return std::string("i") + c.cpu + "_" + kForms[static_cast<int>(c.form)] +
         kProbes[static_cast<int>(c.probes)] + (c.has_8087 ? "_with_8087" : "");
}

std::vector<PinCase> pin_cases() {
  std::vector<PinCase> cases;
  for (const char* cpu : {"8088", "8086", "80188", "80186", "v20", "v30"}) {
    for (const Probes probes :
         {Probes::all, Probes::no_queue, Probes::no_upper_lines, Probes::no_upper_lines_no_queue})
      cases.push_back({cpu, PinForm::status, probes});
    if (std::string(cpu).substr(0, 3) == "801") continue;
    cases.push_back({cpu, PinForm::strobes});
    if (!is_wide(cpu)) cases.push_back({cpu, PinForm::strobes, Probes::no_upper_lines});
  }
  for (const char* cpu : {"8088", "8086", "v20", "80186"}) {
    for (const Probes probes : {Probes::all, Probes::no_upper_lines_no_queue})
      cases.push_back({cpu, PinForm::status, probes, true});
  }
  cases.push_back({"286", PinForm::bus_286});
  cases.push_back({"386", PinForm::bus_386sx});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Processors, PinsToMatch, ::testing::ValuesIn(pin_cases()),
                         [](const auto& test) { return pin_case_name(test.param); });

}  // namespace
}  // namespace citcat::testing
