#include "cli/analysis/metric_arguments.h"

#include <algorithm>

#include "formats/io/error.h"
#include "tools/mdl/explain.h"
#include "tools/mdl/library.h"
#include "tools/mdl/plan.h"

namespace citcat {

namespace {

/// `texts` as a value of a tool's option, which has signs of its own between values.
std::string joined(const std::vector<std::string>& texts, const char* what) {
  std::string all;
  for (const std::string& text : texts) {
    if (text.find('+') != std::string::npos || text.find(',') != std::string::npos) {
      throw UsageError(std::string(what) + ": expected no + or , in " + text);
    }
    all += (all.empty() ? "" : "+") + text;
  }
  return all;
}

}  // namespace

void MetricArguments::define(const CommandParser& parser) {
  parser.add_option("--mdl", files, "File with metrics in MDL; may be repeated").repeated();
  parser
      .add_option("--metric", metrics,
                  "Measure a metric at places: METRIC@PATH,PATH..., such as "
                  "cpu@/Code/vmlinux/schedule,/Process/sh; may be repeated")
      .repeated();
}

std::vector<std::string> MetricArguments::tools() const {
  if (metrics.empty()) {
    if (files.empty()) return {};
    throw UsageError("--mdl needs --metric METRIC@PATH, which says what to measure");
  }
  std::vector<std::string> foci = metrics;
  for (std::string& focus : foci) std::replace(focus.begin(), focus.end(), ',', ';');
  return {"mdl:" + (files.empty() ? std::string() : "file=" + joined(files, "--mdl") + ",") +
          "metric=" + joined(foci, "--metric")};
}

void MetricArguments::read_into(mdl::Library& library) const {
  for (const std::string& file : files) library.add_file(file);
}

std::vector<mdl::MetricRequest> MetricArguments::requests() const {
  std::vector<mdl::MetricRequest> all;
  for (const std::string& metric : metrics) all.push_back(mdl::parse_metric_request(metric));
  return all;
}

void MetricArguments::explain(const Symbols& symbols, tools::Report& report) const {
  mdl::Library library;
  read_into(library);
  mdl::explain(library, requests(), symbols, report);
}

}  // namespace citcat
