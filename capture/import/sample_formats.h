#pragma once
// Files of pin levels: how each is recognised and opened. capture/import/format_list.cc has their
// rows.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/source.h"
#include "formats/captures/samples.h"

namespace citcat {

int detect_sigrok(const CaptureProbe& probe);
int detect_dsview(const CaptureProbe& probe);
int detect_vcd(const CaptureProbe& probe);
int detect_csv(const CaptureProbe& probe);
int detect_ols(const CaptureProbe& probe);
int detect_saleae(const CaptureProbe& probe);
int detect_lac(const CaptureProbe& probe);
int detect_sal(const CaptureProbe& probe);
int detect_hp_listing(const CaptureProbe& probe);

std::unique_ptr<CaptureReader> open_sigrok_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options);
std::unique_ptr<CaptureReader> open_dsview_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options);
std::unique_ptr<CaptureReader> open_vcd_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);
std::unique_ptr<CaptureReader> open_csv_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);
std::unique_ptr<CaptureReader> open_ols_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);
std::unique_ptr<CaptureReader> open_saleae_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options);
std::unique_ptr<CaptureReader> open_lac_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);
/// `options.format` names the description: "columns:FILE".
std::unique_ptr<CaptureReader> open_columns_capture(const std::vector<std::string>& paths,
                                                    const CaptureOptions& options);
/// Says how to export what Logic 2 keeps for itself.
std::unique_ptr<CaptureReader> open_sal_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options);
std::unique_ptr<CaptureReader> open_hp_listing_capture(const std::vector<std::string>& paths,
                                                       const CaptureOptions& options);

/// The samples themselves, for what looks at pins rather than transactions; nullptr when `format`
/// is no format of pin levels. Several paths are channels where the format has one file a channel,
/// else only the first is opened.
std::unique_ptr<SampleSource> open_samples(std::string_view format,
                                           const std::vector<std::string>& paths);

/// The name by which open_samples() knows the format with this identifier: of `columns` as it was
/// asked for, because the file of its description belongs to it.
std::string format_in_full(std::string_view id, const CaptureOptions& options);

/// The name without folders, size and hash of a file as stored.
Provenance::File describe_file(const std::string& path);

/// open_capture() for such a format, with every bus cycle shown to `on_cycle` as well.
std::unique_ptr<CaptureReader> open_capture_with_cycles(
    std::string_view format, const std::vector<std::string>& paths, const CaptureOptions& options,
    std::function<void(const PinCycle&)> on_cycle);

}  // namespace citcat
