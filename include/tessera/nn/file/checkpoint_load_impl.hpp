#pragma once

#include <tessera/nn/file/box_reader.hpp>
#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/file/checkpoint_folder.hpp>
#include <tessera/nn/file/throw_on_all.hpp>
#include <tessera/nn/file/weights_stream.hpp>
#include <tessera/tensor/verbs.hpp>

#include <algorithm>

namespace tessera::nn {

namespace engine {

/// Refuses a checkpoint whose entries and tensors are not those of the parts; says all that differs of the first.
inline void check_entries(const checkpoint_index& index, const kept_parts& parts, const team_handle& team,
                          const std::string& from) {
  const known_leaves leaves = leaves_of(parts);
  for (const auto& p : parts) {
    std::string wrong;
    const auto add = [&](const std::string& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
    const auto entry = index.entries.find(p->name());
    if (entry == index.entries.end())
      throw error(refusal{code::other_parameters, 1, 0}, fmt::format("{}: {} is missing", from, p->name()));
    if (entry->second.kind != p->kind())
      throw error(refusal{code::other_parameters, 1, 1},
                  fmt::format("{}: {} is {} and not {}", from, p->name(), entry->second.kind, p->kind()));
    std::set<std::string> wanted;
    for (const kept_tensor& t : p->wanted(entry->second, index, team, leaves)) {
      if (!wanted.insert(t.key).second) continue;
      const auto found = index.tensors.find(t.key);
      const auto said = [](element e, const std::vector<index_t>& shape) {
        return c10::str(tessera::detail::scalar_type_of(e), at::IntArrayRef(shape));
      };
      if (found == index.tensors.end()) {
        if (!t.optional) add(t.key + " is missing");
      } else if (found->second.type != t.type || found->second.shape != t.serial_sizes) {
        add(fmt::format("{} is {} and not {}", t.key, said(found->second.type, found->second.shape),
                        said(t.type, t.serial_sizes)));
      }
    }
    const std::vector<std::string> keys = index.keys_of(p->name());
    for (const std::string& key : keys)
      if (wanted.count(key) == 0) add(key + " is unexpected");
    if (!wrong.empty())
      throw error(
          refusal{code::other_parameters, static_cast<index_t>(wanted.size()), static_cast<index_t>(keys.size())},
          fmt::format("{}: {}", from, wrong));
  }
}

/// Reads tensors: one copy of each element from the files, the others from that. What a worker meets is kept, since the
/// others wait for it.
class checkpoint_reading {
 public:
  checkpoint_reading(team_handle team, std::filesystem::path from, const checkpoint_index& index)
      : team_(std::move(team)), index_(&index), copies_(team_->mesh()), boxes_(std::move(from), index) {}

  void take(const kept_tensor& t) {
    if (index_->tensors.count(t.key) == 0) return;
    const layout one = copies_.next(t);
    const bool reads = tessera::engine::cutting{one}.elements_of(team_->rank()) > 0;
    if (reads) {
      try {
        const bool direct = t.local.is_contiguous() && t.local.device().is_cpu();
        const at::Tensor into = direct ? t.local : at::empty(t.local.sizes(), t.local.options().device(at::kCPU));
        for (const serial_piece& p : pieces_of(t, one, team_->rank())) boxes_.read(t.key, p.begin, p.in(into));
        if (!direct) at::Tensor(t.local).copy_(into);
      } catch (...) {
        met_ = met_ ? met_ : std::current_exception();
      }
    }
    if (has_copies(t.lies)) {
      const shared_layout_handle from = team_->intern(one);
      const at::Tensor source =
          reads ? t.local
                : at::empty(at::IntArrayRef(from->extents().begin(), from->extents().end()), t.local.options());
      const at::Tensor all = to(t.lies, tessera::detail::tensor_of(team_, from, source)).local();
      if (!reads) at::Tensor(t.local).copy_(all);
    }
    t.local.unsafeGetTensorImpl()->bump_version();
  }
  /// Throws on every worker what one of them met.
  void end() {
    tessera::detail::throw_on_all(team_, code::file_missing, [&] {
      if (met_) std::rethrow_exception(met_);
    });
  }
  index_t bytes_read() const { return boxes_.bytes_read(); }

 private:
  team_handle team_;
  const checkpoint_index* index_;
  chosen_copies copies_;
  box_reader boxes_;
  std::exception_ptr met_;
};

/// The checkpoint that a path names, on every worker, and its index.
struct found_index {
  std::filesystem::path path;
  checkpoint_index index;
};
inline found_index found_checkpoint(const team_handle& team, const std::filesystem::path& path) {
  std::string name;
  tessera::detail::on_first(team, code::file_missing, [&] { name = checkpoint_at(path).native(); });
  const std::filesystem::path here = team->collect_text(name).front();
  std::string said;
  tessera::detail::throw_on_all(team, code::file_missing, [&] { said = index_text(here); });
  const auto sums = team->collect(text(said.data(), static_cast<int>(said.size())).hash, "comparing indices");
  if (std::any_of(sums.begin(), sums.end(), [&](auto s) { return s != sums[0]; }))
    throw error(refusal{code::checkpoint_folder_not_shared}, here.string());
  checkpoint_index index;
  tessera::detail::throw_on_all(team, code::file_altered, [&] {
    index = checkpoint_index::read(said, (here / checkpoint_index::name).string());
  });
  return {here, std::move(index)};
}

}  // namespace engine

TESSERA_INLINE index_t checkpoint::load(const std::filesystem::path& folder, call_site at) {
  const team_handle team = this->team();
  if (!team->inside()) return 0;
  const tessera::engine::scoped_context now(*team, {.why = purpose::state, .name = "loading a checkpoint", .at = at});
  const at::NoGradGuard no_record;
  std::string outline = fmt::format("{} {}\n", team->doing().name, folder.native());
  for (const auto& p : parts_) outline += fmt::format("{} {}\n", p->name(), p->kind());
  engine::agree_on_text(*team, outline);
  if (running_) end_saving(team);
  const engine::found_index from = engine::found_checkpoint(team, folder);
  tessera::detail::throw_on_all(team, code::other_parameters,
                                [&] { engine::check_entries(from.index, parts_, team, from.path.string()); });
  tessera::detail::throw_on_all(team, code::file_missing, [&] {
    const auto me = static_cast<std::size_t>(team->mesh().number(team->at()));
    for (std::size_t i = me; i < from.index.files.size(); i += static_cast<std::size_t>(team->size()))
      engine::verify_file(from.path, from.index.files[i]);
  });
  engine::checkpoint_reading reading(team, from.path, from.index);
  const auto entry = [&](const auto& p) -> const engine::filed_entry& { return from.index.entries.at(p->name()); };
  std::set<std::string> small;
  const auto take = [&](bool may_refuse) {
    for (const auto& p : parts_) {
      if (p->may_refuse() == may_refuse) p->begin_loading(entry(p));
      for (const engine::kept_tensor& t : may_refuse ? p->small_tensors(team) : p->tensors(team)) {
        if (small.count(t.key) > 0) continue;
        if (may_refuse) small.insert(t.key);
        reading.take(t);
      }
    }
    reading.end();
    tessera::detail::throw_on_all(team, code::other_parameters, [&] {
      for (const auto& p : parts_)
        if (p->may_refuse() == may_refuse) p->end_loading(entry(p));
    });
  };
  try {
    take(true);
  } catch (...) {
    for (const auto& p : parts_)
      if (p->may_refuse()) p->undo_loading();
    throw;
  }
  take(false);
  for (const auto& p : parts_) p->loaded();
  return reading.bytes_read();
}

namespace engine {

/// Fills a part of a serial tensor that is cut.
inline void read_part(box_reader& boxes, const std::string& key, const cut_along& cut,
                      const std::vector<tessera::engine::interval>& held, const at::Tensor& into) {
  std::vector<index_t> begin(into.sizes().size(), 0);
  index_t at = 0;
  for (const tessera::engine::interval& i : held) {
    begin[static_cast<std::size_t>(cut.dimension)] = i.lo;
    boxes.read(key, begin, into.narrow(cut.dimension, at, i.size()));
    at += i.size();
  }
}

/// Writes files of a checkpoint's tensors, each of the parts of those that lie on a stage.
class parts_export {
 public:
  parts_export(const std::filesystem::path& checkpoint, const checkpoint_index& index, const std::string& entry,
               const model_parts& parts)
      : index_(&index),
        boxes_(checkpoint, index),
        keys_(index.keys_of(entry)),
        behind_(entry.size() + 1),
        parts_(&parts) {
    if (keys_.empty())
      throw error(refusal{code::other_parameters, 1, 0}, fmt::format("{}: {} is missing", checkpoint.string(), entry));
    std::map<std::string, std::vector<index_t>> extents;
    for (const std::string& k : keys_) extents[k.substr(behind_)] = index.tensors.at(k).shape;
    parts.check(extents);
  }

