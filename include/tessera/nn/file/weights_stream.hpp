#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/nn/file/atomic_file.hpp>
#include <tessera/nn/file/file_sum.hpp>
#include <tessera/tensor/box/element_type.hpp>

#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace tessera::detail {

inline const char* file_type(element e) {
  constexpr const char* names[]{"F64", "F32",  "I64", "I32",  "I16", "I8",  "U8", "BOOL",
                                "F16", "BF16", "C64", "C128", "U16", "U32", "U64"};
  return names[static_cast<int>(e)];
}

/// The header of a safetensors file. What goes deeper than one, lists more than a shape, or names something twice, is
/// none.
inline nlohmann::json header_of(const std::string& text) {
  using nlohmann::json;
  bool sound = text.starts_with('{') && text.find('\0') == text.npos;
  int listed = 0;
  std::set<std::string> keys[4];  // of the object that is open at each depth
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start && depth < 3) keys[depth + 1].clear();
    listed = event == json::parse_event_t::value ? listed + 1 : 0;
    sound = sound && depth <= 3 && listed <= max_dimensions + 1;
    if (sound && event == json::parse_event_t::key) sound = keys[depth].insert(parsed.get<std::string>()).second;
    return sound;
  };
  json header = json::parse(text, watch, false);
  sound = sound && header.is_object();
  if (sound && header.contains("__metadata__")) {
    const json& words = header["__metadata__"];
    sound = words.is_object() &&
            std::all_of(words.begin(), words.end(), [](const json& value) { return value.is_string(); });
  }
  return sound ? header : json();
}

/// A tensor of a weights file: its place in the data, and what it is.
struct stored_tensor {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string key;
  element type = element::float32;
  std::vector<index_t> shape;
};

/// Reads an entry of the header; refuses one whose shape does not fill its place.
inline stored_tensor stored_tensor_of(const std::string& key, const nlohmann::json& entry) {
  const auto require = [&](bool holds) {
    tessera::engine::check(holds ? refusal{} : refusal{code::file_altered}, key);
  };
  const auto is_list = [&](const char* name) {
    return entry.contains(name) && entry[name].is_array() &&
           std::all_of(entry[name].begin(), entry[name].end(), [](const auto& n) { return n.is_number_unsigned(); });
  };
  require(entry.is_object() && entry.size() == 3 && is_list("shape") && is_list("data_offsets") &&
          entry["data_offsets"].size() == 2 && entry.contains("dtype") && entry["dtype"].is_string() &&
          entry["shape"].size() <= max_dimensions);
  stored_tensor t{entry["data_offsets"][0], entry["data_offsets"][1], key, {}, {}};
  const std::string type = entry["dtype"];
  int e = 0;
  while (e < number_of_elements && type != file_type(static_cast<element>(e))) ++e;
  if (e == number_of_elements) throw error(refusal{code::file_of_other_elements}, key + " is " + type);
  t.type = static_cast<element>(e);
  index_t bytes = bytes_of(t.type);
  bool empty = false;
  for (const auto& n : entry["shape"]) {
    const auto extent = n.get<std::uint64_t>();
    require(extent <= static_cast<std::uint64_t>(INT64_MAX) &&
            !__builtin_mul_overflow(bytes, std::max<index_t>(1, static_cast<index_t>(extent)), &bytes));
    empty = empty || extent == 0;
    t.shape.push_back(static_cast<index_t>(extent));
  }
  require(t.from <= t.to && t.to - t.from == (empty ? 0 : static_cast<std::uint64_t>(bytes)));
  return t;
}

/// The tensors of a header in the order of their places, which have neither holes nor overlaps between them.
inline std::vector<stored_tensor> stored_tensors_of(const nlohmann::json& entries) {
  std::vector<stored_tensor> all;
  for (const auto& [key, entry] : entries.items()) all.push_back(stored_tensor_of(key, entry));
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  std::uint64_t end = 0;
  for (const stored_tensor& t : all) {
    if (t.from != end) throw error(refusal{code::file_altered}, t.key);
    end = t.to;
  }
  return all;
}

/// An open weights file: its header is read and fits the file, its tensors are read one at a time.
class weights_reader {
 public:
  explicit weights_reader(const std::filesystem::path& path) : path_(path), file_(path) {
    constexpr std::uint64_t longest_header = 100'000'000;
    unsigned char eight[8];
    file_.expect(8);
    file_.read(eight, 8, 0);
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | eight[i];
    if (length > longest_header) refuse(code::file_not_ours);
    data_ = 8 + length;
    file_.expect(data_);
    std::string text(length, ' ');
    file_.read(text.data(), length, 8);
    nlohmann::json header = header_of(text);
    if (header.is_null()) refuse(code::file_not_ours);
    words_ = header.value("__metadata__", nlohmann::json::object());
    header.erase("__metadata__");
    try {
      tensors_ = stored_tensors_of(header);
    } catch (const error& e) {
      throw e.at(path_.string() + ": " + e.where());
    }
    const std::uint64_t end = tensors_.empty() ? 0 : tensors_.back().to;
    const std::uint64_t rest = file_.size() - data_;
    if (rest < end) throw error(refusal{code::file_truncated, data_ + end, file_.size()}, path_.string());
    if (rest > end) refuse(code::file_altered);
    sums_ = file_sums([this](const char* name) { return words_.contains(name); });
    nlohmann::json others = words_;
    for (const char* name : file_sums::names) others.erase(name);
    if (!others.empty()) header["__metadata__"] = others;
    sums_.add(header.dump());  // of everything but the sums
  }

