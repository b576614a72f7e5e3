#include <tessera/core.hpp>

#include <tessera/comm/base/error_impl.hpp>
#include <tessera/comm/team_state_impl.hpp>
#include <tessera/comm/workers_impl.hpp>
