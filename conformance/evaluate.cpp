#include "evaluate.hpp"

#include "measure.hpp"
#include "running.hpp"
#include "serial_layers.hpp"

#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <mutex>

namespace conformance {
namespace {

/// A worker's view of a trial while it runs.
class run {
 public:
  run(const team_handle& team, const trial& t) : team_(team), t_(t) {}

  /// Refusals that must be seen, then the chain forward and backward.
  verdict start() {
    if (!t_.mismatches.empty()) return {result::fail, static_cast<double>(t_.mismatches.size()), listed()};
    for (const fault& f : t_.faults)
      if (const std::string why = refusal_of(f); !why.empty()) return {result::fail, 0, why};
    forward();
    return {};
  }

  verdict judge() {
    verdict v = meaning();
    if (v.result != result::pass) return v;
    switch (t_.asked) {
      case question::adjoint: v = adjoint(); break;
      case question::equivalence: v = equivalence(); break;
      case question::element_kept: v = element_kept(); break;
    }
    if (v.result == result::pass && !std::isnan(t_.every_y)) v = entries();
    if (v.result == result::pass) v.why = remarks();
    return v;
  }

 private:
  const layout& domain() const { return t_.links.front().plan.given(); }
  const layout& codomain() const { return t_.links.back().plan.output(); }

  std::string listed() const {
    std::string all;
    for (std::size_t i = 0; i < t_.mismatches.size() && i < 3; ++i) all += (i == 0 ? "" : "; ") + t_.mismatches[i];
    return all;
  }
  std::string remarks() const {
    std::string all = t_.remark;
    for (const std::string& code : codes_) all += fmt::format("{}refused with {}", all.empty() ? "" : "; ", code);
    return all;
  }

  // Empty when all workers were refused alike.
  std::string refusal_of(const fault& f) {
    const layout& from = f.calls.front().plan.given();
    integers sizes = f.local;
    if (sizes.empty()) sizes = tessera::detail::sizes_of(held_by(from, team_->rank()));
    std::string code;
    try {
      tensor<dyn> x(team_, from,
                    at::zeros(sizes, tessera::detail::options_of(*team_, tessera::detail::scalar_type_of(t_.element))));
      for (const link& l : f.calls)
        x = running_link(team_, l, state_of(l, t_.weights, t_.element, 7), t_.element)(x, t_.trains);
    } catch (const error& e) {
      code = e.code();
    }
    const double refused = over_workers(team_, {code.empty() ? 0.0 : 1.0}, combine::sum)[0];
    if (refused != team_->mesh().size()) return "what must be refused is accepted";
    codes_.push_back(code);
    return {};
  }

  tensor<dyn> called(const tensor<dyn>& x, bool training) const {
    tensor<dyn> y = x;
    for (const running_link& l : links_) y = l(y, training);
    return y;
  }
  at::Tensor serially_called(const at::Tensor& x, bool training) const {
    return serially(t_.links, x, serial_, training);
  }

  void forward() {
    at::Tensor local = locals_of(domain(), t_.x, t_.element, 1, team_->rank()).to(device_of(*team_));
    if (t_.backward && t_.leaf < 0 && local.is_floating_point()) local.set_requires_grad(true);
    x_ = {team_, domain(), local};
    for (const link& l : t_.links) {
      serial_.push_back(state_of(l, t_.weights, t_.element, 100 * serial_.size() + 7));
      links_.emplace_back(team_, l, serial_.back(), t_.element);
    }
    y_ = called(x_, t_.trains);
    if (t_.squares) loss_ = squares_from_target(y_);
    if (!t_.backward) return;
    dy_ = t_.squares ? at::ones_like(loss_.local())
                     : locals_of(cotangent(codomain()), t_.dy, t_.element, 2, team_->rank()).to(device_of(*team_));
    (t_.squares ? loss_ : y_).local().backward(dy_);
  }

  at::Tensor leaf() const {
    return t_.leaf < 0 ? x_.local() : links_[0].state.parameters[static_cast<std::size_t>(t_.leaf)].stored().local();
  }
  static at::Tensor gradient(const at::Tensor& of) { return of.grad().defined() ? of.grad() : at::zeros_like(of); }

