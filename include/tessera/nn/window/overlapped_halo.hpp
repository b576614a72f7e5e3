#pragma once

#include <tessera/tensor/box/padded_box.hpp>
#include <tessera/tensor/change/bound_exchanges.hpp>
#include <tessera/tensor/change/running_change.hpp>

#include <torch/csrc/autograd/functions/utils.h>

#include <optional>

namespace tessera::detail {

/// A worker's part of a box, which an operation takes where it lies while the halo travels, and the edges of the
/// completed box. Each edge is computed by itself; its results replace the part's results there, or are added to them.
/// Nothing else of the part is copied, forward or backward.
struct overlapped_halo {
  /// The edge at one end of a dimension, in the padded box, and the outputs that it gives.
  struct edge {
    box_vector begins, sizes;
    int dimension;
    index_t begin, size;

    at::Tensor of_outputs(const at::Tensor& y) const { return narrowed(y, dimension, begin, size); }
    at::Tensor in_padded_box(at::Tensor x) const {
      for (int d = 0; d < sizes.count; ++d) x = narrowed(x, d, begins[d], sizes[d]);
      return x;
    }
  };

  padded_box around;
  std::vector<edge> edges;
  box_vector held;    ///< the extents of what is held when the halo has come
  box_vector parts;   ///< before that
  box_vector begins;  ///< of the part in the padded box
  bool adds = false;

  /// Room for a padded box, which is filled at its outside alone.
  at::Tensor room(const at::TensorOptions& options) const { return around.room(held, options); }
  /// This worker's own part of a padded box.
  at::Tensor own(at::Tensor x) const {
    for (int d = 0; d < begins.count; ++d) x = narrowed(x, d, begins[d], parts[d]);
    return x;
  }
  /// The elements of the part that an edge reads, if any: their place in the edge's box, and in the part.
  std::optional<std::pair<at::Tensor, at::Tensor>> shared(const edge& e, at::Tensor read, at::Tensor part) const {
    for (int d = 0; d < begins.count; ++d) {
      const interval both = overlap({e.begins[d], e.begins[d] + e.sizes[d]}, {begins[d], begins[d] + parts[d]});
      if (both.empty()) return {};
      read = narrowed(read, d, both.lo - e.begins[d], both.size());
      part = narrowed(part, d, both.lo - begins[d], both.size());
    }
    return std::pair(read, part);
  }
  /// A padded box that is zero but for a box that begins there.
  at::Tensor padded_at(const at::Tensor& x, const box_vector& at) const {
    padded_box f = around;
    for (int d = 0; d < at.count; ++d) {
      f.before[d] = at[d];
      f.behind[d] = around.before[d] + held[d] + around.behind[d] - at[d] - x.size(d);
    }
    f.value = 0;
    return f.around(x);
  }
};

/// A gradient to write into: itself where nobody else has it, else a copy.
inline at::Tensor writable(at::Tensor g) {
  const bool ours = g.use_count() == 1 && g.storage().use_count() == 1 && g.is_non_overlapping_and_dense() &&
                    !g.is_conj() && !g.is_neg();
  return ours ? g : g.clone(at::MemoryFormat::Contiguous);
}

/// The gradient of a part and of what its edges read: that of the part, to which this worker and others add at the
/// edges.
class edges_backward final : public torch::autograd::Node {
 public:
  edges_backward(change_call forward, std::shared_ptr<const overlapped_halo> edges)
      : forward_(std::move(forward)), edges_(std::move(edges)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const scoped_context here(*forward_.team, forward_.backward());
    if (!gradients[0].defined()) gradients[0] = at::zeros_like(edges_->own(room()), at::MemoryFormat::Contiguous);
    if (c10::GradMode::is_enabled()) return {differentiable(gradients)};
    at::Tensor part = writable(std::move(gradients[0]));
    const at::Tensor padded_box = room(), inside = edges_->around.inside(padded_box);
    change_call back{forward_.team, forward_.change->adjoint(), inside, forward_.context.at};
    for (const overlapped_halo::edge& e : edges_->edges) e.in_padded_box(padded_box).zero_();
    for (std::size_t i = 0; i < edges_->edges.size(); ++i) {
      const overlapped_halo::edge& e = edges_->edges[i];
      const at::Tensor& g = gradients[i + 1];
      if (!g.defined()) continue;
      e.in_padded_box(padded_box).add_(g);
      if (const auto both = edges_->shared(e, g, part)) both->second.add_(both->first);
    }
    for (const term_cell& c : back.change->plan(back.context).cells)  // what others add to is a term, read as padded
      if (c.terms.size() > 1) box(edges_->own(padded_box), c).copy_(box(part, c));
    return {running_change(*back.change, part, inside, back.context).finish()};
  }
  std::string name() const override { return "tessera::edges"; }