  /// A file that is whole and on the disk, and not yet in its place.
  std::unique_ptr<tessera::detail::weights_writer> written(const std::filesystem::path& path, int part, int stage) {
    std::vector<tessera::detail::stored_tensor> entries;
    std::vector<const std::string*> inside;
    for (const std::string& k : keys_) {
      const std::string name = k.substr(behind_);
      if (parts_->stage_of(name) != stage) continue;
      const filed_tensor& t = index_->tensors.at(k);
      entries.push_back({0, 0, name, t.type, t.shape});
      inside.push_back(&k);
      const cut_along cut = cut_of_tensor(parts_->cuts, name, t.shape.size());
      if (cut.joined == 0) continue;
      index_t& extent = entries.back().shape[static_cast<std::size_t>(cut.dimension)];
      index_t held = 0;
      for (const auto& i : cut_intervals(extent, cut, parts_->tensor, part)) held += i.size();
      extent = held;
    }
    auto file = std::make_unique<tessera::detail::weights_writer>(path, entries);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const filed_tensor& t = index_->tensors.at(*inside[i]);
      const at::Tensor mine = at::empty(entries[i].shape, tessera::detail::scalar_type_of(t.type));
      const cut_along cut = cut_of_tensor(parts_->cuts, entries[i].key, t.shape.size());
      if (cut.joined == 0) boxes_.read(*inside[i], std::vector<index_t>(t.shape.size(), 0), mine);
      else
        read_part(boxes_, *inside[i], cut,
                  cut_intervals(t.shape[static_cast<std::size_t>(cut.dimension)], cut, parts_->tensor, part), mine);
      file->add(mine);
    }
    file->flush();
    return file;
  }

 private:
  const checkpoint_index* index_;
  box_reader boxes_;
  std::vector<std::string> keys_;
  std::size_t behind_;  // the name of the entry in a key
  const model_parts* parts_;
};

}  // namespace engine

// Files take their places when all are written.
TESSERA_INLINE void export_checkpoint(const std::filesystem::path& folder, const std::string& entry,
                                      const std::filesystem::path& path, const model_parts& parts) {
  const std::filesystem::path here = engine::checkpoint_at(folder);
  const auto index = engine::checkpoint_index::read(engine::index_text(here), here.string());
  for (const engine::checkpoint_file& f : index.files) engine::verify_file(here, f);
  engine::parts_export all(here, index, entry, parts);
  std::vector<std::unique_ptr<tessera::detail::weights_writer>> files;
  for (int stage = 0; stage < parts.pipe; ++stage)
    for (int part = 0; part < parts.tensor; ++part)
      files.push_back(all.written(parts.path_of(path, part, stage), part, stage));
  for (const auto& file : files) file->keep();
}

}  // namespace tessera::nn
