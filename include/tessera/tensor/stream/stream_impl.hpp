#pragma once

#include <tessera/tensor/stream/stream_run.hpp>

namespace tessera::detail {

/// A tensor that repeats elements, as the gradient of a sum does, is written out once, and not by each step.
inline at::Tensor written_out(const at::Tensor& x) {
  for (index_t d = 0; d < x.dim(); ++d)
    if (x.stride(d) == 0 && x.size(d) > 1) return x.contiguous();
  return x;
}

/// The gradient of a stream: the stream of its adjoint.
class stream_backward final : public torch::autograd::Node {
 public:
  stream_backward(const team_handle& team, const engine::stream& s, const std::vector<at::Tensor>& x)
      : team_(team), s_(s), now_(team->doing()) {
    now_.why = purpose::backward;
    torch::autograd::edge_list to;
    for (const at::Tensor& one : x) {
      operands_.emplace_back(one, false);
      to.push_back(one.defined() && one.requires_grad() ? torch::autograd::impl::gradient_edge(one)
                                                        : torch::autograd::Edge());
    }
    set_next_edges(std::move(to));
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const engine::scoped_context here(*team_, now_);
    const auto zeros = [&](const stream_end& e) { return at::zeros(e.sizes, options_of(*team_, e.type)); };
    std::vector<at::Tensor> x;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const at::Tensor one = operands_[i].unpack();
      x.push_back(one.defined() ? one : zeros(s_.operands[i]));
    }
    for (const torch::autograd::SavedVariable& one : results_) x.push_back(one.unpack(getptr()));
    for (std::size_t i = 0; i < s_.results.size(); ++i) {
      const stream_end& e = s_.results[i];
      const bool stays = s_.keeps_results && e.role != stream_role::part;
      x.push_back(gradients[i].defined() ? written_out(gradients[i]) : stays ? at::Tensor() : zeros(e));
    }
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < operands_.size(); ++i) wanted.push_back(task_should_compute_output(i));
    return engine::evaluate(team_, s_.adjoint(*team_), x, wanted);
  }
  void release_variables() override {
    for (torch::autograd::SavedVariable& x : operands_) x.reset_data();
    for (torch::autograd::SavedVariable& x : results_) x.reset_data();
  }
  /// Keeps the results, whose gradient it is.
  void keep(const std::vector<at::Tensor>& y) {
    for (const at::Tensor& one : y) results_.emplace_back(one, true);
  }
  std::string name() const override { return "tessera::stream"; }

 private:
  team_handle team_;
  engine::stream s_;
  engine::call_context now_;
  std::vector<torch::autograd::SavedVariable> operands_, results_;
};

}  // namespace tessera::detail

namespace tessera::engine {

TESSERA_INLINE stream stream::adjoint(team_state& team) const {
  const auto of = [&](stream_end e) {
    if (e.role == stream_role::part) e.lies = team.intern(cotangent(e.lies->layout()));
    return e;
  };
  stream s;
  s.operands = operands;
  if (keeps_results) s.operands.insert(s.operands.end(), results.begin(), results.end());
  for (const stream_end& e : results) s.operands.push_back(of(e));
  for (const stream_end& e : operands) s.results.push_back(of(e));
  s.rows = rows;
  s.reach = reach;
  s.readers = readers;
  s.f = f->gradient();
  return s;
}

TESSERA_INLINE stream stream_for(const signature& op, const bound_exchanges& by, const std::vector<at::Tensor>& x,
                                 std::shared_ptr<const stream_function> f) {
  stream s;
  s.f = std::move(f);
  std::size_t next = 0;
  const auto add = [&](std::vector<stream_end>& ends, int dim, bool moves, bool to, const box_vector& sizes,
                       at::ScalarType type) {
    stream_end e{stream_role::all, dim, {}, {sizes.begin(), sizes.end()}, type};
    if (moves) {
      e.role = stream_role::part;
      e.lies = to ? by.exchanges[next].to : by.exchanges[next].from;
      if (next == 0)
        s.rows =
            rows_at_once(e.lies->layout(), dim, tessera::detail::element_of_scalar(type), op.of(op.streams()).extent);
      ++next;
    } else if (dim >= 0) {
      e.role = stream_role::range;
    }
    ends.push_back(std::move(e));
  };
  const auto sizes_of = [](const local_box& b) {
    box_vector n;
    for (int d = 0; d < b.held.count; ++d) n.push(b.size(d));
    return n;
  };
  for (int o = 0; o < op.operands.count; ++o)
    add(s.operands, index_of(op.operands[o], op.streams()), brought_dimension(op, o, *by.operands[o]) >= 0, false,
        sizes_of(by.boxes.operands[o]), x[static_cast<std::size_t>(o)].scalar_type());
  add(s.results, index_of(op.result, op.streams()), next == 0 && !by.exchanges.empty(), true, sizes_of(by.boxes.result),
      x[0].scalar_type());
  return s;
}

TESSERA_INLINE std::vector<at::Tensor> evaluate(const team_handle& team, const engine::stream& s,
                                                const std::vector<at::Tensor>& operands,
                                                const std::vector<bool>& wanted) {
  std::vector<at::Tensor> y = [&] {
    const c10::AutoGradMode no_record(false);
    return tessera::detail::stream_run(team, s, operands, wanted).result();
  }();
  bool recorded = false;
  for (const at::Tensor& x : operands) recorded = recorded || (x.defined() && x.requires_grad());
  if (c10::GradMode::is_enabled() && recorded) {
    const auto node = tessera::detail::make_node<tessera::detail::stream_backward>(team, s, operands);
    torch::autograd::set_history(y, node);
    if (s.keeps_results) node->keep(y);
  }
  return y;
}

}  // namespace tessera::engine
