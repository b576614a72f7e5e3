#pragma once

#include <tessera/comm/team_state.hpp>

#include <set>

namespace tessera {

namespace engine {

TESSERA_INLINE std::string label_of(const mesh_value& mesh, int rank) {
  coordinates at;
  if (!mesh.locate(rank, at) || mesh.axes.empty()) return fmt::format("worker {}", rank);
  std::string label;
  for (int a = 0; a < mesh.axes.count; ++a) {
    const text& name = mesh.axes[a].name;
    label += fmt::format("{}{} {}", a == 0 ? "" : " ", std::string_view(name.data, static_cast<std::size_t>(name.size)),
                         at[a]);
  }
  return label;
}

TESSERA_INLINE std::string words_of(const mesh_value& mesh) {
  std::string words;
  for (const axis_value& a : mesh.axes)
    words += fmt::format("{}{} {}", words.empty() ? "" : " ",
                         std::string_view(a.name.data, static_cast<std::size_t>(a.name.size)), a.extent);
  return words;
}

}  // namespace engine

namespace detail {

// A layout of nothing over a mesh.
inline layout only(const mesh_value& mesh) {
  check(tessera::engine::check(mesh));
  layout x;
  x.mesh = mesh;
  x.placements.resize(mesh.axes.count);
  return x;
}
inline std::shared_ptr<const shared_layout> usable(std::shared_ptr<const shared_layout> x) {
  check(x->why());
  return x;
}
inline std::vector<int> ranks_by_place(const mesh_value& mesh) {
  std::vector<int> ranks;
  for (int i = 0; i < mesh.size(); ++i) ranks.push_back(mesh.rank(mesh.at(i)));
  return ranks;
}
inline std::vector<int> ranks_that_hold(const layout& x) {
  const engine::cutting of(x);
  std::vector<int> ranks;
  for (int i = 0; i < x.mesh.size(); ++i)
    if (of.holds(x.mesh.at(i))) ranks.push_back(x.mesh.rank(x.mesh.at(i)));
  return ranks;
}

}  // namespace detail

TESSERA_INLINE team_state::team_state(std::shared_ptr<engine::transport> carrier, const mesh_value& mesh,
                                      const char* subject, std::shared_ptr<engine::exchange_record> record)
    : record_(std::move(record)),
      checks(carrier->settings().checks),
      carrier_(std::move(carrier)),
      tensors_(carrier_->traits().tensors),
      exchanges_(*carrier_),
      over_(detail::usable(intern(detail::only(mesh)))),
      everybody_(crew_of(this->mesh())) {
  inside_ = mesh.locate(carrier_->rank(), at_);
  engine::fingerprint f;
  f << over_->layout();
  if (inside_)
    agree(f.value(), subject, [&] { return fmt::format("{} of {}", subject, engine::words_of(this->mesh())); });
}

TESSERA_INLINE std::shared_ptr<team_state> team_state::over(const mesh_value& mesh) const {
  auto made = std::make_shared<team_state>(carrier_, mesh, "making a team", record_);
  made->checks = checks;
  return made;
}

TESSERA_INLINE std::shared_ptr<engine::bound_exchange> team_state::bound(const phase& p, element e,
                                                                         const engine::call_context& context) {
  check_thread();
  return exchanges_.bound(p, e, context);
}

TESSERA_INLINE std::shared_ptr<const engine::shared_layout> team_state::intern(const layout& x) {
  check_thread();
  engine::fingerprint f;
  f << x;
  for (const engine::dimension& d : x.dims) f << static_cast<index_t>(d.tag.hash);
  std::weak_ptr<const engine::shared_layout>& known = shared_layouts_[f.value()];
  if (std::shared_ptr<const engine::shared_layout> shared = known.lock()) return shared;
  const auto fresh = std::make_shared<const engine::shared_layout>(x, rank(), carrier_->size());
  known = fresh;
  if (shared_layouts_.size() > 2 * interned_) {
    std::erase_if(shared_layouts_, [](const auto& p) { return p.second.expired(); });
    interned_ = std::max<std::size_t>(64, shared_layouts_.size());
  }
  return fresh;
}

TESSERA_INLINE engine::crew& team_state::crew_of(const mesh_value& of) { return crew_of(detail::ranks_by_place(of)); }
TESSERA_INLINE engine::crew& team_state::crew_of(const layout& of, const layout& and_of) {
  std::vector<int> ranks = detail::ranks_that_hold(of);
  const std::set<int> before(ranks.begin(), ranks.end());
  for (const int r : detail::ranks_that_hold(and_of))
    if (!before.contains(r)) ranks.push_back(r);
  return crew_of(ranks);
}
TESSERA_INLINE engine::crew& team_state::crew_of(const std::vector<int>& ranks) {
  const auto known = crews_.find(ranks);
  return known != crews_.end() ? known->second : crews_.try_emplace(ranks, *carrier_, ranks).first->second;
}

TESSERA_INLINE std::vector<std::uint64_t> team_state::collect(const engine::crew& workers,
                                                              std::vector<std::uint64_t> mine, const char* subject) {
  check_thread();
  return workers.among().gather(std::move(mine), subject_of(subject), agreeing(subject));
}

TESSERA_INLINE std::vector<std::uint64_t> team_state::agree(const engine::crew& workers, std::uint64_t does,
                                                            std::uint64_t besides,
                                                            const engine::call_context& context) {
  // one for all that is compared, so that those who compare other things meet, and say which
  const char* const purpose = "comparing";
  const std::vector<std::uint64_t> all = collect(workers, {does, besides}, purpose);
  workers.among().throw_if_different(all, 2, agreeing(purpose), [&] { return text_of(context); });
  std::vector<std::uint64_t> each;
  for (std::size_t i = 1; i < all.size(); i += 2) each.push_back(all[i]);
  return each;
}

TESSERA_INLINE std::vector<std::string> team_state::collect_text(const std::string& mine) {
  check_thread();
  return everybody_.among().gather(mine, agreeing("telling the others"));
}

TESSERA_INLINE void team_state::agree_on_extents(const std::vector<int>& dimensions,
                                                 const std::vector<std::uint64_t>& mine) {
  const std::vector<std::uint64_t> all = collect(mine, "comparing extents");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t d = i % mine.size();
    if (all[i] != all[d])
      everybody_.among().disagree(error(refusal{code::extents_disagree, dimensions[d], all[d],
                                                mesh().rank(mesh().at(static_cast<int>(i / mine.size()))), all[i]}));
  }
}

TESSERA_INLINE void team_state::agree_on_copies(const layout& x, std::uint64_t mine,
                                                const engine::call_context& before) {
  const engine::crew& workers = crew_of(x);
  if (!workers.takes_part()) return;
  const std::vector<std::uint64_t> all = collect(workers, {mine}, "comparing copies");
  compare_copies(workers, x, [&](std::size_t i) { return all[i]; }, before);
}

TESSERA_INLINE void print_in_order(const team_handle& team, const std::string& text, std::FILE* to, call_site at) {
  const engine::scoped_context now(*team, {.why = purpose::agreement, .name = "printing in order", .at = at});
  if (!team->inside()) return;
  const std::vector<std::string> all = team->collect_text(text);
  if (team->mesh().number(team->at()) == 0) {
    for (const std::string& one : all)
      if (!one.empty()) fmt::print(to, "{}\n", one);
    std::fflush(to);
  }
  team->collect(0, "printing in order");
}

TESSERA_INLINE void team_state::check_thread() const {
  if (std::this_thread::get_id() != owner_ && !carrier_->ended())
    throw error(refusal{code::other_thread, rank()}, label());
}

}  // namespace tessera
