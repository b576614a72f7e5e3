#pragma once

#include <tessera/tensor/comparing.hpp>
#include <tessera/tensor/tensor.hpp>

#include <utility>

namespace tessera::detail {

TESSERA_INLINE void compare_entry(const tensor<dyn>& x, const call_site& line, const at::Tensor& whole) {
  team_state& team = *x.team();
  const layout& lies = x.layout();
  crew& workers = team.crew_of(lies.mesh);
  if (!workers.takes_part() || !compares(team.checks, workers.entered.next(line))) return;
  const movement made(lies, lies);
  call_context context{
      .name = whole.defined() ? "taking a tensor" : "making a tensor", .moves = &made, .element = x.type()};
  if (line.line > 0) context.at = line;
  fingerprint f;
  f << lies << static_cast<int>(x.type()) << x.lineage();
  const bool copied = whole.defined() || has_copies(lies);
  const std::vector<std::uint64_t> hashes =
      team.agree(workers, f.value(), copied ? content_hash(whole.defined() ? whole : x.local()) : 0, context);
  if (!whole.defined()) return team.compare_copies(workers, lies, [&](std::size_t i) { return hashes[i]; }, context);
  for (std::size_t i = 1; i < hashes.size(); ++i)
    if (hashes[i] != hashes[0])
      workers.among().disagree(
          error(refusal{code::wholes_differ, workers.ranks()[0], workers.ranks()[i]}, text_of(context)));
}

/// A leaf of autograd's graph that a local operation took; nobody keeps it for that.
struct taken_leaf {
  std::uint64_t lineage;
  shared_layout_handle where;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> local;

  explicit taken_leaf(const tensor<dyn>& x)
      : lineage(x.lineage()), where(x.where()), local(x.local().getIntrusivePtr()) {}
};

/// Those that local operations of one worker took since it last began a backward.
class taken_leaves {
 public:
  void note(const tensor<dyn>& leaf) {
    for (const taken_leaf& one : all_)
      if (one.lineage == leaf.lineage()) return;
    if (all_.size() < most) all_.emplace_back(leaf);
  }

  std::vector<taken_leaf> begin() { return std::exchange(all_, {}); }

 private:
  static constexpr std::size_t most = 1024;
  std::vector<taken_leaf> all_;
};

TESSERA_INLINE void note_leaf(const tensor<dyn>& x) { x.team()->kept<taken_leaves>().note(x); }

TESSERA_INLINE void compare_backward(const tensor<dyn>& loss, const call_site& line) {
  team_state& team = *loss.team();
  crew& workers = team.crew_of(loss.layout().mesh);
  std::vector<taken_leaf> leaves = team.kept<taken_leaves>().begin();
  if (!workers.takes_part() || !compares(team.checks, workers.began_backward.next(line))) return;
  std::erase_if(leaves, [&](const taken_leaf& one) {
    return !has_copies(one.where->layout()) || !(one.where->layout().mesh == loss.layout().mesh);
  });
  fingerprint from, of;
  from << loss.layout() << loss.lineage();
  for (const taken_leaf& one : leaves) of << one.lineage;
  const call_context context{.name = "backward", .at = line};
  const std::vector<std::uint64_t> lists = team.agree(workers, from.value(), of.value(), context);
  for (const std::uint64_t one : lists)
    if (one != lists[0]) return;  // one of them took something for itself
  std::vector<std::uint64_t> mine;
  for (const taken_leaf& one : leaves) {
    const auto local = one.local.lock();
    mine.push_back(local ? content_hash(at::Tensor(local)) : 0);
  }
  if (mine.empty()) return;
  const std::vector<std::uint64_t> theirs = team.collect(workers, mine, "comparing leaves");
  for (std::size_t k = 0; k < mine.size(); ++k)
    team.compare_copies(
        workers, leaves[k].where->layout(), [&](std::size_t i) { return theirs[i * mine.size() + k]; }, context);
}

}  // namespace tessera::detail
