#pragma once

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <tessera/nn/file/atomic_file.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data.hpp"

namespace digits {

/// An image that a network took for another digit than it is.
struct misread {
  at::Tensor image;  ///< 8 x 8 (any shape of 64 elements), ink from 0 to 1
  std::int64_t read, is;
};

/// The images of a test set whose readings (N, int64) differ from their labels.
inline std::vector<misread> misreads(const dataset& test, const at::Tensor& readings) {
  std::vector<misread> wrong;
  for (std::int64_t image = 0; image < test.labels.size(0); ++image) {
    const auto read = readings[image].item<std::int64_t>(), is = test.labels[image].item<std::int64_t>();
    if (read != is) wrong.push_back({test.images[image], read, is});
  }
  return wrong;
}

namespace detail {

/// A text as XML writes it.
inline std::string escaped(const std::string& text) {
  constexpr std::array special{"&amp;", "&lt;", "&gt;"};
  std::string safe;
  for (const char letter : text) {
    const std::size_t which = std::string_view("&<>").find(letter);
    safe += which < special.size() ? special[which] : std::string(1, letter);
  }
  return safe;
}

/// Where things stand on the page, in pixels.
struct page {
  static constexpr double width = 920, left = 76, right = 894.5, top = 64, bottom = 344;
  static constexpr int strip = 420, cell = 7, pitch = 69, most = 12;
};

/// A tick of a logarithmic axis: 1, 2 or 5 times a power of ten.
struct log_tick {
  int digit, decade;
  double value = digit * std::pow(10.0, decade);

  std::string text() const {
    if (digit > 1 || decade >= -3) return fmt::format("{:g}", value);
    return fmt::format("10<tspan dy='-5' font-size='9'>−{}</tspan>", -decade);
  }
};

/// The ticks from the last one at or below `low` to the first one at or above `high`, two at least.
inline std::vector<log_tick> log_ticks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low))), last = static_cast<int>(std::ceil(std::log10(high)));
  std::vector<log_tick> all;
  for (int decade = first; decade <= last; ++decade)
    for (const int digit : {1, 2, 5}) all.push_back({digit, decade});
  while (all.size() > 2 && all[1].value <= low * (1 + 1e-9)) all.erase(all.begin());
  while (all.size() > 2 && all[all.size() - 2].value >= high * (1 - 1e-9)) all.pop_back();
  return all;
}

/// Whole ticks for epochs 1 to n: the first, the last, and round numbers at most ten between.
inline std::vector<int> epoch_ticks(int epochs) {
  int step = 1;
  for (int decade = 1; epochs / step > 10; decade *= 10)
    for (const int digit : {2, 5, 10})
      if (epochs / step > 10) step = digit * decade;
  std::vector<int> ticks{1};
  for (int tick = step; tick <= epochs; tick += step)
    if (tick > 1) ticks.push_back(tick);
  if (epochs > 1 && 2 * (epochs - ticks.back()) > step) ticks.push_back(epochs);
  return ticks;
}

/// The loss against the epochs, on a logarithmic scale.
inline std::string curve(const std::vector<double>& loss) {
  std::vector<std::pair<int, double>> points;  // those that a logarithm can show
  for (std::size_t epoch = 0; epoch < loss.size(); ++epoch)
    if (std::isfinite(loss[epoch]) && loss[epoch] > 0) points.emplace_back(static_cast<int>(epoch) + 1, loss[epoch]);
  const auto by_loss = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [low, high] = std::minmax_element(points.begin(), points.end(), by_loss);
  const auto ticks = points.empty() ? log_ticks(0.1, 1) : log_ticks(low->second, high->second);
  const int epochs = std::max<int>(static_cast<int>(loss.size()), 1);
  const auto x = [&](double epoch) {
    return epochs == 1 ? (page::left + page::right) / 2
                       : page::left + 10 + (epoch - 1) / (epochs - 1) * (page::right - page::left - 20);
  };
  const auto y = [&](double value) {
    const double share = std::log(value / ticks.front().value) / std::log(ticks.back().value / ticks.front().value);
    return page::bottom - share * (page::bottom - page::top);
  };

  std::string svg;
  for (const log_tick& tick : ticks)
    if (tick.digit == 1 || ticks.size() <= 9)  // beyond that, powers of ten alone
      svg += fmt::format("<path class='grid' d='M{} {:.1f}H{}'/><text class='tick y' x='{}' y='{:.1f}'>{}</text>\n",
                         page::left, y(tick.value), page::right, page::left - 10, y(tick.value) + 4, tick.text());
  for (const int tick : epoch_ticks(epochs))
    svg += fmt::format("<path class='axis' d='M{0:.1f} {1}v5'/><text class='tick x' x='{0:.1f}' y='{2}'>{3}</text>\n",
                       x(tick), page::bottom, page::bottom + 20, tick);
  svg += fmt::format("<path class='axis' d='M{} {}H{}'/>\n<text class='label x' x='{}' y='{}'>epoch</text>\n",
                     page::left, page::bottom, page::right, (page::left + page::right) / 2, page::bottom + 42);
  svg += fmt::format(
      "<text class='label x' transform='translate(22 {}) rotate(-90)'>training loss, mean over the epoch"
      "</text>\n",
      (page::top + page::bottom) / 2);
  std::string path, dots;
  for (const auto& [epoch, value] : points) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x(epoch), y(value));
    dots += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='2.6'/>\n", x(epoch), y(value));
  }
  return points.empty() ? svg : svg + fmt::format("<path class='curve' d='{}'/>\n{}", path, dots);
}

