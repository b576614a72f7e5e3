#pragma once

#include <tessera/file/json_cursor.hpp>
#include <tessera/topology/check_layout.hpp>
#include <tessera/topology/element.hpp>
#include <tessera/topology/tensor_type.hpp>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

namespace tessera::engine::file {

/// The lists that layouts point to: names of axes, lengths of parts, ranks of workers.
struct lists {
  std::deque<std::string> names;
  std::deque<std::vector<int>> ranks;
  std::deque<std::vector<index_t>> bounds;
  std::deque<std::vector<double>> values;
};

/// Throws a refusal with the place in the file; `hold` does so unless it accepts.
[[noreturn]] inline void refuse(const json_cursor& here, const reason& why, auto... told) {
  throw error(refusal{why, told...}, here.path());
}
inline void hold(const json_cursor& here, const refusal& why) { check(why, here.path()); }

/// "first", "first" and "strides", or "ranks": every world rank must be one of the world's.
inline mesh_value read_mesh(const json_cursor& here, index_t world, lists& keep) {
  here.only({"axes", "first", "strides", "ranks"});
  const json_cursor axes = here.at("axes").list();
  if (axes.size() > max_axes) refuse(axes, code::too_many, axes.size());
  mesh_value mesh;
  index_t size = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const json_cursor axis = axes.item(i).list();
    if (axis.size() != 2) axis.fault("is no [name, extent]");
    const index_t extent = axis.item(1).number();
    const std::string& word = keep.names.emplace_back(axis.item(0).word());
    const text name(word.data(), static_cast<int>(word.size()));
    if (extent < 1) refuse(axis, code::extent_not_positive, name, extent);
    size *= extent;
    if (size > world) refuse(axes, code::mesh_larger_than_world, size, world);
    mesh.axes.push({name, static_cast<int>(extent), 0});
  }
  mesh = row_major(mesh);
  hold(axes, check(mesh));
  const auto inside = [&](const json_cursor& where, index_t rank) {
    if (rank < 0 || rank >= world) refuse(where, code::mesh_larger_than_world, rank < 0 ? rank : rank + 1, world);
  };
  if (here.has("ranks")) {
    if (here.has("first") || here.has("strides"))
      here.fault("has \"ranks\" and \"first\" or \"strides\"; one of them places it");
    const json_cursor given = here.at("ranks").list();
    std::vector<int>& ranks = keep.ranks.emplace_back();
    for (std::size_t i = 0; i < given.size(); ++i) {
      inside(given.item(i), given.item(i).number());
      ranks.push_back(static_cast<int>(given.item(i).number()));
    }
    if (given.size() != static_cast<std::size_t>(size)) refuse(given, code::wrong_number_of_ranks, size, given.size());
    mesh = row_major(mesh, 0, ranks.data());
  } else {
    const index_t first = here.at("first").number();
    index_t low = first, high = first;
    if (here.has("strides")) {
      const json_cursor strides = here.at("strides").list();
      if (strides.size() != axes.size()) refuse(strides, code::wrong_number_of_strides, axes.size(), strides.size());
      for (int i = 0; i < mesh.axes.count; ++i)
        mesh.axes[i].stride = static_cast<int>(strides.item(static_cast<std::size_t>(i)).number());
    }
    for (const axis_value& a : mesh.axes) (a.stride < 0 ? low : high) += index_t{a.stride} * (a.extent - 1);
    inside(here, low);
    inside(here, high);
    mesh.first = static_cast<int>(first);
  }
  hold(here, check(mesh));
  return mesh;
}

/// An element by its name, and `read_boundary` a boundary by its own; other words are told with their place.
inline element read_element(const json_cursor& here) {
  const std::string word = here.word();
  for (int e = 0; e <= static_cast<int>(element::uint64); ++e)
    if (word == name_of(static_cast<element>(e))) return static_cast<element>(e);
  here.fault("is no element: " + word);
}
inline boundary read_boundary(const json_cursor& here) {
  const std::string edge = here.word();
  const std::vector<std::string> edges{"zero", "reflect", "replicate", "periodic"};
  const auto which = std::find(edges.begin(), edges.end(), edge);
  if (which == edges.end()) here.fault("is none of zero, reflect, replicate and periodic");
  return static_cast<boundary>(which - edges.begin());
}

/// A layout over a mesh: "dims", a cover each, and "meaning" of axes that cut none.
class layout_reader {
 public:
  layout_reader(const json_cursor& side, const mesh_value& mesh, const std::vector<index_t>& shape, bool terms,
                lists& keep)
      : keep_(keep), copies_(terms ? cover::pending : cover::haloed) {
    x_.mesh = mesh;
    x_.placements.resize(x_.mesh.axes.count);
    used_.assign(static_cast<std::size_t>(x_.mesh.axes.count), false);
    const json_cursor dims = side.at("dims").list();
    if (dims.size() != shape.size()) refuse(dims, code::wrong_number_of_dimensions, dims.size(), shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      dimension dim;
      dim.extent = shape[d];
      x_.dims.push(dim);
      read_cover(dims.item(d), static_cast<int>(d), shape[d]);
    }
    if (side.has("meaning")) read_placement(side.at("meaning").object());
    hold(side, check(x_));
  }

  const layout& value() const { return x_; }

 private:
  // The axis of that name; it may not have been named before.
  int claim_axis(const json_cursor& where, const std::string& word) {
    const text name(word.data(), static_cast<int>(word.size()));
    const int a = x_.mesh.find(name);
    if (a < 0) refuse(where, code::axis_not_in_mesh, name, x_.mesh.axes.count);
    if (used_[static_cast<std::size_t>(a)]) refuse(where, code::axis_used_twice, name);
    used_[static_cast<std::size_t>(a)] = true;
    return a;
  }

