#!/usr/bin/env python3
"""Uses Tessera as other projects do: installed in an empty prefix, or as a subdirectory.

usage: check.py --build BUILD [--have COMPONENT,...] [--compiler CXX] [--launcher ccache] [--libtorch DIR] CASE

Each program is small, is not optimised, and sees no package that it does not need. CASE is one of
  headers                  the installed headers are those of include/, without the floors that were left out; the licence lies beside
  refusals                 components and versions that cannot be had, each with what it says
  package.core             find_package for a program of the algebra, which needs nothing and no exceptions
  package.comm             find_package for a file with the headers of MPI, Boost.MPI and fmt, and without LibTorch
  package.tessera          find_package that names nothing, and the library that BUILD has; another target, which links it by its former
                           name, shares the precompiled header
  package.without_library  what was installed without the library: tessera::tessera is the headers alone there, and so named
  subdirectory.core        add_subdirectory of the core for the same program
  subdirectory.header_only add_subdirectory of all floors, for workers with LibTorch's tensors by headers alone; no library is built
  subdirectory.tessera     add_subdirectory without LibTorch and MPI, for workers: the library is built, since a program links it
  plain                    -I include and the flags that docs/install.md names, without CMake
  mixed                    a program with one file on the library and one on headers alone does not link, with two on the library it does
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
source = here.parents[2]
output = {"core": "350\n", "comm": "6\n", "error": "[some.code] a sentence [a place]\n",
          "tessera": "5 over line 2 = blocks(line) [0,3) [3,5) 30 20\n"}
output["needs"] = output["error"]

# What a case may need from elsewhere; whatever else is there must make no difference.
packages = ["Threads", "fmt", "MPI", "Boost", "LibTorch", "nlohmann_json", "NCCL"]
needs = {"package.core": [], "package.comm": packages[:4], "package.tessera": packages, "package.without_library": packages[:4],
         "subdirectory.core": [], "subdirectory.header_only": packages[:6], "subdirectory.tessera": packages[:2], "mixed": packages[:6]}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--build", type=pathlib.Path, required=True)
parser.add_argument("--have", default="core,inspect,comm,torch,header_only,tessera,compiled")
parser.add_argument("--compiler", default="c++")
parser.add_argument("--launcher", default="")
parser.add_argument("--libtorch", default="")
parser.add_argument("case")
options = parser.parse_args()
have = options.have.split(",")


def run(*command, fails=False, **more):
    """What a command prints; ends the test unless it succeeds, or fails where it should."""
    ran = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if (ran.returncode != 0) != fails:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout}\nexit status {ran.returncode}")
    return ran.stdout


def cmake(project, folder, *defines, **more):
    """Configures a project with the compiler of this build."""
    environment = {k: v for k, v in os.environ.items() if k != "TESSERA_LIBTORCH"}
    return run("cmake", "-G", "Ninja", "-S", project, "-B", folder, f"-DCMAKE_CXX_COMPILER={options.compiler}",
               f"-DCMAKE_CXX_COMPILER_LAUNCHER={options.launcher}", f"-DTESSERA_LIBTORCH={options.libtorch}", *defines,
               env=environment, **more)


def configure(folder, program, link, *defines, without=None, fails=False):
    """Configures the consumer as if the packages `without` were not there, which are those that the case does not need."""
    if without is None:
        without = [p for p in packages if p not in needs[options.case]]
    return cmake(here / "consumer", folder, f"-DPROGRAM={program}", f"-DLINK={link}",
                 "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Wconversion -Werror", *defines,
                 *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{p}=ON" for p in without), fails=fails)


def build_and_run(folder, program):
    run("cmake", "--build", folder)
    tests = run("ctest", "--test-dir", folder, "-N")
    if "Total Tests: 1\n" not in tests:
        sys.exit(f"Tessera brought tests of its own:\n{tests}")
    runs(folder / "program", program)


def runs(executable, program):
    said = run(executable)
    if said != output[program]:
        sys.exit(f"{program} says {said!r} instead of {output[program]!r}")


def check_headers(prefix):
    floors = {"comm": ["comm"], "inspect": ["inspect"], "nccl": ["comm/nccl"],
              "torch": ["tensor", "file", "nn", "tessera.hpp", "inspect/profile.hpp"]}
    left_out = {f"tessera/{path}" for floor, names in floors.items() if floor not in have
                for name in names for path in (name, f"generated/{name}.hpp")}
    ours = {h.relative_to(source / "include") for h in (source / "include").rglob("*") if h.suffix in (".hpp", ".inc")}
    ours = {h for h in ours if not any(path.as_posix() in left_out for path in [h, *h.parents])}
    theirs = {h.relative_to(prefix / "include") for h in (prefix / "include").rglob("*") if not h.is_dir()}
    if ours != theirs or not theirs:
        sys.exit(f"not installed, and not checked alone: {sorted(map(str, ours - theirs))}; "
                 f"too many: {sorted(map(str, theirs - ours))}")
    for name in ("LICENSE", "NOTICE"):
        there = prefix / "share/doc/tessera" / name
        if not there.exists() or there.read_bytes() != (source / name).read_bytes():
            sys.exit(f"share/doc/tessera/{name} is not installed as it is")


def check_refusals(prefix, folder):
    installed = f"-DCMAKE_PREFIX_PATH={prefix}"
    count = 0

    def refused(*defines, without=(), says):
        nonlocal count
        count += 1
        text = configure(folder / str(count), "core", "core", installed, *defines, without=without, fails=True)
        text = " ".join(text.split())
        for words in says:
            if words not in text:
                sys.exit(f"{defines} without {without}: {words!r} is not in\n{text}")

    missing = [("inspect", "fmt", "libfmt-dev"), ("comm", "fmt", "libfmt-dev"), ("comm", "MPI", "libopenmpi-dev"),
               ("comm", "Boost", "libboost-mpi-dev"), ("torch", "LibTorch", "TESSERA_LIBTORCH"),
               ("tessera", "nlohmann_json", "nlohmann-json3-dev"), ("nccl", "NCCL", "libnccl-dev")]
    for component, package, install in missing:
        if component in have and (component != "comm" or package == "fmt" or "mpi" in have):
            refused(f"-DCOMPONENTS={component}", without=[package], says=[f"needs {package}, which was not found: install", install])
    if "torch" in have:
        refused("-DCOMPONENTS=torch", "-DTESSERA_LIBTORCH=/nowhere", says=["TESSERA_LIBTORCH=/nowhere holds no LibTorch"])
        old = folder / "old"
        for name in ["lib/libtorch_cpu.so", "lib/libc10.so", "include/ATen/ATen.h", "share/cmake/Torch/TorchConfig.cmake"]:
            (old / name).parent.mkdir(parents=True, exist_ok=True)
            (old / name).write_text('set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")')
        refused("-DCOMPONENTS=torch", f"-DTESSERA_LIBTORCH={old}", says=["was built with the old std::string"])
        refused(without=["LibTorch"], says=["tessera::torch needs LibTorch", "find_package(tessera COMPONENTS core)"])
        text = configure(folder / "optional", "core", "core", installed, "-DCOMPONENTS=core", "-DOPTIONAL=torch;comm", without=["LibTorch"])
        if not ("-- core: TRUE\n" in text and "-- torch: FALSE\n" in text and "-- comm: TRUE\n" in text):
            sys.exit(f"optional components are not told apart:\n{text}")
    else:
        refused("-DCOMPONENTS=torch", says=["was left out when this Tessera was installed", "TESSERA_TORCH"])
    refused("-DCOMPONENTS=core;gpu", says=["Tessera has no component gpu", "core, comm, nccl, torch, inspect, header_only and tessera"])
    refused("-DVERSION=9.0", says=["9.0"])

    # As a subdirectory it says the same.
    text = configure(folder / "subdirectory", "core", "core", f"-DTESSERA_SOURCE={source}", without=["fmt"], fails=True)
    for words in ["needs fmt, which was not found: install libfmt-dev", "-DTESSERA_COMM=OFF"]:
        if words not in " ".join(text.split()):
            sys.exit(f"{words!r} is not in\n{text}")


def check_package(prefix, folder, component):
    """Builds a program on a component; where it is the last one nothing is named, so all are found."""
    program, *more = {"core": ["core", "-DCOMPONENTS=core"], "comm": ["needs", "-DCOMPONENTS=comm"],
                      "tessera": ["tessera", "-DBESIDE=compiled"]}[component]
    configure(folder, program, component, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DVERSION={version()}", *more)
    build_and_run(folder, program)


def check_without_library(folder):
    prefix = folder / "prefix"
    cmake(source, folder / "tessera",
          *(f"-DTESSERA_{part}=OFF" for part in ("COMPILED", "TORCH", "NCCL", "TESTS", "EXAMPLES")),
          f"-DTESSERA_MPI={'ON' if 'mpi' in have else 'OFF'}")
    run("cmake", "--install", folder / "tessera", "--prefix", prefix)
    configure(folder / "build", "error", "tessera", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCOMPONENTS=tessera")
    build_and_run(folder / "build", "error")
    text = configure(folder / "refused", "error", "compiled", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCOMPONENTS=compiled", fails=True)
    for words in ["tessera::compiled was left out when this Tessera was installed", "TESSERA_COMPILED"]:
        if words not in " ".join(text.split()):
            sys.exit(f"{words!r} is not in\n{text}")


def check_subdirectory(folder, target):
    """Builds a program on a target of the build; the library is built for those alone that link it."""
    program, *more = {"core": ["core", "-DTESSERA_COMM=OFF"], "header_only": ["tessera"],
                      "tessera": ["comm", "-DTESSERA_TORCH=OFF", "-DTESSERA_MPI=OFF"]}[target]
    if target == "header_only":
        more.append(f"-DTESSERA_MPI={'ON' if 'mpi' in have else 'OFF'}")
    configure(folder, program, target, f"-DTESSERA_SOURCE={source}", *more)
    build_and_run(folder, program)
    if (folder / "tessera/libtessera.a").exists() != (target == "tessera"):
        sys.exit(f"tessera::{target} and whether the library was built do not go together")


def check_plain(folder):
    for program, *flags in [["core"], ["error", "-DFMT_HEADER_ONLY"]]:
        run(options.compiler, "-std=c++20", f"-I{source}/include", *flags, here / "consumer" / f"{program}.cpp", "-o", folder / program)
        runs(folder / program, program)


def check_mixed(prefix, folder):
    for second, fits in [("header_only", False), ("tessera", True)]:
        configure(folder, "error", "tessera", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCOMPONENTS=tessera", f"-DSECOND={second}")
        text = run("cmake", "--build", folder, fails=not fits)
        if not fits and "tessera_program_with_and_without_TESSERA_COMPILED" not in text:
            sys.exit(f"files of two forms are refused in other words:\n{text}")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        kind, _, target = options.case.partition(".")
        prefix = folder / "prefix"
        build = folder / "build"
        if options.case == "package.without_library":
            check_without_library(folder)
        elif kind == "plain":
            check_plain(folder)
        elif kind == "subdirectory":
            check_subdirectory(build, target)
        else:
            run("cmake", "--install", options.build, "--prefix", prefix)
            if kind == "headers":
                check_headers(prefix)
            elif kind == "refusals":
                check_refusals(prefix, folder)
            elif kind == "mixed":
                check_mixed(prefix, build)
            else:
                check_package(prefix, build, target)


def version():
    """Major and minor version of the sources."""
    text = (source / "include/tessera/version.hpp").read_text()
    return ".".join(text.split(f"version_{part} = ")[1].split(";")[0] for part in ("major", "minor"))


main()
