#pragma once
// LibTorch, the library and Catch2 together, and what a layout means for LibTorch tensors, element by element.

#include <tessera/tessera.hpp>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include "catch.hpp"
#include "generate.hpp"
#include "in_workers.hpp"
#include "oracle.hpp"

#include <cmath>

namespace tessera::testing {

using namespace engine;

inline void prepare_worker() {
  at::set_num_threads(1);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

/// Runs f(transport) in `size` threads that are ready for LibTorch.
template <class F>
auto on_workers(int size, F&& f) {
  return in_world(size, [&](const std::shared_ptr<transport>& carrier) {
    prepare_worker();
    return f(carrier);
  });
}

/// Runs f(team) on the workers of a mesh type, as `launch` does, in threads.
template <Mesh M, class F>
auto in_team(F&& f, const launch_options& options = threads_only()) {
  outcome<decltype(f(std::declval<team<M>&>()))> out(M::value.size());
  launch<M>(0, nullptr, options, [&](team<M>& t) { out.keep(t.rank(), [&] { return f(t); }); });
  return out;
}

/// What happens to a worker: the code of an error, "other" for LibTorch's own, or "none".
template <class F>
std::string told(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  } catch (const std::exception&) {
    return "other";
  }
  return "none";
}

/// How many workers of a mesh f(team) satisfies.
template <Mesh M, class F>
int satisfied(F&& f) {
  const auto all = in_team<M>([&](team<M>& t) -> bool { return f(t); });
  int n = 0;
  for (const auto& r : all.results) n += r && *r;
  return n;
}

/// How many workers of a mesh refuse f(team) with this code; none of them waits for another.
template <Mesh M, class F>
int refusals(const std::string& code, F&& f) {
  return satisfied<M>([&](team<M>& t) { return told([&] { f(t); }) == code; });
}

/// A number for an element of a tensor: a function of its global index and of the tensor alone.
struct numbers {
  std::uint64_t salt = 0;
  bool whole = false;  ///< small whole numbers, whose sums are exact

