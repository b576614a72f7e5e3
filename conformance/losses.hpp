#pragma once
// Losses, element by element and reduced.

#include "layers.hpp"

namespace conformance {

/// A loss with one of its reductions, of which every worker has the value.
inline link loss_on(const layout& x, loss what) {
  link l;
  l.what = what;
  l.plan.add_input(x);
  l.plan.add_output(what.by == nn::reduction::none ? x : one_number(x.mesh));
  return l;
}

inline trial distributed_loss(test_case& c) {
  static const std::map<std::string, loss::kind> known{{"L1", loss::kind::l1},
                                                       {"MSE", loss::kind::squares},
                                                       {"PoissonNLL", loss::kind::poisson},
                                                       {"BCE", loss::kind::entropy},
                                                       {"BCEWithLogits", loss::kind::entropy_of_logits},
                                                       {"KLDiv", loss::kind::divergence}};
  static const std::map<std::string, nn::reduction> ways{{"none", nn::reduction::none},
                                                         {"mean", nn::reduction::mean},
                                                         {"sum", nn::reduction::sum},
                                                         {"batchmean", nn::reduction::batch_mean}};
  const std::string serial = c.given.text("SequentialLoss");
  const auto same = [&](const auto& k) { return serial == fmt::format("torch.nn.{}Loss", k.first); };
  const auto found = std::find_if(known.begin(), known.end(), same);
  if (found == known.end() ||
      c.given.text("DistributedLoss") != fmt::format("distdl.nn.Distributed{}Loss", found->first))
    throw unbuilt(fmt::format("the loss '{}'", serial));
  loss what;
  what.what = found->second;
  if (filling_of(c.given, "y") != filling::uniform) throw unbuilt("another target");
  json reductions = c.given.at("reductions");
  if (c.given.has("extra_for_KLDiv") && what.what == loss::kind::divergence)
    for (const json& more : c.given.at("extra_for_KLDiv")) reductions.push_back(more);
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  std::vector<link> all;
  for (const json& name : reductions) {
    const auto way = ways.find(name.get<std::string>());
    if (way == ways.end()) throw unbuilt(fmt::format("the reduction {}", name.dump()));
    what.by = way->second;
    all.push_back(loss_on(x, what));
  }
  if (all.empty()) throw unbuilt("a loss without reductions");
  trial t = run_layer(c, all[0]);
  for (std::size_t i = 1; i < all.size(); ++i) t.alike.push_back({all[i]});
  t.element = element::float64;
  t.remark = "superset: every worker has the loss";
  return t;
}

}  // namespace conformance
