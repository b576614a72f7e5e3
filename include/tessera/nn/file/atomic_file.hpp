#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/generated/nn.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace tessera::detail {

/// Throws what the operating system said of a file.
[[noreturn]] inline void refuse_file(const reason& why, const std::filesystem::path& path, int number) {
  throw error(refusal{why}, fmt::format("{}: {}", path.string(), std::system_category().message(number)));
}

/// An open regular file; every failure is an error that names the path and the reason.
class regular_file {
 public:
  /// Opens it to read. Nothing else than a regular file is waited for.
  explicit regular_file(const std::filesystem::path& path)
      : regular_file(path, ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse_file(code::file_missing, path_, errno);
    struct stat is;
    if (::fstat(descriptor_, &is) != 0) refuse_file(code::file_missing, path_, errno);
    if (!S_ISREG(is.st_mode)) throw error(refusal{code::not_a_file}, path_.string());
    size_ = static_cast<std::uint64_t>(is.st_size);
  }
  regular_file(const regular_file&) = delete;
  regular_file& operator=(const regular_file&) = delete;
  ~regular_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  std::uint64_t size() const { return size_; }

  /// Throws unless the file has at least n bytes.
  void expect(std::uint64_t n) const {
    if (size_ < n) throw error(refusal{code::file_truncated, n, size_}, path_.string());
  }

  /// Reads n bytes from a place on.
  void read(void* to, std::uint64_t n, std::uint64_t from) const {
    for (auto* at = static_cast<char*>(to); n > 0;) {
      const ::ssize_t got = ::pread(descriptor_, at, n, static_cast<::off_t>(from));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) refuse_file(code::file_missing, path_, errno);
      if (got == 0) throw error(refusal{code::file_truncated, size_, size_ - n}, path_.string());  // while it was read
      at += got;
      from += static_cast<std::uint64_t>(got);
      n -= static_cast<std::uint64_t>(got);
    }
  }

 protected:
  regular_file(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

/// Names in a folder survive a power cut from now on, where the file system can promise it.
inline void flush_folder(const std::filesystem::path& folder) {
  const int f = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f < 0) return;
  ::fsync(f);
  ::close(f);
}

/// A file that replaces another one when it is complete. It is written beside that one under a name of its own, so no
/// reader and no other job sees half of it. If it is not kept, it is removed.
class atomic_file : regular_file {
 public:
  explicit atomic_file(const std::filesystem::path& path) : regular_file(target_of(path), -1) {
    struct stat is;
    const bool exists = ::stat(path_.c_str(), &is) == 0;
    if (!exists && errno != ENOENT) refuse(errno);
    if (exists && !S_ISREG(is.st_mode)) throw error(refusal{code::not_a_file}, path_.string());
    if (exists && ::access(path_.c_str(), W_OK) != 0) refuse(errno);
    static std::atomic<int> number{0};
    do {
      beside_ = path_.parent_path() / fmt::format(".tessera.{}.{}.part", ::getpid(), number++);
      descriptor_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) refuse(errno);
    if (exists) static_cast<void>(::fchmod(descriptor_, is.st_mode & 07777));  // as far as the file system has modes
  }
  ~atomic_file() {
    if (!beside_.empty()) ::unlink(beside_.c_str());
  }

  void write(const void* from, std::uint64_t n) {
    for (auto* at = static_cast<const char*>(from); n > 0;) {
      const ::ssize_t put = ::write(descriptor_, at, n);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) refuse(errno);
      at += put;
      n -= static_cast<std::uint64_t>(put);
      written_ += static_cast<std::uint64_t>(put);
      begin_to_flush();
    }
  }

  /// Takes the room of a file of n bytes, as far as the file system can: a full disk is met before anything is written.
  void reserve(std::uint64_t n) {
#ifdef __linux__
    while (n > 0 && ::fallocate(descriptor_, 0, 0, static_cast<::off_t>(n)) != 0) {
      if (errno == EINTR) continue;
      if (full(errno)) refuse(errno);
      break;
    }
#else
    static_cast<void>(n);
#endif
  }

  /// Writes what stands first, also over what stood there; what is written next stands behind it.
  void begin_with(std::string_view bytes) {
    if (::lseek(descriptor_, 0, SEEK_SET) < 0) refuse(errno);
    write(bytes.data(), bytes.size());
  }

  /// Brings what was written to the disk; nothing is written behind this.
  void flush() {
    if (descriptor_ < 0) return;
    if (::fsync(descriptor_) != 0) refuse(errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) refuse(errno);
  }

  /// Puts the file in its place.
  void keep() {
    flush();
    if (::rename(beside_.c_str(), path_.c_str()) != 0) refuse(errno);
    beside_.clear();
    flush_folder(path_.has_parent_path() ? path_.parent_path() : ".");
  }

 private:
  // Links are followed, also one to a file that is not there yet.
  static std::filesystem::path target_of(std::filesystem::path path) {
    std::error_code none;
    for (int links = 0; std::filesystem::is_symlink(path, none); ++links) {
      if (links == 40) refuse_file(code::file_not_written, path, ELOOP);
      const std::filesystem::path to = std::filesystem::read_symlink(path, none);
      path = path.parent_path() / to;
    }
    return path;
  }

  // The disk works while what comes next is computed. What fails here is met by the flush.
  void begin_to_flush() {
#ifdef __linux__
    constexpr std::uint64_t flushed_together = 8 << 20;
    if (written_ - flushing_ < flushed_together) return;
    static_cast<void>(::sync_file_range(descriptor_, static_cast<::off64_t>(flushing_),
                                        static_cast<::off64_t>(written_ - flushing_), SYNC_FILE_RANGE_WRITE));
    flushing_ = written_;
#endif
  }

  static bool full(int reason) { return reason == ENOSPC || reason == EDQUOT || reason == EFBIG; }
  [[noreturn]] void refuse(int reason) const {
    refuse_file(full(reason) ? code::disk_full : code::file_not_written, path_, reason);
  }

  std::filesystem::path beside_;
  std::uint64_t written_ = 0;   // in the order of writing, that is from the file's begin on
  std::uint64_t flushing_ = 0;  // of it
};

}  // namespace tessera::detail

namespace tessera {

/// Writes a file that appears whole or not at all, in place of what is there. One worker calls it.
inline void write_whole(const std::filesystem::path& path, std::string_view bytes) {
  detail::atomic_file file(path);
  file.write(bytes.data(), bytes.size());
  file.keep();
}

}  // namespace tessera
