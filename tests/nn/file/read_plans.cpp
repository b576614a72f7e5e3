#include "tests/support/copied.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/box_reader.hpp>
#include <tessera/nn/file/kept_tensor.hpp>
#include <tessera/nn/file/weights_stream.hpp>

#include <unistd.h>

#include <fstream>
#include <iterator>

// What workers write of a state, and what others read of it, by plan and by counting.

namespace tessera::testing::read_plans {
namespace {

namespace fs = std::filesystem;
using nn::engine::kept_tensor;

/// A mesh of p workers, cut as evenly as it can be: 6 is 2 × 3, 7 is 1 × 7.
mesh_value grid_of(int p) {
  int a = 1;
  for (int d = 2; d * d <= p; ++d)
    if (p % d == 0) a = d;
  mesh_value m;
  m.axes.push({text("rows"), a});
  m.axes.push({text("columns"), p / a});
  return row_major(m);
}

/// A double of a state: its extents, and which of them each axis cuts; -1 for copies.
struct kept {
  std::string key;
  std::vector<index_t> extents;
  int by_rows = -1, by_columns = -1;
  serial_view serial = {};
  std::vector<index_t> serial_sizes = {};

  kept_tensor on(const mesh_value& m) const {
    layout x = copied(m, extents);
    if (by_rows >= 0) x.cut_by(by_rows, 0);
    if (by_columns >= 0) x.cut_by(by_columns, 1);
    kept_tensor t{key, x, element::float64, {}, serial, serial_sizes.empty() ? extents : serial_sizes};
    return t;
  }
};

const std::vector<kept> state{
    {"copies", {5, 3}},
    {"uneven", {11, 7}, 0, 1},
    {"columns", {3, 13}, -1, 1},
    {"rows and copies", {9}, 0},
    {"one behind the other", {17, 2}, 0, 0},
    {"short", {2, 2}, 1, 0},
    {"a number", {}},
    {"queries", {3, 4, 6}, 2, 0, {"qkv", 0, 2, 0, 24}, {24, 6}},
    {"keys", {3, 4, 6}, 2, 0, {"qkv", 0, 2, 12, 24}, {24, 6}},
};

index_t volume_of(const std::vector<index_t>& extents) {
  index_t n = 1;
  for (const index_t e : extents) n *= e;
  return n;
}

/// Adds one to every element of a worker's pieces.
void count(at::Tensor into, const std::vector<nn::engine::serial_piece>& pieces) {
  for (const auto& p : pieces) {
    for (std::size_t d = 0; d < p.begin.size(); ++d)
      into = into.narrow(static_cast<index_t>(d), p.begin[d], p.extents[d]);
    into.add_(1);
  }
}

TEST_CASE("each element of a state is written once and read once by any number of workers", "[law][plan]") {
  for (int p = 1; p <= 8; ++p) {
    const mesh_value m = grid_of(p);
    nn::engine::chosen_copies copies(m);
    std::vector<index_t> bytes(static_cast<std::size_t>(p), 0);
    std::map<std::string, at::Tensor> seen;
    index_t all = 0, largest = 0;
    for (const kept& k : state) {
      const kept_tensor t = k.on(m);
      const layout one = copies.next(t);
      at::Tensor& here =
          seen.try_emplace(k.serial.name != nullptr ? "qkv" : k.key, at::zeros(t.serial_sizes)).first->second;
      for (int r = 0; r < p; ++r) {
        const auto pieces = nn::engine::pieces_of(t, one, r);
        at::Tensor mine = at::zeros(t.serial_sizes);
        for (const auto& piece : pieces) count(mine, {piece});
        here += mine;
        index_t elements = 0;
        for (const auto& piece : pieces) elements += piece.elements();
        CHECK(elements == static_cast<index_t>(mine.sum().item<double>()));
        // A worker that holds a copy holds what it reads, and one without copies reads all that it holds.
        CHECK((elements == 0 || elements == cutting{t.lies}.elements_of(r)));
        bytes[static_cast<std::size_t>(r)] += 8 * elements;
      }
      all += 8 * volume_of(k.extents);
      largest = std::max(largest, 8 * volume_of(k.extents));
    }
    index_t moved = 0;
    for (const index_t b : bytes) moved += b;
    CHECK(moved == all);  // Σ over workers = Σ over tensors of elements · bytes
    for (const auto& [key, times] : seen) CHECK(at::equal(times, at::ones_like(times)));
    CHECK(*std::max_element(bytes.begin(), bytes.end()) <= (all + p - 1) / p + largest);  // they share the work
  }
}

/// The bytes that this thread's calls have read until now, and those of reading that number.
struct bytes_read {
  index_t before = -1;
  index_t of_counting = 0;
};
bytes_read count_bytes() {
  std::ifstream file("/proc/thread-self/io");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(text.starts_with("rchar: "));
  return {std::stoll(text.substr(7)), static_cast<index_t>(text.size())};
}

/// The values of a serial tensor.
at::Tensor values_of(const std::string& key, const std::vector<index_t>& sizes) {
  return global_of(sizes, numbers{std::hash<std::string>{}(key)});
}

/// A checkpoint of p workers, written without any.
nn::engine::checkpoint_index written_by(int p, const fs::path& folder) {
  const mesh_value m = grid_of(p);
  nn::engine::chosen_copies copies(m);
  nn::engine::checkpoint_index index;
  struct file_to_write {
    std::vector<detail::stored_tensor> entries;
    std::vector<at::Tensor> boxes;
  };
  std::vector<file_to_write> files(static_cast<std::size_t>(p));
  std::vector<std::uint64_t> ends(static_cast<std::size_t>(p), 0);
  for (const kept& k : state) {
    const kept_tensor t = k.on(m);
    const layout one = copies.next(t);
    const std::string key = k.serial.name != nullptr ? "qkv" : k.key;
    auto& filed = index.tensors[key];
    filed.type = t.type;
    filed.shape = t.serial_sizes;
    const at::Tensor values = values_of(key, t.serial_sizes);
    for (int r = 0; r < p; ++r)
      for (const auto& piece : nn::engine::pieces_of(t, one, r)) {
        at::Tensor box = values;
        for (std::size_t d = 0; d < piece.begin.size(); ++d)
          box = box.narrow(static_cast<index_t>(d), piece.begin[d], piece.extents[d]);
        auto& file = files[static_cast<std::size_t>(r)];
        const auto at = static_cast<std::size_t>(r);
        file.entries.push_back({0, 0, fmt::format("{}", file.boxes.size()), t.type, piece.extents});
        file.boxes.push_back(box);
        filed.boxes.push_back({at, ends[at], piece.begin, piece.extents});
        ends[at] += static_cast<std::uint64_t>(8 * piece.elements());
      }
  }
  for (std::size_t r = 0; r < files.size(); ++r) {
    const std::string name = fmt::format("{}", r);
    detail::weights_writer file(folder / name, files[r].entries);
    for (const at::Tensor& box : files[r].boxes) file.add(box);
    file.keep();
    index.files.push_back({name, file.data_begin() + ends[r], ""});
    for (auto& [key, t] : index.tensors)
      for (auto& b : t.boxes)
        if (b.file == r) b.byte += file.data_begin();
  }
  return index;
}

TEST_CASE("a worker reads the bytes of its boxes and no others, as counted by the system", "[law]") {
  const fs::path folder = fs::temp_directory_path() / fmt::format("tessera_read_plans_{}", ::getpid());
  fs::create_directories(folder);
  for (int p = 1; p <= 8; ++p) {
    const nn::engine::checkpoint_index index = written_by(p, folder);
    for (int q = 1; q <= 8; ++q) {
      const mesh_value m = grid_of(q);
      nn::engine::chosen_copies copies(m);
      nn::engine::box_reader boxes(folder, index);
      index_t all = 0;
      for (const kept& k : state) {
        const kept_tensor t = k.on(m);
        const layout one = copies.next(t);
        const std::string key = k.serial.name != nullptr ? "qkv" : k.key;
        const at::Tensor values = values_of(key, t.serial_sizes);
        for (int r = 0; r < q; ++r)
          for (const auto& piece : nn::engine::pieces_of(t, one, r)) {
            const at::Tensor into = at::empty(piece.extents, at::kDouble);
            const bytes_read first = count_bytes();
            boxes.read(key, piece.begin, into);
            CHECK(count_bytes().before - first.before - first.of_counting == 8 * piece.elements());
            at::Tensor wanted = values;
            for (std::size_t d = 0; d < piece.begin.size(); ++d)
              wanted = wanted.narrow(static_cast<index_t>(d), piece.begin[d], piece.extents[d]);
            CHECK(at::equal(into, wanted));
            all += 8 * piece.elements();
          }
      }
      index_t bound = 0;
      for (const kept& k : state) bound += 8 * volume_of(k.extents);
      CHECK(all == bound);
      CHECK(boxes.bytes_read() == bound);
    }
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tessera::testing::read_plans
