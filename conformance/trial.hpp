#pragma once
// A case as the library spells it: what the readers hand to the workers. Neither JSON nor LibTorch is seen here.

#include <tessera/operation/contraction.hpp>
#include <tessera/operation/local_layers.hpp>

#include <limits>
#include <string>
#include <vector>

namespace conformance {

using namespace tessera;

using integers = std::vector<index_t>;

/// A dimension that nothing cuts.
constexpr dimension uncut(index_t extent) {
  dimension d;
  d.extent = extent;
  return d;
}

/// The global extents of a tensor.
inline integers extents_of(const layout& x) {
  integers n;
  for (const dimension& d : x.dims) n.push_back(d.extent);
  return n;
}

/// What a run came to: one line of the output.
enum class result { pass, fail, unbuilt };

struct verdict {
  conformance::result result = result::pass;
  double figure = 0;  ///< what was held against the tolerance
  std::string why;
};

/// One link of the chain F = link ∘ … ∘ link that a case runs.
struct link {
  enum class kind { change, contraction, pooling };
  kind what = kind::change;
  layer_plan plan;                    ///< of a change only its input and output count
  tessera::contraction weights;       ///< linear layers and convolutions
  tessera::pooling pool;
};

inline link change_of(const layout& from, const layout& to) {
  link l;
  l.plan.take(from);
  l.plan.give(from, to);
  return l;
}

using chain = std::vector<link>;

/// What a tensor is filled with.
enum class filling { normal, ten_times_normal, uniform, ones, ten, tenth, zeros, scaled_by_fan };

enum class question {
  adjoint,      ///< ⟨F x, dy⟩ = ⟨x, F* dy⟩ for the leaf x
  equivalence,  ///< y and gradients are the serial layer's
  element_kept  ///< y and dx have x's element type
};

/// A call that must be refused.
struct fault {
  chain calls;
  integers local;  ///< extents of the box that this worker hands in, where they are not the layout's
};

/// What the workers of a case do, and what is asked of it.
struct trial {
  int workers = 1;
  chain links;
  std::vector<fault> faults;

  question asked = question::adjoint;
  int leaf = -1;                      ///< adjoint: which tensor is x; −1 the input, else a parameter of the first link
  std::vector<std::string> compares;  ///< equivalence: y, dx, dw, db
  tessera::element element = element::float32;
  bool backward = true;
  filling x = filling::normal;
  filling dy = filling::normal;
  filling weights = filling::scaled_by_fan;
  double rtol = 1e-5;
  double atol = 1e-8;
  double every_y = std::numeric_limits<double>::quiet_NaN();   ///< every entry of y, where the case says it
  double every_dx = std::numeric_limits<double>::quiet_NaN();  ///< every entry of dx

  std::vector<std::string> mismatches;  ///< numbers of the plan that are not those of the file
  std::vector<trial> others;            ///< run before this one is judged, and judged after it
  std::string remark;                   ///< goes into `why` of a pass: superset
};

}  // namespace conformance
