#pragma once

#include <tessera/nn/kernel/routed_rows_impl.hpp>
#include <tessera/nn/layer/forward.hpp>
#include <tessera/nn/layer/indexing_impl.hpp>

namespace tessera::functions {

namespace engine {

/// The sums over all workers of a few numbers, in double; a worker outside has none.
inline at::Tensor sums_of_all(const bound_exchanges& by, std::size_t exchange, const at::Tensor& mine) {
  const bool outside = by.exchanges[exchange].from->extents()[0] == 0;
  return by.exchanged(outside ? mine.narrow(0, 0, 0) : mine, exchange);
}

inline double rows_of_all(const bound_exchanges& by) {
  double n = 1;
  const auto& extents = by.boxes.operands[0].extents;
  for (int d = 0; d + 1 < extents.count; ++d) n *= static_cast<double>(extents[d]);
  return n;
}

/// How often each of n is named.
inline at::Tensor counted(const at::Tensor& named) { return named.flatten(0, -2).sum(0, false, at::kDouble); }

}  // namespace engine

TESSERA_INLINE at::Tensor compute(const load_balance_loss& f, const engine::bound_exchanges& by,
                                  const at::Tensor& scores, const at::Tensor& chosen) {
  const at::Tensor wide = engine::in_wide(scores);
  at::Tensor each = at::softmax(wide, -1);
  if (f.n.whole != 0) {
    each = at::sigmoid(wide);
    each = each / each.sum(-1, true);
  }
  const at::Tensor all = engine::sums_of_all(by, 0, at::cat({engine::counted(chosen != -1), engine::counted(each)}));
  const std::vector<at::Tensor> both = all.chunk(2);
  const at::Tensor chosen_of_all = both[0].detach();
  const double rows = engine::rows_of_all(by);
  const auto experts = static_cast<double>(by.boxes.operands[0].extents[by.boxes.operands[0].extents.count - 1]);
  return ((chosen_of_all / chosen_of_all.sum()) * both.back()).sum().mul(experts / rows).to(scores.scalar_type());
}

TESSERA_INLINE at::Tensor compute(const router_z_loss&, const engine::bound_exchanges& by, const at::Tensor& scores) {
  const at::Tensor each = at::square(at::logsumexp(engine::in_wide(scores), -1)).sum(at::kDouble);
  return (engine::row(engine::sums_of_all(by, 0, each.reshape({1})), 0) / engine::rows_of_all(by))
      .to(scores.scalar_type());
}

}  // namespace tessera::functions

