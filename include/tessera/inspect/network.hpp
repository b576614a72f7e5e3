#pragma once

#include <tessera/inspect/text.hpp>
#include <tessera/operation/network.hpp>

namespace tessera {

/// "12,288": bytes with thousands apart.
inline std::string grouped(index_t n) {
  std::string s = fmt::format("{}", n);
  for (int i = static_cast<int>(s.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3) s.insert(static_cast<std::size_t>(i), ",");
  return s;
}

/// How one layer lies: "blocks(row, col)" a dimension, then the meanings.
inline std::string covers_text(const layout& x) {
  std::string s;
  for (int d = 0; d < x.dims.count; ++d) s += (d == 0 ? "" : " ") + cover_text(x, d);
  for (int a = 0; a < x.roles.count; ++a)
    if (x.roles[a].kind != role::cut && x.roles[a].kind != role::replicate)
      s += fmt::format(" {}({})", role_text(x.roles[a].kind), view_of(x.mesh.axes[a].name));
  return s;
}

/// A network as a table, from its type alone: each layer's result and parameters, how they lie, and the bytes it moves.
template <class Network, class... Bindings>
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
  Network::layers::visit([&]<class On>(int, int number, std::type_identity<On>) {
    const traffic_value t = detail::applied_traffic<On>(bindings...);
    row(number < 0 ? "" : fmt::format("{}", number), On::name, On::value.output, &t);
    for (const parameter_value& w : On::value.parameters) row("", fmt::format("  {}", w.name), w.stored, nullptr);
  });
  const traffic_value all = traffic<Network>(bindings...);
  s += fmt::format("{:<68}{:>12}{:>12}{:>12}\n", "in all, bytes received by all workers", grouped(all.forward.bytes),
                   grouped(all.backward.bytes), grouped(all.forward.lower_bound_bytes + all.backward.lower_bound_bytes));
  s += fmt::format("{:<68}{:>12}{:>12}\n", "by the busiest worker", grouped(all.forward.busiest_worker_bytes),
                   grouped(all.backward.busiest_worker_bytes));
  return s;
}

}  // namespace tessera
