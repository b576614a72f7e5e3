#include "machine.hpp"

#include "shared_folder.hpp"

#include "tests/support/generate.hpp"

#include <tessera/comm/base/error.hpp>
#include <tessera/comm/box/combine_rows.hpp>
#include <tessera/comm/launch/environment.hpp>

#include <nccl.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

/// What a stream has to do, first to last; a step says whether it is done with.
struct CUstream_st {
  std::deque<std::function<bool()>> steps;
};

struct event_state {
  std::uint64_t recorded = 0;
  std::uint64_t passed = 0;
};
struct CUevent_st {
  std::shared_ptr<event_state> state = std::make_shared<event_state>();
};

namespace {

/// One send, receive or collective of one rank.
struct part {
  const char* call;
  const void* from = nullptr;  // on the host, as `to`
  void* to = nullptr;
  std::size_t bytes = 0;
  int peer = -1;  // or root
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t with = ncclSum;
  bool done = false;
};
using shared_part = std::shared_ptr<part>;

/// The ranks of one communicator.
struct clique {
  int size = 0;
  std::vector<std::string> devices;  // by rank, of those that joined
  ncclResult_t status = ncclSuccess;
  using queue = std::deque<shared_part>;
  std::map<std::pair<int, int>, std::pair<queue, queue>> between;  // sends and receives, by who sends and who receives
  std::map<std::uint64_t, std::vector<shared_part>> rounds;        // of collectives, by rank

  std::optional<shared_folder> beyond{};  // of ranks that are other processes
  std::map<std::pair<int, int>, std::uint64_t> passed{};

  void join(int rank, const std::string& on) {
    devices.resize(static_cast<std::size_t>(size));
    devices[static_cast<std::size_t>(rank)] = on;
    if (beyond) beyond->put(fmt::format("device {}", rank), on.data(), on.size());
  }
  // Whether all have joined; two on one device are refused, as NCCL does it.
  bool complete() {
    if (all_there) return true;
    for (int r = 0; r < size && beyond; ++r)
      if (std::string& on = devices[static_cast<std::size_t>(r)]; on.empty())
        if (const auto said = beyond->find(fmt::format("device {}", r))) on.assign(said->begin(), said->end());
    for (auto on = devices.begin(); on != devices.end(); ++on) {
      if (on->empty()) return false;
      if (std::find(devices.begin(), on, *on) != on) status = ncclInvalidUsage;
    }
    return all_there = true;
  }
  // Whether all have asked for its end: the end of a communicator is a call of all its ranks.
  void end(int rank) {
    ending.resize(static_cast<std::size_t>(size));
    ending[static_cast<std::size_t>(rank)] = true;
    if (beyond) beyond->put(fmt::format("end of {}", rank), nullptr, 0);
  }
  bool ended() {
    for (int r = 0; r < size && beyond; ++r)
      if (!ending[static_cast<std::size_t>(r)])
        ending[static_cast<std::size_t>(r)] = beyond->has(fmt::format("end of {}", r));
    return std::all_of(ending.begin(), ending.end(), [](bool has) { return has; });
  }

 private:
  bool all_there = false;
  std::vector<bool> ending;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<clique> of;
  int rank = 0;
  bool blocking = false;
  bool ending = false;
  int busy = 0;                                // so many times it says that it is at it
  std::vector<std::function<void()>> handing;  // to streams, when it no longer is
  std::uint64_t launched = 0;
  std::shared_ptr<std::uint64_t> finished = std::make_shared<std::uint64_t>(0);
  std::shared_ptr<bool> aborted = std::make_shared<bool>(false);
  std::uint64_t collectives = 0;

  void hand_all() {
    for (const auto& hand : std::exchange(handing, {})) hand();
  }
};

namespace {

struct machine {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<CUstream_st*> streams;
  std::array<CUstream_st, most_devices> defaults;  // of each device
  CUstream_st letting_go;                          // of streams that have work left
  int devices;                                     // that a process sees
  dice roll{1};
  bool ends = false;
  int kept = 0;
  std::map<std::string, int> fails;
  std::vector<nccl_record> records;
  std::map<std::uint64_t, std::shared_ptr<clique>> cliques;
  std::uint64_t named = 0;
  std::thread runs;

