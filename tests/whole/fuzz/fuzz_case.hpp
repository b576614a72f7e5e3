#pragma once
// One case of the fuzz: a change of layout of a tensor, and a line of text that means it.

#include <tessera/topology/layout.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tessera::testing::fuzz {

using namespace engine;

/// A change of layout, and the tensor that goes through it.
struct fuzz_case {
  layout from;
  layout to;
  std::string element = "double";
  int memory = 0;          ///< how the tensor's boxes lie in memory
  std::uint64_t salt = 1;  ///< of its values
};

/// A list that lives as long as the program: layouts point to their lists. Threads may ask.
template <class T>
const T* kept(std::vector<T> list) {
  static std::mutex alone;
  static std::set<std::vector<T>> all;
  const std::lock_guard lock(alone);
  return all.insert(std::move(list)).first->data();
}

inline text kept_name(const std::string& name) {
  return {kept(std::vector<char>(name.begin(), name.end())), static_cast<int>(name.size())};
}

/// How many workers a world has that reaches as far as a mesh.
inline int world_of(const mesh_value& m) {
  int last = 0;
  for (int i = 0; i < m.size(); ++i) last = std::max(last, m.rank(m.at(i)));
  return last + 1;
}

/// How far a mesh reaches into its list of ranks.
inline int listed(mesh_value m) {
  m.ranks = nullptr;
  return world_of(m);
}

/// The same layout with lists of its own.
inline layout kept(layout x) {
  if (x.mesh.ranks != nullptr) x.mesh.ranks = kept(std::vector<int>(x.mesh.ranks, x.mesh.ranks + listed(x.mesh)));
  for (int d = 0; d < x.dims.count; ++d)
    if (x.dims[d].bounds != nullptr)
      x.dims[d].bounds = kept(std::vector<index_t>(x.dims[d].bounds, x.dims[d].bounds + x.part_count(d) + 1));
  return x;
}

inline constexpr const char* combine_names[]{"", "max", "min", "prod", "any", "all"};
inline constexpr const char* edge_names[]{"zero", "reflect", "replicate", "periodic", "inward"};

// A layout in words without spaces inside an axis or a dimension:
//
//   @2 a=3*4:V0.1j b=4*1:Pmax on 7,g2,b0/1/4,t1 9,h5/2/-1/1/1/0/0/zero
//
// The mesh begins at rank 2 (or lies on ranks:0,3,…); axis a has extent 3 and stride 4, cuts dimension 0 at level 1 and
// joins the level before it (V, j), or is R, P with its combine, I or O with its coordinate. Dimension 0 has extent 7,
// grain 2, explicit bounds and a deal turned by 1 (or z, in zigzag); dimension 1 is haloed (h) or pending (p) for 5
// outputs: a, b, b2, c, unreached, edge.
inline std::string text_of(const layout& x) {
  std::ostringstream s;
  s << "@" << x.mesh.first;
  if (x.mesh.ranks != nullptr)
    for (int i = 0; i < listed(x.mesh); ++i) s << (i == 0 ? " ranks:" : ",") << x.mesh.ranks[i];
  for (int a = 0; a < x.mesh.axes.count; ++a) {
    const axis_value& axis = x.mesh.axes[a];
    const axis_placement& r = x.placements[a];
    s << " " << std::string(axis.name.data, static_cast<std::size_t>(axis.name.size)) << "=" << axis.extent << "*"
      << axis.stride << ":"
      << "RPIOV"[static_cast<int>(r.kind)];
    if (r.kind == placement::partial) s << combine_names[static_cast<int>(r.with)];
    if (r.kind == placement::on) s << r.coordinate;
    if (r.kind == placement::cut)
      s << static_cast<int>(r.dimension) << "." << static_cast<int>(r.level) << (r.joined ? "j" : "");
  }
  s << " on";
  for (int d = 0; d < x.dims.count; ++d) {
    const dimension& dim = x.dims[d];
    s << " " << dim.extent;
    if (dim.grain() != 1) s << ",g" << dim.grain();
    if (dim.bounds != nullptr)
      for (int k = 0; k <= x.part_count(d); ++k) s << (k == 0 ? ",b" : "/") << dim.bounds[k];
    if (dim.turned != 0) s << ",t" << dim.turned;
    if (dim.zigzag) s << ",z";
    if (dim.kind == cover::tiled) continue;
    const window& w = dim.needs;
    s << (dim.kind == cover::haloed ? ",h" : ",p") << dim.outputs;
    for (index_t n : {w.a, w.b, w.b2, w.c, w.unreached_before, w.unreached_after}) s << "/" << n;
    s << "/" << edge_names[static_cast<int>(w.edge)];
  }
  return s.str();
}

/// The line that means a case: `parse` reads it.
inline std::string text_of(const fuzz_case& c) {
  return c.element + " memory " + std::to_string(c.memory) + " salt " + std::to_string(c.salt) + " from " +
         text_of(c.from) + " to " + text_of(c.to);
}

namespace detail {

/// Takes numbers and signs off a word, one after the other; a word that has another form leaves `good` false.
struct reader {
  std::string left;
  bool good = true;

