#pragma once

#include <tessera/nn/file/atomic_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera::detail {

/// A file that grows: what is added waits in memory until `flush` writes it behind what is there.
class appended_file {
 public:
  /// Opens it, or makes it.
  explicit appended_file(std::filesystem::path path)
      : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) refuse();
  }
  appended_file(const appended_file&) = delete;
  appended_file& operator=(const appended_file&) = delete;
  ~appended_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  const std::filesystem::path& path() const { return path_; }
  void add(std::string_view bytes) { waiting_ += bytes; }

  /// Writes what waits. Bytes that could not be written stay queued.
  void flush() {
    std::size_t done = 0;
    while (done < waiting_.size()) {
      const ::ssize_t put = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) {
        const int why = errno;
        waiting_.erase(0, done);
        errno = why;
        refuse();
      }
      done += static_cast<std::size_t>(put);
    }
    waiting_.clear();
  }

 private:
  [[noreturn]] void refuse() const {
    const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    refuse_file(full ? code::disk_full : code::file_not_written, path_, errno);
  }

  std::filesystem::path path_;
  int descriptor_;
  std::string waiting_;
};

}  // namespace tessera::detail
