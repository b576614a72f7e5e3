#pragma once

#include <fmt/core.h>
#include <tessera/nn/file/atomic_file.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gpt {

/// Writes the loss of every step as SVG. The file appears whole or not at all.
inline void write_figure(const std::filesystem::path& path, const std::vector<double>& loss, const std::string& title) {
  constexpr double left = 60, right = 890, top = 60, bottom = 360;
  const double most = std::max(1.0, *std::max_element(loss.begin(), loss.end()));
  const auto x = [&](std::size_t step) {
    return left +
           (right - left) * static_cast<double>(step) / static_cast<double>(std::max<std::size_t>(loss.size() - 1, 1));
  };
  const auto y = [&](double value) { return bottom - (bottom - top) * value / most; };
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 920 420' width='920' "
      "height='420'>\n<style>text{{font-family:'DejaVu Sans',Verdana,sans-serif;"
      "font-size:12px;fill:#3b4252}}.grid{{stroke:#e3e6ec}}</style>\n<rect width='920' height='420' rx='8' "
      "fill='#fff'/>\n"
      "<text x='{}' y='34' font-weight='bold' style='font-size:17px'>{}</text>\n<text x='{}' y='400'>step {} of {}, "
      "cross entropy in nats a byte</text>\n",
      left, title, left, loss.size(), loss.size());
  for (int value = 0; value <= static_cast<int>(most); ++value)
    svg += fmt::format("<path class='grid' d='M{} {:.1f}H{}'/><text x='{}' y='{:.1f}' text-anchor='end'>{}</text>\n",
                       left, y(value), right, left - 8, y(value) + 4, value);
  std::string line;
  for (std::size_t step = 0; step < loss.size(); ++step)
    line += fmt::format("{}{:.1f} {:.1f}", step == 0 ? 'M' : 'L', x(step), y(loss[step]));
  svg += fmt::format("<path d='{}' fill='none' stroke='#2f6fb0' stroke-width='1.5'/>\n</svg>\n", line);
  tessera::write_whole(path, svg);
}

}  // namespace gpt
