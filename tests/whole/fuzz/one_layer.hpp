#pragma once
// What judges of one layer share: the values of its operands, parameters and seeds, the boxes that workers have of
// them, and its program.

#include "boxes.hpp"
#include "family.hpp"
#include "roll.hpp"

#include <tessera/nn/file/layer_table.hpp>
#include <tessera/nn/network/program.hpp>

#include <cmath>
#include <numeric>
#include <set>

namespace tessera::testing::fuzz {

using namespace engine;

inline const family& family_of(const layer_case& c) {
  for (const family& f : families())
    if (f.name == c.layer) return f;
  throw error(refusal{code::program_layer_unknown}, c.layer);
}

inline std::optional<element> element_named(const std::string& name) {
  for (int e = 0; e < number_of_elements; ++e)
    if (name == name_of(static_cast<element>(e))) return static_cast<element>(e);
  return {};
}

inline std::vector<index_t> extents_of(const layout& x) {
  std::vector<index_t> n;
  for (const dimension& d : x.dims) n.push_back(d.extent);
  return n;
}

inline bool is_real(at::ScalarType t) { return at::isFloatingType(t); }
inline bool has_gradient(const at::Tensor& t) { return is_real(t.scalar_type()) || t.is_complex(); }

/// Numbers of a grid of sixteenths between -1 and 1: all elements hold them and few sums of their products exactly.
inline at::Tensor numbers_of(const std::vector<index_t>& sizes, std::uint64_t salt) {
  at::Tensor all = at::empty(sizes, at::kDouble);
  dice d{salt * 0x9e3779b97f4a7c15u};
  double* out = all.data_ptr<double>();
  for (index_t i = 0; i < all.numel(); ++i) out[i] = d.roll(-16, 16) / 16.0;
  return all;
}

/// The values of an operand of a case.
inline at::Tensor value_of_operand(const layer_case& c, std::size_t i) {
  const at::Tensor all = numbers_of(extents_of(c.operands[i].layout), c.salt + i);
  const family& f = family_of(c);
  return f.value ? f.value(c, i, all).to(at::kDouble) : all;
}

/// The values of a parameter or a buffer, by its key; none of a count.
inline at::Tensor value_of_state(const layer_case& c, const std::string& key, const std::vector<index_t>& sizes) {
  const at::Tensor all = numbers_of(sizes, c.salt + std::hash<std::string>{}(key) % 100'000);
  return key == "running_var" ? all.abs() + 0.5 : all;
}

/// The terms of each element that somebody holds; none of one that nobody holds.
inline std::vector<std::set<int>> terms_of(const layout_oracle& m) {
  std::vector<std::set<int>> all(static_cast<std::size_t>(volume_of(m.of)));
  for (const holder& w : m.holders)
    for (int n : w.numbers) all[static_cast<std::size_t>(n)].insert(m.term(w));
  return all;
}

/// The boxes of all workers of a world that mean a global tensor; terms of a sum are any that add up to it.
inline tensors boxes_of(const layout& x, element e, const at::Tensor& global, int world, int memory,
                        std::uint64_t salt) {
  const layout_oracle m{x};
  const auto terms = terms_of(m);
  const auto other = [&](int n, int term) {
    const double any = value_at(salt, n, term, kind_of_values::numbers) / 16;
    return has_cotangent(e) ? any : std::floor(any);  // of integers, integers
  };
  const at::Tensor all = global.contiguous();
  const values v = dealt(m, [&](int n, int term) {
    const std::set<int>& held = terms[static_cast<std::size_t>(n)];
    if (term != *held.begin()) return other(n, term);
    return std::accumulate(std::next(held.begin()), held.end(), all.data_ptr<double>()[n],
                           [&](double rest, int one) { return rest - other(n, one); });
  });
  const nature of{tessera::detail::scalar_type_of(e)};
  tensors boxes;
  for (int r = 0; r < world; ++r) boxes.push_back(at::zeros(sizes_of(x, nullptr), of.type));
  for (std::size_t i = 0; i < m.holders.size(); ++i)
    if (m.holders[i].holds)
      boxes[static_cast<std::size_t>(m.holders[i].rank)] = tensor_of(sizes_of(x, &m.holders[i]), of, memory, v[i], {});
  return boxes;
}

/// The gradient of a result that lies like this: what nobody holds has none.
inline at::Tensor value_of_seed(const layer_case& c, std::size_t result, const layout& y) {
  at::Tensor all = numbers_of(extents_of(y), c.salt + 500 + result);
  const auto terms = terms_of(layout_oracle{y});
  for (std::size_t n = 0; n < terms.size(); ++n)
    if (terms[n].empty()) all.data_ptr<double>()[n] = 0;
  return all;
}

/// Numbers of a grid as those of an element: whole ones of integers, complex ones with other numbers beside them.
inline at::Tensor as_numbers_of(at::ScalarType e, const at::Tensor& all, std::uint64_t salt) {
  if (at::isComplexType(e)) return at::complex(all, numbers_of(all.sizes().vec(), salt + 7000)).to(e);
  if (e == at::kBool) return all > 0;
  if (!at::isIntegralType(e, false)) return all.to(e);
  const at::Tensor whole = (all * 16).round();
  return (nature{e}.negative ? whole : whole.abs()).to(at::kLong).to(e);
}

/// The boxes of all workers that mean a tensor, of any element.
inline tensors boxes_of_any(const layout& x, const at::Tensor& global, int world, int memory, std::uint64_t salt) {
  const at::ScalarType e = global.scalar_type();
  if (!global.is_complex()) {
    tensors all = boxes_of(x, element::float64, global.to(at::kDouble), world, memory, salt);
    for (at::Tensor& one : all) one = one.to(e);
    return all;
  }
  const at::Tensor parts = at::view_as_real(global).to(at::kDouble);
  const tensors re = boxes_of(x, element::float64, parts.select(-1, 0), world, memory, salt),
                im = boxes_of(x, element::float64, parts.select(-1, 1), world, memory, salt + 1);
  tensors all;
  for (std::size_t r = 0; r < re.size(); ++r) all.push_back(at::complex(re[r], im[r]).to(e));
  return all;
}

/// Operands, parameters and buffers, and gradients of results, of any element.
inline at::Tensor operand_of(const layer_case& c, std::size_t i) {
  return as_numbers_of(tessera::detail::scalar_type_of(c.operands[i].element), value_of_operand(c, i), c.salt + i);
}
inline at::Tensor state_of(const layer_case& c, const std::string& key, const std::vector<index_t>& sizes,
                           at::ScalarType e) {
  return as_numbers_of(e, value_of_state(c, key, sizes), c.salt + 31);
}
inline at::Tensor seed_of_result(const layer_case& c, std::size_t result, const layout& y, at::ScalarType e) {
  const at::Tensor all = value_of_seed(c, result, y);
  return at::isComplexType(e) ? at::complex(all, value_of_seed(c, result + 50, y)).to(e) : all.to(e);
}
/// Complex numbers as the two real tensors that they are.
inline at::Tensor part_of_complex(const at::Tensor& x, bool imaginary) {
  return at::view_as_real(x.resolve_conj()).select(-1, imaginary).contiguous();
}

inline std::string behind_the_number(const std::string& key) { return key.substr(key.find('.') + 1); }

/// The program of a case, without what it gives.
inline std::vector<nn::dynamic_flow> add_to(nn::program& p, const layer_case& c) {
  static const nn::layer_table table;
  std::vector<nn::dynamic_flow> x;
  for (const tensor_value& one : c.operands) x.push_back(p.input(one));
  const auto lists = std::make_shared<file::lists>();
  p.keep(lists);
  file::json node = c.options;
  const family& f = family_of(c);
  node.update(f.node.empty() ? file::json{{"layer", c.layer}} : f.node);
  return table.add(nn::node_options(file::json_cursor(node, "case"), c.operands.at(0).layout.mesh, *lists), x);
}

inline std::vector<tensor<dyn>> called(const nn::dynamic_network& net, const std::vector<tensor<dyn>>& x) {
  switch (x.size()) {
    case 1: return net({x[0]});
    case 2: return net({x[0], x[1]});
    case 3: return net({x[0], x[1], x[2]});
    default: return net({x.at(0), x.at(1), x.at(2), x.at(3)});
  }
}

inline double largest(const at::Tensor& t) {
  return t.numel() == 0 ? 0 : t.abs().nan_to_num(0, 0, 0).max().item<double>();
}

inline double epsilon_of(at::ScalarType t) {
  return t == at::kFloat || t == at::kComplexFloat ? 0x1p-23
         : t == at::kHalf                          ? 0x1p-10
         : t == at::kBFloat16                      ? 0x1p-7
                                                   : 0x1p-52;
}

/// Where boxes do not mean a tensor, as near as their element is: a double run is `exact`; what runs in float make of
/// it says how many roundings there are.
inline std::string apart(const layout& x, const tensors& boxes, const at::Tensor& exact, const tensors& in_float,
                         double computed_in) {
  const layout_oracle m{x};
  values v(m.holders.size());
  at::ScalarType type = at::kDouble;
  for (std::size_t i = 0; i < m.holders.size(); ++i) {
    const at::Tensor& t = boxes[static_cast<std::size_t>(m.holders[i].rank)];
    type = t.scalar_type();
    const auto sizes = sizes_of(x, m.holders[i].holds ? &m.holders[i] : nullptr);
    if (t.sizes().vec() != sizes) return fmt::format("rank {} has other extents", m.holders[i].rank);
    if (m.holders[i].holds) v[i] = values_of(t, false);
  }
  if (exact.sizes().vec() != extents_of(x)) return "the extents are not the serial ones";
  double allowed = 0;
  if (is_real(type)) {
    const double epsilon = std::max(computed_in, epsilon_of(type));
    double roundings = 0;
    for (const at::Tensor& one : in_float) roundings = std::max(roundings, largest(exact - one) / 0x1p-23);
    allowed = epsilon * (4 * roundings + 16 * std::max(1.0, largest(exact)));
  }
  const std::vector<double> wanted = values_of(exact, false);
  return differs(m, v, wanted, type == at::kBool, [&](double found, double want) {
    return found == want || std::abs(found - want) <= allowed || (std::isnan(found) && std::isnan(want));
  });
}

}  // namespace tessera::testing::fuzz
