#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/program/chain.hpp>

namespace tessera {

namespace engine {

/// One layer of a chain that shares a halo: its windows over the dimensions from `first` on; an elementwise layer has
/// none.
struct halo_step {
  int first = 0;
  pooling windows;
  bool fits = false;  ///< the layer has windows or works element by element
};

/// Plans the one wide halo of a chain of layers: blocks → what all their windows need, one after the other.
///
/// Values between two of the layers are held in copies, computed by each worker that needs them. Beyond its own global
/// edge such a value is padding again. Bytes: the ghost elements of the composed window, once.
constexpr layer_plan plan_fused_halo(const layout& x, const static_vector<halo_step, 16>& steps) {
  layer_plan p;
  layout out = x;
  for (int i = 0; i < steps.count; ++i)
    if (!steps[i].fits) {
      p.why = refusal{code::layer_has_no_window, i};
      return p;
    }
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.levels(d) == 0) continue;
    static_vector<sliding, 16> slides;
    static_vector<index_t, 17> extents;
    bool keep = true;
    extents.push(x.dims[d].extent);
    for (const halo_step& s : steps) {
      const int i = d - s.first;
      if (i < 0 || i >= s.windows.kernels.count) continue;
      const index_t n = extents[extents.count - 1];
      if (p.why = s.windows.kernels[i].check(d, dynamic); !p.why.ok()) return p;
      slides.push(s.windows.over(i, n));
      if (p.why = slides[slides.count - 1].check(d, n); !p.why.ok()) return p;
      extents.push(slides[slides.count - 1].outputs(n));
      keep = keep && slides[slides.count - 1].keeps();
    }
    if (slides.empty()) continue;
    if (x.dims[d].zigzag) {
      p.why = refusal{code::interval_wanted, d};
      return p;
    }
    window w = slides[slides.count - 1].needs();
    for (int i = slides.count - 2; i >= 0; --i) {
      if (!composes(slides[i].needs(), w, extents[i + 1], extents[i])) {
        p.why = refusal{code::windows_do_not_compose, d, i};
        return p;
      }
      w = composed(slides[i].needs(), w, extents[i + 1], extents[i]);
    }
    out.dims[d].hold(w, extents[extents.count - 1], keep);
  }
  p.add_input(x);
  p.add_output(x, out);
  p.saves = saved_tensors::viewing();
  p.why = check_change(x, out);
  return p;
}

}  // namespace engine

namespace detail {

constexpr halo_step step_of(const relu_description&) {
  halo_step s;
  s.fits = true;
  return s;
}
constexpr halo_step step_of(const pooling& layer) {
  halo_step s = step_of(relu_description{});
  s.first = 2;
  s.windows = layer;
  return s;
}
constexpr halo_step step_of(const contraction& layer) {
  halo_step s;
  s.first = layer.feature + 1;
  s.windows.kernels = layer.kernels;
  s.fits = layer.feature >= 0 && !layer.transposed;
  return s;
}

template <class L>
constexpr halo_step halo_step_of() {
  if constexpr (requires { L::elementwise; }) return step_of(relu_description{});
  else if constexpr (requires { step_of(L::description()); }) return step_of(L::description());
  else return halo_step{};
}

/// The exchange in front of layers that share a halo.
template <class... Layers>
struct shared_halo {
  static constexpr const char* name = "halo";
  static constexpr repartition_description description() { return {}; }
  static constexpr bool only_here = true;
  static constexpr layer_plan plan(const tensor_value& x) {
    static_vector<halo_step, 16> steps;
    if (sizeof...(Layers) > steps.capacity) return refused_layer(refusal{code::list_full, steps.capacity});
    (steps.push(halo_step_of<Layers>()), ...);
    return plan_fused_halo(x.layout, steps);
  }
};

}  // namespace detail

namespace nn {

/// Layers that exchange one wide halo instead of one each: `fused_halo<conv<8, kernel<3, 3>>, relu, conv<8, kernel<3,
/// 3>>>`.
///
/// Fewer messages for more bytes and some work done twice; results are those of the layers by themselves. Convolutions,
/// poolings and elementwise layers (`L::elementwise`) share one; at most 16.
template <class... Layers>
struct fused_halo {
  static constexpr bool sees_to_its_scope = true;
  template <engine::FlowType F>
  constexpr auto operator()(const F& x) const {
    return tessera::detail::parts_from<0, tessera::detail::shared_halo<Layers...>, Layers...>::call(x);
  }
};

}  // namespace nn
}  // namespace tessera
