#pragma once
// A case as the library spells it: what the readers hand to the workers. Neither JSON nor LibTorch is seen here.

#include <tessera/operation/function/loss.hpp>
#include <tessera/operation/layer/contraction.hpp>
#include <tessera/operation/layer/embedding.hpp>
#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/layer/normalisation.hpp>
#include <tessera/operation/rule/local_boxes.hpp>

#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace conformance {

using namespace tessera;
using namespace tessera::engine;

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

/// A loss of x and a target, and what becomes of the elements.
struct loss {
  enum class kind { l1, squares, poisson, entropy, entropy_of_logits, divergence };
  kind what = kind::l1;
  nn::reduction by = nn::reduction::mean;
};

/// An interpolation by itself: the outputs of a window from the inputs of another.
struct windowed {
  upsampling what;
  local_boxes where;
};

/// One link of the chain F = link ∘ … ∘ link that a case runs; `repartition_description` is a change of layout.
struct link {
  using layer =
      std::variant<repartition_description, contraction, pooling, normalisation, lookup, upsampling, windowed, loss>;
  layer what;
  layer_plan plan;  ///< of changes, windows and losses only layouts count
};

inline link change_of(const layout& from, const layout& to) {
  link l;
  l.plan.add_input(from);
  l.plan.add_output(from, to);
  return l;
}

using chain = std::vector<link>;

/// What a tensor is filled with.
enum class filling { normal, ten_times_normal, uniform, ones, ten, tenth, zeros, scaled_by_fan, indices };

/// What an equivalence compares with the serial layer.
enum class compared { y, dx, dw, db, loss, gradients, statistics, eval_y, stepped_y };
inline constexpr const char* names_compared[]{"y",
                                              "dx",
                                              "dw",
                                              "db",
                                              "the loss",
                                              "a parameter's gradient",
                                              "a running statistic",
                                              "y in evaluation",
                                              "y after a step"};

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
  int leaf = -1;                   ///< adjoint: which tensor is x; −1 the input, else a parameter of the first link
  std::vector<compared> compares;  ///< equivalence
  bool trains = true;              ///< the first call is one of training
  bool squares = false;            ///< dy is that of Σ (y − target)²
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
  std::vector<chain> alike;             ///< other chains of which the same is asked
  std::string remark;                   ///< goes into `why` of a pass: superset
};

}  // namespace conformance
