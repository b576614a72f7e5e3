#pragma once

#include <tessera/comm/exchange/agreement.hpp>

#include <cstring>

namespace tessera {

namespace detail {

inline engine::region row_of(std::vector<std::uint64_t>& numbers) {
  engine::region r{reinterpret_cast<std::byte*>(numbers.data()), element::int64, {}, {}};
  r.extents.push(static_cast<index_t>(numbers.size()));
  r.strides.push(1);
  return r;
}

}  // namespace detail

namespace engine {

TESSERA_INLINE std::vector<std::uint64_t> agreement::gather(std::vector<std::uint64_t> mine, const char* subject,
                                                            const call_context& does) const {
  const std::size_t count = mine.size();
  const std::uint64_t key = key_of(count, subject);
  mine.push_back(key);
  mine.resize(count + heading);
  std::memcpy(&mine[count + 1], subject, std::min(std::strlen(subject), word_bytes));
  std::vector<std::uint64_t> rows(mine.size() * workers_.size());
  auto& bound = carrier_.agreements_[key];
  if (!bound)
    bound = carrier_.bind(exchange_plan::gathering(workers_, carrier_.rank(), static_cast<index_t>(mine.size()), key));
  bound->start(detail::row_of(mine), detail::row_of(rows), does).finish();
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const std::uint64_t* theirs = &rows[i * mine.size()];
    if (theirs[count] != key) refuse_another(workers_[i], does, reinterpret_cast<const char*>(theirs + count + 1));
    all.insert(all.end(), theirs, theirs + count);
  }
  return all;
}

TESSERA_INLINE std::uint64_t agreement::key_of(std::size_t count, const char* subject) const {
  fingerprint key = fingerprint_;
  key << static_cast<index_t>(count) << static_cast<index_t>(text(subject).hash);
  return key.value();
}

TESSERA_INLINE std::vector<std::string> agreement::gather(const std::string& mine, const call_context& does) const {
  const std::vector<std::uint64_t> lengths =
      gather(std::vector<std::uint64_t>{mine.size()}, "telling the others", does);
  const std::size_t words = *std::max_element(lengths.begin(), lengths.end()) / 8 + 1;
  std::vector<std::uint64_t> packed(words);
  std::memcpy(packed.data(), mine.data(), mine.size());
  const std::vector<std::uint64_t> all = gather(std::move(packed), "telling the others", does);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    texts.emplace_back(reinterpret_cast<const char*>(&all[i * words]), lengths[i]);
  return texts;
}

TESSERA_INLINE void agreement::disagree(const error& why) const {
  carrier_.fail_with(why);
  throw why;
}

TESSERA_INLINE std::uint64_t agreement::assign_id(transport& of, exchange_plan& plan, std::uint64_t also,
                                                  const call_context& context) {
  transport& carrier = of.host();
  if (plan.workers.size() == 1) {
    plan.id = carrier.next_id_++;
    return also;
  }
  const agreement among(carrier, plan.workers);
  call_context does = context;
  does.element = plan.element;
  if (does.moves == nullptr) does.moves = &plan.moves;
  const std::uint64_t offered = of.offer(plan);
  constexpr std::size_t row = 4;
  std::uint64_t first = 0;
  for (std::uint64_t from = carrier.next_id_;;) {
    const std::uint64_t mine = carrier.free_id(from);
    const std::vector<std::uint64_t> all = among.gather({plan.key, mine, also, offered}, "binding", does);
    among.throw_if_different(all, row, does, [&] { return text_of(does); });
    bool alike = true;
    bool full = false;
    for (std::size_t i = 1; i < all.size(); i += row) {
      from = std::max(from, all[i]);
      alike = alike && all[i] == all[1];
      full = full || all[i] == 0;
    }
    if (first == 0) first = from;
    if (full || from - first >= carrier.most_exchanges())
      among.disagree(
          error(refusal{code::exchanges_full, static_cast<index_t>(carrier.most_exchanges())}, text_of(does)));
    if (!alike) continue;
    plan.id = from;
    carrier.next_id_ = from + 1;
    for (std::size_t i = row - 1; i < all.size(); i += row) plan.offers.push_back(all[i]);
    return all[2];
  }
}

TESSERA_INLINE void agreement::refuse_another(int worker, const call_context& does, const char* subject) const {
  const std::string theirs(subject, strnlen(subject, word_bytes));
  disagree(error(refusal{code::workers_disagree, carrier_.rank(), worker},
                 worker_text(carrier_.rank(), text_of(does)) + "; " + worker_text(worker, theirs)));
}

TESSERA_INLINE std::shared_ptr<bound_exchange> bind_exchange(transport& carrier, const phase& p, element e,
                                                             const call_context& context) {
  exchange_plan plan(p, carrier.rank(), e, context);
  agreement::assign_id(carrier, plan, 0, context);
  return carrier.bind(std::move(plan));
}

}  // namespace engine

}  // namespace tessera