  /// Every worker's part of the result is that of the serial one: x put together, run and taken apart.
  verdict meaning() {
    serial_x_ = assembled(domain(), t_.x, t_.element, 1, team_->mesh().size());
    serial_x_.set_requires_grad(t_.backward && serial_x_.is_floating_point());
    for (serial_state& of_link : serial_)
      for (at::Tensor& p : of_link.parameters) p.set_requires_grad(t_.backward);
    serial_y_ = serially_called(serial_x_, t_.trains);
    distance d;
    if (codomain().mesh.contains(team_->rank()))
      d.add(y_.local(), part_of(serial_y_, codomain(), team_->rank()), tolerance(1e-4),
            tolerance(1e-4) * largest(serial_y_));
    return agreed(d, "y is not the serial one");
  }
  double tolerance(double otherwise) const {
    return t_.element == element::float32 ? otherwise : t_.element == element::float64 ? 1e-11 : 0;
  }
  static double largest(const at::Tensor& x) {
    return x.numel() == 0 ? 0 : x.detach().to(at::kDouble).abs().max().item<double>();
  }

  verdict agreed(const distance& d, const char* otherwise) {
    const std::vector<double> all = over_workers(team_, {d.largest, d.within ? 0.0 : 1.0}, combine::max);
    if (all[1] == 0) return {result::pass, all[0], {}};
    return {result::fail, all[0], otherwise};
  }

  /// r = ⟨F x, dy⟩/d, s = ⟨x, F* dy⟩/d with d = max(|F x||dy|, |x||F* dy|), summed over all workers, an invariant
  /// counted once.
  verdict adjoint() {
    const at::Tensor x = leaf();
    const at::Tensor dx = gradient(x);
    const layout& lies = t_.leaf < 0 ? domain() : t_.links[0].plan.stored(t_.leaf);
    const bool counts = tessera::detail::is_first_copy({team_, lies, x.detach()}, placement::invariant);
    const double one = counts ? 1 : 0;
    const auto n = over_workers(team_,
                                {squares(y_.local()), squares(dy_), one * squares(x), one * squares(dx),
                                 product_of(y_.local(), dy_), one * product_of(x, dx)},
                                combine::sum);
    const double d = std::max(std::sqrt(n[0]) * std::sqrt(n[1]), std::sqrt(n[2]) * std::sqrt(n[3]));
    const double r = d == 0 ? n[4] : n[4] / d;
    const double s = d == 0 ? n[5] : n[5] / d;
    const double off = std::abs(r - s);
    if (off <= t_.atol + t_.rtol * std::abs(s)) return {result::pass, off, {}};
    return {result::fail, off, fmt::format("<Fx,dy>/d = {}, <x,F*dy>/d = {}", r, s)};
  }

  /// What the case names is the serial layer's.
  verdict equivalence() {
    at::Tensor serial_loss;
    if (t_.squares) {
      serial_loss = at::square(serial_y_ - target_of(codomain(), t_.element)).sum();
      serial_loss.backward();
    } else {
      serial_y_.backward(assembled(cotangent(codomain()), t_.dy, t_.element, 2, team_->mesh().size()));
    }
    verdict all;
    for (const compared what : t_.compares) {
      const verdict one = agreed(apart(what, serial_loss), "");
      all.figure = std::max(all.figure, one.figure);
      if (one.result == result::pass) continue;
      all.result = result::fail;
      all.why += fmt::format("{}{} is off by {}", all.why.empty() ? "" : ", ", names_compared[static_cast<int>(what)],
                             one.figure);
    }
    return all;
  }

  distance apart(compared what, const at::Tensor& serial_loss) {
    distance d;
    const auto add = [&](const at::Tensor& mine, const at::Tensor& serial, const layout& lies) {
      if (lies.mesh.contains(team_->rank())) d.add(mine, part_of(serial, lies, team_->rank()), t_.rtol, t_.atol);
    };
    switch (what) {
      case compared::y: add(y_.local(), serial_y_, codomain()); break;
      case compared::dx: add(gradient(x_.local()), serial_x_.grad(), cotangent(domain())); break;
      case compared::loss: add(loss_.local(), serial_loss, loss_.layout()); break;
      case compared::statistics:
        for (std::size_t l = 0; l < links_.size(); ++l)
          for (std::size_t k = 0; k < serial_[l].buffers.size(); ++k) {
            const nn::buffer& b = links_[l].state.buffers[k];
            add(b.value(), serial_[l].buffers[k], b.stored().layout());
          }
        break;
      case compared::stepped_y: step(); [[fallthrough]];
      case compared::eval_y: {
        const at::NoGradGuard no_record;
        add(called(x_, false).local(), serially_called(serial_x_, false), codomain());
        break;
      }
      default:
        each_parameter([&](std::size_t k, const nn::parameter& p, const at::Tensor& serial) {
          if (what == compared::gradients || k == (what == compared::dw ? 0U : 1U))
            add(gradient(p.stored().local()), gradient(serial), p.stored().layout());
        });
    }
    return d;
  }

