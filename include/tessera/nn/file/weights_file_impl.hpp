#pragma once

#include <tessera/nn/file/throw_on_all.hpp>
#include <tessera/nn/file/weights_file.hpp>
#include <tessera/nn/file/weights_stream.hpp>
#include <tessera/nn/parameter/check_state.hpp>
#include <tessera/tensor/box/content_hash.hpp>
#include <tessera/tensor/verbs.hpp>

#include <optional>

namespace tessera::detail {

/// What lies under keys, under others: each first of a pair becomes its second.
template <class Value>
std::map<std::string, Value> under_other_keys(std::map<std::string, Value> state,
                                              const std::vector<std::pair<std::string, std::string>>& pairs,
                                              const std::string& from) {
  std::map<std::string, Value> moved;
  std::string wrong;
  const auto add = [&](const std::string& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  for (const auto& [old, fresh] : pairs) {
    auto entry = state.extract(old);
    if (entry.empty()) add(old + " is not there, or was renamed before");
    else if (!moved.emplace(fresh, entry.mapped()).second) add(fresh + " is there twice");
  }
  state.merge(moved);
  for (const auto& left : moved) add(left.first + " is there twice");
  if (!wrong.empty()) throw error(refusal{code::nothing_renamed}, from + wrong);
  return state;
}

/// Throws on every worker of the team unless all name the same path and the same keys.
inline void agree_on_file(team_state& team, const std::filesystem::path& path, const nn::renamed& names) {
  std::string all = path.native();
  for (const auto& [foreign, own] : names.keys) all += fmt::format("\n{}\n{}", foreign, own);
  team.agree(text(all.data(), static_cast<int>(all.size())).hash, "comparing paths",
             [&] { return fmt::format("{} {}", team.doing().name, path.native()); });
}

/// Throws on every worker of the team unless the copies of everything kept are alike; names the first that is not.
inline void agree_on_kept(team_state& team, const keyed_state& kept, const std::string& from) {
  std::vector<std::uint64_t> mine;
  for (const auto& [key, parts] : kept)
    for (const nn::engine::state_tensor* p : parts) mine.push_back(content_hash(p->stored().local()));
  const std::vector<std::uint64_t> all = team.collect(mine, "comparing state dicts");
  std::size_t i = 0;
  for (const auto& [key, parts] : kept)
    for (const nn::engine::state_tensor* p : parts) {
      const auto theirs = [&](std::size_t worker) { return all[worker * mine.size() + i]; };
      if (const auto two = team.differing_copies(team.crew_of(team.mesh()), p->stored().layout(), theirs))
        throw error(refusal{code::copies_differ, two->first, two->second}, from + key);
      ++i;
    }
}

/// A whole tensor that the first worker of a team has, and no other one.
inline layout on_first_worker(const team_state& team, const layout& x) {
  layout first;
  first.mesh = team.mesh();
  for (int a = 0; a < first.mesh.axes.count; ++a) first.placements.push(held_on(0));
  for (const dimension& d : x.dims) {
    dimension uncut;
    uncut.extent = d.extent;
    first.dims.push(uncut);
  }
  return first;
}
inline bool is_first(const team_state& team) { return team.inside() && team.mesh().number(team.at()) == 0; }

/// The serial tensor on the first worker of a team, on its host; nothing on the others.
inline at::Tensor gathered_on_first(const team_handle& team,
                                    const std::vector<const nn::engine::state_tensor*>& parts) {
  const bool whole = parts.size() == 1 && parts[0]->serial() == serial_view{};
  at::Tensor serial;
  for (const nn::engine::state_tensor* p : parts) {
    const tensor<dyn> held = tensor_of(team, p->stored().layout(), p->stored().local().detach());
    const at::Tensor part = to(on_first_worker(*team, p->stored().layout()), held).local();
    if (!is_first(*team)) continue;
    if (whole) return part;
    if (!serial.defined()) serial = at::empty(p->serial_sizes(), part.options().device(at::kCPU));
    p->part_of(serial).copy_(part);
  }
  return serial;
}

// Only the first worker holds a whole tensor, and one at a time. If it cannot write, it gathers what is left all the
// same: the others know nothing of it.
TESSERA_INLINE void save(const team_handle& team, const keyed_state& kept, const std::filesystem::path& path,
                         const nn::renamed& names) {
  const at::NoGradGuard no_record;
  std::map<std::string, const std::vector<const nn::engine::state_tensor*>*> tensors;
  for (const auto& [key, parts] : kept) tensors.emplace(key, &parts);
  std::vector<std::pair<std::string, std::string>> foreign;
  for (const auto& [theirs, own] : names.keys) foreign.emplace_back(own, theirs);
  const auto rename = [&] { tensors = under_other_keys(std::move(tensors), foreign, path.string() + ": "); };
  std::optional<weights_writer> writer;
  if (team->inside()) {
    agree_on_file(*team, path, names);
    agree_on_kept(*team, kept, path.string() + ": ");
    throw_on_all(team, code::file_not_written, rename);
    on_first(team, code::file_not_written, [&] {
      std::vector<stored_tensor> entries;
      for (const auto& [key, parts] : tensors)
        entries.push_back(
            {0, 0, key, element_of_scalar((*parts)[0]->stored().local().scalar_type()), (*parts)[0]->serial_sizes()});
      writer.emplace(path, std::move(entries));
    });
  } else {
    rename();
  }
  std::exception_ptr met;
  for (const auto& [key, parts] : tensors) {
    const at::Tensor serial = gathered_on_first(team, *parts);
    try {
      if (writer && !met) writer->add(serial);
    } catch (...) {
      met = std::current_exception();
    }
  }
  if (!team->inside()) return;
  on_first(team, code::file_not_written, [&] {
    if (met) std::rethrow_exception(met);
    writer->keep();
  });
}

// The first worker reads the file, each tensor once to see that all is well and once to hand out its parts.
TESSERA_INLINE void load(const team_handle& team, const keyed_state& kept, const std::filesystem::path& path,
                         const nn::renamed& names) {
  if (!team->inside()) return;  // it holds no part of any
  const at::NoGradGuard no_record;
  agree_on_file(*team, path, names);
  std::optional<weights_reader> reader;
  std::map<std::string, const stored_tensor*> found;
  on_first(team, code::file_missing, [&] {
    reader.emplace(path);
    reader->verify();
    for (const stored_tensor& t : reader->tensors()) found.emplace(t.key, &t);
    found = under_other_keys(std::move(found), names.keys, path.string() + ": ");
    check_state(kept, found, path.string() + ": ",
                [](const stored_tensor* t) { return c10::str(scalar_type_of(t->type), at::IntArrayRef(t->shape)); });
  });
  std::vector<std::uint64_t> has;
  for (const auto& [key, parts] : kept) has.push_back(found.count(key));
  has = team->collect(has, "telling what a file has");
  std::size_t i = 0;
  for (const auto& [key, parts] : kept) {
    if (has[i++] == 0) continue;
    const at::Tensor serial = reader ? reader->read(*found.at(key)) : at::Tensor();
    for (const nn::engine::state_tensor* p : parts) {
      const shared_layout_handle where = team->intern(on_first_worker(*team, p->stored().layout()));
      const at::TensorOptions options = p->stored().local().options().requires_grad(false);
      const at::Tensor whole =
          reader ? p->part_of(serial).to(options.device())
                 : at::empty(at::IntArrayRef(where->extents().begin(), where->extents().end()), options);
      p->stored().local().copy_(to(p->stored().layout(), tensor_of(team, where, whole)).local());
    }
  }
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE state_dict read_state(const std::filesystem::path& path) {
  state_dict state;
  tessera::detail::weights_reader(path).read_all(
      [&](const auto& t, const at::Tensor& values) { state[t.key] = values; });
  return state;
}

TESSERA_INLINE void write_state(const std::filesystem::path& path, const state_dict& state) {
  namespace td = tessera::detail;
  std::vector<td::stored_tensor> entries;
  for (const auto& [key, t] : state) {
    if (!td::readable(t))
      throw error(refusal{code::file_not_written},
                  fmt::format("{}: {} is {}", path.string(), key, td::described_tensor(t)));
    entries.push_back({0, 0, key, td::element_of_scalar(t.scalar_type()), t.sizes().vec()});
  }
  td::weights_writer file(path, std::move(entries));
  for (const auto& [key, t] : state) file.add(t);
  file.keep();
}

}  // namespace tessera::nn