 private:
  at::Tensor room() const {
    return edges_->room(options_of(*forward_.team, scalar_type_of(forward_.change->element())));
  }
  static at::Tensor box(at::Tensor x, const term_cell& c) {
    for (int d = 0; d < c.here.count; ++d) x = narrowed(x, d, c.here[d], c.extents[d]);
    return x;
  }
  // The same by operations that have gradients: the padded box's gradient is the sum of its parts', each in zeros.
  at::Tensor differentiable(const torch::autograd::variable_list& gradients) const {
    at::Tensor all = edges_->padded_at(gradients[0], edges_->begins);
    for (std::size_t i = 0; i < edges_->edges.size(); ++i)
      if (gradients[i + 1].defined()) all = all + edges_->padded_at(gradients[i + 1], edges_->edges[i].begins);
    const at::Tensor inside = edges_->around.inside(all);
    return run({forward_.team, forward_.change->adjoint(), inside, forward_.context.at}, inside);
  }

  change_call forward_;
  std::shared_ptr<const overlapped_halo> edges_;
};

/// The gradients of outputs whose edges were put in their place: what was there before has none, unless they were added
/// to it.
class placed_backward final : public torch::autograd::Node {
 public:
  explicit placed_backward(std::shared_ptr<const overlapped_halo> edges) : edges_(std::move(edges)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    torch::autograd::variable_list of(1 + edges_->edges.size());
    if (!gradients[0].defined()) return of;
    const bool records = c10::GradMode::is_enabled();
    at::Tensor rest = records || edges_->adds ? gradients[0] : writable(std::move(gradients[0]));
    for (std::size_t i = edges_->edges.size(); i-- > 0;) {  // the last one put there lies above the others
      const overlapped_halo::edge& e = edges_->edges[i];
      const at::Tensor at = e.of_outputs(rest);
      of[i + 1] = records ? at : at.clone(at::MemoryFormat::Contiguous);
      if (edges_->adds) continue;
      if (records) rest = at::slice_scatter(rest, at::zeros_like(at), e.dimension, e.begin, e.begin + e.size);
      else at.zero_();
    }
    of[0] = rest;
    return of;
  }
  std::string name() const override { return "tessera::placed"; }

 private:
  std::shared_ptr<const overlapped_halo> edges_;
};

/// A box that is read by its edges, which know how operations take them, from when the halo is on its way.
///
/// It is begun where others take the whole box, so that backward meets their exchanges in one order.
template <class Edges>
class box_by_edges {
 public:
  box_by_edges(const team_handle& team, const redistribution& x, const at::Tensor& input,
               std::shared_ptr<const Edges> edges)
      : edges_(std::move(edges)),
        input_(input),
        padded_(edges_->room(input.options())),
        call_(team, bound_change_of(*team, x.from, x.to, element_of_scalar(input.scalar_type()), team->doing()), input,
              {}),
        halo_(*call_.change, edges_->around.inside(padded_), input.detach(), call_.context) {
    if (!call_.tracked) return;
    node_ = make_node<edges_backward>(call_, edges_);
    node_->set_next_edges(torch::autograd::collect_next_edges(input));
  }

  /// The results of operations(box, how), of the part and then of each edge.
  template <class OfPart, class OfEdge>
  at::Tensor compute(const OfPart& of_part, const OfEdge& of_edge) {
    halo_.arrived();  // what is here is taken: its owner waits for that
    const at::Tensor y = of_part(read(input_.detach()), edges_->how(0));
    halo_.finish();
    if (edges_->edges.empty()) return y;
    const at::Tensor whole = y.detach();
    torch::autograd::variable_list all{y};
    for (const overlapped_halo::edge& e : edges_->edges) {
      if (const auto both = edges_->shared(e, e.in_padded_box(padded_), input_.detach()))
        both->first.copy_(both->second);
      all.push_back(
          of_edge(read(e.in_padded_box(padded_).clone(at::MemoryFormat::Contiguous)), edges_->how(all.size())));
      const at::Tensor there = e.of_outputs(whole), gives = all.back().detach();
      edges_->adds ? there.add_(gives) : there.copy_(gives);
    }
    if (torch::autograd::compute_requires_grad(at::TensorList(all))) {
      const auto placed = make_node<placed_backward>(edges_);
      placed->set_next_edges(torch::autograd::collect_next_edges(all));
      torch::autograd::set_history(whole, placed);
    }
    return whole;
  }

 private:
  at::Tensor read(at::Tensor part) const {
    if (call_.tracked) torch::autograd::set_history(part, node_);
    return part;
  }

  std::shared_ptr<const Edges> edges_;
  at::Tensor input_;
  at::Tensor padded_;
  change_call call_;
  decltype(torch::autograd::Edge::function) node_;
  running_change halo_;  // last: withdrawn before its memory goes
};

}  // namespace tessera::detail
