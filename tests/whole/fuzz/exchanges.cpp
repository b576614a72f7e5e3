#include "exchanges.hpp"

#include "boxes.hpp"
#include "crew.hpp"

#include <tessera/tensor/change/change.hpp>

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

/// Every scalar type of LibTorch that the library takes: the one list of elements.
const std::vector<at::ScalarType>& scalar_types() {
  static const std::vector<at::ScalarType> all = [] {
    std::vector<at::ScalarType> found;
    for (int t = 0; t < static_cast<int>(at::ScalarType::Undefined); ++t) try {
        found.push_back(
            tessera::detail::scalar_type_of(tessera::detail::element_of_scalar(static_cast<at::ScalarType>(t))));
      } catch (const error&) {
      }
    return found;
  }();
  return all;
}

std::string name_of_scalar(at::ScalarType t) { return name_of(tessera::detail::element_of_scalar(t)); }

std::optional<at::ScalarType> scalar_named(const std::string& name) {
  for (at::ScalarType t : scalar_types())
    if (name_of_scalar(t) == name) return t;
  return {};
}

/// What one worker comes to.
struct seen {
  at::Tensor y;
  at::Tensor gradient;
  index_t there = 0;
  index_t back = 0;
  bool inputs_kept = true;
  bool repeats = true;
};

/// Values and, for complex elements, their imaginary parts.
struct parts_of_values {
  values real;
  values imaginary;
};

/// The values that `m` gives a layout in the tensors of a run; empty where a tensor has another shape or type.
std::optional<parts_of_values> values_in(const outcome<seen>& run, at::Tensor seen::* which, const layout_oracle& m,
                                         at::ScalarType type) {
  parts_of_values v{values(m.holders.size()), values(m.holders.size())};
  std::vector<bool> inside(run.results.size(), false);
  for (std::size_t i = 0; i < m.holders.size(); ++i) {
    const holder& w = m.holders[i];
    const at::Tensor& t = run.of(w.rank).*which;
    if (t.scalar_type() != type || t.sizes().vec() != sizes_of(m.of, w.holds ? &w : nullptr)) return {};
    inside[static_cast<std::size_t>(w.rank)] = true;
    if (!w.holds) continue;
    v.real[i] = values_of(t, false);
    if (at::isComplexType(type)) v.imaginary[i] = values_of(t, true);
  }
  for (std::size_t r = 0; r < inside.size(); ++r)
    if (!inside[r] && (run.of(static_cast<int>(r)).*which).sizes().vec() != sizes_of(m.of, nullptr)) return {};
  return v;
}

}  // namespace

std::vector<std::string> element_names() {
  std::vector<std::string> names;
  for (at::ScalarType t : scalar_types()) names.push_back(name_of_scalar(t));
  return names;
}

