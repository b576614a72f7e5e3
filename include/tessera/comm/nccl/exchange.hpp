#pragma once

#include <tessera/comm/nccl/call.hpp>
#include <tessera/comm/nccl/transfer_method.hpp>

#include <algorithm>

namespace tessera::engine {

/// An exchange between devices. Contiguous boxes travel from their place in one tensor to their place in the other;
/// others are packed in a buffer. So are the terms of a Fold, which are combined in the order of coordinates when all
/// are there.
class nccl_exchange final : public bound_exchange {
 public:
  nccl_exchange(nccl_transport& carrier, exchange_plan bound, std::uint64_t how,
                std::shared_ptr<nccl_communicator> among, std::shared_ptr<const void> keeper)
      : bound_exchange(carried_by(how, std::move(bound)), std::move(keeper)),
        carrier_(carrier),
        how_(how),
        among_(std::move(among)) {
    if (!among_) return;
    exchange_plan tells = exchange_plan::gathering(plan().workers, carrier.rank(), 1, plan().key);
    tells.id = plan().id;
    tells_ = carrier.host().bind(std::move(tells));
  }

 private:
  friend class nccl_transport;

  using letter = nccl_call::letter;

  static nccl_call& mine(exchange_call& call) { return static_cast<nccl_call&>(call); }
  bool is(transfer_method c) const { return how_ == static_cast<std::uint64_t>(c); }
  bool alone() const { return !among_; }

  std::unique_ptr<exchange_call> make_call() override {
    const current_device here(carrier_.device_);
    auto call = std::make_unique<nccl_call>();
    call->of = this;
    call->begun_by.resize(plan().workers.size());
    return call;
  }

  void begin(exchange_call& call) override {
    nccl_call& c = mine(call);
    refuse_if_given_up(c);
    const current_device here(carrier_.device_);
    const cudaStream_t current = carrier_.stream();
    c.launched = false;
    c.ready.record(current);
    c.current = current;
    if (alone()) return launch(c);
    among_->order.begin(c, plan().id);
    c.mine = c.begun;
    c.telling.emplace(tells_->start(numbers(&c.mine, 1), numbers(c.begun_by.data(), c.begun_by.size()), c.does));
    if (plan().order != 0 && !brings()) {
      among_->order.remove(c);
      launch(c);
    }
    carrier_.go_on();
  }

  // Whether something comes from others. What only sends in an order of its own goes at once: no other call may be
  // meant. The worker's own work does not wait for it, so a reader's device waits for no host but its own.
  bool brings() const { return plan().brings.messages > 0; }

  static region numbers(std::uint64_t* first, std::size_t n) {
    region r{reinterpret_cast<std::byte*>(first), element::int64, {}, {}};
    r.extents.push(static_cast<index_t>(n));
    r.strides.push(1);
    return r;
  }

  void refuse_if_given_up(const nccl_call& c) const {
    const int me = carrier_.rank();
    if (carrier_.stopped_) throw error(refusal{code::call_given_up, me}, worker_text(me, text_of(c.does)));
  }

  // Learns when the others have begun the call, without waiting for it.
  void look(nccl_call& c) {
    if (c.last == 0 && c.telling && c.telling->arrived())
      c.last = *std::max_element(c.begun_by.begin(), c.begun_by.end());
  }
  void meet(nccl_call& c) {
    if (!c.telling) return;
    c.telling->finish();
    c.telling.reset();
    c.last = *std::max_element(c.begun_by.begin(), c.begun_by.end());
  }

  bool arrived(exchange_call& call) override {
    nccl_call& c = mine(call);
    refuse_if_given_up(c);
    carrier_.go_on();
    return c.launched && c.done.passed();
  }

  void complete(exchange_call& call) override {
    nccl_call& c = mine(call);
    refuse_if_given_up(c);
    const current_device here(carrier_.device_);
    if (!alone()) hand_over(c);
    c.done.delay(carrier_.stream());
    if (carrier_.options_.host_waits) carrier_.synchronise();
  }

  // Waits on the host until the device has it.
  void hand_over(nccl_call& c) {
    meet(c);
    for (carrier_.go_on(); !c.launched; carrier_.go_on()) {
      const ordered_call& first = *among_->order.first();
      if (ordered_call* const other = among_->order.undecided(first)) {
        nccl_call& o = static_cast<nccl_call&>(*other);
        o.of->meet(o);
      } else if (among_->order.needs_more(first)) {
        const int late = among_->workers[static_cast<std::size_t>(
            std::max_element(c.begun_by.begin(), c.begun_by.end()) - c.begun_by.begin())];
        throw error(refusal{code::order_unknown, carrier_.rank(), late}, worker_text(carrier_.rank(), text_of(c.does)));
      }
    }
  }

