#include "crew.hpp"
#include "one_layer.hpp"
#include "tests/support/asked_memory.hpp"
#include "tests/support/in_workers.hpp"

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

asked_memory asked_by_worker(const layer_case& c, const nn::program& p, const std::vector<tensors>& boxes,
                             const std::shared_ptr<transport>& carrier) {
  const auto r = static_cast<std::size_t>(carrier->rank());
  const auto team = std::make_shared<team_state>(carrier, c.operands[0].layout.mesh);
  nn::dynamic_network net(team, seed{c.salt}, p);
  net.train(c.training);
  std::vector<layout> lies;
  tensors own;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    lies.push_back(c.operands[i].layout);
    own.push_back(boxes[i][r]);
  }
  return asked_by(net, team, lies, own);
}

/// The program of a case, where it takes what it is given.
std::unique_ptr<nn::program> program_of(const layer_case& c) {
  auto p = std::make_unique<nn::program>();
  try {
    for (const nn::dynamic_flow& y : add_to(*p, c)) p->output(y);
  } catch (const error&) {
    return nullptr;
  }
  return p;
}

/// The case with a dimension of all operands so much longer that boxes are large beside what is of one number.
layer_case grown(const layer_case& c) {
  for (int d = 0; d < c.operands[0].layout.dims.count; ++d) {
    layer_case y = c;
    for (tensor_value& x : y.operands) {
      if (d >= x.layout.dims.count) continue;
      dimension& one = x.layout.dims[d];
      if (one.kind == cover::tiled && one.bounds == nullptr) one.extent *= 32;
    }
    if (legal(y) && program_of(y) != nullptr) return y;
  }
  return c;
}

}  // namespace

bool is_weighed(const std::string& layer) {
  for (const family& f : families())
    if (f.name == layer) return !f.function;
  return false;
}

std::string judge_memory(const layer_case& given, long& refused) {
  const auto no_case = [&] {
    ++refused;
    return std::string();
  };
  const family& f = family_of(given);
  for (const tensor_value& x : given.operands) {
    if (bytes_of(x.element) < 4 && has_cotangent(x.element)) return no_case();  // what is wider inside is not counted
    if (volume_of(x.layout) == 0) return no_case();
  }
  // The host's kernel wants as many features of queries as of values.
  if (given.layer == "attention" &&
      extents_of(given.operands[0].layout).back() != extents_of(given.operands[2].layout).back())
    return no_case();
  // oneDNN's blocked layouts pad few channels
  if (given.layer.starts_with("conv") && given.operands[0].element == element::float32) return no_case();
  if (f.function) return no_case();
  const layer_case c = grown(given);
  const std::unique_ptr<nn::program> p = program_of(c);
  if (p == nullptr) return no_case();
  const int world = world_of(c.operands[0].layout.mesh);
  std::vector<tensors> boxes;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    boxes.push_back(
        is_complex(c.operands[i].element)
            ? boxes_of_any(c.operands[i].layout, operand_of(c, i), world, 0, c.salt + 7)
            : boxes_of(c.operands[i].layout, c.operands[i].element, value_of_operand(c, i), world, 0, c.salt + 7));
  const auto run = in_world(
      world,
      [&](const std::shared_ptr<transport>& carrier) {
        prepare_thread();
        std::optional<asked_memory> all;
        try {
          all = asked_by_worker(c, *p, boxes, carrier);
        } catch (const error&) {
        }
        carrier->synchronise();
        carrier->close();
        return all;
      },
      std::chrono::seconds{20}, {}, in_kept_threads);
  if (!run.well()) return "throws: " + run.errors().substr(0, 800);
  const memory_value counted = peak_memory_of(p->finish().view, std::span<const tensor_value>(c.operands), 1, true);
  asked_memory most;
  for (const auto& one : run.results) {
    if (!*one) return no_case();
    most.forward = std::max(most.forward, (*one)->forward);
    if (c.training) most.training = std::max(most.training, (*one)->training);
  }
  return asked_beyond(most, counted);
}

}  // namespace tessera::testing::fuzz
