#pragma once

#include <tessera/inspect/json.hpp>
#include <tessera/inspect/text.hpp>
#include <tessera/operation/network.hpp>

namespace tessera {

/// "12,288": bytes with thousands apart.
inline std::string grouped(index_t n) {
  std::string s = fmt::format("{}", n);
  for (int i = static_cast<int>(s.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3) s.insert(static_cast<std::size_t>(i), ",");
  return s;
}

/// A layer of a network for given values of its dynamic extents: what it is, how its result lies and what it moves.
struct layer_row {
  const char* name;
  int number;  ///< in the serial network, or −1
  layer_plan plan;
  traffic_value traffic;
};
template <class Network, class... Bindings>
std::vector<layer_row> layer_rows(const Bindings&... bindings) {
  std::vector<layer_row> rows;
  const detail::bound_extents known = detail::extents_bound(bindings...);
  for (const auto& node : Network::program) {
    const layer_plan p = node.what->plan();
    rows.push_back({node.what->name, node.number, p, detail::bound_traffic(p, node.what->elements, known)});
  }
  return rows;
}

/// A network as a table, from its type alone: each layer's result and parameters, how they lie, and the bytes it moves.
template<class Network, class... Bindings>
std::string network_table(const Bindings&... bindings) {
  std::string s = fmt::format("{:<3}{:<13}{:<14}{:<38}{:>12}{:>12}{:>12}\n", "", "layer", "shape", "lies", "forward B",
                              "backward B", "lower bound");
  const auto row = [&](std::string number, std::string name, const layout& x, const traffic_value* t) {
    s += fmt::format("{:<3}{:<13}{:<14}{:<38}", number, name, shape_text(x), covers_text(x));
    if (t != nullptr)
      s += fmt::format("{:>12}{:>12}{:>12}", grouped(t->forward.bytes), grouped(t->backward.bytes),
                       grouped(t->forward.lower_bound_bytes + t->backward.lower_bound_bytes));
    s += '\n';
  };
  row("", "input", value_of<typename Network::input>.layout, nullptr);
  for (const layer_row& l : layer_rows<Network>(bindings...)) {
    row(l.number < 0 ? "" : fmt::format("{}", l.number), l.name, l.plan.output(), &l.traffic);
    for (int i = 0; i < l.plan.parameters(); ++i) row("", fmt::format("  {}", l.plan.parameter(i).name), l.plan.stored(i), nullptr);
  }
  const traffic_value all = traffic<Network>(bindings...);
  s += fmt::format("{:<68}{:>12}{:>12}{:>12}\n", "in all, bytes received by all workers", grouped(all.forward.bytes),
                   grouped(all.backward.bytes), grouped(all.forward.lower_bound_bytes + all.backward.lower_bound_bytes));
  s += fmt::format("{:<68}{:>12}{:>12}\n", "by the busiest worker", grouped(all.forward.busiest_worker_bytes),
                   grouped(all.backward.busiest_worker_bytes));
  return s;
}

/// The same as JSON: for each layer its result, its parameters and its traffic in both directions; then the sum.
///
/// Extents are numbers, or names where nothing binds them; traffic needs all of them.
template<class Network, class... Bindings>
std::string network_json(const Bindings&... bindings) {
  const auto lies = [&](const layout& given) {
    const layout x = detail::bound_all(given, bindings...);
    std::string shape;
    for (const dimension& d : x.dims)
      shape += (shape.empty() ? "" : ", ") + (d.extent == dynamic ? json_string(extent_text(d)) : extent_text(d));
    return fmt::format("\"shape\": [{}], \"lies\": {}", shape, json_string(covers_text(x)));
  };
  const auto both = [](const traffic_value& t) {
    const auto way = [](const direction& d) {
      return fmt::format("{{\"bytes\": {}, \"busiest_worker_bytes\": {}, \"lower_bound_bytes\": {}, \"messages\": {}}}", d.bytes,
                         d.busiest_worker_bytes, d.lower_bound_bytes, d.messages);
    };
    return fmt::format("\"forward\": {}, \"backward\": {}", way(t.forward), way(t.backward));
  };
  std::string layers;
  for (const layer_row& l : layer_rows<Network>(bindings...)) {
    std::string parameters;
    for (int i = 0; i < l.plan.parameters(); ++i)
      parameters += fmt::format("{}{{\"name\": {}, {}}}", parameters.empty() ? "" : ", ", json_string(l.plan.parameter(i).name), lies(l.plan.stored(i)));
    layers += fmt::format("{}{{\"number\": {}, \"layer\": {}, {}, \"parameters\": [{}], {}}}", layers.empty() ? "" : ", ",
                          l.number < 0 ? "null" : fmt::format("{}", l.number), json_string(l.name), lies(l.plan.output()),
                          parameters, both(l.traffic));
  }
  return fmt::format("{{\"mesh\": {}, \"input\": {{{}}}, \"layers\": [{}], {}}}",
                     json_string(text_of(value_of<typename Network::input>.layout.mesh)),
                     lies(value_of<typename Network::input>.layout), layers, both(traffic<Network>(bindings...)));
}

}  // namespace tessera
