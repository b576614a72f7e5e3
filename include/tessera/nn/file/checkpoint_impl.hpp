#pragma once

#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/file/checkpoint_folder.hpp>
#include <tessera/nn/file/throw_on_all.hpp>
#include <tessera/nn/file/weights_stream.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/plan/fingerprint.hpp>
#include <tessera/tensor/box/content_hash.hpp>

#include <future>
#include <optional>
#include <set>

namespace tessera::nn {

namespace engine {

/// What a checkpoint keeps, of all its parts, and the copy of each tensor that is written.
struct kept_all {
  std::vector<kept_tensor> tensors;
  std::vector<layout> written;
};

/// Asks every part what it keeps; workers that keep other things are told so.
inline kept_all gathered(const team_handle& team, const kept_parts& parts) {
  const auto outline = [&] {
    std::string said;
    for (const auto& p : parts) said += fmt::format("{} {} {}\n", p->name(), p->kind(), words_of(p->values()));
    return said;
  };
  tessera::detail::throw_on_all(team, code::file_not_written, [&] {
    const known_leaves leaves = leaves_of(parts);
    for (const auto& p : parts) p->prepare(leaves);
  });
  agree_on_text(*team, outline());
  for (const auto& p : parts) p->gather(team);
  kept_all all;
  std::string said;
  tessera::detail::throw_on_all(team, code::file_not_written, [&] {
    chosen_copies copies(team->mesh());
    for (const auto& p : parts)
      for (kept_tensor& t : p->tensors(team)) {
        tessera::engine::fingerprint lies;
        lies << t.lies;
        said += fmt::format("{} {} {:016x}\n", t.key, static_cast<int>(t.type), lies.value());
        all.written.push_back(copies.next(t));
        all.tensors.push_back(std::move(t));
      }
  });
  agree_on_text(*team, said);
  return all;
}

/// Throws on every worker of the team unless copies that are to be alike are.
inline void agree_on_kept_tensors(team_state& team, const std::vector<kept_tensor>& tensors) {
  const auto compared = [](const kept_tensor& t) { return t.alike && has_copies(t.lies); };
  std::vector<std::uint64_t> mine;
  for (const kept_tensor& t : tensors)
    if (compared(t)) mine.push_back(tessera::detail::content_hash(t.local));
  const std::vector<std::uint64_t> all = team.collect(mine, "comparing copies of a checkpoint");
  std::size_t i = 0;
  for (const kept_tensor& t : tensors) {
    if (!compared(t)) continue;
    const auto theirs = [&](std::size_t worker) { return all[worker * mine.size() + i]; };
    if (const auto two = team.differing_copies(team.crew_of(team.mesh()), t.lies, theirs))
      throw error(refusal{code::copies_differ, two->first, two->second}, t.key);
    ++i;
  }
}

/// What a worker's file came to: nothing where it has no box.
struct written_file {
  std::uint64_t data_begin = 0, bytes = 0, sum = 0;
};

/// A box that a worker writes, as a file names it.
struct box_to_write {
  tessera::detail::stored_tensor entry;
  at::Tensor values;
};

inline std::string file_of(std::size_t worker) { return fmt::format("worker_{}.safetensors", worker); }

/// The boxes that a worker writes, in the order in which they lie in its file.
inline std::vector<box_to_write> boxes_of(const kept_all& kept, int rank) {
  std::vector<box_to_write> all;
  for (std::size_t i = 0; i < kept.tensors.size(); ++i) {
    const kept_tensor& t = kept.tensors[i];
    const at::Tensor local = t.local.is_contiguous() ? t.local : t.local.contiguous();
    for (const serial_piece& p : pieces_of(t, kept.written[i], rank)) {
      std::string name = t.key;
      if (p.extents != t.serial_sizes)
        for (std::size_t d = 0; d < p.begin.size(); ++d) name += fmt::format("{}{}", d == 0 ? "@" : ",", p.begin[d]);
      all.push_back({{0, 0, name, t.type, p.extents}, p.in(local)});
    }
  }
  return all;
}

inline written_file write_boxes(const std::filesystem::path& path, const std::vector<box_to_write>& boxes) {
  if (boxes.empty()) return {};
  std::vector<tessera::detail::stored_tensor> entries;
  for (const box_to_write& b : boxes) entries.push_back(b.entry);
  tessera::detail::weights_writer file(path, std::move(entries));
  written_file came{file.data_begin(), file.data_begin(), 0};
  for (const box_to_write& b : boxes) {
    file.add(b.values);
    came.bytes += b.values.nbytes();
  }
  file.keep();
  came.sum = std::stoull(file.sum(), nullptr, 16);
  return came;
}

/// Adds to an index where the boxes of all workers lie, of what each of them wrote.
inline void add_boxes(const team_state& team, const kept_all& kept, const std::vector<std::uint64_t>& written,
                      checkpoint_index& index) {
  for (const kept_tensor& t : kept.tensors) index.tensors[t.key] = {t.type, t.serial_sizes, {}};
  for (std::size_t w = 0; w < written.size() / 3; ++w) {
    std::uint64_t byte = written[3 * w];
    if (written[3 * w + 1] == 0) continue;
    for (std::size_t i = 0; i < kept.tensors.size(); ++i) {
      const kept_tensor& t = kept.tensors[i];
      const int rank = team.mesh().rank(team.mesh().at(static_cast<int>(w)));
      for (const serial_piece& p : pieces_of(t, kept.written[i], rank)) {
        index.tensors[t.key].boxes.push_back({index.files.size(), byte, p.begin, p.extents});
        byte += static_cast<std::uint64_t>(p.elements() * bytes_of(t.type));
      }
    }
    index.files.push_back({file_of(w), written[3 * w + 1], fmt::format("{:016x}", written[3 * w + 2])});
  }
}

}  // namespace engine

/// A checkpoint whose files are written, and whose index is not yet.
struct checkpoint::running_save {
  engine::checkpoint_folder folder;
  std::int64_t number = 0;
  int keep = 0;
  engine::kept_all kept;           ///< without their values
  engine::checkpoint_index index;  ///< without boxes
  std::future<engine::written_file> file;
};

TESSERA_INLINE checkpoint::checkpoint(std::initializer_list<checkpoint_entry> entries) {
  std::set<std::string> names;
  for (const checkpoint_entry& e : entries) {
    const std::string& name = e.part_->name();
    if (name.empty() || name.find('/') != name.npos || !names.insert(name).second)
      throw error(refusal{code::checkpoint_entry_named}, name);
    parts_.push_back(e.part_);
  }
}

TESSERA_INLINE checkpoint::~checkpoint() = default;
TESSERA_INLINE checkpoint::checkpoint(checkpoint&&) noexcept = default;
TESSERA_INLINE checkpoint& checkpoint::operator=(checkpoint&&) noexcept = default;

TESSERA_INLINE team_handle checkpoint::team() const {
  for (const auto& p : parts_)
    if (team_handle speaks = p->team()) return speaks;
  throw error(refusal{code::checkpoint_entry_named}, "none has a team");
}

TESSERA_INLINE void checkpoint::save(const std::filesystem::path& folder, const checkpoint_options& options,
                                     call_site at) {
  const team_handle team = this->team();
  if (!team->inside()) return;
  const tessera::engine::scoped_context now(*team, {.why = purpose::state, .name = "saving a checkpoint", .at = at});
  const at::NoGradGuard no_record;
  engine::agree_on_text(
      *team, fmt::format("{} {} {} {}", team->doing().name, folder.native(), options.keep, options.background));
  if (running_) end_saving(team);
  begin_saving(team, folder, options);
  if (!options.background) end_saving(team);
}

TESSERA_INLINE void checkpoint::finish(call_site at) {
  if (!running_) return;
  const team_handle team = this->team();
  const tessera::engine::scoped_context now(*team, {.why = purpose::state, .name = "ending a save", .at = at});
  end_saving(team);
}

// Behind this nothing is read of what is kept but by the future, which reads copies where it runs beside the program.
TESSERA_INLINE void checkpoint::begin_saving(const team_handle& team, const std::filesystem::path& folder,
                                             const checkpoint_options& options) {
  auto next = std::make_unique<running_save>(
      running_save{engine::checkpoint_folder(folder), 0, options.keep, engine::gathered(team, parts_), {}, {}});
  engine::agree_on_kept_tensors(*team, next->kept.tensors);
  std::int64_t number = 0;
  tessera::detail::on_first(team, code::file_not_written, [&] { number = next->folder.begin_next(); });
  next->number =
      static_cast<std::int64_t>(team->collect(static_cast<std::uint64_t>(number), "numbering a checkpoint").front());
  const std::size_t me = static_cast<std::size_t>(team->mesh().number(team->at()));
  std::vector<engine::box_to_write> boxes = engine::boxes_of(next->kept, team->rank());
  if (options.background)
    for (engine::box_to_write& b : boxes) b.values = b.values.to(at::kCPU, b.values.scalar_type(), false, true);
  next->file = std::async(options.background ? std::launch::async : std::launch::deferred,
                          [path = next->folder.at(next->number) / engine::file_of(me), all = std::move(boxes)] {
                            const at::NoGradGuard no_graph;
                            return engine::write_boxes(path, all);
                          });
  for (const auto& p : parts_) next->index.entries[p->name()] = {p->kind(), p->values()};
  for (engine::kept_tensor& t : next->kept.tensors) t.local.reset();
  running_ = std::move(next);
}

TESSERA_INLINE void checkpoint::end_saving(const team_handle& team) {
  const std::unique_ptr<running_save> now = std::move(running_);
  const std::filesystem::path here = now->folder.at(now->number);
  try {
    engine::written_file mine;
    tessera::detail::throw_on_all(team, code::file_not_written, [&] { mine = now->file.get(); });
    const std::vector<std::uint64_t> all =
        team->collect({mine.data_begin, mine.bytes, mine.sum}, "telling what was written");
    tessera::detail::on_first(team, code::file_not_written, [&] {
      engine::add_boxes(*team, now->kept, all, now->index);
      for (const engine::checkpoint_file& f : now->index.files) {
        std::error_code none;
        if (std::filesystem::file_size(here / f.name, none) != f.bytes || none)
          throw error(refusal{code::checkpoint_folder_not_shared}, (here / f.name).string());
      }
      write_whole(here / engine::checkpoint_index::name, now->index.write());
    });
  } catch (...) {
    if (team->mesh().number(team->at()) == 0) now->folder.abandon(now->number);
    throw;
  }
  tessera::detail::on_first(team, code::file_not_written,
                            [&] { now->folder.remove_older(now->number, now->keep > 0 ? now->keep - 1 : -1); });
}

}  // namespace tessera::nn
