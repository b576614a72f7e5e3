#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::engine {

/// A text as XML writes it.
inline std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') safe += "&amp;";
    else if (c == '<') safe += "&lt;";
    else if (c == '>') safe += "&gt;";
    else if (c == '"') safe += "&quot;";
    else safe += c;
  }
  return safe;
}

/// A colour for each of some workers, the same in every part of a picture: twelve by hand, then around the circle of
/// hues.
class palette {
 public:
  explicit palette(std::vector<int> ranks) : ranks_(std::move(ranks)) {
    std::sort(ranks_.begin(), ranks_.end());
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
  }

  std::string of(int rank) const {
    constexpr const char* chosen[]{"#4477aa", "#ee8833", "#449955", "#cc4455", "#8866bb", "#22aabb",
                                   "#bb9911", "#dd6699", "#886644", "#77aa22", "#5566dd", "#777777"};
    const auto i = static_cast<int>(std::lower_bound(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
    if (i < 12) return chosen[i];
    const double hue = std::fmod(i * 137.508, 360);
    const auto channel = [&](double shift) {  // of a hue at half saturation
      const double k = std::fmod(shift + hue / 30, 12);
      return static_cast<int>(std::lround(255 * (0.5 - 0.27 * std::max(-1.0, std::min({k - 3, 9 - k, 1.0})))));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
  }

 private:
  std::vector<int> ranks_;
};

/// A number of pixels in few digits, so that a picture is the same everywhere.
inline std::string pixels(double x) { return fmt::format("{:g}", std::round(x * 10) / 10); }

/// A picture that grows with what is drawn into it.
class drawing {
 public:
  static constexpr const char* ink = "#1f2733";
  static constexpr const char* faint = "#7a8594";
  static constexpr const char* paper = "#f3f5f8";

  /// How wide a text is, nearly.
  static double width_of(std::string_view text, double size = 12) {
    const auto characters =
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
    return static_cast<double>(characters) * size * 0.56;
  }

  void rect(double x, double y, double w, double h, std::string_view fill, double opacity = 1,
            std::string_view more = "") {
    body_ += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='{}'{}{}{}/>\n", pixels(x), pixels(y),
                         pixels(w), pixels(h), fill, opacity == 1 ? "" : fmt::format(" fill-opacity='{:g}'", opacity),
                         more.empty() ? "" : " ", more);
    reach(x + w, y + h);
  }
  void outline(double x, double y, double w, double h, std::string_view stroke, double width,
               std::string_view more = "") {
    rect(x, y, w, h, "none", 1, fmt::format("stroke='{}' stroke-width='{:g}' {}", stroke, width, more));
  }
  void line(double x, double y, double x2, double y2, std::string_view stroke, double width = 1) {
    body_ += fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='{}' stroke-width='{:g}'/>\n", pixels(x),
                         pixels(y), pixels(x2), pixels(y2), stroke, width);
    reach(x2, y2);
  }
  void curve(std::string_view d, std::string_view stroke, double width) {
    body_ += fmt::format("<path d='{}' fill='none' stroke='{}' stroke-width='{:g}' stroke-linecap='round'/>\n", d,
                         stroke, width);
  }
  void circle(double x, double y, double r, std::string_view fill, std::string_view stroke) {
    body_ += fmt::format("<circle cx='{}' cy='{}' r='{:g}' fill='{}' stroke='{}' stroke-width='2'/>\n", pixels(x),
                         pixels(y), r, fill, stroke);
    reach(x + r, y + r);
  }
  void path(std::string_view d, std::string_view fill) { body_ += fmt::format("<path d='{}' fill='{}'/>\n", d, fill); }

  /// anchor: start, middle or end; y is the line that letters stand on.
  void text(double x, double y, std::string_view words, double size = 12, std::string_view colour = ink,
            std::string_view anchor = "start", bool bold = false) {
    body_ += fmt::format("<text x='{}' y='{}' font-size='{:g}' fill='{}'{}{}>{}</text>\n", pixels(x), pixels(y), size,
                         colour, anchor == "start" ? "" : fmt::format(" text-anchor='{}'", anchor),
                         bold ? " font-weight='600'" : "", xml_text(words));
    const double w = width_of(words, size);
    reach(anchor == "start" ? x + w : anchor == "middle" ? x + w / 2 : x, y + 4);
  }

  /// A worker's number on its colour, around (x, y).
  static double chip_width(int rank) { return 9 + width_of(fmt::format("{}", rank), 11); }
  void chip(double x, double y, int rank, std::string_view colour) {
    const double w = chip_width(rank);
    rect(x - w / 2, y - 8, w, 16, colour, 1, "rx='8' stroke='#ffffff' stroke-width='1'");
    text(x, y + 4, fmt::format("{}", rank), 11, "#ffffff", "middle", true);
  }
  /// Several of them in a row around (x, y), with signs between: as many as `room` pixels take, then how many more.
  void chips(double x, double y, const std::vector<int>& ranks, const palette& colours, double room,
             std::string_view sign = "") {
    const double gap = sign.empty() ? 3 : 11;
    std::size_t shown = 0;
    double w = 0;
    for (; shown < ranks.size(); ++shown) {
      const double more = chip_width(ranks[shown]) + (shown == 0 ? 0 : gap);
      const double rest = shown + 1 == ranks.size() ? 0 : 26;
      if (shown > 0 && w + more + rest > room) break;
      w += more;
    }
    if (shown == 1 && chip_width(ranks[0]) > room + 4) return;
    const std::string left = shown < ranks.size() ? fmt::format("+{}", ranks.size() - shown) : "";
    double at = x - (w + (left.empty() ? 0 : 24)) / 2;
    for (std::size_t i = 0; i < shown; ++i) {
      if (i > 0 && !sign.empty()) text(at + gap / 2, y + 4, sign, 12, ink, "middle", true);
      at += i > 0 ? gap : 0;
      chip(at + chip_width(ranks[i]) / 2, y, ranks[i], colours.of(ranks[i]));
      at += chip_width(ranks[i]);
    }
    if (!left.empty()) text(at + 3, y + 4, left, 11, ink);
  }

  /// A fill of slanted lines in a colour; neighbours in the circle of colours slant the other way.
  std::string hatch(const std::string& colour) {
    const auto [entry, fresh] = hatches_.try_emplace(colour, fmt::format("hatch{}", hatches_.size()));
    if (fresh)
      definitions_ += fmt::format(
          "<pattern id='{0}' width='6' height='6' patternUnits='userSpaceOnUse' patternTransform='rotate({1})'>"
          "<rect width='6' height='6' fill='{2}' fill-opacity='0.12'/><rect width='1.8' height='6' "
          "fill='{2}'/></pattern>\n",
          entry->second, hatches_.size() % 2 == 0 ? 45 : -45, colour);
    return fmt::format("url(#{})", entry->second);
  }

  /// Makes room for what is drawn elsewhere.
  void reach(double x, double y) {
    width_ = std::max(width_, x);
    height_ = std::max(height_, y);
  }
  double width() const { return width_; }
  double height() const { return height_; }

  /// The whole file.
  std::string str(double margin = 16) const {
    const double w = std::ceil(width_ + margin), h = std::ceil(height_ + margin);
    return fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
        "font-family='Helvetica, Arial, DejaVu Sans, sans-serif'>\n{2}<rect width='{0}' height='{1}' "
        "fill='#ffffff'/>\n{3}</svg>\n",
        pixels(w), pixels(h), definitions_.empty() ? "" : "<defs>\n" + definitions_ + "</defs>\n", body_);
  }

 private:
  std::string body_;
  std::string definitions_;
  std::map<std::string, std::string> hatches_;
  double width_ = 0;
  double height_ = 0;
};

}  // namespace tessera::engine
