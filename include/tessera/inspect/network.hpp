#pragma once

#include <tessera/inspect/json.hpp>
#include <tessera/inspect/network_rows.hpp>

namespace tessera {

namespace engine {

/// "12,288": bytes with thousands apart.
inline std::string grouped(index_t n) {
  std::string s = fmt::format("{}", n);
  for (int i = static_cast<int>(s.size()) - 3; i > (n < 0 ? 1 : 0); i -= 3) s.insert(static_cast<std::size_t>(i), ",");
  return s;
}

}  // namespace engine

/// A network as a table, from its type alone: for each node its operands, results, layouts and parameters, its traffic
/// and the bytes alive meanwhile. The last column has the multiply-adds of all workers forward. Marks show lines across
/// which a value that is read later stays alive.
template <class Network, class... Bindings>
std::string network_table(const Bindings&... bindings) {
  const engine::network_rows<Network> all(bindings...);
  const bool chain = all.is_chain();
  const engine::lanes drawn = all.drawn();
  std::size_t names = 13, reads = 0, shapes = 10, covers = 24;
  for (const engine::network_row& r : all.rows) {
    names = std::max(names, r.name.size() + r.path.size() + (r.path.empty() ? 2 : 3));
    if (!chain) reads = std::max(reads, all.reads(r).size() + 2);
    for (const layout& x : r.lies) covers = std::max(covers, engine::covers_text(x).size() + 2);
    for (const layout& x : r.lies) shapes = std::max(shapes, engine::shape_text(x).size() + 2);
  }
  std::string s;
  const auto line = [&](const std::string& number, const std::string& marks, const std::string& name,
                        const std::string& read, const std::string& shape, const std::string& lies,
                        const std::vector<std::string>& bytes) {
    std::string row = chain ? "" : fmt::format("{:>3} {:<{}}", number, marks, 2 * drawn.count + 1);
    row += fmt::format("{:<{}}{:<{}}{:<{}}{:<{}}", name, names, read, reads, shape, shapes, lies, covers);
    for (const std::string& b : bytes) row += fmt::format("{:>12}", b);
    s += row.substr(0, row.find_last_not_of(' ') + 1) + '\n';
  };
  const auto marks = [&](std::size_t r, bool between) {
    std::string m(static_cast<std::size_t>(2 * drawn.count), ' ');
    for (const engine::lanes::strand& t : drawn.strands) {
      const bool runs =
          t.from < static_cast<int>(r) ? static_cast<int>(r) < t.to : between && t.from == static_cast<int>(r);
      if (runs) m[static_cast<std::size_t>(2 * t.lane)] = '|';
    }
    if (!between) m[static_cast<std::size_t>(2 * drawn.row_lane[r])] = '*';
    return m;
  };
  line("", "", "layer", chain ? "" : "reads", "shape", "lies",
       {"forward B", "backward B", "lower bound", "memory B", "mult-adds"});
  for (std::size_t r = 0; r < all.rows.size(); ++r) {
    const engine::network_row& row = all.rows[r];
    if (row.is == engine::network_row::kind::output && chain) continue;
    const std::string number = row.is == engine::network_row::kind::node ? all.reference(static_cast<int>(r)) : "";
    std::vector<std::string> bytes;
    if (row.is == engine::network_row::kind::node)
      bytes = {engine::grouped(row.traffic.forward.bytes), engine::grouped(row.traffic.backward.bytes),
               engine::grouped(row.traffic.forward.lower_bound_bytes + row.traffic.backward.lower_bound_bytes),
               engine::grouped(std::max(row.lives.forward, row.lives.backward)),
               engine::grouped(row.arithmetic.forward.total)};
    const std::string name = row.path.empty() ? row.name : fmt::format("{} {}", row.path, row.name);
    const bool gives = !row.lies.empty();
    line(number, marks(r, false), name, chain ? "" : all.reads(row), gives ? engine::shape_text(row.lies[0]) : "",
         gives ? engine::covers_text(row.lies[0]) : "", bytes);
    for (std::size_t k = 1; k < row.lies.size(); ++k)
      line("", marks(r, true), "  and", "", engine::shape_text(row.lies[k]), engine::covers_text(row.lies[k]), {});
    for (int i = 0; i < row.plan.parameters(); ++i)
      line("", marks(r, true), fmt::format("  {}", row.plan.parameter(i).name), "",
           engine::shape_text(row.plan.stored(i)), engine::covers_text(row.plan.stored(i)), {});
  }
  const auto sum = [&](const std::string& label, const std::vector<std::string>& bytes) {
    const std::size_t before =
        names + reads + shapes + covers + (chain ? 0 : static_cast<std::size_t>(2 * drawn.count + 5));
    s += fmt::format("{:<{}}", label, before);
    for (const std::string& b : bytes) s += fmt::format("{:>12}", b);
    s += '\n';
  };
  const engine::traffic_value& t = all.traffic;
  sum("in all, bytes received by all workers",
      {engine::grouped(t.forward.bytes), engine::grouped(t.backward.bytes),
       engine::grouped(t.forward.lower_bound_bytes + t.backward.lower_bound_bytes)});
  sum("by the busiest worker",
      {engine::grouped(t.forward.busiest_worker_bytes), engine::grouped(t.backward.busiest_worker_bytes)});
  if (t.gathered.messages > 0)
    sum("of held parameters, gathered once and reduced once",
        {engine::grouped(t.gathered.bytes), engine::grouped(t.reduced.bytes),
         engine::grouped(t.gathered.lower_bound_bytes + t.reduced.lower_bound_bytes)});
  sum("memory of a worker: forward alone, with backward, parameters",
      {engine::grouped(all.memory.forward), engine::grouped(all.memory.training),
       engine::grouped(all.memory.parameters)});
  const engine::arithmetic_value& a = all.arithmetic;
  sum("multiply-adds of all workers: forward, backward",
      {engine::grouped(a.forward.total), engine::grouped(a.backward.total)});
  sum("by the busiest worker", {engine::grouped(a.forward.busiest_worker), engine::grouped(a.backward.busiest_worker)});
  if (all.memory.held > 0) sum("what is held, with its gradients", {engine::grouped(all.memory.held)});
  if (all.memory.travelling > 0) sum("bundles of gradients on their way", {engine::grouped(all.memory.travelling)});
  return s;
}

/// The same as JSON: for each layer its path, operands, results, parameters, traffic and multiply-adds in both
/// directions and memory meanwhile; then the sums. An operand is named by its node's place among the layers, or by an
/// input's name.
///
/// Extents are numbers, or names where nothing binds them; traffic needs all of them.
template <class Network, class... Bindings>
std::string network_json(const Bindings&... bindings) {
  const engine::network_rows<Network> all(bindings...);
  const auto lies = [](const layout& x) {
    std::string shape;
    for (const engine::dimension& d : x.dims)
      shape += (shape.empty() ? "" : ", ") +
               (d.extent == dynamic ? engine::json_string(engine::extent_text(d)) : engine::extent_text(d));
    return fmt::format("\"shape\": [{}], \"lies\": {}", shape, engine::json_string(engine::covers_text(x)));
  };
  const auto both = [](const engine::traffic_value& t) {
    const auto direction_json = [](const engine::direction& d) {
      return fmt::format("{{\"bytes\": {}, \"busiest_worker_bytes\": {}, \"lower_bound_bytes\": {}, \"messages\": {}}}",
                         d.bytes, d.busiest_worker_bytes, d.lower_bound_bytes, d.messages);
    };
    const std::string held =
        t.gathered.messages > 0
            ? fmt::format(", \"gathered\": {}, \"reduced\": {}", direction_json(t.gathered), direction_json(t.reduced))
            : "";
    return fmt::format("\"forward\": {}, \"backward\": {}{}", direction_json(t.forward), direction_json(t.backward),
                       held);
  };
  const auto arithmetic_json = [](const engine::arithmetic_value& a) {
    const auto one = [](const engine::operations& o) {
      return fmt::format("{{\"total\": {}, \"busiest_worker\": {}, \"elements\": {}}}", o.total, o.busiest_worker,
                         o.elements);
    };
    return fmt::format("\"multiply_adds\": {{\"forward\": {}, \"backward\": {}}}", one(a.forward), one(a.backward));
  };
  const auto listed = [](const auto& of, const auto& text) {
    std::string s;
    for (const auto& one : of) s += (s.empty() ? "" : ", ") + text(one);
    return s;
  };
  const auto reference = [&](int row) {
    const bool node = all.rows[static_cast<std::size_t>(row)].is == engine::network_row::kind::node;
    return node ? all.reference(row) : engine::json_string(all.reference(row));
  };
  std::string inputs, layers, outputs;
  for (const engine::network_row& r : all.rows) {
    if (r.is == engine::network_row::kind::input)
      inputs += fmt::format("{}{{{}}}", inputs.empty() ? "" : ", ", lies(r.lies[0]));
    if (r.is == engine::network_row::kind::output) outputs += (outputs.empty() ? "" : ", ") + reference(r.reads[0]);
    if (r.is != engine::network_row::kind::node) continue;
    std::string parameters;
    for (int i = 0; i < r.plan.parameters(); ++i)
      parameters += fmt::format("{}{{\"name\": {}, {}}}", parameters.empty() ? "" : ", ",
                                engine::json_string(r.plan.parameter(i).name), lies(r.plan.stored(i)));
    layers += fmt::format(
        "{}{{\"path\": {}, \"layer\": {}, \"reads\": [{}], \"results\": [{}], \"parameters\": [{}], {}, {}, "
        "\"memory\": {{\"forward\": {}, \"backward\": {}}}}}",
        layers.empty() ? "" : ", ", engine::json_string(r.path), engine::json_string(r.name),
        listed(r.reads, reference), listed(r.lies, [&](const layout& x) { return "{" + lies(x) + "}"; }), parameters,
        both(r.traffic), arithmetic_json(r.arithmetic), r.lives.forward, r.lives.backward);
  }
  return fmt::format(
      "{{\"mesh\": {}, \"inputs\": [{}], \"layers\": [{}], \"outputs\": [{}], {}, {}, \"memory\": {{\"forward\": {}, "
      "\"training\": {}, \"parameters\": {}, \"held\": {}, \"travelling\": {}}}}}",
      engine::json_string(text_of(all.rows[0].lies[0].mesh)), inputs, layers, outputs, both(all.traffic),
      arithmetic_json(all.arithmetic), all.memory.forward, all.memory.training, all.memory.parameters, all.memory.held,
      all.memory.travelling);
}

}  // namespace tessera
