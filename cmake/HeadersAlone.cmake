# headers_alone: compiles each header over LibTorch on its own, but for LibTorch's, which are read once. CMake's check
# of the other floors would read them for each, which took more than half of all that clang compiles. A header is
# compiled as the compiled form has it, without the definitions behind it: those are headers too, and alone as well.
# And all headers of the library one behind the other, from the first to the last and back: a program includes them in
# any order, and with their definitions. Last, tessera.hpp and its definitions with those operators of LibTorch alone
# that tensor/box/aten.hpp lists.

set(alone "")
set(each "")
foreach(floor IN ITEMS core comm inspect torch header_only)
  get_target_property(headers tessera_${floor} HEADER_SET)
  list(APPEND each ${headers})
endforeach()
list(SORT each)
list(TRANSFORM each REPLACE "^${PROJECT_SOURCE_DIR}/include/(.*)$" "#include <\\1>\n")
foreach(order IN ITEMS in_order in_reverse)
  list(JOIN each "" text)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers_alone/${order}.cpp CONTENT "${text}")
  list(APPEND alone ${PROJECT_BINARY_DIR}/headers_alone/${order}.cpp)
  list(REVERSE each)
endforeach()
foreach(floor IN ITEMS torch header_only)
  set_target_properties(tessera_${floor} PROPERTIES VERIFY_INTERFACE_HEADER_SETS OFF)
  get_target_property(headers tessera_${floor} HEADER_SET)
  foreach(header IN LISTS headers)
    cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include OUTPUT_VARIABLE name)
    set(source ${PROJECT_BINARY_DIR}/headers_alone/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#define TESSERA_COMPILED\n#include <${name}>\n")
    list(APPEND alone ${source})
  endforeach()
endforeach()
set(listed ${PROJECT_BINARY_DIR}/headers_alone/listed_operators.cpp)
file(CONFIGURE OUTPUT ${listed} CONTENT "#define AT_PER_OPERATOR_HEADERS\n#include <tessera/tessera.hpp>\n")
set_source_files_properties(${listed} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
add_library(headers_alone OBJECT EXCLUDE_FROM_ALL ${alone} ${listed})
target_link_libraries(headers_alone PRIVATE tessera::header_only)
target_precompile_headers(headers_alone PRIVATE <ATen/ATen.h> <torch/csrc/autograd/engine.h> <torch/csrc/autograd/function.h>)
set_target_properties(headers_alone PROPERTIES JOB_POOL_COMPILE tessera_torch)
