#pragma once

#include <tessera/nn/watch/finite_watch.hpp>
#include <tessera/plan/cutting.hpp>

#include <ATen/ops/aminmax.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/view_as_real.h>

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tessera::nn {

namespace engine {

/// The numbers of a tensor as real ones, or an undefined tensor where it has none with fractions.
inline at::Tensor real_numbers(const at::Tensor& x) {
  if (!x.defined() || !(x.is_floating_point() || x.is_complex())) return {};
  const at::Tensor stored = x.detach();
  if (stored.is_sparse()) return real_numbers(stored._values());
  return stored.is_complex() ? at::view_as_real(stored.resolve_conj()) : stored.resolve_neg();
}

/// The global index of an element of a worker's box.
inline std::vector<index_t> global_index(const layout& lies, int rank, std::vector<index_t> local) {
  const engine::holding held = engine::held_by(lies, rank);
  for (std::size_t d = 0; d < local.size() && d < static_cast<std::size_t>(held.count); ++d)
    for (const engine::interval& part : held[static_cast<int>(d)]) {
      if (local[d] < part.size()) {
        local[d] += part.lo;
        break;
      }
      local[d] -= part.size();
    }
  return local;
}

/// Numbers with something between them.
template <class Numbers>
std::string in_a_row(const Numbers& all, const char* between) {
  std::string s;
  for (const auto& n : all) s += (s.empty() ? "" : between) + std::to_string(n);
  return s;
}

/// The name of a layer's tensor in messages.
inline std::string called(const layer_tensor& x) {
  if (x.is == layer_tensor::parameter) return x.name;
  return fmt::format("{} {}", x.is == layer_tensor::operand ? "operand" : "result", x.number);
}

}  // namespace engine

TESSERA_INLINE std::string finite_watch::finding::words() const {
  std::string s = path.empty() ? name : name.empty() ? path : fmt::format("{} ({})", path, name);
  s += fmt::format("{}: {}, {} elements, the first at [{}], on {} {}", backward ? " backward" : "", tensor, count,
                   engine::in_a_row(first, ", "), workers.size() == 1 ? "worker" : "workers",
                   engine::in_a_row(workers, " "));
  return because.empty() ? s : fmt::format("{}; {} was so before", s, because);
}

TESSERA_INLINE finite_watch::finite_watch(const team_handle& team, counted which) : team_(team), which_(which) {}

TESSERA_INLINE bool finite_watch::fits(const at::Tensor& x) const {
  const at::Tensor real = engine::real_numbers(x);
  if (!real.defined() || real.numel() == 0) return true;
  const auto [least, most] = at::aminmax(real);  // both are NaN where one element is
  const double low = least.item<double>();
  return which_ == counted::all ? std::isfinite(low) && std::isfinite(most.item<double>()) : !std::isnan(low);
}

TESSERA_INLINE void finite_watch::note(finding what, int order, const layout& lies, const at::Tensor& x) {
  const at::NoGradGuard no_graph;
  const at::Tensor real = engine::real_numbers(x);
  at::Tensor bad = which_ == counted::all ? at::isfinite(real).logical_not() : at::isnan(real);
  if (x.is_complex()) bad = bad.any(-1);
  const at::Tensor places = at::nonzero(bad).cpu();
  what.count = places.size(0);
  for (std::int64_t d = 0; d < places.size(1); ++d) what.first.push_back(places[0][d].item<std::int64_t>());
  if (!x.is_sparse()) what.first = engine::global_index(lies, team_->rank(), what.first);
  when_ = 4 * visits_ + static_cast<std::uint64_t>(order);
  found_ = std::move(what);
}

TESSERA_INLINE void finite_watch::computed(const layer_visit& visit, std::span<const layer_tensor> all) {
  for (const layer_tensor& y : all) {
    if (y.is != layer_tensor::result || fits(y.local)) continue;
    const auto before = std::find_if(
        all.begin(), all.end(), [&](const layer_tensor& x) { return x.is != layer_tensor::result && !fits(x.local); });
    note({.path = visit.path,
          .name = visit.name,
          .tensor = engine::called(y),
          .backward = visit.direction == purpose::backward,
          .because = before == all.end() ? "" : engine::called(*before)},
         0, y.layout(), y.local);
    return;
  }
}

TESSERA_INLINE void finite_watch::gradient(const layer_visit& visit, const layer_tensor& of) {
  if (found_ || fits(of.local)) return;
  const int order = of.is == layer_tensor::result ? 0 : of.is == layer_tensor::operand ? 1 : 2;
  note({.path = visit.path, .name = visit.name, .tensor = "gradient of " + engine::called(of), .backward = true}, order,
       of.layout(), of.local);
}

TESSERA_INLINE void finite_watch::look_at(const engine::executor& net) {
  const auto look = [&](const engine::state_tensor& of, const char* which, const at::Tensor& x) {
    ++visits_;
    if (!found_ && !fits(x)) note({.path = of.path(), .tensor = which}, 0, of.stored().layout(), x);
  };
  net.each_parameter([&](const parameter& p) { look(p, "parameter", p.stored().local()); });
  net.each_buffer([&](const buffer& b) { look(b, "buffer", b.stored().local()); });
  net.each_parameter([&](const parameter& p) {
    p.check_reduced();
    look(p, "gradient", p.stored().local().grad());
  });
}

TESSERA_INLINE void finite_watch::clear() {
  found_.reset();
  when_ = never;
}

TESSERA_INLINE std::optional<finite_watch::finding> finite_watch::first(call_site at) const {
  if (!team_->inside()) return std::nullopt;
  const engine::scoped_context now(*team_, {.name = "telling what is not finite", .at = at});
  std::uint64_t earliest = never;
  for (const std::uint64_t when : team_->collect(when_, "telling what is not finite"))
    earliest = std::min(earliest, when);
  if (earliest == never) return std::nullopt;
  std::string mine;
  if (when_ == earliest)
    mine = fmt::format("{}\n{}\n{}\n{}\n{} {} {}", found_->path, found_->name, found_->tensor, found_->because,
                       static_cast<int>(found_->backward), found_->count, engine::in_a_row(found_->first, " "));
  const std::vector<std::string> all = team_->collect_text(mine);
  std::optional<finding> first;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    finding one;
    std::istringstream lines(all[i]);
    for (std::string* to : {&one.path, &one.name, &one.tensor, &one.because}) std::getline(lines, *to);
    lines >> one.backward >> one.count;
    for (index_t k = 0; lines >> k;) one.first.push_back(k);
    if (!first) first = std::move(one);
    first->workers.push_back(team_->mesh().rank(team_->mesh().at(static_cast<int>(i))));
  }
  return first;
}

TESSERA_INLINE void finite_watch::check(call_site at) const {
  if (const auto found = first(at)) throw error(refusal{code::value_not_finite}, found->words());
}

}  // namespace tessera::nn