  /// Nobody reads or writes its tensors afterwards: what the device has of it and cannot end is ended.
  void withdraw(std::unique_ptr<exchange_call> call) noexcept override {
    carrier_.host().fail_with(error(refusal{code::call_given_up, carrier_.rank()}));
    nccl_call& c = mine(*call);
    c.telling.reset();
    if (!alone()) among_->order.remove(c);
    carrier_.stop();
    if (c.launched) carrier_.drain(stream(c));
  }

  cudaStream_t stream(const nccl_call& c) const { return alone() ? c.current : among_->stream.get(); }

  // Hands the call to the device, all of it or nothing that would wait there for ever.
  void launch(nccl_call& c) {
    try {
      hand(c, stream(c));
    } catch (...) {
      carrier_.stop();
      carrier_.drain(stream(c));
      throw;
    }
  }
  void hand(nccl_call& c, cudaStream_t on) {
    describe(c);
    device_boxes& boxes = *carrier_.boxes_;
    c.ready.delay(on);
    const device_memory beside(c.bytes_beside, on);
    if (!plan().covered && !c.has_own) boxes.fill_neutral(c.out, plan().with, on);
    for (std::size_t i = 0; i < c.sends.size(); ++i)
      if (const box_transfer& l = plan().sends[i]; c.sends[i].packed >= 0)
        boxes.copy(c.in.part(l.here, l.extents), packed(c.sends[i], c.in, l, beside), on);
    if (!alone()) carry(c, beside, on);
    for (std::size_t i = 0; i < plan().cells.size(); ++i) combine_cell(plan().cells[i], c, beside, on);
    if (plan().cells.empty()) {
      for (std::size_t i = 0; i < c.receives.size(); ++i) {
        const box_transfer& l = plan().receives[i];
        const region to = c.out.part(l.here, l.extents);
        if (own(l) && c.has_own) continue;
        if (own(l)) boxes.copy(c.in.part(l.there, l.extents), to, on);
        else if (c.receives[i].packed >= 0) boxes.copy(packed(c.receives[i], c.out, l, beside), to, on);
      }
    }
    c.done.record(on);
    c.launched = true;
  }

  bool own(const box_transfer& l) const { return l.peer == carrier_.rank(); }

  void carry(nccl_call& c, const device_memory& beside, cudaStream_t on) {
    const auto at = [&](const letter& x, const region& tensor) {
      return x.packed >= 0 ? beside.data() + x.packed : tensor.data + x.lies;
    };
    const ncclComm_t comm = among_->get();
    if (is(transfer_method::messages)) {
      nccl_group together;
      const auto each = [&](const std::vector<box_transfer>& transfers, const std::vector<letter>& of_transfers,
                            auto&& ask) {
        for (std::size_t i = 0; i < transfers.size(); ++i)
          if (!own(transfers[i]) && of_transfers[i].bytes > 0)
            ask(of_transfers[i], among_->index_of(transfers[i].peer));
      };
      each(plan().sends, c.sends, [&](const letter& x, int to) {
        detail::throw_if_failed(ncclSend(at(x, c.in), x.bytes, ncclUint8, to, comm, on), "sending");
      });
      each(plan().receives, c.receives, [&](const letter& x, int from) {
        detail::throw_if_failed(ncclRecv(at(x, c.out), x.bytes, ncclUint8, from, comm, on), "receiving");
      });
      together.end();
    } else if (is(transfer_method::all_gather)) {
      detail::throw_if_failed(
          ncclAllGather(at(c.sends[0], c.in), at(c.receives[0], c.out), c.sends[0].bytes, ncclUint8, comm, on),
          "gathering");
    } else if (is(transfer_method::reduce_scatter) || is(transfer_method::all_reduce)) {
      const nccl_numbers numbers = *nccl_numbers_of(plan().element);
      const auto n = static_cast<std::size_t>(count_of(plan().out) * numbers.of_each);
      const ncclRedOp_t with = *nccl_operation_of(plan().with, plan().element);
      const auto add = is(transfer_method::all_reduce) ? &ncclAllReduce : &ncclReduceScatter;
      detail::throw_if_failed(add(at(c.sends[0], c.in), at(c.receives[0], c.out), n, numbers.type, with, comm, on),
                              "adding");
    } else {
      const int root = static_cast<int>(how_ - static_cast<std::uint64_t>(transfer_method::broadcast));
      const bool sends = among_->workers[static_cast<std::size_t>(root)] == carrier_.rank();
      std::byte* const whole = sends ? at(c.sends[0], c.in) : at(c.receives[0], c.out);
      detail::throw_if_failed(
          ncclBroadcast(whole, whole, (sends ? c.sends : c.receives)[0].bytes, ncclUint8, root, comm, on),
          "broadcasting");
    }
    among_->settle("handing a call to the device");
  }

