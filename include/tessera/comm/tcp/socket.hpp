#pragma once

#include <tessera/comm/base/error.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace tessera::detail {

/// A socket of the system that waits for nobody.
class tcp_socket {
 public:
  tcp_socket() = default;
  explicit tcp_socket(int descriptor) : descriptor_(descriptor) {
    if (descriptor_ >= 0) ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
    if (descriptor_ >= 0) ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  }
  tcp_socket(tcp_socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  tcp_socket& operator=(tcp_socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~tcp_socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  int get() const { return descriptor_; }

  /// Written bytes go at once, however few.
  void hurry() const {
    const int on = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  /// The error that it met, as while it was being connected; 0 if none.
  int met() const {
    int status = 0;
    socklen_t size = sizeof(status);
    return ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &status, &size) == 0 ? status : errno;
  }

  /// Reads up to so many bytes: how many there were, and -1 when no more will come.
  std::ptrdiff_t receive(std::byte* to, std::size_t most) const {
    return counted(::recv(descriptor_, to, most, 0), true);
  }
  /// Writes what there is room for: how much, and -1 when nobody reads any more.
  std::ptrdiff_t send(std::span<iovec> parts) const {
    msghdr all{};
    all.msg_iov = parts.data();
    all.msg_iovlen = parts.size();
    return counted(::sendmsg(descriptor_, &all, MSG_NOSIGNAL), false);
  }

 private:
  static std::ptrdiff_t counted(ssize_t n, bool reads) {
    if (n > 0 || (n == 0 && !reads)) return n;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
  }

  int descriptor_ = -1;
};

/// An address with a port, as the system has it.
class tcp_address {
 public:
  tcp_address() = default;
  /// The first of a host's, for messages or for connections.
  tcp_address(const std::string& host, int port, int kind = SOCK_STREAM) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = kind;
    addrinfo* found = nullptr;
    const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
    if (status != 0) throw std::runtime_error(fmt::format("{}: {}", host, ::gai_strerror(status)));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &::freeaddrinfo);
    size = found->ai_addrlen;
    std::memcpy(&where, found->ai_addr, size);
  }

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&where); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&where); }
  int family() const { return where.ss_family; }

  std::string host() const {
    char text[NI_MAXHOST]{};
    ::getnameinfo(get(), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
    return text;
  }
  int port() const {
    char text[NI_MAXSERV]{};
    ::getnameinfo(get(), size, nullptr, 0, text, sizeof(text), NI_NUMERICSERV);
    return std::atoi(text);
  }
  bool is_loopback() const {
    if (family() == AF_INET) return (ntohl(reinterpret_cast<const sockaddr_in&>(where).sin_addr.s_addr) >> 24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(where).sin6_addr);
  }

  sockaddr_storage where{};
  socklen_t size = sizeof(sockaddr_storage);
};

}  // namespace tessera::detail
