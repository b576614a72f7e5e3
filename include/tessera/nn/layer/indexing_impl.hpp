#pragma once

#include <tessera/nn/call/check_indices.hpp>
#include <tessera/nn/layer/indexing.hpp>
#include <tessera/tensor/autograd/empty_result.hpp>
#include <tessera/tensor/change/make_node.hpp>

namespace tessera::functions::engine {

/// What indices along a dimension name: one for each row, or one for each element.
struct named_elements {
  int dim = 0;
  bool rows = false;
  index_t extent = 0;  ///< of the dimension that they look into

  /// x[… i[k] …], and its adjoint Σ y[… k …] at equal indices, of half types in float.
  at::Tensor taken(const at::Tensor& x, const at::Tensor& indices) const {
    return rows ? at::index_select(x, dim, indices) : at::gather(x, dim, indices);
  }
  at::Tensor added(const at::Tensor& y, const at::Tensor& indices) const {
    std::vector<index_t> sizes = y.sizes().vec();
    sizes[static_cast<std::size_t>(dim)] = extent;
    const at::Tensor wide = y.to(tessera::detail::added_in(y.scalar_type()));
    at::Tensor sums = at::zeros(sizes, wide.options());
    if (!sums.device().is_cpu()) sums.index_put_(every_place(wide, indices), wide, true);
    else if (rows) sums.index_add_(dim, indices, wide);
    else sums.scatter_add_(dim, indices, wide);
    return sums.to(y.scalar_type());
  }

 private:
  /// The indices of each element along all dimensions. Devices add by these in the order of the elements, so copies
  /// have the same bits. By the indices of one dimension they add in any order.
  c10::List<std::optional<at::Tensor>> every_place(const at::Tensor& y, const at::Tensor& indices) const {
    c10::List<std::optional<at::Tensor>> all;
    for (int d = 0; d < y.dim(); ++d) {
      if (d == dim && !rows) {
        all.push_back(indices);
        continue;
      }
      std::vector<index_t> along(static_cast<std::size_t>(y.dim()), 1);
      along[static_cast<std::size_t>(d)] = y.size(d);
      all.push_back((d == dim ? indices : at::arange(y.size(d), indices.options())).view(along));
    }
    return all;
  }
};

enum class by_indices : bool { taken, added };

at::Tensor recorded(const named_elements& where, by_indices how, const at::Tensor& x, const at::Tensor& indices);

/// The gradient of either is the other one, itself differentiable. Only the indices are kept.
class index_backward final : public torch::autograd::Node {
 public:
  index_backward(const named_elements& where, by_indices how, const at::Tensor& indices)
      : where_(where), how_(how), indices_(indices, false) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::Tensor& g = gradients[0];
    if (!g.defined()) return {at::Tensor()};
    const by_indices back = how_ == by_indices::taken ? by_indices::added : by_indices::taken;
    return {recorded(where_, back, g, indices_.unpack())};
  }
  void release_variables() override { indices_.reset_data(); }
  std::string name() const override { return "tessera::by_index"; }

 private:
  named_elements where_;
  by_indices how_;
  torch::autograd::SavedVariable indices_;
};

TESSERA_INLINE at::Tensor recorded(const named_elements& where, by_indices how, const at::Tensor& x,
                                   const at::Tensor& indices) {
  if (x._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  const at::Tensor y = [&] {
    const c10::AutoGradMode no_record(false);
    return how == by_indices::taken ? where.taken(x, indices) : where.added(x, indices);
  }();
  if (c10::GradMode::is_enabled() && x.requires_grad())
    tessera::detail::record(y, x, tessera::detail::make_node<index_backward>(where, how, indices));
  return y;
}

/// Every worker tells how many of its indices name nothing; of one that does, all throw.
inline void judge(const bound_exchanges& by, const at::Tensor& indices, index_t extent) {
  if (by.exchanges.empty()) return;
  const at::Tensor wrong = at::count_nonzero(at::logical_or(indices < 0, indices >= extent)).to(at::kDouble);
  if (row(by.exchanged(in_rows(by, 0, {wrong}), 0), 0).item<double>() > 0)
    tessera::detail::check_indices(by.team, by.team->crew_of(by.exchanges[0].to->layout()), indices, extent,
                                   code::index_out_of_extent);
}

TESSERA_INLINE at::Tensor compute_index_select(const bound_exchanges& by, const at::Tensor& x,
                                               const at::Tensor& indices, int dim) {
  const index_t extent = by.boxes.operands[0].extents[dim];
  judge(by, indices, extent);
  const holding& held = by.boxes.result.held;
  const bool nothing = x.numel() == 0;  // and no index that it would take, but of a worker outside of the mesh
  if (nothing || by.boxes.result.empty()) return tessera::detail::empty_result(held, {x});
  return recorded({dim, true, extent}, by_indices::taken, x, indices.flatten())
      .reshape(tessera::detail::sizes_of(held));
}

TESSERA_INLINE at::Tensor compute_take_along(const bound_exchanges& by, const at::Tensor& x, const at::Tensor& indices,
                                             int dim) {
  const index_t extent = by.boxes.operands[0].extents[dim];
  judge(by, indices, extent);
  if (by.boxes.result.empty()) return tessera::detail::empty_result(by.boxes.result.held, {x});
  return recorded({dim, false, extent}, by_indices::taken, x, indices);
}

TESSERA_INLINE at::Tensor compute_scatter_add(const bound_exchanges& by, const at::Tensor& x, const at::Tensor& indices,
                                              int dim) {
  const index_t extent = by.boxes.result.extents[dim];
  judge(by, indices, extent);
  if (by.boxes.result.empty()) return tessera::detail::empty_result(by.boxes.result.held, {x});
  return recorded({dim, indices.dim() != x.dim() || x.dim() == 1, extent}, by_indices::added, x, indices);
}

}  // namespace tessera::functions::engine

namespace tessera::functions {

TESSERA_INLINE at::Tensor compute(const one_hot_of& f, const engine::bound_exchanges& by, const at::Tensor& indices) {
  engine::judge(by, indices, f.extent);
  at::Tensor y = at::zeros(tessera::detail::sizes_of(by.boxes.result.held),
                           indices.options().dtype(tessera::detail::scalar_type_of(f.to)));
  return by.boxes.result.empty() ? y : y.scatter_(-1, indices.unsqueeze(-1), 1);
}

}  // namespace tessera::functions