  machine(std::uint64_t seed, int seen) : devices(seen), roll(seed) {
    for (CUstream_st& s : defaults) streams.push_back(&s);
    streams.push_back(&letting_go);
    runs = std::thread([this] { run(); });
  }
  ~machine() {
    {
      std::lock_guard lock(mutex);
      ends = true;
    }
    more.notify_all();
    runs.join();
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!ends) {
      std::vector<CUstream_st*> busy;
      for (CUstream_st* s : streams)
        if (!s->steps.empty()) busy.push_back(s);
      if (busy.empty()) {
        more.wait(lock);
        continue;
      }
      bool moved = false;
      for (std::size_t i = busy.size(); i > 0; --i) {
        std::swap(busy[i - 1], busy[static_cast<std::size_t>(roll.roll(0, static_cast<int>(i) - 1))]);
        CUstream_st& s = *busy[i - 1];
        for (int steps = roll.roll(0, 4); steps > 0 && !s.steps.empty() && s.steps.front()(); --steps) {
          s.steps.pop_front();
          moved = true;
        }
      }
      if (!moved) more.wait_for(lock, std::chrono::microseconds(20));
    }
  }
};

machine* here = nullptr;
thread_local int device = 0;
thread_local int depth = 0;
thread_local std::vector<std::pair<std::pair<ncclComm_t, cudaStream_t>, shared_part>> grouped;

// Whether this call of a function is to fail.
bool fails(const char* function) {
  const auto found = here->fails.find(function);
  return found != here->fails.end() && --found->second == 0;
}
CUstream_st& of(cudaStream_t s) { return s != nullptr ? *s : here->defaults[static_cast<std::size_t>(device)]; }

template <class Do>
cudaError_t cuda(const char* function, Do&& run) {
  std::lock_guard lock(here->mutex);
  if (fails(function)) return cudaErrorUnknown;
  return run();
}
cudaError_t push(const char* function, cudaStream_t s, std::function<bool()> step) {
  return cuda(function, [&] {
    of(s).steps.push_back(std::move(step));
    here->more.notify_all();
    return cudaSuccess;
  });
}

// Whether memory lies elsewhere than a caller believes.
bool says_otherwise(const void* memory, bool on_device) { return (behind(memory) != memory) != on_device; }

std::size_t bytes_of_type(ncclDataType_t t) {
  constexpr std::size_t bytes[]{1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return bytes[t];
}
element element_of_type(ncclDataType_t t) {
  constexpr element elements[]{element::int8,    element::uint8,   element::int32,   element::uint32,
                               element::int64,   element::uint64,  element::float16, element::float32,
                               element::float64, element::bfloat16};
  return elements[t];
}

// Every rank's terms, or those of its place, are combined for it: the last rank's first, each sum rounded, which is not
// what the library does.
void reduce(const std::vector<shared_part>& ranks, bool scatters) {
  const ncclRedOp_t op = ranks.front()->with;
  const combine with = op == ncclSum    ? combine::sum
                       : op == ncclProd ? combine::prod
                       : op == ncclMax  ? combine::max
                                        : combine::min;
  const element e = element_of_type(ranks.front()->type);
  const std::size_t each = ranks.front()->bytes;
  const index_t n = static_cast<index_t>(each) / bytes_of(e);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r]->to == nullptr) continue;  // of another root
    const std::size_t place = scatters ? r * each : 0;
    std::vector<std::byte> sum(each);
    std::memcpy(sum.data(), static_cast<const std::byte*>(ranks.back()->from) + place, each);
    for (std::size_t other = ranks.size() - 1; other-- > 0;) {
      box_vector extents;
      box_vector one;
      extents.push(n);
      one.push(1);
      const auto* const begins = static_cast<const std::byte*>(ranks[other]->from) + place;
      std::vector<std::byte> term(begins, begins + each);
      std::vector<std::byte> next(each);
      std::byte* at[]{sum.data(), term.data(), next.data()};
      combine_rows(common_rows(extents, {one.begin(), one.begin(), one.begin()}), e, at, with);
      sum = next;
    }
    std::memcpy(ranks[r]->to, sum.data(), each);
  }
}

