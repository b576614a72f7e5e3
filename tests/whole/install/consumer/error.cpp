#include <tessera/comm/base/error.hpp>

#include <cstdio>

// Headers alone define it in each file, the library once.
int main() { std::puts(tessera::error::unpacked(" 3\n[some.code] a sentence\na place").what()); }
