#pragma once

#include <tessera/nn/windowed.hpp>
#include <tessera/operation/edging.hpp>
#include <tessera/tensor/bound_exchanges.hpp>

#include <torch/csrc/autograd/functions/utils.h>

namespace tessera::detail {

/// How a worker reads what its outputs need where those at the edges of its part alone read what others hold: the part where it lies, while
/// the halo is on its way, and then each edge in a frame of its own. Nothing else of the part is copied, forward or backward.
class window_edges {
 public:
  /// Outputs at one end of a dimension, and what they read of the frame there.
  struct edge {
    int dimension;
    index_t begin, size;
    index_t first, reads;
    kernel_lists lists;

    at::Tensor of_outputs(const at::Tensor& y) const { return y.narrow(dimension, begin, size); }
    at::Tensor of_frame(const at::Tensor& x) const { return x.narrow(dimension, first, reads); }
  };

  /// It serves where an exchange brings the halo and nothing else, the operation pads the part itself, and the edges are no more than a share
  /// of the outputs, as they are computed twice.
  window_edges(const way& x, int rank, const holding& outputs, int first, const static_vector<sliding, 8>& kernels, own_padding by,
               const window_reading& reading, double most)
      : around_(reading.around()), lists_(kernels) {
    const layout &from = x.from->layout(), &to = x.to->layout();
    if (!reading.reads_all() || !brings_a_halo(from, to)) return;
    const holding mine = held_by(from, rank), comes = held_by(to, rank);
    double share = 0;
    begins_.resize(mine.count);
    for (int d = 0; d < mine.count; ++d) {
      if (d < first || d >= first + kernels.count) {
        if (!(mine[d] == comes[d])) return;
        continue;
      }
      if (mine[d].count != 1 || comes[d].count != 1 || outputs[d].count != 1) return;
      const interval own = mine[d][0], all = comes[d][0], gives = outputs[d][0];
      const edging e = edging_of(kernels[d - first], own, all, gives, by);
      if (!e.serves) return;
      const index_t begin = all.lo - around_.before[d];  // of the frame
      lists_.padding[static_cast<std::size_t>(d - first)] = e.padded;
      for (const edging::edge& at : e.edges) {
        edges_.push_back({d, at.outputs.lo - gives.lo, at.outputs.size(), at.reads.lo - begin, at.reads.size(), reading.lists()});
        edges_.back().lists.padding[static_cast<std::size_t>(d - first)] = 0;
        share += static_cast<double>(at.outputs.size()) / static_cast<double>(gives.size());
      }
      begins_[d] = own.lo - begin;
    }
    sizes_ = x.to->extents();
    own_ = x.from->extents();
    serves_ = share <= most;
  }

  bool serve() const { return serves_; }
  const frame& around() const { return around_; }
  const std::vector<edge>& edges() const { return edges_; }
  const kernel_lists& lists() const { return lists_; }

  /// Room for a frame, which is filled at its outside alone.
  at::Tensor room(const at::TensorOptions& options) const { return around_.room(sizes_, options); }
  /// This worker's own part of a frame.
  at::Tensor own(at::Tensor x) const {
    for (int d = 0; d < begins_.count; ++d) x = x.narrow(d, begins_[d], own_[d]);
    return x;
  }
  /// What an edge reads of the part: where it lies in what the edge reads, and in the part.
  std::pair<at::Tensor, at::Tensor> shared(const edge& e, at::Tensor read, at::Tensor part) const {
    for (int d = 0; d < begins_.count; ++d) {
      const index_t begin = d == e.dimension ? e.first : 0, end = d == e.dimension ? e.first + e.reads : begin + read.size(d);
      const interval both = overlap({begin, end}, {begins_[d], begins_[d] + own_[d]});
      read = read.narrow(d, both.lo - begin, both.size());
      part = part.narrow(d, both.lo - begins_[d], both.size());
    }
    return {read, part};
  }

 private:
  frame around_;
  kernel_lists lists_;
  std::vector<edge> edges_;
  box_vector sizes_;   // of what is held when the halo has come
  box_vector own_;     // before that
  box_vector begins_;  // of the part in the frame
  bool serves_ = false;
};

/// A gradient to write into: itself where nobody else has it, else a copy.
inline at::Tensor writable(at::Tensor g) {
  const bool ours = g.use_count() == 1 && g.storage().use_count() == 1 && g.is_non_overlapping_and_dense() && !g.is_conj() && !g.is_neg();
  return ours ? g : g.clone(at::MemoryFormat::Contiguous);
}

/// The gradient of a part and of what its edges read: that of the part, to which this worker and others add at the edges.
class edges_backward final : public torch::autograd::Node {
 public:
  edges_backward(change_call forward, std::shared_ptr<const window_edges> edges) : forward_(std::move(forward)), edges_(std::move(edges)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const during here(*forward_.team, forward_.backward());
    if (!gradients[0].defined()) gradients[0] = at::zeros_like(edges_->own(room()), at::MemoryFormat::Contiguous);
    if (c10::GradMode::is_enabled()) return {differentiable(gradients)};
    at::Tensor part = writable(std::move(gradients[0]));
    const at::Tensor frame = room(), inside = edges_->around().inside(frame);
    change_call back{forward_.team, forward_.change->adjoint(), inside, forward_.what.at};
    for (const window_edges::edge& e : edges_->edges()) e.of_frame(frame).zero_();
    for (std::size_t i = 0; i < edges_->edges().size(); ++i) {
      const window_edges::edge& e = edges_->edges()[i];
      const at::Tensor& g = gradients[i + 1];
      if (!g.defined()) continue;
      e.of_frame(frame).add_(g);
      const auto [mine, to] = edges_->shared(e, g, part);
      to.add_(mine);
    }
    for (const cell& c : back.change->plan(back.what).cells)  // what others add to is a term, read in the frame
      if (c.terms.size() > 1) box(edges_->own(frame), c).copy_(box(part, c));
    bound_change::running sum = back.change->start_into(part, inside, back.what);
    return {back.change->finish(sum)};
  }
  std::string name() const override { return "tessera::edges"; }