void run_collective(clique& c, const std::vector<shared_part>& ranks) {
  const part& first = *ranks.front();
  for (const shared_part& p : ranks) {
    p->done = true;
    if (std::strcmp(p->call, first.call) != 0 || p->bytes != first.bytes || p->peer != first.peer)
      c.status = ncclInvalidUsage;
  }
  if (c.status != ncclSuccess) return;
  const std::string call = first.call;
  if (call == "ncclReduceScatter" || call == "ncclAllReduce" || call == "ncclReduce")
    return reduce(ranks, call == "ncclReduceScatter");
  for (const shared_part& p : ranks)
    for (std::size_t r = 0; r < ranks.size() && p->to != nullptr; ++r) {
      const bool gathers = call == "ncclAllGather";
      if (!gathers && static_cast<int>(r) != first.peer) continue;
      std::byte* const to = static_cast<std::byte*>(p->to) + (gathers ? r * p->bytes : 0);
      if (to != ranks[r]->from) std::memcpy(to, ranks[r]->from, p->bytes);
    }
}

void match(clique& c, int from, int to) {
  auto& [sends, receives] = c.between[{from, to}];
  for (; !sends.empty() && !receives.empty(); sends.pop_front(), receives.pop_front()) {
    const shared_part& s = sends.front();
    const shared_part& r = receives.front();
    if (s->bytes == r->bytes) std::memcpy(r->to, s->from, s->bytes);
    else c.status = ncclInvalidUsage;
    s->done = r->done = true;
  }
}

// What a rank handed in goes to those that are other processes, and what these did comes.
void meet_beyond(clique& c, int rank) {
  const shared_folder& there = *c.beyond;
  for (auto& [pair, posted] : c.between) {
    if (pair.first == pair.second) continue;
    const auto next = [&, &between = pair] {
      return fmt::format("{} to {}, {}", between.first, between.second, c.passed[between]);
    };
    auto& [sends, receives] = posted;
    for (; !sends.empty(); sends.pop_front(), ++c.passed[pair]) {
      there.put(next(), sends.front()->from, sends.front()->bytes);
      sends.front()->done = true;
    }
    for (; !receives.empty(); receives.pop_front(), ++c.passed[pair]) {
      const auto came = there.take(next());
      if (!came) break;
      if (came->size() == receives.front()->bytes) std::memcpy(receives.front()->to, came->data(), came->size());
      else c.status = ncclInvalidUsage;
      receives.front()->done = true;
    }
  }
  for (auto& [round, ranks] : c.rounds) {
    const auto of = [](std::uint64_t number, int r) { return fmt::format("round {} of {}", number, r); };
    const shared_part& mine = ranks[static_cast<std::size_t>(rank)];
    if (mine == nullptr || mine->done) continue;
    const std::size_t parts = mine->call == std::string("ncclReduceScatter") ? ranks.size() : 1;
    if (!there.has(of(round, rank)))
      there.put(of(round, rank), mine->from, mine->from == nullptr ? 0 : parts * mine->bytes);
    std::vector<std::vector<char>> theirs;
    for (int r = 0; r < c.size; ++r) {
      if (!there.has(of(round, r))) return;
      theirs.push_back(*there.find(of(round, r)));
    }
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (r != static_cast<std::size_t>(rank)) {
        ranks[r] = std::make_shared<part>(*mine);
        ranks[r]->from = theirs[r].data();
        ranks[r]->to = nullptr;
      }
    run_collective(c, ranks);
    if (round > 0) there.remove(of(round - 1, rank));  // all are beyond it
  }
}