  void combine_cell(const term_cell& of, const nccl_call& c, const device_memory& beside, cudaStream_t on) {
    if (c.has_own && of.terms.size() == 1 && own(plan().receives[static_cast<std::size_t>(of.terms[0])])) return;
    std::vector<region> terms;
    for (const int i : of.terms) {
      const auto term = static_cast<std::size_t>(i);
      const box_transfer& l = plan().receives[term];
      box_vector inside = of.here;
      for (int d = 0; d < inside.count; ++d) inside[d] -= l.here[d];
      const region whole = own(l) ? c.in.part(l.there, l.extents) : packed(c.receives[term], c.out, l, beside);
      terms.push_back(whole.part(inside, of.extents));
    }
    carrier_.boxes_->combine_terms(terms, c.out.part(of.here, of.extents), plan().with, on);
  }

  // Finds how each box travels, unless the tensors are strided as those of the call before.
  void describe(nccl_call& c) const {
    if (c.is_described && c.in.strides == c.strides_in && c.out.strides == c.strides_out) return;
    c.is_described = true;
    c.strides_in = c.in.strides;
    c.strides_out = c.out.strides;
    c.bytes_beside = 0;
    c.sends.clear();
    c.receives.clear();
    for (const box_transfer& l : plan().sends) c.sends.push_back(letter_of(c, c.in, l, false));
    for (const box_transfer& l : plan().receives) c.receives.push_back(letter_of(c, c.out, l, !plan().cells.empty()));
  }
  letter letter_of(nccl_call& c, const region& tensor, const box_transfer& l, bool term) const {
    const region part = tensor.part(l.here, l.extents);
    letter x{part.data - tensor.data, -1, static_cast<std::size_t>(part.bytes())};
    if (own(l) || (part.contiguous() && !term)) return x;
    x.packed = c.bytes_beside;
    c.bytes_beside += (part.bytes() + 255) / 256 * 256;
    return x;
  }
  static region packed(const letter& x, const region& tensor, const box_transfer& l, const device_memory& beside) {
    region r = tensor;
    r.extents = l.extents;
    return r.packed_at(beside.data() + x.packed);
  }

  nccl_transport& carrier_;
  std::uint64_t how_;  // all its workers carry it alike
  std::shared_ptr<nccl_communicator> among_;
  std::shared_ptr<bound_exchange> tells_;
};

inline std::shared_ptr<bound_exchange> nccl_transport::bind(exchange_plan plan) {
  const current_device here(device_);
  if (plan.agrees()) return host_->bind(std::move(plan));
  if (options_.library_sums && plan.fold && !nccl_knows(plan.with, plan.element))
    throw error(refusal{code::sum_unknown_to_nccl},
                fmt::format("{} of {}", name_of(plan.moves.how), name_of(plan.element)));
  auto keeper = keep_alive(plan);
  std::shared_ptr<nccl_communicator> of;
  std::uint64_t how = 0;
  if (plan.agreed()) {
    const agreement workers(*host_, plan.workers);
    of = among(workers, plan.order);
    const call_context does{.why = purpose::agreement, .name = "choosing a collective"};
    const std::vector<std::uint64_t> all =
        workers.gather({transfer_method_of(plan, rank(), options_.library_sums)}, "choosing a collective", does);
    if (std::all_of(all.begin(), all.end(), [&](std::uint64_t h) { return h == all.front(); })) how = all.front();
  }
  return std::make_shared<nccl_exchange>(*this, std::move(plan), how, std::move(of), std::move(keeper));
}

inline void nccl_transport::go_on() {
  if (going_on_ || stopped_) return;
  going_on_ = true;
  struct until_left {
    bool& flag;
    ~until_left() { flag = false; }
  } const here{going_on_};
  for (const auto& [of, among] : communicators_) {
    for (ordered_call* c : among->order.pending()) static_cast<nccl_call*>(c)->of->look(static_cast<nccl_call&>(*c));
    while (ordered_call* const next = among->order.next()) {
      const current_device device(device_);
      nccl_call& c = static_cast<nccl_call&>(*next);
      among->order.remove(c);
      c.of->launch(c);
    }
  }
}

}  // namespace tessera::engine