  bool take(const std::string& sign) {
    if (left.rfind(sign, 0) != 0) return false;
    left.erase(0, sign.size());
    return true;
  }
  void expect(const std::string& sign) { good = take(sign) && good; }
  index_t number() {
    std::size_t used = 0;
    long long n = 0;
    try {
      n = std::stoll(left, &used);
    } catch (const std::exception&) {
      good = false;
    }
    left.erase(0, used);
    return n;
  }
  template <class T>
  std::vector<T> numbers(const std::string& between) {
    std::vector<T> all{static_cast<T>(number())};
    while (take(between)) all.push_back(static_cast<T>(number()));
    return all;
  }
  template <std::size_t N>
  int one_of(const char* const (&names)[N]) {
    for (std::size_t i = N; i-- > 0;)
      if (take(names[i])) return static_cast<int>(i);
    good = false;
    return 0;
  }
  bool ended() const { return good && left.empty(); }
};

inline bool read_axis(reader word, layout& x) {
  const std::size_t end = word.left.find('=');
  if (end == std::string::npos || end == 0) return false;
  axis_value axis;
  axis.name = kept_name(word.left.substr(0, end));
  word.left.erase(0, end + 1);
  axis.extent = static_cast<int>(word.number());
  word.expect("*");
  axis.stride = static_cast<int>(word.number());
  word.expect(":");
  axis_placement r;
  if (word.take("P")) {
    r.kind = placement::partial;
    r.with = static_cast<combine>(word.one_of(combine_names));
  } else if (word.take("I")) {
    r.kind = placement::invariant;
  } else if (word.take("O")) {
    r = held_on(static_cast<int>(word.number()));
  } else if (word.take("V")) {
    r.kind = placement::cut;
    r.dimension = static_cast<signed char>(word.number());
    word.expect(".");
    r.level = static_cast<signed char>(word.number());
    r.joined = word.take("j");
  } else {
    word.expect("R");
  }
  if (x.mesh.axes.count == max_axes) return false;
  x.mesh.axes.push(axis);
  x.placements.push(r);
  return word.ended() && axis.extent > 0;
}

inline bool read_dimension(reader word, layout& x) {
  if (x.dims.count == max_dimensions) return false;
  const int parts = x.part_count(x.dims.count);
  dimension d;
  d.extent = word.number();
  while (word.good && word.take(",")) {
    if (word.take("g")) {
      d.set_grain(word.number());
    } else if (word.take("b")) {
      const auto bounds = word.numbers<index_t>("/");
      word.good = word.good && static_cast<int>(bounds.size()) == parts + 1;
      d.bounds = kept(bounds);
    } else if (word.take("t")) {
      d.turned = static_cast<int>(word.number());
    } else if (word.take("z")) {
      d.zigzag = true;
    } else {
      d.kind = word.take("p") ? cover::pending : cover::haloed;
      if (d.kind == cover::haloed) word.expect("h");
      d.outputs = word.number();
      for (index_t* n :
           {&d.needs.a, &d.needs.b, &d.needs.b2, &d.needs.c, &d.needs.unreached_before, &d.needs.unreached_after}) {
        word.expect("/");
        *n = word.number();
      }
      word.expect("/");
      d.needs.edge = static_cast<boundary>(word.one_of(edge_names));
    }
  }
  x.dims.push(d);
  return word.ended();
}

// Axes cut dimensions that there are, one a level, and a list of ranks reaches as far as the mesh.
inline bool well_formed(const layout& x, std::size_t ranks) {
  for (const axis_placement& r : x.placements)
    if (r.kind == placement::cut && (r.dimension < 0 || r.dimension >= x.dims.count)) return false;
  for (int d = 0; d < x.dims.count; ++d)
    for (int level = 0; level < x.levels(d); ++level)
      if (x.cutter(d, level) < 0) return false;
  return x.mesh.ranks == nullptr || (listed(x.mesh) <= static_cast<int>(ranks) && x.mesh.first >= 0);
}

inline bool read_layout(std::istringstream& words, const std::string& stop, layout& x) {
  bool dims = false;
  std::size_t ranks = 0;
  std::string word;
  while (words >> word && word != stop) {
    reader r{word};
    if (word == "on") {
      dims = true;
    } else if (dims) {
      if (!read_dimension(r, x)) return false;
    } else if (r.take("@")) {
      x.mesh.first = static_cast<int>(r.number());
      if (!r.ended()) return false;
    } else if (r.take("ranks:")) {
      const auto list = r.numbers<int>(",");
      ranks = list.size();
      x.mesh.ranks = kept(list);
      if (!r.ended()) return false;
    } else if (!read_axis(r, x)) {
      return false;
    }
  }
  return dims && well_formed(x, ranks);
}

}  // namespace detail

/// The case that a line means, or nothing.
inline std::optional<fuzz_case> parse(const std::string& line) {
  fuzz_case c;
  std::istringstream words(line);
  std::string memory;
  std::string salt;
  std::string from;
  if (!(words >> c.element >> memory >> c.memory >> salt >> c.salt >> from)) return {};
  if (memory != "memory" || salt != "salt" || from != "from") return {};
  if (!detail::read_layout(words, "to", c.from) || !detail::read_layout(words, "", c.to)) return {};
  return c;
}

/// What the shrinker makes simpler: the layouts of a case, and the rest of it.
inline std::vector<const layout*> layouts_of(const fuzz_case& c) { return {&c.from, &c.to}; }
inline std::vector<layout*> layouts_of(fuzz_case& c) { return {&c.from, &c.to}; }
template <class With>
void each_simpler_option(const fuzz_case&, const With& with) {
  with([](fuzz_case& s) { s.element = "double"; });
  with([](fuzz_case& s) { s.memory = 0; });
  with([](fuzz_case& s) { s.salt = 1; });
}

/// How many workers the world of a case has.
inline int world_of(const fuzz_case& c) { return std::max(world_of(c.from.mesh), world_of(c.to.mesh)); }

/// Whether all terms of a case are sums, so that the change has an adjoint.
inline bool only_sums(const fuzz_case& c) {
  return tessera::engine::only_sums(c.from) && tessera::engine::only_sums(c.to);
}

}  // namespace tessera::testing::fuzz