  std::uint64_t size() const { return file_.size(); }
  /// The sum that the file names of itself, "" where it names none.
  std::string sum() const { return words_.value(xxh64::name, ""); }

  /// In the order in which they lie.
  const std::vector<stored_tensor>& tensors() const { return tensors_; }

  at::Tensor read(const stored_tensor& t) const {
    at::Tensor values = at::empty(t.shape, scalar_type_of(t.type));
    file_.read(values.data_ptr(), t.to - t.from, data_ + t.from);
    return values;
  }

  /// All tensors, each visited once; throws behind the last one if they are not what was written.
  template <class Visit>
  void read_all(Visit&& visit) {
    for (const stored_tensor& t : tensors_) {
      const at::Tensor values = read(t);
      sums_.add(values.data_ptr(), t.to - t.from);
      visit(t, values);
    }
    judge();
  }
  /// Throws if the tensors are not what was written, where the file can tell; it is read in pieces.
  void verify() {
    if (sums_.empty()) return;
    std::vector<char> piece(std::size_t{1} << 20);
    for (std::uint64_t at = data_; at < file_.size();) {
      const std::uint64_t n = std::min<std::uint64_t>(piece.size(), file_.size() - at);
      file_.read(piece.data(), n, at);
      sums_.add(piece.data(), n);
      at += n;
    }
    judge();
  }

 private:
  [[noreturn]] void refuse(const reason& why) const { throw error(refusal{why}, path_.string()); }
  void judge() const {
    sums_.each([&](const char* name, const std::string& found) {
      if (words_.at(name) != found) refuse(code::file_altered);
    });
  }

  std::filesystem::path path_;
  regular_file file_;
  std::uint64_t data_ = 0;  // where it begins
  nlohmann::json words_;
  std::vector<stored_tensor> tensors_;
  file_sums sums_;
};

/// Writes a weights file, one tensor after the other. It appears whole, or not at all.
class weights_writer {
 public:
  /// Refuses keys that no file can have. The tensors come in this order; their places are found here.
  weights_writer(const std::filesystem::path& path, std::vector<stored_tensor> tensors)
      : header_(header_for(path, tensors)), file_(path) {
    sum_.add(header_.dump());
    file_.reserve(data_begin() + (tensors.empty() ? 0 : tensors.back().to));
    write_header();
  }

  void add(const at::Tensor& t) {
    const at::Tensor plain = as_stored(t.detach()).cpu().contiguous();
    constexpr std::uint64_t piece = 1 << 18;  // what was summed is in the cache when it is written
    const auto* from = static_cast<const char*>(plain.data_ptr());
    for (std::uint64_t left = plain.nbytes(), n = 0; left > 0; left -= n, from += n) {
      n = std::min(piece, left);
      sum_.add(from, n);
      file_.write(from, n);
    }
  }
  /// Brings the file to the disk, whole; it is not yet in its place.
  void flush() {
    if (std::exchange(flushed_, true)) return;
    write_header();
    file_.flush();
  }
  void keep() {
    flush();
    file_.keep();
  }

  /// Where the tensors begin in the file, and the sum of what was written of it.
  std::uint64_t data_begin() const { return header_text().size(); }
  std::string sum() const { return sum_.text(); }

 private:
  static nlohmann::json header_for(const std::filesystem::path& path, std::vector<stored_tensor>& tensors) {
    nlohmann::json header = nlohmann::json::object();
    std::uint64_t end = 0;
    for (stored_tensor& t : tensors) {
      if (t.key == "__metadata__")
        throw error(refusal{code::file_not_written}, fmt::format("{}: {} is no key", path.string(), t.key));
      t.from = end;
      end += static_cast<std::uint64_t>(c10::multiply_integers(t.shape) * bytes_of(t.type));
      t.to = end;
      header[t.key] = {{"dtype", file_type(t.type)}, {"shape", t.shape}, {"data_offsets", {t.from, t.to}}};
    }
    header["__metadata__"] = {{"format", "pt"}};  // other loaders ask for it
    try {
      header.dump();
    } catch (const nlohmann::json::exception& e) {  // a key that is no UTF-8
      throw error(refusal{code::file_not_written}, fmt::format("{}: {}", path.string(), e.what()));
    }
    return header;
  }

  void write_header() { file_.begin_with(header_text()); }

  // It has one length, whatever the sum.
  std::string header_text() const {
    nlohmann::json header = header_;
    header["__metadata__"][sum_.name] = sum_.text();
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::string all(8, '\0');
    for (std::size_t i = 0; i < 8; ++i)
      all[i] = static_cast<char>(static_cast<std::uint64_t>(text.size()) >> 8 * i & 0xff);
    return all + text;
  }

  nlohmann::json header_;
  atomic_file file_;
  xxh64 sum_;
  bool flushed_ = false;
};

}  // namespace tessera::detail