// What one group does on one stream: nothing before what the communicator did before, and then all at once.
std::function<bool()> group_of(const ncclComm& comm, std::vector<shared_part> parts, std::uint64_t number,
                               std::uint64_t round) {
  return [of = comm.of, rank = comm.rank, finished = comm.finished, aborted = comm.aborted, parts = std::move(parts),
          number, round, posted = false]() mutable {
    if (*aborted || of->status != ncclSuccess) return true;
    if (*finished < number) return false;
    for (const shared_part& p : parts) {
      if (posted) continue;
      const std::string call = p->call;
      if (call == "ncclSend") {
        of->between[{rank, p->peer}].first.push_back(p);
        if (!of->beyond || p->peer == rank) match(*of, rank, p->peer);
      } else if (call == "ncclRecv") {
        of->between[{p->peer, rank}].second.push_back(p);
        if (!of->beyond || p->peer == rank) match(*of, p->peer, rank);
      } else {
        auto& ranks = of->rounds[round];
        ranks.resize(static_cast<std::size_t>(of->size));
        ranks[static_cast<std::size_t>(rank)] = p;
        if (std::all_of(ranks.begin(), ranks.end(), [](const shared_part& r) { return r != nullptr; }))
          run_collective(*of, ranks);
      }
    }
    posted = true;
    if (of->beyond) meet_beyond(*of, rank);
    const bool done = std::all_of(parts.begin(), parts.end(), [](const shared_part& p) { return p->done; });
    if (done) ++*finished;
    return done;
  };
}

ncclResult_t add(part p, ncclComm_t comm, cudaStream_t stream) {
  {
    std::lock_guard lock(here->mutex);
    if (fails(p.call)) return ncclSystemError;
    here->records.push_back({p.call, comm->rank, p.peer, p.bytes});
  }
  ncclGroupStart();
  grouped.push_back({{comm, stream}, std::make_shared<part>(p)});
  return ncclGroupEnd();
}

}  // namespace