 private:
  at::Tensor room() const { return edges_->room(options_of(*forward_.team, scalar_type(forward_.change->element()))); }
  static at::Tensor box(at::Tensor x, const cell& c) {
    for (int d = 0; d < c.here.count; ++d) x = x.narrow(d, c.here[d], c.extents[d]);
    return x;
  }
  // The same by operations that have gradients: the frame's gradient is the sum of its parts', each in zeros.
  at::Tensor differentiable(const torch::autograd::variable_list& gradients) const {
    const at::Tensor none = at::zeros_like(room());
    const at::Tensor at = edges_->own(none);
    at::Tensor all = at::as_strided_scatter(none, gradients[0], at.sizes(), at.strides(), at.storage_offset());
    for (std::size_t i = 0; i < edges_->edges().size(); ++i) {
      const window_edges::edge& e = edges_->edges()[i];
      if (gradients[i + 1].defined()) all = all + at::slice_scatter(none, gradients[i + 1], e.dimension, e.first, e.first + e.reads);
    }
    const at::Tensor inside = edges_->around().inside(all);
    return run({forward_.team, forward_.change->adjoint(), inside, forward_.what.at}, inside);
  }

  change_call forward_;
  std::shared_ptr<const window_edges> edges_;
};

/// The gradients of outputs whose edges were put in their place: what was there before has none.
class placed_backward final : public torch::autograd::Node {
 public:
  explicit placed_backward(std::shared_ptr<const window_edges> edges) : edges_(std::move(edges)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    torch::autograd::variable_list of(1 + edges_->edges().size());
    if (!gradients[0].defined()) return of;
    const bool records = c10::GradMode::is_enabled();
    at::Tensor rest = records ? gradients[0] : writable(std::move(gradients[0]));
    for (std::size_t i = edges_->edges().size(); i-- > 0;) {  // the last one put there lies above the others
      const window_edges::edge& e = edges_->edges()[i];
      const at::Tensor at = e.of_outputs(rest);
      of[i + 1] = records ? at : at.clone(at::MemoryFormat::Contiguous);
      if (records) rest = at::slice_scatter(rest, at::zeros_like(at), e.dimension, e.begin, e.begin + e.size);
      else at.zero_();
    }
    of[0] = rest;
    return of;
  }
  std::string name() const override { return "tessera::placed"; }

 private:
  std::shared_ptr<const window_edges> edges_;
};

/// A box that is read by its edges, from when the halo is on its way.
///
/// It is begun where others take the whole box, so that backward meets their exchanges in one order.
class box_by_edges {
 public:
  box_by_edges(const team_handle& team, const way& x, const at::Tensor& input, std::shared_ptr<const window_edges> edges)
      : edges_(std::move(edges)),
        input_(input),
        frame_(edges_->room(input.options())),
        call_(team, bound_change_of(*team, x.from, x.to, element_of_scalar(input.scalar_type()), team->doing()), input, {}),
        halo_(call_.change->start_into(edges_->around().inside(frame_), input.detach(), call_.what)) {
    if (!call_.tracked) return;
    node_ = make_node<edges_backward>(call_, edges_);
    node_->set_next_edges(torch::autograd::collect_next_edges(input));
  }

  /// What an operation gives, `operation(box, lists)`: of the part, and then of each edge.
  template <class Operation>
  at::Tensor give(const Operation& operation) {
    call_.change->arrived(halo_);  // what is here is taken: its owner waits for that
    const at::Tensor y = operation(read(input_.detach()), edges_->lists());
    call_.change->finish(halo_);
    if (edges_->edges().empty()) return y;
    const at::Tensor whole = y.detach();
    torch::autograd::variable_list all{y};
    for (const window_edges::edge& e : edges_->edges()) {
      const auto [there, from] = edges_->shared(e, e.of_frame(frame_), input_.detach());
      there.copy_(from);
      all.push_back(operation(read(e.of_frame(frame_).clone(at::MemoryFormat::Contiguous)), e.lists));
      e.of_outputs(whole).copy_(all.back().detach());
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

  std::shared_ptr<const window_edges> edges_;
  at::Tensor input_;
  at::Tensor frame_;
  change_call call_;
  decltype(torch::autograd::Edge::function) node_;
  bound_change::running halo_;  // last: withdrawn before its memory goes
};

}  // namespace tessera::detail
