#pragma once

#include <tessera/comm/exchange/transport.hpp>

#include <string>

namespace tessera::engine {

/// Some workers of a launch that hand each other numbers, to agree on something: all of them call the same functions.
class agreement {
 public:
  agreement(transport& carrier, std::vector<int> workers) : carrier_(carrier.host()), workers_(std::move(workers)) {
    for (const int w : workers_) fingerprint_ << w;
  }

  const std::vector<int>& workers() const { return workers_; }

  /// The numbers that each worker hands in, equally many, on all of them, in the order of the workers. `subject` is
  /// the same literal on all; what each one does meanwhile is said where they are not.
  std::vector<std::uint64_t> gather(std::vector<std::uint64_t> mine, const char* subject,
                                    const call_context& does) const;

  /// What such numbers are known by, among all that are handed round; transports may carry two kinds alike, so each row
  /// says it.
  std::uint64_t key_of(std::size_t count, const char* subject) const;

  /// The text that each worker hands in, on all of them.
  std::vector<std::string> gather(const std::string& mine, const call_context& does) const;

  /// Throws on every worker if a number of these, `count` from each worker, differs in its first; describe() says what
  /// stands for it.
  template <class Describe>
  void throw_if_different(const std::vector<std::uint64_t>& all, std::size_t count, const call_context& does,
                          Describe&& describe) const {
    std::size_t other = 0;
    while (other < workers_.size() && all[other * count] == all[0]) ++other;
    if (other == workers_.size()) return;
    const std::vector<std::string> each = gather(std::string(describe()), does);
    disagree(error(refusal{code::workers_disagree, workers_[0], workers_[other]},
                   worker_text(workers_[0], each[0]) + "; " + worker_text(workers_[other], each[other]) +
                       (each[0] == each[other] ? ", other ones" : "")));
  }

  /// The launch fails with it, even where the program catches it.
  [[noreturn]] void disagree(const error& why) const;

  /// Gives a plan an id, the first that is free on all its workers, and what their transports offer for it. All workers
  /// get `also`, a number of the first of them.
  static std::uint64_t assign_id(transport& of, exchange_plan& plan, std::uint64_t also, const call_context& context);

 private:
  static constexpr std::size_t word_bytes = 24;               // of what a row is for
  static constexpr std::size_t heading = 1 + word_bytes / 8;  // behind its numbers

  [[noreturn]] void refuse_another(int worker, const call_context& does, const char* subject) const;

  transport& carrier_;
  std::vector<int> workers_;
  fingerprint fingerprint_;
};

/// Binds a phase with all the workers that take part in it; what the calls are for is compared.
std::shared_ptr<bound_exchange> bind_exchange(transport& carrier, const phase& p, element e,
                                              const call_context& context = {});

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/comm/exchange/agreement_impl.hpp>
#endif
