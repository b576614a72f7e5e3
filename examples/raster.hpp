#pragma once
// How pictures of examples show a table of colours.

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// A square table n x n of indices of `colours` as SVG, `side` wide at a corner (x, y). Each colour is one path, of
/// runs in rows.
inline std::string raster(const at::Tensor& indices, const std::vector<std::string>& colours, double side, double x,
                          double y) {
  const at::Tensor whole = indices.contiguous();
  const std::int64_t n = whole.size(0), *of = whole.const_data_ptr<std::int64_t>();
  std::vector<std::string> paths(colours.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0, end = 0; j < n; j = end) {
      for (end = j; end < n && of[i * n + end] == of[i * n + j]; ++end) {
      }
      paths.at(static_cast<std::size_t>(of[i * n + j])) += fmt::format("M{} {}h{}v1h-{}z", j, i, end - j, end - j);
    }
  std::string svg = fmt::format("<g transform='translate({} {}) scale({:.5g})' shape-rendering='crispEdges'>", x, y,
                                side / static_cast<double>(n));
  for (std::size_t c = 0; c < paths.size(); ++c)
    if (!paths[c].empty()) svg += fmt::format("<path fill='{}' d='{}'/>", colours[c], paths[c]);
  return svg + "</g>\n";
}
