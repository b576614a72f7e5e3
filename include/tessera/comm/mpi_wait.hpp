#pragma once

#include <tessera/comm/message_wait.hpp>
#include <tessera/comm/mpi_transport.hpp>

namespace tessera {

using mpi_wait = message_wait;

}  // namespace tessera
