#include "subjects.hpp"

#include <range/v3/view/zip.hpp>

#include <numeric>

namespace conformance::training {
namespace {

/// The least possible largest part if parts are whole parameters in order.
index_t largest_unsplit(const integers& parameters, index_t parts) {
  const index_t most = std::accumulate(parameters.begin(), parameters.end(), index_t{0});
  const auto fits = [&](index_t cap) {
    index_t used = 1;
    index_t filled = 0;
    for (const index_t n : parameters) {
      if (n > cap) return false;
      if (filled + n > cap) {
        ++used;
        filled = 0;
      }
      filled += n;
    }
    return used <= parts;
  };
  index_t low = 0;
  for (index_t high = most; low < high;) {
    const index_t middle = low + (high - low) / 2;
    if (fits(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// A list of parameters laid end to end and cut as the library cuts a dimension.
json shares_of(const integers& parameters, index_t parts, index_t grain) {
  layout x = whole(mesh_of({{"part", parts}}), {std::accumulate(parameters.begin(), parameters.end(), index_t{0})});
  x.cut_by(0, 0);
  x.dims[0].set_grain(grain);
  check(check(x));
  json bounds = json::array({0});
  json pieces = json::array();
  index_t largest = 0;
  for (int r = 0; r < x.mesh.size(); ++r) {
    const engine::interval mine = box_of(x, r)[0];
    bounds.push_back(mine.empty() ? bounds.back().get<index_t>() : mine.hi);
    largest = std::max(largest, mine.size());
    json inside = json::array();
    index_t begin = 0;
    for (std::size_t p = 0; p < parameters.size(); begin += parameters[p], ++p) {
      const index_t lo = std::max(mine.lo, begin);
      const index_t hi = std::min(mine.hi, begin + parameters[p]);
      if (lo < hi) inside.push_back({p, lo - begin, hi - begin});
    }
    pieces.push_back(inside);
  }
  return {{"bounds", bounds},
          {"pieces", pieces},
          {"largest", largest},
          {"largest_unsplit", largest_unsplit(parameters, parts)}};
}

}  // namespace

/// Parameters laid end to end and cut.
task shards(reading& c) {
  const auto lists = c.given().at("elements").get<std::vector<integers>>();
  const integers parts = c.given().list("parts");
  const index_t grain = c.has("grain") ? c.given().integer("grain") : 1;
  if (lists.size() != parts.size()) throw unbuilt("as many lists as numbers of parts");
  json shares = json::array();
  for (const auto& [elements, into] : ranges::views::zip(lists, parts))
    shares.push_back(shares_of(elements, into, grain));
  c.compare("shares", shares);
  return c.planned();
}

}  // namespace conformance::training