namespace tessera::nn {

namespace engine {

/// Rows of x by number, zeros where it is one too large. The gradient is added in a wide element.
inline at::Tensor rows_or_none(const at::Tensor& x, const at::Tensor& which) {
  const at::Tensor none = at::zeros({1, x.size(1)}, x.options().requires_grad(false));
  return functions::engine::recorded({0, true, x.size(0) + 1}, functions::engine::by_indices::taken, at::cat({x, none}),
                                     which);
}

/// The bins of this worker's rows; `packed` are rows by source.
inline std::vector<index_t> bins_here(const layout& packed, int rank, index_t rows) {
  const index_t bins = tessera::engine::held_by(packed, rank)[1][0].size();
  std::vector<index_t> each;
  for (index_t i = 0; i < bins; ++i) each.push_back(cut(rows, bins, i + 1) - cut(rows, bins, i));
  return each;
}

/// n or some more, a sixteenth at most, so that few extents are met.
inline index_t rounded_up(index_t n) {
  index_t step = 1;
  while (step * 32 <= n) step *= 2;
  return tessera::detail::ceil_divide(n, step) * step;
}

/// The experts of each place.
inline std::vector<interval> experts_of_places(const layout& slots) {
  const tessera::engine::parts by_place(slots, 0);
  std::vector<interval> all;
  for (int p = 0; p < by_place.count(); ++p) all.push_back(by_place.held(p)[0]);
  return all;
}

inline at::Tensor sized(const at::Tensor& x, const box_vector& sizes) {
  return x.reshape(at::IntArrayRef(sizes.begin(), sizes.end()));
}

/// The gates of all experts, and what chooses them. Where a router draws, buffers 0 and 1 are how often it did and its
/// key; the last one has its biases.
struct judged_scores {
  at::Tensor gates;
  at::Tensor chosen_by;
  at::Tensor chosen(index_t k) const { return std::get<1>(at::sort(chosen_by, true, -1, true)).narrow(1, 0, k); }
};
inline judged_scores judged(const routing& layer, const layer_state& state, bool training, const layout& lies, int rank,
                            const at::Tensor& given) {
  at::Tensor scores = functions::engine::in_wide(given);
  if (layer.noise > 0 && training) {
    const tessera::detail::drawn_numbers now(state.buffers[1].value(), state.buffers[0].value());
    const at::Tensor drawn = now.uniform(lies, rank);
    const at::Tensor normal = at::erfinv(2 * drawn - (1 - 0x1p-53)) * (layer.noise * std::sqrt(2.0));
    scores = scores + normal.to(scores.scalar_type()).reshape(scores.sizes());
  }
  const at::Tensor gates = layer.sigmoid ? at::sigmoid(scores) : at::softmax(scores, -1);
  if (layer.rate == 0) return {gates, scores.detach()};
  return {gates, gates.detach() + state.buffers.back().value()};
}

/// Tells of gates that are no numbers on all workers, and moves the biases towards an even load.
inline void tell(const call& c, const routing& layer, const at::Tensor& gates, const at::Tensor& chosen) {
  const at::Tensor wrong = at::isnan(gates.detach()).any(-1).sum().to(at::kDouble);
  const bool counts = layer.rate > 0;
  const auto judge = [&](const at::Tensor& of_all) {
    if (const double none = of_all.item<double>(); none > 0)
      throw error(refusal{code::gate_no_number, static_cast<index_t>(none)}, c.bound.team->label());
  };
  if (!counts && !c.compares_indices) return judge(wrong);
  at::Tensor told = wrong.reshape({1});
  if (counts) {
    const at::Tensor named = chosen.unsqueeze(-1) == at::arange(layer.experts, chosen.options());
    told = at::cat({told, functions::engine::counted(named.any(1))});
  }
  const functions::engine::bound_exchanges by{c.bound.team, c.bound.boxes(), c.bound.exchanges, {}};
  const at::Tensor all = functions::engine::sums_of_all(by, 1, told);
  if (all.size(0) == 0) return;
  judge(all[0]);
  if (!counts || !c.training) return;
  const nn::buffer& bias = c.state.buffers.back();
  const at::Tensor load = all.narrow(0, 1, layer.experts);
  bias.set(bias.value() + layer.rate * at::sign(load.mean() - load));
}

/// Which choices of this worker's rows find room. Groups that lie on several workers are judged by all of them alike.
inline at::Tensor kept_here(const call& c, const routing& layer, const at::Tensor& chosen, const at::Tensor& gates,
                            const std::vector<index_t>& bins) {
  row_choices of{chosen, gates, bins, {}, layer.experts, layer.by_score};
  const bool spans = c.bound.exchanges.size() > 2;
  const index_t rows = chosen.size(0), k = layer.choices;
  interval mine{0, rows};
  if (spans) {
    const auto both = at::cat({chosen.to(at::kDouble), gates.to(at::kDouble)}, 1);
    const at::Tensor all = c.exchanged(sized(both, c.bound.exchanges[2].from->extents()), 2);
    const index_t of_all = all.numel() / (2 * k);
    const std::vector<at::Tensor> apart = all.reshape({of_all, 2 * k}).split(k, 1);
    of.experts = apart[0].to(at::kLong);
    of.gates = apart[1];
    const local_box& box = c.bound.boxes().operands[1];
    const index_t inside = rows > 0 ? rows / box.size(0) : 0;
    if (rows > 0) mine.lo = box.first(0) * inside;
    of.groups.clear();
    for (index_t g = 0; g < layer.groups; ++g)
      of.groups.push_back(cut(of_all, layer.groups, g + 1) - cut(of_all, layer.groups, g));
  }
  for (index_t n : of.groups) of.room.push_back(layer.slots_for(n));
  return kept_choices(of).narrow(0, mine.lo, rows);
}

}  // namespace engine

TESSERA_INLINE std::vector<at::Tensor> forward(const call& c, const engine::routing& layer) {
  const engine::bound_layer& b = c.bound;
  const at::Tensor x = c.used(0);
  const layout& of_experts = b.results[0].from->layout();
  const layout& of_packed = b.exchanges[0].from->layout();
  const index_t experts = layer.experts, k = layer.choices;
  const index_t rows = c.operand(1).numel() / experts;
  const at::Tensor scores = c.used(1).reshape({rows, experts});

  const engine::judged_scores judged =
      engine::judged(layer, c.state, c.training, b.inputs[1].to->layout(), b.team->rank(), scores);
  if (layer.noise > 0 && c.training) c.buffer(0).set(c.buffer(0).value() + 1);
  engine::routed_rows of;
  of.chosen = judged.chosen(k);
  engine::tell(c, layer, judged.gates, of.chosen);
  at::Tensor gates = judged.gates.gather(1, of.chosen);
  if (layer.normalised) gates = gates / gates.sum(-1, true);
  of.bins = engine::bins_here(of_packed, b.team->rank(), rows);
  if (layer.is_limited) of.kept = engine::kept_here(c, layer, of.chosen, gates.detach(), of.bins);
  of.places = engine::experts_of_places(of_experts);
  of.slots = of_experts.dims[2].extent;
  of.rows = of_packed.dims[2].extent;
  of.numbers = b.results[1].from->layout().dims[3].extent;
  const engine::row_lists lists = engine::listed_rows(of);

  const at::Tensor packed =
      engine::sized(engine::rows_or_none(x.reshape({rows, x.size(-1)}), lists.rows), b.exchanges[0].from->extents());
  const at::Tensor weights = engine::rows_or_none(gates.reshape({rows * k, 1}), lists.choices);
  const auto& sizes = b.results[1].from->extents();
  const at::Tensor numbers = b.leaving(engine::sized(lists.numbers, sizes), 2);
  const at::Tensor there = c.exchanged(packed, 0);

  const engine::interval mine = tessera::engine::held_by(of_experts, b.team->rank())[0][0];
  const index_t groups = there.size(1), came = there.size(0) * groups * there.size(2);
  const at::Tensor slots = engine::slots_of_numbers(
      numbers.reshape({groups, there.size(0) * there.size(2), of.numbers}), mine, groups, of.slots);
  const at::Tensor from = at::arange(came, slots.options()).unsqueeze(1).expand({came, of.numbers});
  const at::Tensor lying = engine::inverse(slots, from, mine.size() * groups * of.slots, came);
  const at::Tensor taken = engine::rows_or_none(there.reshape({came, there.size(3)}), lying).reshape(b.sizes);
  return {b.leaving(taken, 0), b.leaving(engine::sized(weights, sizes), 1), numbers,
          engine::sized(lists.became, b.results[3].from->extents())};
}

TESSERA_INLINE std::optional<engine::open_extents> extent_for(const measured_call& c, const engine::routing& layer) {
  if (layer.is_limited) return {};
  const layer_plan p =
      plan_of(layer, {c.where[0]->layout(), tessera::detail::element_of_scalar(c.operands[0].scalar_type())},
              {c.where[1]->layout(), tessera::detail::element_of_scalar(c.operands[1].scalar_type())});
  const int rank = c.team->rank();
  const index_t rows = c.operands[1].numel() / layer.experts;
  const engine::judged_scores judged = engine::judged(layer, c.state, c.training, c.where[1]->layout(), rank,
                                                      c.operands[1].detach().reshape({rows, layer.experts}));
  const at::Tensor chosen = judged.chosen(layer.choices);
  const std::vector<engine::interval> places = engine::experts_of_places(p.raw());
  const at::Tensor place = engine::places_of_experts(places, chosen.options()).index_select(0, chosen.flatten());
  const auto marked = [&](const at::Tensor& where, index_t n) {
    return at::zeros({rows, n}, chosen.options()).scatter_(1, where.view(chosen.sizes()), 1);
  };
  const at::Tensor experts = marked(chosen, layer.experts);
  const at::Tensor goes = marked(place, static_cast<index_t>(places.size()));
  std::vector<at::Tensor> counts{at::zeros({2}, chosen.options())};
  index_t begin = 0;
  for (const index_t n : engine::bins_here(p.from(0), rank, rows)) {
    const auto most = [&](const at::Tensor& of) { return of.narrow(0, begin, n).sum(0).max(); };
    counts.push_back(at::stack({most(experts), most(goes)}));
    begin += n;
  }
  const at::Tensor fullest = at::stack(counts).amax(0).cpu();
  const engine::open_extents mine(fullest[0].item<index_t>(), fullest[1].item<index_t>());
  const engine::open_extents all = c.most(mine);
  return engine::open_extents(engine::rounded_up(all.first), engine::rounded_up(all.second));
}

TESSERA_INLINE at::Tensor forward(const call& c, const engine::row_combining&) {
  const engine::bound_layer& b = c.bound;
  const at::Tensor y = c.used(0), gates = c.used(1), numbers = c.used(2), chosen = c.used(3);
  const layout& of_slots = b.inputs[0].to->layout();
  const layout& of_packed = b.exchanges[0].to->layout();
  const index_t groups = y.size(1), slots = of_slots.dims[2].extent, each = gates.size(3), features = y.size(3);
  const engine::interval mine = tessera::engine::held_by(of_slots, b.team->rank())[0][0];
  const index_t came = gates.size(0) * gates.size(1) * gates.size(2);
  const at::Tensor which =
      engine::slots_of_numbers(numbers.reshape({groups, gates.size(0) * gates.size(2), each}), mine, groups, slots);
  const at::Tensor found = engine::rows_or_none(y.reshape({y.size(0) * groups * y.size(2), features}), which.flatten());
  const at::Tensor wide = functions::engine::in_wide(found).reshape({came, each, features});
  const at::Tensor summed = (wide * gates.reshape({came, each, 1})).sum(1).to(y.scalar_type());
  const at::Tensor back = c.exchanged(engine::sized(summed, b.exchanges[0].from->extents()), 0);

  const index_t experts = of_slots.dims[0].extent, most = of_packed.dims[2].extent;
  const index_t rows = chosen.numel() / experts;
  const at::Tensor became = chosen.reshape({rows, experts});
  const at::Tensor line =
      engine::bins_of_rows(engine::bins_here(of_packed, b.team->rank(), rows), chosen.options()) * most;
  at::Tensor all;
  index_t place = 0;
  for (const engine::interval& of : engine::experts_of_places(of_slots)) {
    const index_t p = place++;
    if (of.size() == 0 || p >= back.size(0)) continue;
    const at::Tensor number = became.narrow(1, of.lo, of.size()).amax(1);
    const index_t packed = back.size(1) * most;
    const at::Tensor one = functions::engine::in_wide(engine::rows_or_none(
        back.select(0, p).reshape({packed, features}), at::where(number >= 0, line + number, packed)));
    all = all.defined() ? all + one : one;
  }
  const at::Tensor sum =
      all.defined() ? all.to(y.scalar_type()).reshape(b.sizes) : tessera::detail::empty_result(b.outputs, {back});
  return b.leaving(b.depends_on_all(sum, {y, gates}));
}

}  // namespace tessera::nn