/// One image at a corner, dark ink on white, with its caption below.
inline std::string picture(const misread& wrong, int left, int top) {
  const at::Tensor ink = wrong.image.detach().to(at::kCPU, at::kDouble).reshape({64}).clamp(0, 1).contiguous();
  const double* of = ink.data_ptr<double>();
  const int side = 8 * page::cell;
  std::string svg = fmt::format("<rect class='frame' x='{}' y='{}' width='{}' height='{}'/>\n", left - 1.5, top - 1.5,
                                side + 3, side + 3);
  for (int pixel = 0; pixel < 64; ++pixel) {
    const int grey = static_cast<int>(std::lround(255 - 229 * of[pixel]));
    if (grey < 255)
      svg += fmt::format("<path fill='#{0:02x}{0:02x}{0:02x}' d='M{1} {2}h{3}v{3}h-{3}z'/>", grey,
                         left + pixel % 8 * page::cell, top + pixel / 8 * page::cell, page::cell);
  }
  return svg + fmt::format("\n<text class='caption x' x='{}' y='{}'>read {}, is {}</text>\n", left + side / 2,
                           top + side + 18, wrong.read, wrong.is);
}

/// The whole figure as SVG.
inline std::string drawing(const std::vector<double>& loss, const std::vector<misread>& wrong,
                           const std::string& title) {
  const int height = wrong.empty() ? page::strip + 16 : page::strip + 106;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}'>\n<style>\n"
      "text{{font-family:'DejaVu Sans',Verdana,sans-serif;fill:#3b4252}}\n"
      ".title{{font-size:17px;font-weight:bold}}.label{{font-size:13px}}.tick{{font-size:12px;fill:#5b6475}}\n"
      ".caption{{font-size:10px}}.grid{{stroke:#e3e6ec}}.axis{{stroke:#7b8496}}.frame{{fill:#fff;stroke:#c3c9d4}}\n"
      ".curve{{fill:none;stroke:#2f6fb0;stroke-width:2;stroke-linejoin:round}}circle{{fill:#2f6fb0}}\n"
      ".x{{text-anchor:middle}}.y{{text-anchor:end}}\n</style>\n"
      "<rect width='{0}' height='{1}' rx='8' fill='#fff'/>\n<text class='title' x='{2}' y='36'>{3}</text>\n",
      page::width, height, page::left, escaped(title));
  svg += curve(loss);
  const std::size_t shown = std::min<std::size_t>(wrong.size(), page::most);
  std::string heading = "No test image was misread";
  if (shown > 0) heading = fmt::format("Misread test images, {} of {}", shown, wrong.size());
  svg += fmt::format("<text class='label' x='{}' y='{}'>{}</text>\n<g shape-rendering='crispEdges'>\n", page::left,
                     page::strip - 4, heading);
  for (std::size_t i = 0; i < shown; ++i)
    svg += picture(wrong[i], static_cast<int>(page::left) + 2 + static_cast<int>(i) * page::pitch, page::strip + 12);
  return svg + "</g>\n</svg>\n";
}

}  // namespace detail

/// Writes an SVG: the loss of every epoch, and up to twelve misread digits. The file appears whole or not at all.
inline void write_figure(const std::filesystem::path& path, const std::vector<double>& loss,
                         const std::vector<misread>& wrong, const std::string& title) {
  tessera::write_whole(path, detail::drawing(loss, wrong, title));
}

}  // namespace digits
