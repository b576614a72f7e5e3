#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/comm/launch/rendezvous.hpp>

namespace tessera::engine {

/// Where processes meet that torchrun or SLURM started: LibTorch's TCPStore at the launcher's address and port.
///
/// torchrun's agent serves it where it says so (`TORCHELASTIC_USE_AGENT_STORE`), else the first process does. Texts
/// stand under the job, its attempt and the launch's number, so that launches after one another, and after a restart,
/// do not meet.
std::vector<std::string> store_rendezvous(const launch_environment& started, const std::string& mine,
                                          std::chrono::seconds limit);

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/tensor/store_rendezvous_impl.hpp>
#endif
