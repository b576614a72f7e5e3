#include "serial_model.hpp"

#include "linear_parts.hpp"

#include <tessera/operation/layer/embedding.hpp>

namespace conformance::training {

serial_layer read_layer(const json& said) {
  serial_layer l;
  for (const auto& [name, value] : said.items()) {
    if (name == "path") l.path = value.get<std::string>();
    else if (name == "linear" || name == "embedding") l.extents = value.get<integers>();
    else if (name == "padding_idx") l.rows.padding = value.get<index_t>();
    else if (name == "scale_grad_by_freq") l.rows.by_frequency = value.get<bool>();
    else if (name == "tensors")
      for (const auto& [key, tensor] : value.items()) l.tensors.emplace(key, tensor);
    else if (name == "cut") l.cut = value.get<std::string>();
    else if (name == "bias") l.bias = value.get<bool>();
    else if (name != "kind") throw unbuilt(fmt::format("'{}' of a layer", name));
  }
  l.is_table = said.contains("embedding");
  return l;
}

std::map<std::string, layout> lying_cut(const serial_layer& l, const std::string& cut, const mesh_value& m) {
  const int model = m.find(kept_name("model"));
  if (model < 0) throw unbuilt("a world without the axis model");
  const auto alike = [&](const integers& extents) {
    layout x = whole(m, extents);
    for (engine::axis_placement& r : x.placements) r = {placement::invariant};
    return x;
  };
  if (l.is_table) {
    lookup what = l.rows;
    what.rows = l.extents.at(0);
    what.features = l.extents.at(1);
    if (cut == "vocabulary") what.cut_in.push(m.axes[model].name);
    else if (cut == "features") what.cut_out.push(m.axes[model].name);
    else if (cut != "none") throw unbuilt(fmt::format("a table cut '{}'", cut));
    const layer_plan p = plan_of(what, {alike({1}), element::int64});
    check(p.why);
    return {{"weight", p.stored(0)}};
  }
  linear_tensors lie{alike({1, l.extents.at(0)}), alike({l.extents.at(1), l.extents.at(0)}), {}, {}};
  if (l.bias) lie.bias = alike({l.extents.at(1)});
  if (cut == "out" || cut == "in") lie.weight.cut_by(cut == "out" ? 0 : 1, model);
  else if (cut != "none") throw unbuilt(fmt::format("a linear layer cut '{}'", cut));
  if (cut == "out" && lie.bias) lie.bias->cut_by(0, model);
  if (cut == "in") lie.y = alike({1, l.extents.at(1)});
  const link made = linear_link(lie);
  std::map<std::string, layout> all{{"weight", made.plan.stored(0)}};
  if (lie.bias) all["bias"] = made.plan.stored(1);
  return all;
}

}  // namespace conformance::training
