#pragma once
// Noisy images of discs and rings with the classes of their pixels, and a picture of what was read in them.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/core.h>
#include <tessera/nn/file/atomic_file.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "raster.hpp"

namespace scenes {

constexpr std::int64_t disc = 1, ring = 2;  ///< classes of pixels; 0 is the ground

/// Two exposures of each scene, N x 2 x n x n, and the classes of its pixels, N x n x n.
struct labelled {
  at::Tensor images, classes;
};

/// `count` scenes with a disc or a ring of radius 4 to 6 in each third of the columns, in any rows. Their brightness is
/// 0.8 to 1.2, in noise of deviation 0.6. The class of a pixel depends on the pixels around it. The middle one lies
/// across what cuts the width in two.
inline labelled drawn(std::int64_t count, std::int64_t n, std::uint64_t seed) {
  const at::Generator chance = at::detail::createCPUGenerator(seed);
  const auto between = [&](double low, double high) {
    return at::rand({count, 1, 1}, chance, at::kDouble) * (high - low) + low;
  };
  const at::Tensor rows = at::arange(n, at::kDouble).view({1, n, 1}),
                   columns = at::arange(n, at::kDouble).view({1, 1, n});
  const auto extent = static_cast<double>(n);
  at::Tensor classes = at::zeros({count, n, n}, at::kLong), bright = at::zeros({count, n, n}, at::kDouble);
  for (const double middle : {extent / 6, extent / 2, extent * 5 / 6}) {
    const at::Tensor far = at::hypot(rows - between(5, extent - 6), columns - between(middle - 2, middle + 1)),
                     radius = between(4, 6);
    const at::Tensor filled = between(0, 1).lt(0.5),
                     inside = at::logical_and(far.lt(radius), at::logical_or(filled, far.gt(radius / 2)));
    classes = at::where(inside, at::where(filled, disc, ring), classes);
    bright = at::where(inside, between(0.8, 1.2), bright);
  }
  return {bright.unsqueeze(1) + at::randn({count, 2, n, n}, chance, at::kDouble) * 0.6, classes};
}

/// The intersection of what was read and what is there over their union, the mean over discs and rings.
inline double overlap(const at::Tensor& read, const at::Tensor& classes) {
  double sum = 0;
  for (const std::int64_t kind : {disc, ring}) {
    const at::Tensor ours = read.eq(kind), theirs = classes.eq(kind);
    sum += at::logical_and(ours, theirs).sum().item<double>() /
           std::max(at::logical_or(ours, theirs).sum().item<double>(), 1.0) / 2;
  }
  return sum;
}

/// Writes the first exposure of six scenes, the classes of their pixels, and the predicted classes, in rows. Lines show
/// where four workers cut them. The file appears whole or not at all.
inline void write_figure(const std::filesystem::path& path, const labelled& tests, const at::Tensor& read,
                         const std::string& title) {
  constexpr int shown = 6, side = 136, pitch = 148, left = 24, top = 102, row_pitch = side + 38;
  constexpr int width = 2 * left + shown * pitch - (pitch - side), height = top + 3 * row_pitch - 14;
  const std::vector<std::string> kinds{"#eef1f6", "#2f6fb0", "#d08b2f"};
  std::vector<std::string> greys;
  for (int i = 0; i < 16; ++i) greys.push_back(fmt::format("#{0:02x}{0:02x}{0:02x}", i * 17));
  // −1 is black, 2 white
  const at::Tensor shades = ((tests.images.select(1, 0) + 1) / 3 * 15).round().clamp(0, 15).to(at::kLong);
  const auto key = [&](int x, std::size_t kind, const char* name) {
    return fmt::format("<rect x='{}' y='52' width='12' height='12' rx='2' fill='{}'/><text x='{}' y='62'>{}</text>\n",
                       x, kinds[kind], x + 18, name);
  };
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' "
      "height='{1}'>\n<style>text{{font-family:'DejaVu Sans',"
      "Verdana,sans-serif;font-size:12px;fill:#3b4252}}</style>\n<rect width='{0}' height='{1}' rx='8' fill='#fff'/>\n"
      "<text x='{2}' y='34' font-weight='bold' style='font-size:17px'>{3}</text>\n",
      width, height, left, title);
  svg += key(left, 1, "disc") + key(left + 80, 2, "ring");
  svg += fmt::format(
      "<path stroke='#e4475b' stroke-width='1.5' stroke-dasharray='4 3' d='M{} 58h26'/><text x='{}' y='62'>where "
      "workers' parts meet</text>\n",
      left + 160, left + 194);
  const std::array<std::string, 3> names{"one of two exposures", "what is there",
                                         fmt::format("what the network reads, {:.1f} % overlap over {} scenes",
                                                     100 * overlap(read, tests.classes), read.size(0))};
  for (int row = 0; row < 3; ++row) {
    const int y = top + row * row_pitch;
    svg += fmt::format("<text x='{}' y='{}'>{}</text>\n", left, y - 8, names[static_cast<std::size_t>(row)]);
    for (int i = 0; i < shown; ++i) {
      const int x = left + i * pitch;
      svg += row == 0 ? raster(shades[i], greys, side, x, y)
                      : raster(row == 1 ? tests.classes[i] : read[i], kinds, side, x, y);
      svg += fmt::format("<path stroke='#e4475b' stroke-width='1.5' stroke-dasharray='4 3' d='M{} {}v{}M{} {}h{}'/>\n",
                         x + side / 2, y, side, x, y + side / 2, side);
    }
  }
  tessera::write_whole(path, svg + "</svg>\n");
}

}  // namespace scenes