std::string judge_exchange(const fuzz_case& c, const carried& over) {
  const auto type = scalar_named(c.element);
  if (!type) return "there is no element " + c.element;
  const nature e{*type};
  const int world = world_of(c);
  const layout_oracle from{c.from};
  const layout_oracle to{c.to};
  // of complex numbers here only sums
  if (e.complex && !(from.with == combine::sum && to.with == combine::sum)) return {};
  const layout seeded_layout = cotangent(c.to);
  const layout gradient_layout = cotangent(c.from);
  const layout_oracle seeded{seeded_layout};
  const layout_oracle gradient{gradient_layout};
  const bool pairs = e.differentiable && only_sums(c);

  const kind_of_values kind = e.boolean ? kind_of_values::truths : kind_for(from, to);
  const auto rolled = [&](const layout_oracle& m, std::uint64_t salt, kind_of_values k) {
    return dealt(m, [&](int number, int term) { return value_at(salt, number, term, k, e.negative); });
  };
  const parts_of_values x{rolled(from, c.salt, kind), rolled(from, c.salt + 2, kind)};
  const parts_of_values z{rolled(seeded, c.salt + 1, kind_of_values::numbers),
                          rolled(seeded, c.salt + 3, kind_of_values::numbers)};
  const auto boxes = [&](const layout_oracle& m, const parts_of_values& v) {
    std::vector<at::Tensor> all;
    for (int r = 0; r < world; ++r) all.push_back(at::zeros(sizes_of(m.of, nullptr), e.type));
    for (std::size_t i = 0; i < m.holders.size(); ++i)
      if (m.holders[i].holds)
        all[static_cast<std::size_t>(m.holders[i].rank)] =
            tensor_of(sizes_of(m.of, &m.holders[i]), e, c.memory, v.real[i], v.imaginary[i]);
    return all;
  };
  const std::vector<at::Tensor> in = boxes(from, x);
  const std::vector<at::Tensor> seeds = pairs ? boxes(seeded, z) : std::vector<at::Tensor>{};

  const auto run = in_world(
      world,
      [&](const std::shared_ptr<transport>& host) {
        prepare_thread();
        const std::shared_ptr<transport> carrier = over(host);
        const auto r = static_cast<std::size_t>(carrier->rank());
        const auto team = std::make_shared<team_state>(carrier, c.from.mesh);
        at::Tensor mine = in[r];
        const at::Tensor before = mine.clone();
        if (pairs) mine = mine.detach().set_requires_grad(true);
        const at::Tensor other = stored_as(mine.sizes().vec(), e.type, (c.memory + 1) % 4).copy_(mine);
        const received made = team->total;
        seen s;
        s.y = change_layout(team, c.from, c.to, mine);
        s.there = team->total.bytes - made.bytes;
        if (pairs) {
          const at::Tensor seed_before = seeds[r].clone();
          s.gradient = torch::autograd::grad({s.y}, {mine}, {seeds[r]})[0];
          s.back = team->total.bytes - made.bytes - s.there;
          s.inputs_kept = values_of(seed_before, false) == values_of(seeds[r], false);
        }
        s.y = s.y.detach().clone();
        // the exchange is bound now, and memory lies elsewhere
        const at::Tensor again = change_layout(team, c.from, c.to, other);
        s.repeats = values_of(again, false) == values_of(s.y, false) && values_of(again, true) == values_of(s.y, true);
        s.inputs_kept = s.inputs_kept && values_of(before, false) == values_of(in[r], false) &&
                        values_of(before, true) == values_of(in[r], true);
        return s;
      },
      std::chrono::seconds{20}, {}, in_kept_threads);
  if (!run.well()) return "throws: " + run.errors();

  index_t there = 0;
  index_t back = 0;
  for (const auto& r : run.results) {
    there += r->there;
    back += r->back;
    if (!r->inputs_kept) return "an input was written to";
  }
  for (const layout_oracle* m = &to; const holder& w : m->holders)
    if (w.holds && !run.of(w.rank).repeats) return "the same change again brings something else";
  const auto said = [&](const change& plan) {
    return cost_of(plan).total * static_cast<index_t>(at::elementSize(e.type));
  };
  if (there != said(change_between(c.from, c.to)))
    return "it moves " + std::to_string(there) + " bytes and not what its plan says";

  const auto y = values_in(run, &seen::y, to, e.type);
  if (!y) return "a box has another shape or type";
  if (std::string why = differs(to, y->real, fuzz::global_of(from, x.real, e.boolean), e.boolean); !why.empty())
    return why;
  if (e.complex)
    if (std::string why = differs(to, y->imaginary, fuzz::global_of(from, x.imaginary)); !why.empty())
      return "imaginary: " + why;
  if (!pairs) return {};

  if (back != said(change_between(seeded_layout, gradient_layout)))
    return "its backward moves " + std::to_string(back) + " bytes and not what its plan says";
  const auto g = values_in(run, &seen::gradient, gradient, e.type);
  if (!g) return "a gradient has another shape or type";
  if (std::string why = differs(gradient, g->real, fuzz::global_of(seeded, z.real)); !why.empty())
    return "gradient: " + why;
  if (e.complex)
    if (std::string why = differs(gradient, g->imaginary, fuzz::global_of(seeded, z.imaginary)); !why.empty())
      return "imaginary gradient: " + why;
  double left = fuzz::paired(to, y->real, z.real);
  double right = fuzz::paired(from, x.real, g->real);
  if (e.complex) {  // Re Σ x ȳ
    left += fuzz::paired(to, y->imaginary, z.imaginary);
    right += fuzz::paired(from, x.imaginary, g->imaginary);
  }
  if (left != right) return "<Fx, y> is not <x, F*y>";
  return {};
}

}  // namespace tessera::testing::fuzz