  // Whole, blocks, zigzag or lengths; of a window it cuts the outputs, n of them.
  void read_tiles(const json_cursor& here, int d, index_t n) {
    if (here.has("whole")) {
      here.only({"whole"});
      if (here.value()["whole"] != true) here.fault("is whole or names another cover");
    } else if (here.has("blocks")) {
      const json_cursor axes = here.only({"blocks", "grain"}).at("blocks").list();
      const index_t grain = here.has("grain") ? here.at("grain").number() : 1;
      if (grain < 1) refuse(here, code::grain_not_positive, d, grain);
      for (std::size_t i = 0; i < axes.size(); ++i) x_.cut_by(d, claim_axis(axes.item(i), axes.item(i).word()));
      x_.dims[d].set_grain(grain);
    } else if (here.has("zigzag")) {
      const json_cursor axes = here.only({"zigzag", "grain"}).at("zigzag").list();
      const index_t grain = here.has("grain") ? here.at("grain").number() : 1;
      if (grain < 1) refuse(here, code::grain_not_positive, d, grain);
      for (std::size_t i = 0; i < axes.size(); ++i) x_.cut_by(d, claim_axis(axes.item(i), axes.item(i).word()));
      x_.dims[d].set_grain(grain);
      x_.dims[d].zigzag = true;
    } else if (here.has("lengths")) {
      const json_cursor axes = here.only({"lengths", "axes"}).at("axes").list();
      const json_cursor given = here.at("lengths").list();
      for (std::size_t i = 0; i < axes.size(); ++i) x_.cut_by(d, claim_axis(axes.item(i), axes.item(i).word()));
      const int parts = x_.part_count(d);
      if (given.size() != static_cast<std::size_t>(parts))
        refuse(given, code::wrong_number_of_lengths, d, parts, given.size());
      std::vector<index_t>& bounds = keep_.bounds.emplace_back(1, 0);
      index_t sum = 0;
      for (std::size_t i = 0; i < given.size(); ++i) {
        const index_t length = given.item(i).number(INT64_MIN, INT64_MAX);
        if (length < 0 || length > n - sum)
          refuse(given, code::lengths_do_not_add_up, d, n, length < 0 ? length : n + 1);
        bounds.push_back(sum += length);
      }
      if (sum != n) refuse(given, code::lengths_do_not_add_up, d, n, sum);
      if (x_.levels(d) > 0) x_.dims[d].bounds = bounds.data();
    } else {
      here.object().fault("is no cover: whole, blocks, zigzag or lengths");
    }
  }

  void read_cover(const json_cursor& here, int d, index_t n) {
    if (!here.has("haloed")) return read_tiles(here, d, n);
    const json_cursor w = here.only({"haloed"})
                              .at("haloed")
                              .only({"outputs", "extent", "kernel", "stride", "padding", "dilation", "boundary"});
    const json_cursor padding = w.at("padding").list();
    if (padding.size() != 2) padding.fault("is no [left, right]");
    const sliding s{w.at("kernel").number(),  w.at("stride").number(),   padding.item(0).number(),
                    padding.item(1).number(), w.at("dilation").number(), read_boundary(w.at("boundary"))};
    const index_t outputs = w.at("extent").number();
    if (outputs < 0) refuse(w, code::extent_negative, d, outputs);
    hold(w, s.check(d, n));
    read_tiles(w.at("outputs"), d, outputs);
    dimension& dim = x_.dims[d];
    dim.kind = copies_;
    dim.outputs = outputs;
    dim.needs = s.needs();
  }

  void read_placement(const json_cursor& here) {
    for (const auto& [name, value] : here.value().items()) {
      const json_cursor kind(value, here.path() + "." + name);
      const int a = claim_axis(kind, name);
      axis_placement& r = x_.placements[a];
      if (value == "replicate") continue;
      if (value == "partial") {
        r.kind = placement::partial;
      } else if (value == "invariant") {
        r.kind = placement::invariant;
      } else if (kind.has("on")) {
        const index_t c = kind.only({"on"}).at("on").number();
        if (c < 0 || c >= x_.mesh.axes[a].extent)
          refuse(kind, code::coordinate_outside_axis, x_.mesh.axes[a].name, x_.mesh.axes[a].extent, c);
        r = held_on(static_cast<int>(c));
      } else {
        kind.fault("is none of replicate, partial, invariant and {\"on\": coordinate}");
      }
    }
  }

  lists& keep_;
  cover copies_;
  layout x_;
  std::vector<bool> used_;
};

/// A tensor by its "shape", in which a word is a dynamic extent, its "element", float unless said, its "dims" and
/// "meaning".
inline tensor_value read_tensor(const json_cursor& here, const mesh_value& mesh, lists& keep) {
  const json_cursor shape = here.at("shape").list();
  if (shape.size() > max_dimensions) refuse(shape, code::too_many, shape.size());
  std::vector<index_t> extents;
  std::vector<text> tags;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool is_named = shape.item(d).value().is_string();
    const std::string& name = keep.names.emplace_back(is_named ? shape.item(d).word() : "");
    tags.push_back(is_named ? text(name.data(), static_cast<int>(name.size())) : text());
    extents.push_back(is_named ? dynamic : shape.item(d).number());
    if (!is_named && extents.back() < 0) refuse(shape, code::extent_negative, d, extents.back());
  }
  tensor_value x{layout_reader(here, mesh, extents, false, keep).value(), element::float32};
  for (int d = 0; d < x.layout.dims.count; ++d) x.layout.dims[d].tag = tags[static_cast<std::size_t>(d)];
  if (here.has("element")) x.element = read_element(here.at("element"));
  return x;
}

}  // namespace tessera::engine::file
