#pragma once

#include <tessera/nn/file/checkpoint_index.hpp>
#include <tessera/nn/file/file_sum.hpp>
#include <tessera/nn/file/weights_stream.hpp>
#include <tessera/nn/refusals.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

namespace tessera::nn::engine {

/// JSON has no number that is infinite or none: these are words.
inline nlohmann::json json_of(const small_values& values) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [key, value] : values) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) all[key] = *whole;
    else if (const auto* word = std::get_if<std::string>(&value)) all[key] = {{"word", *word}};
    else if (const double real = std::get<double>(value); std::isfinite(real)) all[key] = real;
    else all[key] = std::isnan(real) ? "nan" : real > 0 ? "inf" : "-inf";
  }
  return all;
}

inline small_values values_of(const nlohmann::json& from) {
  small_values all;
  for (const auto& [key, value] : from.items()) {
    if (value.is_number_integer()) all[key] = value.get<std::int64_t>();
    else if (value.is_number()) all[key] = value.get<double>();
    else if (value.is_object()) all[key] = value.at("word").get<std::string>();
    else all[key] = std::stod(value.get<std::string>());
  }
  return all;
}

TESSERA_INLINE std::string words_of(const small_values& values) { return json_of(values).dump(); }

inline std::string sum_of(const std::string& text) {
  tessera::detail::xxh64 sum;
  sum.add(text);
  return sum.text();
}

TESSERA_INLINE std::string checkpoint_index::write() const {
  using nlohmann::json;
  json all{{"format", "tessera.checkpoint"}, {"version", version}};
  json& listed = all["files"] = json::array();
  for (const checkpoint_file& f : files)
    listed.push_back({{"name", f.name}, {"bytes", f.bytes}, {tessera::detail::xxh64::name, f.sum}});
  json& named = all["entries"] = json::object();
  for (const auto& [key, entry] : entries) named[key] = {{"kind", entry.kind}, {"values", json_of(entry.values)}};
  json& keyed = all["tensors"] = json::object();
  for (const auto& [key, t] : tensors) {
    json boxes = json::array();
    for (const filed_box& b : t.boxes)
      boxes.push_back({{"file", b.file}, {"byte", b.byte}, {"begin", b.begin}, {"shape", b.extents}});
    keyed[key] = {{"dtype", tessera::detail::file_type(t.type)}, {"shape", t.shape}, {"boxes", boxes}};
  }
  all[tessera::detail::xxh64::name] = sum_of(all.dump());
  return all.dump() + "\n";
}

/// The number of elements of extents that multiply without overflow; -1 for others.
inline index_t count_of(const std::vector<index_t>& extents) {
  index_t n = 1;
  for (const index_t e : extents)
    if (e < 0 || __builtin_mul_overflow(n, e, &n)) return -1;
  return n;
}

/// Whether boxes lie in their tensor and their files, and have as many elements as it.
inline bool sound(const filed_tensor& t, const std::vector<checkpoint_file>& files) {
  const index_t whole = count_of(t.shape);
  index_t filled = 0;
  for (const filed_box& b : t.boxes) {
    const index_t n = count_of(b.extents);
    if (n < 0 || b.begin.size() != t.shape.size() || b.extents.size() != t.shape.size()) return false;
    for (std::size_t d = 0; d < t.shape.size(); ++d)
      if (b.begin[d] < 0 || b.extents[d] > t.shape[d] || b.begin[d] > t.shape[d] - b.extents[d]) return false;
    index_t bytes = 0;
    if (b.file >= files.size() || __builtin_mul_overflow(n, bytes_of(t.type), &bytes)) return false;
    const std::uint64_t end = files[b.file].bytes;
    if (static_cast<std::uint64_t>(bytes) > end || b.byte > end - static_cast<std::uint64_t>(bytes)) return false;
    if (__builtin_add_overflow(filled, n, &filled)) return false;
  }
  return whole >= 0 && filled == whole;
}

inline element element_of_file(const std::string& name) {
  for (int e = 0; e < number_of_elements; ++e)
    if (name == tessera::detail::file_type(static_cast<element>(e))) return static_cast<element>(e);
  throw error(refusal{code::file_of_other_elements}, name);
}

inline filed_tensor filed_tensor_of(const nlohmann::json& from) {
  filed_tensor t{element_of_file(from.at("dtype").get<std::string>()), from.at("shape"), {}};
  for (const auto& b : from.at("boxes")) t.boxes.push_back({b.at("file"), b.at("byte"), b.at("begin"), b.at("shape")});
  return t;
}

TESSERA_INLINE checkpoint_index checkpoint_index::read(const std::string& text, const std::string& from) {
  const auto altered = [&](const std::string& where) { throw error(refusal{code::file_altered}, from + where); };
  nlohmann::json all = nlohmann::json::parse(text, nullptr, false);
  if (!all.is_object() || all.value("format", nlohmann::json()) != "tessera.checkpoint") altered("");
  if (const auto is = all.find("version"); is == all.end() || *is != version)
    throw error(refusal{code::checkpoint_of_other_version, version,
                        is != all.end() && is->is_number_integer() ? is->get<std::int64_t>() : -1},
                from);
  const nlohmann::json sum = all.value(tessera::detail::xxh64::name, nlohmann::json());
  all.erase(tessera::detail::xxh64::name);
  checkpoint_index index;
  try {
    if (sum != sum_of(all.dump())) altered("");
    for (const auto& f : all.at("files")) index.files.push_back({f.at("name"), f.at("bytes"), f.at("xxh64")});
    for (const auto& [key, entry] : all.at("entries").items())
      index.entries[key] = {entry.at("kind"), values_of(entry.at("values"))};
    for (const auto& [key, t] : all.at("tensors").items())
      if (!sound(index.tensors[key] = filed_tensor_of(t), index.files)) altered(": " + key);
  } catch (const nlohmann::json::exception& e) {
    altered(fmt::format(": {}", e.what()));
  } catch (const std::logic_error& e) {  // a word that is no number
    altered(fmt::format(": {}", e.what()));
  }
  for (const checkpoint_file& f : index.files)  // nothing outside of the folder
    if (f.name.empty() || std::filesystem::path(f.name).filename() != f.name) altered(": " + f.name);
  return index;
}

TESSERA_INLINE std::vector<std::string> checkpoint_index::keys_of(const std::string& entry) const {
  std::vector<std::string> keys;
  for (auto t = tensors.lower_bound(entry + "/"); t != tensors.end() && t->first.starts_with(entry + "/"); ++t)
    keys.push_back(t->first);
  return keys;
}

}  // namespace tessera::nn::engine
