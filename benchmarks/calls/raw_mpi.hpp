#pragma once
// The same exchanges written by hand for MPI, in every way that its experts choose between.

#include "problem.hpp"

#include <mpi.h>

#include <cstring>
#include <functional>
#include <memory>
#include <utility>

namespace calls {

/// y[i] = x_0[i] + x_1[i] + … over the terms, a tile at a time that stays in the first cache.
#if defined(__GNUC__) && !defined(__clang__)
[[gnu::optimize("O3")]]
#endif
inline void add_terms(const std::vector<const double*>& terms, double* __restrict y, index_t n) {
  constexpr index_t tile = 1024;
  for (index_t begin = 0; begin < n; begin += tile) {
    const index_t end = std::min(n, begin + tile);
    const double* __restrict a = terms[0];
    const double* __restrict b = terms[terms.size() > 1 ? 1 : 0];
    if (terms.size() == 1) std::memcpy(y + begin, a + begin, static_cast<std::size_t>(end - begin) * sizeof(double));
    else
      for (index_t i = begin; i < end; ++i) y[i] = a[i] + b[i];
    for (std::size_t k = 2; k < terms.size(); ++k) {
      const double* __restrict x = terms[k];
      for (index_t i = begin; i < end; ++i) y[i] += x[i];
    }
  }
}

/// A rectangle within a worker's matrix.
struct piece {
  double* begin = nullptr;
  index_t rows = 0, columns = 0, stride = 0;

