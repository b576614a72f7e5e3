#pragma once
// How processes that have the machine of no devices each leave things for one another.

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace tessera::testing {

using namespace engine;

/// A folder of the node, which is there as long as one of its users is, unless a process is killed.
class shared_folder {
 public:
  shared_folder(const std::string& name, std::string user)
      : path_(std::filesystem::temp_directory_path() / ("tessera machine " + name)), user_("user " + user) {
    std::filesystem::create_directories(path_);
    put(user_, nullptr, 0);
  }
  shared_folder(const shared_folder&) = delete;
  shared_folder& operator=(const shared_folder&) = delete;
  ~shared_folder() {
    remove(user_);
    std::error_code gone;
    for (std::filesystem::directory_iterator file(path_, gone), end; !gone && file != end; file.increment(gone))
      if (file->path().filename().string().starts_with("user ")) return;
    std::filesystem::remove_all(path_, gone);
  }

  /// Leaves something there, all of it or nothing.
  void put(const std::string& name, const void* data, std::size_t bytes) const {
    const std::filesystem::path part = path_ / ("part of " + name);
    std::ofstream(part, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    std::error_code gone;
    std::filesystem::rename(part, path_ / name, gone);
  }
  bool has(const std::string& name) const { return std::filesystem::exists(path_ / name); }
  /// What is there under a name.
  std::optional<std::vector<char>> find(const std::string& name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    if (!file) return std::nullopt;
    std::vector<char> all(std::filesystem::file_size(path_ / name));
    file.read(all.data(), static_cast<std::streamsize>(all.size()));
    return all;
  }
  /// The same, which nobody else looks for.
  std::optional<std::vector<char>> take(const std::string& name) const {
    auto found = find(name);
    if (found) remove(name);
    return found;
  }
  void remove(const std::string& name) const {
    std::error_code gone;
    std::filesystem::remove(path_ / name, gone);
  }

 private:
  std::filesystem::path path_;
  std::string user_;
};

}  // namespace tessera::testing