  /// Calls visit(number in its link, parameter, the serial one).
  template <class Visit>
  void each_parameter(const Visit& visit) const {
    for (std::size_t l = 0; l < links_.size(); ++l)
      for (std::size_t k = 0; k < links_[l].state.parameters.size(); ++k)
        visit(k, links_[l].state.parameters[k], serial_[l].parameters[k]);
  }

  /// p += 0.1 · gradient for every parameter, here and serially.
  void step() const {
    const at::NoGradGuard no_record;
    each_parameter([](std::size_t, const nn::parameter& p, at::Tensor serial) {
      p.stored().local().add_(gradient(p.stored().local()), 0.1);
      serial.add_(gradient(serial), 0.1);
    });
  }

  verdict element_kept() {
    const auto type = tessera::detail::scalar_type_of(t_.element);
    bool same = y_.local().scalar_type() == type;
    if (t_.backward) same = same && gradient(x_.local()).scalar_type() == type;
    const double others = over_workers(team_, {same ? 0.0 : 1.0}, combine::sum)[0];
    if (others == 0) return {result::pass, 0, {}};
    return {result::fail, others, "the element type changed"};
  }

  /// Every entry is one number, exactly.
  verdict entries() {
    distance d;
    d.add(y_.local(), at::full_like(y_.local(), t_.every_y), 0, 0);
    if (const verdict y = agreed(d, "an entry of y is another number"); y.result != result::pass) return y;
    distance dx;
    dx.add(gradient(x_.local()), at::full_like(x_.local(), t_.every_dx), 0, 0);
    return agreed(dx, "an entry of dx is another number");
  }

  team_handle team_;
  const trial& t_;
  tensor<dyn> x_;
  tensor<dyn> y_;
  at::Tensor dy_;
  at::Tensor serial_x_;
  at::Tensor serial_y_;
  tensor<dyn> loss_;
  std::vector<running_link> links_;
  std::vector<serial_state> serial_;
  std::vector<std::string> codes_;
};

}  // namespace

verdict evaluate(const team_handle& team, const trial& t) {
  std::vector<run> runs;
  runs.emplace_back(team, t);
  for (const trial& other : t.others) runs.emplace_back(team, other);
  for (run& r : runs)
    if (const verdict v = r.start(); v.result != result::pass) return v;
  verdict first = runs.front().judge();
  for (std::size_t i = 1; i < runs.size() && first.result == result::pass; ++i)
    if (const verdict v = runs[i].judge(); v.result != result::pass) return v;
  return first;
}

team_handle fresh_team(const team_handle& of) { return std::make_shared<team_state>(of->shared_carrier(), of->mesh()); }

int rank_of(const team_handle& team) { return team->rank(); }

std::string on_workers(int workers, bool under_mpi, const transport_layer& over,
                       const std::function<void(const team_handle&)>& program) {
  mesh_value world;
  world.axes.push({text{"worker"}, workers, 1});
  launch_options options;
  options.transport = under_mpi ? transport_choice::mpi : transport_choice::in_process;
  options.time_limit = std::chrono::seconds{60};
  options.over = over;
  std::mutex mutex;
  std::string first;
  const auto note = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    if (first.empty()) first = what;
  };
  const int status = launch(0, nullptr, options, world, [&](const team_handle& team) {
    try {
      program(team);
    } catch (const c10::Error& e) {  // without the addresses it was thrown from
      note(e.what_without_backtrace());
      throw std::runtime_error(e.what_without_backtrace());
    } catch (const std::exception& e) {
      note(e.what());
      throw;
    }
  });
  return first.empty() && status != 0 ? "the workers could not be started" : first;
}

}  // namespace conformance
