#pragma once

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <tessera/nn/file/atomic_file.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "../raster.hpp"

namespace fno {

namespace detail {

constexpr int shades = 25, side = 192, pitch = 212, left = 46;

/// Blue for −1, white for 0, red for 1.
inline std::string colour(int shade) {
  const double value = 2.0 * shade / (shades - 1) - 1, pale = 1 - std::abs(value);
  constexpr std::array<std::array<int, 3>, 2> ends{{{33, 84, 150}, {178, 45, 52}}};
  const auto part = [&](std::size_t i) {
    return static_cast<int>(std::lround(ends[value > 0 ? 1 : 0][i] * (1 - pale) + 255 * pale));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", part(0), part(1), part(2));
}

/// A field n x n at a corner, its values from −most to most.
inline std::string field(const at::Tensor& values, double most, double x, double y) {
  std::vector<std::string> colours;
  for (int shade = 0; shade < shades; ++shade) colours.push_back(colour(shade));
  return raster(((values / most + 1) / 2 * (shades - 1)).round().clamp(0, shades - 1).to(at::kLong), colours, side, x,
                y);
}

/// The errors of tests over the steps, on a logarithmic scale between powers of ten.
inline std::string curve(const std::vector<double>& errors, double top, double bottom, double right) {
  const auto [low, high] = std::minmax_element(errors.begin(), errors.end());
  const double least = std::floor(std::log10(*low)), most = std::max(std::ceil(std::log10(*high)), least + 1);
  const auto y = [&](double value) { return bottom - (bottom - top) * (std::log10(value) - least) / (most - least); };
  std::string svg;
  for (double decade = least; decade <= most; ++decade)
    svg +=
        fmt::format("<path stroke='#e3e6ec' d='M{} {:.1f}H{}'/><text x='{}' y='{:.1f}' text-anchor='end'>{:g}</text>\n",
                    left, y(std::pow(10, decade)), right, left - 6, y(std::pow(10, decade)) + 4, std::pow(10, decade));
  std::string line;
  for (std::size_t i = 0; i < errors.size(); ++i)
    line += fmt::format("{}{:.1f} {:.1f}", i == 0 ? 'M' : 'L',
                        left + (right - left) * static_cast<double>(i) /
                                   static_cast<double>(std::max<std::size_t>(errors.size() - 1, 1)),
                        y(errors[i]));
  return svg + fmt::format("<path d='{}' fill='none' stroke='#2f6fb0' stroke-width='2'/>\n", line);
}

}  // namespace detail

/// Writes two fields, what became of them, what was predicted and by how much it is wrong, and the errors of tests
/// during training. The file appears whole or not at all.
inline void write_figure(const std::filesystem::path& path, const at::Tensor& before, const at::Tensor& after,
                         const at::Tensor& predicted, const std::vector<double>& errors, int steps,
                         const std::string& title) {
  using namespace detail;
  constexpr double right = left + 3 * pitch + side, width = right + 24, first = 78;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} 740' width='{0}' "
      "height='740'>\n<style>text{{font-family:'DejaVu Sans',"
      "Verdana,sans-serif;font-size:12px;fill:#3b4252}}</style>\n<rect width='{0}' height='740' rx='8' fill='#fff'/>\n"
      "<text x='{1}' y='34' font-weight='bold' style='font-size:17px'>{2}</text>\n",
      width, left, title);
  for (int i = 0; i < 2; ++i) {
    const at::Tensor u = before[i][0], v = after[i][0], p = predicted[i][0];
    const double most = u.abs().max().item<double>(), wrong = std::max((p - v).abs().max().item<double>(), 1e-12);
    const std::array<std::string, 4> names{fmt::format("before, ±{:.2g}", most), "after, solved", "after, predicted",
                                           fmt::format("its error, ±{:.2g}", wrong)};
    const std::array<at::Tensor, 4> fields{u, v, p, p - v};
    for (std::size_t j = 0; j < 4; ++j) {
      const double x = left + static_cast<double>(j) * pitch, y = first + i * (side + 34);
      svg += fmt::format("<text x='{}' y='{}'>{}</text>\n", x, y - 8, names[j]) +
             field(fields[j], j == 3 ? wrong : most, x, y);
    }
  }
  svg += curve(errors, 560, 690, right) +
         fmt::format("<text x='{}' y='544'>relative error of the tests, over {} steps of training</text>\n</svg>\n",
                     left, steps);
  tessera::write_whole(path, svg);
}

}  // namespace fno