extern "C" {

const char* cudaGetErrorString(cudaError_t) { return "the machine was told to fail"; }
cudaError_t cudaGetDeviceCount(int* devices) {
  *devices = here->devices;
  return cuda("cudaGetDeviceCount", [] { return cudaSuccess; });
}
cudaError_t cudaGetDevice(int* which) {
  *which = device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int which) {
  device = which;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cuda("cudaStreamCreateWithFlags", [&] {
    here->streams.push_back(*stream = new CUstream_st);
    ++here->kept;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return cudaSuccess;
  const auto go = [stream] {
    std::erase(here->streams, stream);
    --here->kept;
    delete stream;
  };
  return cuda("cudaStreamDestroy", [&] {
    if (stream->steps.empty()) go();
    else here->letting_go.steps.push_back([=] { return stream->steps.empty() && (go(), true); });
    return cudaSuccess;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return cuda("cudaStreamQuery", [&] { return of(stream).steps.empty() ? cudaSuccess : cudaErrorNotReady; });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  for (cudaError_t status = cudaErrorNotReady;; std::this_thread::yield())
    if (status = cudaStreamQuery(stream); status != cudaErrorNotReady) return status;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return cuda("cudaStreamWaitEvent", [&] {
    of(stream).steps.push_back(
        [state = event->state, until = event->state->recorded] { return state->passed >= until; });
    here->more.notify_all();
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cuda("cudaEventCreateWithFlags", [&] {
    *event = new CUevent_st;
    ++here->kept;
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return cuda("cudaEventDestroy", [&] {
    delete event;
    --here->kept;
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cuda("cudaEventRecord", [&] {
    of(stream).steps.push_back([state = event->state, now = ++event->state->recorded] {
      state->passed = std::max(state->passed, now);
      return true;
    });
    here->more.notify_all();
    return cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return cuda("cudaEventQuery",
              [&] { return event->state->passed == event->state->recorded ? cudaSuccess : cudaErrorNotReady; });
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return cuda("cudaMallocAsync", [&] {
    auto* const fresh = new std::byte[bytes + sizeof(std::max_align_t)];
    std::memcpy(fresh, &bytes, sizeof bytes);
    std::memset(fresh + sizeof(std::max_align_t), 0xcb, bytes);
    *memory = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(fresh + sizeof(std::max_align_t)) |
                                      std::uintptr_t{1} << 62);
    ++here->kept;
    return cudaSuccess;
  });
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return push("cudaFreeAsync", stream, [memory = behind(memory)] {
    auto* const fresh = static_cast<std::byte*>(memory) - sizeof(std::max_align_t);
    std::size_t bytes = 0;
    std::memcpy(&bytes, fresh, sizeof bytes);
    std::memset(memory, 0xdd, bytes);
    delete[] fresh;
    --here->kept;
    return true;
  });
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  return cuda("cudaMallocHost", [&] {
    *memory = new std::byte[bytes];
    ++here->kept;
    return cudaSuccess;
  });
}
cudaError_t cudaFreeHost(void* memory) {
  return cuda("cudaFreeHost", [&] {
    delete[] static_cast<std::byte*>(memory);
    --here->kept;
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind how, cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, how, stream);
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind how, cudaStream_t stream) {
  if (says_otherwise(to, how == cudaMemcpyHostToDevice || how == cudaMemcpyDeviceToDevice))
    return cudaErrorInvalidValue;
  if (says_otherwise(from, how == cudaMemcpyDeviceToHost || how == cudaMemcpyDeviceToDevice))
    return cudaErrorInvalidValue;
  return push("cudaMemcpy2DAsync", stream,
              [=, to = static_cast<std::byte*>(behind(to)), from = static_cast<const std::byte*>(behind(from))] {
                for (std::size_t i = 0; i < height; ++i) std::memcpy(to + i * to_pitch, from + i * from_pitch, width);
                return true;
              });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t run, void* with) {
  return push("cudaLaunchHostFunc", stream, [=] {
    run(with);
    return true;
  });
}

const char* ncclGetErrorString(ncclResult_t) { return "the machine was told to fail"; }
const char* ncclGetLastError(ncclComm_t) { return "ranks ask for other things, or have one device"; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::lock_guard lock(here->mutex);
  if (fails("ncclGetUniqueId")) return ncclSystemError;
  const std::uint64_t name = static_cast<std::uint64_t>(::getpid()) << 32 | ++here->named;
  std::memcpy(id->internal, &name, sizeof name);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  std::unique_lock lock(here->mutex);
  if (fails("ncclCommInitRankConfig")) return ncclSystemError;
  std::uint64_t name = 0;
  std::memcpy(&name, id.internal, sizeof name);
  auto& known = here->cliques[name];
  if (!known) {
    known = std::make_shared<clique>();
    known->size = ranks;
    if (tessera::read_environment().world > 1) known->beyond.emplace(std::to_string(name), std::to_string(rank));
  }
  const char* const host = std::getenv("NCCL_HOSTID");
  known->join(rank, fmt::format("{} of {}", device, host == nullptr ? "this host" : host));
  *comm = new ncclComm;
  (*comm)->of = known;
  (*comm)->rank = rank;
  ++here->kept;
  if (config->blocking == 0) return ncclInProgress;
  (*comm)->blocking = true;
  for (; !known->complete(); lock.lock()) {
    lock.unlock();
    std::this_thread::yield();
  }
  return known->status;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  std::lock_guard lock(here->mutex);
  comm->of->end(comm->rank);
  comm->ending = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::lock_guard lock(here->mutex);
  delete comm;
  --here->kept;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    std::lock_guard lock(here->mutex);
    *comm->aborted = true;
    for (auto& [pair, posted] : comm->of->between) {  // nobody reads or writes its memory any more
      if (pair.first == comm->rank) posted.first.clear();
      if (pair.second == comm->rank) posted.second.clear();
    }
    for (auto& [round, ranks] : comm->of->rounds)
      if (!ranks.empty()) ranks[static_cast<std::size_t>(comm->rank)].reset();
  }
  return ncclCommDestroy(comm);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  std::lock_guard lock(here->mutex);
  if (fails("ncclCommGetAsyncError")) comm->of->status = ncclRemoteError;
  *error = comm->of->status;
  if (*error != ncclSuccess) return ncclSuccess;
  const bool busy =
      !comm->of->complete() || (comm->busy > 0 && --comm->busy > 0) || (comm->ending && !comm->of->ended());
  if (busy) *error = ncclInProgress;
  else comm->hand_all();
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  std::lock_guard lock(here->mutex);
  const auto all = std::exchange(grouped, {});
  if (fails("ncclGroupEnd")) return ncclSystemError;
  std::map<std::pair<ncclComm_t, cudaStream_t>, std::vector<shared_part>> by_stream;
  for (const auto& [where, p] : all) by_stream[where].push_back(p);
  bool goes_on = false;
  for (auto& [where, parts] : by_stream) {
    const auto [comm, stream] = where;
    const bool collective =
        parts.front()->call != std::string("ncclSend") && parts.front()->call != std::string("ncclRecv");
    comm->handing.push_back(
        [stream = stream, step = group_of(*comm, parts, comm->launched++, collective ? comm->collectives++ : 0)] {
          of(stream).steps.push_back(step);
          here->more.notify_all();
        });
    if (comm->blocking) comm->hand_all();
    else comm->busy = here->roll.roll(1, 3);
    goes_on = goes_on || !comm->blocking;
  }
  return goes_on ? ncclInProgress : ncclSuccess;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({.call = "ncclSend", .from = behind(from), .bytes = count * bytes_of_type(type), .peer = peer}, comm,
             stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({.call = "ncclRecv", .to = behind(to), .bytes = count * bytes_of_type(type), .peer = peer}, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return add({.call = "ncclAllGather", .from = behind(from), .to = behind(to), .bytes = count * bytes_of_type(type)},
             comm, stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t with,
                           ncclComm_t comm, cudaStream_t stream) {
  return add({.call = "ncclAllReduce",
              .from = behind(from),
              .to = behind(to),
              .bytes = count * bytes_of_type(type),
              .type = type,
              .with = with},
             comm, stream);
}
ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t with, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  void* const there = comm->rank == root ? behind(to) : nullptr;
  return add({.call = "ncclReduce",
              .from = behind(from),
              .to = there,
              .bytes = count * bytes_of_type(type),
              .peer = root,
              .type = type,
              .with = with},
             comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add({.call = "ncclBroadcast",
              .from = behind(from),
              .to = behind(to),
              .bytes = count * bytes_of_type(type),
              .peer = root},
             comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t with,
                               ncclComm_t comm, cudaStream_t stream) {
  return add({.call = "ncclReduceScatter",
              .from = behind(from),
              .to = behind(to),
              .bytes = count * bytes_of_type(type),
              .type = type,
              .with = with},
             comm, stream);
}
}

namespace tessera::testing {

device_machine::device_machine(std::uint64_t seed, int devices) { here = new machine(seed, devices); }
device_machine::~device_machine() {
  static_cast<void>(kept());  // a stream that its owner let go ends what it has to do
  delete here;                // what its thread still does asks for it
  here = nullptr;
}
void device_machine::fail(const std::string& function, int which) {
  std::lock_guard lock(here->mutex);
  here->fails[function] = which;
}
std::vector<nccl_record> device_machine::records() {
  std::lock_guard lock(here->mutex);
  return std::exchange(here->records, {});
}
int device_machine::kept() const {
  for (int look = 0;; ++look) {  // streams give back what they have to do with
    std::unique_lock lock(here->mutex);
    if (here->kept == 0 || look == 5000) return here->kept;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void on_stream(cudaStream_t on, std::function<void()> run) {
  auto* const kept = new std::function<void()>(std::move(run));
  const auto call = [](void* f) {
    const std::unique_ptr<std::function<void()>> once(static_cast<std::function<void()>*>(f));
    (*once)();
  };
  if (cudaLaunchHostFunc(on, call, kept) == cudaSuccess) return;
  delete kept;
  throw error(refusal{code::device_failed}, "a kernel");
}

void late_boxes::copy(const region& from, const region& to, cudaStream_t on) {
  on_stream(on, [=] {
    const common_rows rows(from.extents, {from.strides.begin(), to.strides.begin()});
    copy_rows(rows, bytes_of(from.element), behind(from.data), behind(to.data));
  });
}
void late_boxes::combine_terms(std::span<const region> terms, const region& to, combine with, cudaStream_t on) {
  on_stream(on, [all = std::vector<region>(terms.begin(), terms.end()), to, with] {
    std::vector<const index_t*> strides;
    std::vector<std::byte*> at;
    for (const region& t : all) {
      strides.push_back(t.strides.begin());
      at.push_back(behind(t.data));
    }
    strides.push_back(to.strides.begin());
    at.push_back(behind(to.data));
    combine_rows(common_rows(to.extents, strides), to.element, at, with);
  });
}
void late_boxes::fill_neutral(const region& to, combine with, cudaStream_t on) {
  on_stream(on, [=] { tessera::engine::fill_neutral(behind(to), with); });
}

}  // namespace tessera::testing