  double operator()(const oracle::element& e, int term = 0) const {
    rolls d{salt * 1000003u + static_cast<std::uint64_t>(term) * 7919u};
    for (index_t i : e) d.state = d.next() + static_cast<std::uint64_t>(i);
    return whole ? d.roll(-4, 4) : static_cast<double>(d.next() >> 11) * 0x1.0p-52 - 1;
  }
};

inline std::vector<index_t> extents_of(const layout& x) {
  std::vector<index_t> n;
  for (const auto& d : x.dims) n.push_back(d.extent);
  return n;
}

inline double& element_of(at::Tensor& t, const oracle::element& e) {
  index_t at = 0;
  for (std::size_t d = 0; d < e.size(); ++d) at = at * t.size(static_cast<index_t>(d)) + e[d];
  return t.data_ptr<double>()[at];
}

/// A global tensor of these numbers.
inline at::Tensor global_of(const std::vector<index_t>& extents, const numbers& f) {
  at::Tensor t = at::empty(extents, at::kDouble);
  box all;
  for (index_t n : extents) all.push({0, n});
  for (const auto& e : oracle::elements(all)) element_of(t, e) = f(e);
  return t;
}

/// Whether workers along an axis hold terms of a sum: the axis is partial, or cuts a pending dimension.
inline bool sums_over(const layout& x, int axis) {
  const axis_placement& r = x.placements[axis];
  return r.kind == placement::partial || (r.kind == placement::cut && x.dims[r.dimension].kind == cover::pending);
}

inline bool copies_along(const layout& x, int axis) {
  return x.placements[axis].kind == placement::replicate || x.placements[axis].kind == placement::invariant;
}

/// A distributed tensor: the box of each worker, and the global tensor that they mean.
struct shards {
  layout of;
  std::vector<at::Tensor> local;
  at::Tensor global;
};

/// Makes boxes that mean something, of f(element, term): copies are equal, terms arbitrary; the global tensor is their
/// sum.
template <class Numbers>
shards deal(const layout& x, int world, const Numbers& f) {
  shards s{x, {}, at::zeros(extents_of(x), at::kDouble)};
  for (int r = 0; r < world; ++r) {
    const auto mine = oracle::in_memory(x, r);
    at::Tensor t = at::full(detail::sizes_of(held_by(x, r)), 777.0, at::kDouble);
    coordinates c;
    int term = 0;
    bool counts = x.mesh.locate(r, c);
    for (int a = 0; a < x.placements.count && !mine.empty(); ++a) {
      if (sums_over(x, a)) term = term * x.mesh.axes[a].extent + c[a];
      if (copies_along(x, a)) counts = counts && c[a] == 0;
    }
    double* out = t.data_ptr<double>();
    for (const auto& e : mine) {
      const double v = f(e, term);
      *out++ = v;
      if (counts) element_of(s.global, e) += v;
    }
    s.local.push_back(t);
  }
  return s;
}

/// Boxes that mean a given tensor: of a pending sum the first term that somebody holds is what the others leave.
inline shards deal(const layout& x, int world, const at::Tensor& global, std::uint64_t salt) {
  const numbers f{salt};
  std::map<oracle::element, std::set<int>> terms;
  deal(x, world, [&](const oracle::element& e, int term) { return terms[e].insert(term), 0.0; });
  at::Tensor all = global.contiguous();
  shards s = deal(x, world, [&](const oracle::element& e, int term) {
    const std::set<int>& held = terms[e];
    if (term != *held.begin()) return f(e, term);
    double rest = element_of(all, e);
    for (auto other = std::next(held.begin()); other != held.end(); ++other) rest -= f(e, *other);
    return rest;
  });
  s.global = all;
  return s;
}

/// How far boxes are from meaning a global tensor: copies must be it, terms must sum to it; 1e300 for a wrong shape or
/// no number.
inline double distance(const layout& x, const std::vector<at::Tensor>& local, const at::Tensor& wanted) {
  std::map<std::vector<int>, std::map<oracle::element, double>> sums;
  double worst = 0;
  for (int r = 0; r < static_cast<int>(local.size()); ++r) {
    const at::Tensor t = local[static_cast<std::size_t>(r)].detach().to(at::kDouble).contiguous();
    const auto mine = oracle::in_memory(x, r);
    if (mine.empty() && (t.dim() == 0 || t.numel() == 0)) continue;
    if (t.numel() != static_cast<index_t>(mine.size()) || t.dim() != x.dims.count) return 1e300;
    coordinates c;
    x.mesh.locate(r, c);
    std::vector<int> group;
    for (int a = 0; a < x.placements.count; ++a)
      if (!sums_over(x, a)) group.push_back(c[a]);
    const double* in = t.data_ptr<double>();
    for (const auto& e : mine) sums[group][e] += *in++;
  }
  at::Tensor g = wanted.detach().to(at::kDouble).contiguous();
  for (const auto& [group, elements] : sums)
    for (const auto& [e, v] : elements) {
      const double w = element_of(g, e);
      if (v != w)
        worst = std::isfinite(v) && std::isfinite(w) ? std::max(worst, std::abs(v - w) / (1 + std::abs(w))) : 1e300;
    }
  return worst;
}

/// ⟨x, y⟩ over all workers, an invariant axis counted once, relative to Σ |x y| where a scale is asked for.
inline double paired(const layout& x, const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b,
                     bool scale = false) {
  double sum = 0;
  for (int r = 0; r < static_cast<int>(a.size()); ++r) {
    coordinates c;
    bool counts = x.mesh.locate(r, c) && !oracle::held(x, r).empty();
    for (int i = 0; i < x.placements.count && counts; ++i)
      counts = x.placements[i].kind != placement::invariant || c[i] == 0;
    if (!counts) continue;
    const at::Tensor product = a[static_cast<std::size_t>(r)].detach() * b[static_cast<std::size_t>(r)].detach();
    sum += (scale ? product.abs() : product).sum().item<double>();
  }
  return sum;
}

/// The same elements in other memory: row-major, reversed dimensions, every second element, or inside a larger tensor.
inline at::Tensor stored_as(const at::Tensor& t, int how) {
  if (t.dim() == 0 || how == 0) return t.clone(at::MemoryFormat::Contiguous);
  if (how == 1) {
    std::vector<index_t> reversed;
    for (index_t d = t.dim(); d-- > 0;) reversed.push_back(d);
    return t.permute(reversed).clone(at::MemoryFormat::Contiguous).permute(reversed);
  }
  if (how == 2) return at::stack({t, at::full_like(t, 99)}, -1).select(-1, 0);
  at::Tensor larger = t;
  for (index_t d = 0; d < t.dim(); ++d) larger = at::cat({larger.narrow(d, 0, 0), larger, larger}, d);
  for (index_t d = 0; d < t.dim(); ++d) larger = larger.narrow(d, 0, t.size(d));
  return larger;
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous();
  const at::Tensor y = b.detach().contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         (x.numel() == 0 || std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0);
}

/// A layout in words, for messages about a round that failed.
inline std::string shown(const layout& x) {
  std::string s = fmt::format("from rank {}:", x.mesh.first);
  for (int a = 0; a < x.placements.count; ++a) {
    const axis_placement& r = x.placements[a];
    s += fmt::format(" {}={}*{}:{}",
                     std::string_view(x.mesh.axes[a].name.data, static_cast<std::size_t>(x.mesh.axes[a].name.size)),
                     x.mesh.axes[a].extent, x.mesh.axes[a].stride, "RPIOV"[static_cast<int>(r.kind)]);
    if (r.kind == placement::cut) s += fmt::format("{}.{}", static_cast<int>(r.dimension), static_cast<int>(r.level));
    if (r.kind == placement::on) s += fmt::format("{}", r.coordinate);
  }
  for (const auto& d : x.dims) {
    s += fmt::format(" [{} g{}", d.extent, d.grain());
    if (d.kind != cover::tiled)
      s += fmt::format(" {} outputs {} window {} {} {}", d.kind == cover::haloed ? "haloed" : "pending", d.outputs,
                       d.needs.a, d.needs.b, d.needs.b2);
    s += "]";
  }
  return s;
}

}  // namespace tessera::testing