  static piece of(const rectangle& part, const rectangle& whole, double* values) {
    return {values + (part.top - whole.top) * whole.columns() + part.left - whole.left, part.rows(), part.columns(),
            whole.columns()};
  }
  bool contiguous() const { return columns == stride || rows == 1; }
  int count() const { return static_cast<int>(rows * columns); }
  piece packed_at(double* there) const { return {there, rows, columns, columns}; }
};

inline void copy(const piece& from, const piece& to) {
  if (from.contiguous() && to.contiguous()) {
    std::memcpy(to.begin, from.begin, static_cast<std::size_t>(from.count()) * sizeof(double));
    return;
  }
  for (index_t r = 0; r < from.rows; ++r)
    std::memcpy(to.begin + r * to.stride, from.begin + r * from.stride,
                static_cast<std::size_t>(from.columns) * sizeof(double));
}

/// An MPI type that is freed.
class type {
 public:
  explicit type(const piece& p) {
    MPI_Type_vector(static_cast<int>(p.rows), static_cast<int>(p.columns), static_cast<int>(p.stride), MPI_DOUBLE,
                    &type_);
    MPI_Type_commit(&type_);
  }
  type(type&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  ~type() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// Every box straight from its owner to its reader: packed or as derived types, with requests made anew or persistent.
///
/// What is contiguous travels in place either way. The own box is copied while the others are under way. Terms of a sum
/// are received beside the output and added when all are there, in one pass.
class point_to_point {
 public:
  struct how {
    const char* name;
    bool typed, persistent;
  };

  point_to_point(const problem& of, int rank, numbers& in, numbers& out, how h)
      : how_(h), adds_(of.adds()), size_(static_cast<index_t>(out.size())), out_(out.data()) {
    const rectangle has = of.holds(rank);
    const rectangle gets = of.gets(rank);
    for (int peer = 0; peer < of.workers; ++peer) {
      const rectangle to = meet(has, of.gets(peer));
      const rectangle from = meet(of.holds(peer), gets);
      if (peer == rank) {
        if (to.count() != 0) own_.push_back({0, piece::of(to, has, in.data()), piece::of(to, gets, out.data())});
        continue;
      }
      if (from.count() != 0) receives_.push_back(leg_of(peer, piece::of(from, gets, out.data()), adds_));
      if (to.count() != 0) sends_.push_back(leg_of(peer, piece::of(to, has, in.data()), false));
    }
    if (how_.persistent) {
      for (box_transfer& l : receives_)
        begin(l, [&](auto... x) { MPI_Recv_init(x..., l.peer, 0, MPI_COMM_WORLD, request()); });
      for (box_transfer& l : sends_)
        begin(l, [&](auto... x) { MPI_Send_init(x..., l.peer, 0, MPI_COMM_WORLD, request()); });
    }
  }
  point_to_point(const point_to_point&) = delete;
  point_to_point& operator=(const point_to_point&) = delete;
  ~point_to_point() {
    if (how_.persistent)
      for (MPI_Request& r : requests_) MPI_Request_free(&r);
  }

  /// Puts the output elsewhere: of requests that are not persistent.
  void into(double* out) {
    const auto shift = [&](piece& p) { p.begin = out + (p.begin - out_); };
    for (box_transfer& l : receives_) {
      shift(l.where);
      if (l.staging.empty()) shift(l.travels);
    }
    for (box_transfer& l : own_) shift(l.travels);
    out_ = out;
  }

  void operator()() {
    const auto received = static_cast<int>(receives_.size());
    if (how_.persistent) MPI_Startall(received, requests_.data());
    else requests_.clear();
    if (!how_.persistent)
      for (box_transfer& l : receives_)
        begin(l, [&](auto... x) { MPI_Irecv(x..., l.peer, 0, MPI_COMM_WORLD, request()); });
    for (const box_transfer& l : sends_)
      if (!l.staging.empty()) copy(l.where, l.travels);
    if (how_.persistent) MPI_Startall(static_cast<int>(sends_.size()), requests_.data() + received);
    else
      for (box_transfer& l : sends_)
        begin(l, [&](auto... x) { MPI_Isend(x..., l.peer, 0, MPI_COMM_WORLD, request()); });
    if (!adds_)
      for (const box_transfer& l : own_) copy(l.where, l.travels);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    if (adds_) {
      terms_.clear();
      for (const box_transfer& l : own_) terms_.push_back(l.where.begin);
      for (const box_transfer& l : receives_) terms_.push_back(l.travels.begin);
      if (!terms_.empty()) add_terms(terms_, out_, size_);
      return;
    }
    for (const box_transfer& l : receives_)
      if (!l.staging.empty()) copy(l.travels, l.where);
  }

 private:
  struct box_transfer {
    int peer = 0;
    piece where, travels;
    std::vector<double> staging{};
    std::vector<type> types{};
  };

  box_transfer leg_of(int peer, const piece& where, bool beside) const {
    box_transfer l{peer, where, where};
    if (beside || (!how_.typed && !where.contiguous())) {
      l.staging.resize(static_cast<std::size_t>(where.count()));
      l.travels = where.packed_at(l.staging.data());
    } else if (!where.contiguous()) {
      l.types.emplace_back(where);
    }
    return l;
  }
  template <class Begin>
  void begin(box_transfer& l, Begin&& call) {
    if (l.types.empty()) call(l.travels.begin, l.travels.count(), MPI_Datatype{MPI_DOUBLE});
    else call(l.where.begin, 1, static_cast<MPI_Datatype>(l.types[0]));
  }
  MPI_Request* request() { return &requests_.emplace_back(); }

  how how_;
  bool adds_;
  index_t size_;
  double* out_;
  std::vector<box_transfer> own_, sends_, receives_;
  std::vector<MPI_Request> requests_;
  std::vector<const double*> terms_;
};

/// A way to do the verb, by name.
struct method {
  std::string name;
  std::function<void()> call;
  std::function<const double*()> brought{};  ///< where the last call's output lies, if not in the matrix
};

/// Messages into an output that is allocated at every call.
class into_fresh_memory {
 public:
  into_fresh_memory(matrices& m, point_to_point::how h) : n_(m.out.size()), direct_(m.of, m.rank, m.in, m.out, h) {}

  void operator()() {
    std::unique_ptr<double[]> out(new double[n_]);
    direct_.into(out.get());
    out_ = std::move(out);
    direct_();
  }
  const double* brought() const { return out_.get(); }

 private:
  std::size_t n_;
  std::unique_ptr<double[]> out_;
  point_to_point direct_;
};

/// A repartition by MPI's own all-to-all.
class all_to_all {
 public:
  explicit all_to_all(matrices& m) : m_(m), packed_in_(m.in.size()), packed_out_(m.out.size()) {
    for (int peer = 0; peer < m.of.workers; ++peer) {
      from_.push_back(piece::of(meet(m.of.holds(m.rank), m.of.gets(peer)), m.of.holds(m.rank), m.in.data()));
      to_.push_back(piece::of(meet(m.of.holds(peer), m.of.gets(m.rank)), m.of.gets(m.rank), m.out.data()));
      sends_.add(from_.back(), m.in);
      receives_.add(to_.back(), m.out);
    }
  }
  void typed() {
    MPI_Alltoallw(m_.in.data(), sends_.counts.data(), sends_.places.data(), sends_.types.data(), m_.out.data(),
                  receives_.counts.data(), receives_.places.data(), receives_.types.data(), MPI_COMM_WORLD);
  }
  void packed() {
    double* next = packed_in_.data();
    for (const piece& p : from_) copy(p, p.packed_at(std::exchange(next, next + p.count())));
    MPI_Alltoall(packed_in_.data(), from_[0].count(), MPI_DOUBLE, packed_out_.data(), to_[0].count(), MPI_DOUBLE,
                 MPI_COMM_WORLD);
    next = packed_out_.data();
    for (const piece& p : to_) copy(p.packed_at(std::exchange(next, next + p.count())), p);
  }

 private:
  struct side {
    std::vector<int> counts, places;
    std::vector<MPI_Datatype> types;
    std::vector<type> owned;

    void add(const piece& p, const numbers& whole) {
      owned.emplace_back(p);
      types.push_back(owned.back());
      counts.push_back(1);
      places.push_back(static_cast<int>((p.begin - whole.data()) * index_t{sizeof(double)}));
    }
  };
  matrices& m_;
  std::vector<double> packed_in_, packed_out_;
  std::vector<piece> from_, to_;
  side sends_, receives_;
};

/// MPI's own collectives for the verb.
inline std::vector<method> collectives(matrices& m) {
  double* const in = m.in.data();
  double* const out = m.out.data();
  const auto all = static_cast<int>(m.of.rows * m.of.columns);
  const int share = all / m.of.workers;
  double* const mine = out + m.rank * share;
  const auto copy_of_root = [=, root = m.rank == 0] {
    if (root) std::memcpy(out, in, static_cast<std::size_t>(all) * sizeof(double));
  };
  switch (m.of.what) {
    case verb::repartition: {
      const auto both = std::make_shared<all_to_all>(m);
      return {{"Alltoallw", [both] { both->typed(); }}, {"Alltoall, packed", [both] { both->packed(); }}};
    }
    case verb::halo: return {};  // a neighbourhood collective is a list of messages too
    case verb::all_gather:
      return {{"Allgather", [=] { MPI_Allgather(in, share, MPI_DOUBLE, out, share, MPI_DOUBLE, MPI_COMM_WORLD); }}};
    case verb::reduce_scatter:
      return {{"Reduce_scatter_block",
               [=] { MPI_Reduce_scatter_block(in, out, share, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }}};
    case verb::all_reduce:
      return {{"Allreduce", [=] { MPI_Allreduce(in, out, all, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }},
              {"Reduce_scatter_block + Allgather", [=] {
                 MPI_Reduce_scatter_block(in, mine, share, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
                 MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, share, MPI_DOUBLE, MPI_COMM_WORLD);
               }}};
    case verb::broadcast:
      return {{"Bcast", [=] {
                 copy_of_root();
                 MPI_Bcast(out, all, MPI_DOUBLE, 0, MPI_COMM_WORLD);
               }}};
    case verb::sum_reduce:
      return {{"Reduce", [=] { MPI_Reduce(in, out, all, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }}};
  }
  return {};
}

/// Every way to do the verb by hand.
inline std::vector<method> by_hand(matrices& m) {
  std::vector<method> all = collectives(m);
  constexpr point_to_point::how ways[]{{"packed", false, false},
                                       {"packed, persistent", false, true},
                                       {"types", true, false},
                                       {"types, persistent", true, true}};
  for (const point_to_point::how& h : ways) {
    if (h.typed && m.of.what != verb::repartition) continue;  // all other boxes are contiguous
    const auto direct = std::make_shared<point_to_point>(m.of, m.rank, m.in, m.out, h);
    all.push_back({h.name, [direct] { (*direct)(); }});
    if (!h.persistent) {
      const auto fresh = std::make_shared<into_fresh_memory>(m, h);
      all.push_back({std::string("fresh, ") + h.name, [fresh] { (*fresh)(); }, [fresh] { return fresh->brought(); }});
    }
    if (m.of.what != verb::all_reduce) continue;
    problem scatter = m.of;
    problem gather = m.of;
    scatter.what = verb::reduce_scatter;
    gather.what = verb::all_gather;
    const auto band = std::make_shared<numbers>(static_cast<std::size_t>(scatter.gets(m.rank).count()));
    const auto first = std::make_shared<point_to_point>(scatter, m.rank, m.in, *band, h);
    const auto second = std::make_shared<point_to_point>(gather, m.rank, *band, m.out, h);
    all.push_back({std::string(h.name) + ", in two phases", [=] {
                     (*first)();
                     (*second)();
                     static_cast<void>(band);
                   }});
  }
  return all;
}

}  // namespace calls
