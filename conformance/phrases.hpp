#pragma once
// The phrases of the file's vocabulary and what they mean. A phrase that stands in no table here is unknown.

#include "cases.hpp"

#include <map>
#include <regex>
#include <sstream>

namespace conformance {

/// What a tensor is filled with, by the words of the file.
inline filling filling_named(const std::string& words) {
  static const std::map<std::string, filling> known{
      {"randn", filling::normal},
      {"randn of balanced local shape, zero padded by halo_shape", filling::normal},
      {"randn of the padded shape (ghost entries included)", filling::normal},
      {"randn on rank 0, scattered", filling::normal},
      {"randn on rank 0, scattered with Repartition", filling::normal},
      {"randn, scattered", filling::normal},
      {"randn, local shape = x_global_shape on every active P_x worker", filling::normal},
      {"randn same shape on every active P_y worker", filling::normal},
      {"10*randn cast to dtype", filling::ten_times_normal},
      {"10*randn cast to dtype, local shape = x_global_shape", filling::ten_times_normal},
      {"10*ones of the balanced local shape of x_global_shape", filling::ten},
      {"10*ones, local shape = x_global_shape", filling::ten},
      {"0.1*ones of the balanced local shape of y_global_shape", filling::tenth},
      {"0.1*ones same shape", filling::tenth},
      {"rand in [0,1)", filling::uniform},
      {"rand float32 on rank 0, scattered", filling::uniform},
      {"zeros", filling::zeros},
      {"zeros (so that the map is linear in the bias)", filling::zeros},
      {"rand, same on both; set on world rank 0", filling::uniform},
      {"rand on rank 0, scattered", filling::uniform},
      {"rand of x_stop-x_start", filling::uniform},
      {"rand", filling::uniform},
      {"arange(num_embeddings) replicated on every worker", filling::indices},
      {"default", filling::scaled_by_fan},
      {"default init", filling::scaled_by_fan},
      {"filled with 0", filling::zeros},
      {"filled with 0 for the bias test", filling::zeros},
  };
  const auto found = known.find(words);
  if (found == known.end()) throw unbuilt(fmt::format("the phrase '{}' is unknown", words));
  return found->second;
}

inline filling filling_of(values& given, const std::string& name, filling otherwise = filling::normal) {
  return given.has(name) ? filling_named(given.text(name)) : otherwise;
}

inline element element_named(const std::string& words) {
  static const std::map<std::string, element> known{
      {"float64", element::float64},   {"float32", element::float32},     {"float16", element::float16},
      {"bfloat16", element::bfloat16}, {"complex64", element::complex64}, {"complex128", element::complex128},
      {"int64", element::int64},       {"int32", element::int32},         {"int16", element::int16},
      {"int8", element::int8},         {"uint8", element::uint8},         {"bool", element::boolean}};
  const auto found = known.find(words);
  if (found == known.end()) throw unbuilt(fmt::format("the element type '{}' is unknown", words));
  return found->second;
}

/// World ranks: a list as it stands, a run "0..3", or the last ones with their list, "last 2 of world (2,3)".
inline integers ranks_named(values& given, const std::string& name) {
  if (!given.at(name).is_string()) return given.list(name);
  const std::string words = given.text(name);
  std::smatch part;
  integers ranks;
  if (std::regex_match(words, part, std::regex("(\\d{1,4})\\.\\.(\\d{1,4})"))) {
    for (index_t r = std::stoll(part[1]); r <= std::stoll(part[2]); ++r) ranks.push_back(r);
  } else if (std::regex_match(words, part, std::regex("last (\\d{1,4}) of world \\((\\d+(,\\d+)*)\\)"))) {
    std::istringstream listed(part[2]);
    for (std::string r; std::getline(listed, r, ',');) ranks.push_back(std::stoll(r));
    if (static_cast<index_t>(ranks.size()) != std::stoll(part[1])) ranks.clear();
  }
  if (ranks.empty()) throw unbuilt(fmt::format("the phrase '{}' is unknown", words));
  return ranks;
}

/// "0.1*12", or a number as it stands.
inline double number_named(const json& words) {
  if (words.is_number()) return words.get<double>();
  const std::string s = words.get<std::string>();
  const auto star = s.find('*');
  try {
    return star == std::string::npos ? std::stod(s) : std::stod(s.substr(0, star)) * std::stod(s.substr(star + 1));
  } catch (const std::logic_error&) {
    throw unbuilt(fmt::format("the phrase '{}' is unknown", s));
  }
}

/// An extent: a number, or an entry of a shape of the case, "x_global_shape[-1]".
inline index_t extent_named(values& given, const std::string& name) {
  if (given.at(name).is_number()) return given.integer(name);
  const std::string words = given.text(name);
  std::smatch part;
  if (!std::regex_match(words, part, std::regex("(\\w+)\\[(-?\\d{1,2})\\]")))
    throw unbuilt(fmt::format("the phrase '{}' is unknown", words));
  const integers shape = given.list(part[1]);
  const int at = std::stoi(part[2]);
  const int n = static_cast<int>(shape.size());
  if (at < -n || at >= n) throw unbuilt(fmt::format("the phrase '{}' is unknown", words));
  return shape[static_cast<std::size_t>(at < 0 ? at + n : at)];
}

/// Takes note of fields that change nothing here: what they say holds of every case, or is said by other fields as
/// well.
inline void accept_remarks(test_case& c) {
  static const std::map<std::string, std::set<std::string>> phrases{
      {"zero_volume", {"inactive workers pass a zero-volume leaf of shape [0] (or [batch,0]) with requires_grad=true"}},
      {"MockKernelStyle", {"HaloMixin"}},
      {"bias_lives_on", {"P_w workers with index[-1]==0", "P_w workers with index[1]==0"}},
      {"bias_compared_on", {"workers with index[-1]==0"}},
      {"where", {"y on P_y, dx on P_x"}},
      {"when", {"construction", "first forward"}},
      {"upstream", {"ValueError"}},
      {"update", {"p += 0.1*p.grad"}},
      {"parameter_count", {"2 on affine_workers, 0 elsewhere"}},
      {"loss_lives_on", {"rank 0 of P_x; others return scalar 0"}},
      {"size", {"full-rank size (batch and channel included) when use_size"}},
      {"modes", {"linear means linear/bilinear/trilinear by rank"}},
      {"use", {"first 2+dimension entries of every shape"}},
      {"skip", {"nearest with align_corners"}},
  };
  for (values* of : {&c.given, &c.check}) {
    for (const auto& [name, known] : phrases)
      if (of->has(name) && known.count(of->text(name)) == 0)
        throw unbuilt(fmt::format("the phrase '{}' is unknown", of->text(name)));
    for (const char* free_text : {"note", "why", "formula"}) of->has(free_text);
  }
  c.given.has("preserve_batch");  // an empty tensor keeps its rank either way
}

/// Throws when a case has a parameter that its reader did not ask for, or numbers that it did not compare.
inline void all_read(const test_case& c) {
  for (const values* of : {&c.given, &c.check})
    for (const std::string& name : of->unread())
      throw unbuilt(fmt::format("the parameter '{}' = {} is unknown here", name, of->all().at(name).dump()));
  for (const json* numbers : {&c.derived, &c.expected})
    if (!numbers->is_null()) throw unbuilt(fmt::format("the numbers {} are not known here", numbers->dump()));
}

}  // namespace conformance
