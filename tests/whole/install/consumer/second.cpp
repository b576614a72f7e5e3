#include <tessera/comm/base/error.hpp>

std::string second(const tessera::error& thrown) { return thrown.packed(); }
