#pragma once

#include <tessera/comm/exchange/bound_exchange.hpp>
#include <tessera/comm/tcp/socket.hpp>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

namespace tessera::detail {

/// The header of every message: its kind, and how many bytes follow.
struct tcp_frame {
  enum kinds : std::uint32_t {
    begun,    ///< nothing follows: the sender began a call,
    offered,  ///< and has a box for it that waits until the reader has begun it
    box,      ///< of a call that the sender began
    message   ///< a wait_message
  };
  kinds kind = begun;
  std::uint32_t box_transfer = 0;  ///< which of the boxes from the sender to the reader
  std::uint64_t exchange = 0;      ///< its id
  std::uint64_t sequence = 0;      ///< of the call
  std::uint64_t bytes = 0;         ///< that follow
};

/// A connection to another worker: frames in their order, each way. Neither writing nor reading waits.
class tcp_connection {
 public:
  tcp_connection() = default;
  explicit tcp_connection(tcp_socket socket) : socket_(std::move(socket)), buffer_(socket_.get() >= 0 ? buffered : 0) {}

  int get() const { return socket_.get(); }
  bool ended() const { return ended_; }
  bool has_to_write() const { return !leaves_.empty(); }

  /// Sends a frame; fill(to) puts there what follows.
  template <class Fill>
  void send(const tcp_frame& f, Fill&& fill) {
    if (ended_) return;
    std::vector<std::byte> whole = std::exchange(spare_, {});
    whole.resize(sizeof(f) + f.bytes);
    std::memcpy(whole.data(), &f, sizeof(f));
    fill(whole.data() + sizeof(f));
    leaves_.push_back({std::move(whole)});
    write();
  }
  void send(const tcp_frame& f) {
    send(f, [](std::byte*) {});
  }
  /// Sends a frame and what follows from where it lies, as long as `unsent` counts it.
  void send_from(const tcp_frame& f, const std::byte* data, std::size_t& unsent) {
    if (ended_) return;
    std::vector<std::byte> head(sizeof(f));
    std::memcpy(head.data(), &f, sizeof(f));
    leaves_.push_back({std::move(head)});
    leaves_.push_back({{}, data, f.bytes, &unsent});
    write();
  }
  /// Copies what is sent from where it lies, as that goes.
  void let_go(const std::size_t& unsent) {
    for (piece& p : leaves_)
      if (p.unsent == &unsent) {
        p.own.assign(p.data, p.data + p.bytes);
        p.unsent = nullptr;
      }
  }
  /// Bytes that come for a given-up call go elsewhere.
  void let_go(const exchange_call& call) {
    if (for_ != &call) return;
    beside_.resize(now_.bytes);
    to_ = beside_.data() + (now_.bytes - left_);
    for_ = nullptr;
  }

  void write() {
    while (!leaves_.empty()) {
      std::array<iovec, 16> parts;
      std::size_t n = 0;
      for (; n < parts.size() && n < leaves_.size(); ++n)
        parts[n] = {const_cast<std::byte*>(leaves_[n].from()), leaves_[n].left()};
      std::ptrdiff_t gone = socket_.send({parts.data(), n});
      if (gone < 0) leaves_.clear();  // whoever reads finds out why
      if (gone <= 0) return;
      for (auto rest = static_cast<std::size_t>(gone); rest > 0;) {
        piece& first = leaves_.front();
        const std::size_t part = std::min(rest, first.left());
        rest -= part;
        first.sent += part;
        if (first.left() > 0) return;
        if (first.unsent != nullptr) --*first.unsent;
        else if (first.own.capacity() <= buffered) spare_ = std::move(first.own);
        leaves_.pop_front();
      }
    }
  }

  /// Where what follows a frame belongs, and the call that has that memory; nowhere yet where there is none.
  struct destination {
    std::byte* at = nullptr;
    const exchange_call* of = nullptr;
  };

  /// Reads what has come: where(frame) says where what follows belongs; came(frame, beside) that it is there, or,
  /// if it had no destination, beside.
  template <class Destination, class Came>
  void read(Destination&& where, Came&& came) {
    for (bool more = true; !ended_;) {
      const std::size_t here = end_ - begin_;
      if (inside_ && left_ == 0) {
        inside_ = false;
        const bool apart = std::exchange(for_, nullptr) == nullptr;
        came(now_, apart ? &beside_ : nullptr);
        if (beside_.capacity() > buffered) beside_ = {};
      } else if (!inside_ && here >= sizeof(now_)) {
        std::memcpy(&now_, buffer_.data() + begin_, sizeof(now_));
        begin_ += sizeof(now_);
        begin(where(now_));
      } else if (inside_ && here > 0) {
        const std::size_t part = std::min(here, left_);
        std::memcpy(to_, buffer_.data() + begin_, part);
        begin_ += part;
        took(part);
      } else if (!more) {
        return;
      } else {
        more = fetch();
      }
    }
  }

  /// Says that nothing more will be sent, when all has gone; whether the other end has not said so, whose words are
  /// passed over.
  bool hang_up() {
    if (socket_.get() < 0) return false;
    write();
    if (leaves_.empty() && !std::exchange(hung_up_, true)) ::shutdown(socket_.get(), SHUT_WR);
    for (std::ptrdiff_t n = 1; !ended_ && n != 0;) {
      n = socket_.receive(buffer_.data(), buffer_.size());
      ended_ = n < 0;
    }
    return !ended_;
  }

 private:
  static constexpr std::size_t buffered = std::size_t{1} << 16;

  /// The bytes that leave next: memory of its own, or a tensor's.
  struct piece {
    std::vector<std::byte> own;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t* unsent = nullptr;
    std::size_t sent = 0;

    const std::byte* from() const { return (unsent == nullptr ? own.data() : data) + sent; }
    std::size_t left() const { return (unsent == nullptr ? own.size() : bytes) - sent; }
  };

  void begin(const destination& d) {
    inside_ = true;
    left_ = now_.bytes;
    for_ = d.of;
    to_ = d.at;
    if (d.of != nullptr) return;
    beside_.resize(left_);
    to_ = beside_.data();
  }
  void took(std::size_t n) {
    to_ += n;
    left_ -= n;
  }
  // Reads from the system, much of a box straight to its place; whether there may be more.
  bool fetch() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
    const bool straight = inside_ && left_ >= buffered;
    const std::size_t most = straight ? left_ : buffered - end_;
    const std::ptrdiff_t n = socket_.receive(straight ? to_ : buffer_.data() + end_, most);
    ended_ = n < 0;
    if (ended_) return false;
    straight ? took(static_cast<std::size_t>(n)) : void(end_ += static_cast<std::size_t>(n));
    return static_cast<std::size_t>(n) == most;
  }

  tcp_socket socket_;
  bool ended_ = false;
  bool hung_up_ = false;
  std::deque<piece> leaves_;
  std::vector<std::byte> spare_;

  std::vector<std::byte> buffer_;  // what was read and not looked at
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool inside_ = false;  // a frame, of which so much is left
  tcp_frame now_;
  std::size_t left_ = 0;
  std::byte* to_ = nullptr;
  const exchange_call* for_ = nullptr;
  std::vector<std::byte> beside_;
};

}  // namespace tessera::detail
