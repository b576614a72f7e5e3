# Settings for building this project itself; a project that uses Tessera keeps its own.

option(TESSERA_UNITY "Build each LibTorch test program from few large files, and what these include once" OFF)

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-Wall -Wextra -Wshadow -Wconversion)

# It keeps precompiled headers as well, and learns from the compiler what a file includes instead of preprocessing it
# first.
find_program(TESSERA_CCACHE ccache)
if(TESSERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${TESSERA_CCACHE})
endif()

find_program(TESSERA_LLD ld.lld)
if(TESSERA_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# g++ collects its garbage each time that it holds twice as much, precompiled headers included: a tenth of its time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-expand=400" "SHELL:--param ggc-min-heapsize=1000000")
endif()

# A file with LibTorch's headers takes up to 3 GB of memory to compile, so only two at once.
set_property(GLOBAL PROPERTY JOB_POOLS tessera_torch=2)

# tessera_heavy(target [RUNS_LONG]): for a program that includes LibTorch's headers. Where all are built, those that
# link the compiled library share these headers, precompiled: they are half of what a small program costs. To optimise
# it would be half of the rest, and most run little code of their own.
function(tessera_heavy target)
  set_target_properties(${target} PROPERTIES JOB_POOL_COMPILE tessera_torch)
  get_target_property(linked ${target} LINK_LIBRARIES)
  if(NOT TESSERA_UNITY OR NOT "tessera::tessera" IN_LIST linked)
    return()
  endif()
  set(headers heavy_headers)
  set(optimisation -O0)
  if("RUNS_LONG" IN_LIST ARGN)
    set(headers optimised_headers)
    set(optimisation "")
  endif()
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${headers}.cpp CONTENT "")
    add_library(${headers} OBJECT ${PROJECT_BINARY_DIR}/${headers}.cpp)
    target_link_libraries(${headers} PRIVATE tessera::tessera)
    target_compile_options(${headers} PRIVATE ${optimisation} $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)  # for ccache
    set_target_properties(${headers} PROPERTIES JOB_POOL_COMPILE tessera_torch)
    tessera_precompile(${headers})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  target_compile_options(${target} PRIVATE ${optimisation})
endfunction()

# tessera_together(target count): builds its files as few large ones, of so many each, where that is asked for: half of
# what a small file costs are headers and instances that it shares with the others.
function(tessera_together target count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD "${TESSERA_UNITY}" UNITY_BUILD_BATCH_SIZE ${count})
  target_compile_options(${target} PRIVATE -Wno-shadow)  # files that are built as one share names
endfunction()

# tessera_together_apart(target count file...): these files are built with one another, and with none of the others.
function(tessera_together_apart target count)
  get_target_property(all ${target} SOURCES)
  list(REMOVE_ITEM all ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  set(apart ${ARGN})
  foreach(list IN ITEMS all apart)
    set(number 0)
    foreach(file IN LISTS ${list})
      math(EXPR group "${number} / ${count}")
      set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${list}_${group})
      math(EXPR number "${number} + 1")
    endforeach()
  endforeach()
endfunction()

# The environment of every test: one thread a worker, an Open MPI that runs as root on fewer cores than ranks, and a
# name server that does not answer costs mpirun, which asks for its own host's name where /etc/hosts lacks it, one
# second instead of five.
set(TESSERA_TEST_ENVIRONMENT
    OMP_NUM_THREADS=1
    "RES_OPTIONS=timeout:1 attempts:1"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)  # what Open MPI reads from 5 on

# tessera_add_mpi_test(name ranks program [argument...]). A job that hangs is ended before ctest does, by its ranks if
# they can say where they are (tests/support/mpi_main.cpp), or by mpirun.
function(tessera_add_mpi_test name ranks program)
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(${name} PROPERTIES
    PROCESSORS ${ranks} TIMEOUT 120 LABELS mpi
    ENVIRONMENT "${TESSERA_TEST_ENVIRONMENT};TESSERA_TEST_SECONDS=100;MPIEXEC_TIMEOUT=110")
endfunction()
