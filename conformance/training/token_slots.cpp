#include "token_slots.hpp"

namespace conformance::training {

slotted fill_slots(const at::Tensor& chosen, const integers& group_sizes, const slot_form& form) {
  const at::Tensor on_host = chosen.to(at::kCPU, at::kLong).contiguous();
  const std::int64_t* const expert = on_host.data_ptr<std::int64_t>();
  const auto groups = static_cast<index_t>(group_sizes.size());
  integers token;
  integers choice;
  integers slot;
  std::vector<double> kept(static_cast<std::size_t>(form.experts));
  slotted s;
  index_t begin = 0;
  for (index_t g = 0; g < groups; ++g) {
    const index_t end = begin + group_sizes[static_cast<std::size_t>(g)];
    integers filled(static_cast<std::size_t>(form.experts));
    for (index_t j = 0; j < form.choices; ++j)
      for (index_t t = begin; t < end; ++t) {
        const auto e = expert[t * form.choices + j];
        index_t& used = filled[static_cast<std::size_t>(e)];
        if (used == form.slots) {
          ++s.dropped;
          continue;
        }
        token.push_back(t);
        choice.push_back(t * form.choices + j);
        slot.push_back((e * groups + g) * form.slots + used++);
        ++kept[static_cast<std::size_t>(e)];
      }
    begin = end;
  }
  const auto listed = [&](const integers& of) { return at::tensor(of, at::kLong).to(chosen.device()); };
  s.token = listed(token);
  s.choice = listed(choice);
  s.slot = listed(slot);
  s.kept = at::tensor(kept, at::kDouble);
  return s;
}

}  // namespace conformance::training
