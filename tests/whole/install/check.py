#!/usr/bin/env python3
"""Uses Tessera as other projects do: installed in an empty prefix, or as a subdirectory.

usage: check.py --build BUILD [--have FLOOR,...] [--compiler CXX] [--launcher ccache] [--libtorch DIR] CASE

CASE is one of
  headers                the installed headers are those of include/, without the floors that were left out; the licence lies beside
  package.PROGRAM        find_package and consumer/PROGRAM.cpp (core, comm, torch, tessera; compiled is the last one again)
  subdirectory.PROGRAM   the same with add_subdirectory
  mixed                  a program of one file with TESSERA_COMPILED and one without does not link, of one form each does
  refusals               components and versions that cannot be had, each with what it says
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
source = here.parents[2]
output = {"core": "350\n", "comm": "6\n", "torch": "3\n7\n", "tessera": "5 over line 2 = blocks(line) [0,3) [3,5) 30 20\n"}
output["compiled"] = output["tessera"]

# What a program may need from elsewhere; whatever else is there must make no difference.
packages = ["Threads", "fmt", "MPI", "Boost", "LibTorch", "nlohmann_json", "NCCL"]
needs = {"core": [], "comm": packages[:4], "torch": packages, "tessera": packages, "compiled": packages[:6]}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--build", type=pathlib.Path, required=True)
parser.add_argument("--have", default="core,inspect,comm,torch,tessera")
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


def configure(folder, *defines, without=(), fails=False):
    """Configures the consumer as if the packages `without` were not there."""
    environment = {k: v for k, v in os.environ.items() if k != "TESSERA_LIBTORCH"}
    return run("cmake", "-G", "Ninja", "-S", here / "consumer", "-B", folder, f"-DCMAKE_CXX_COMPILER={options.compiler}",
               f"-DCMAKE_CXX_COMPILER_LAUNCHER={options.launcher}", f"-DTESSERA_LIBTORCH={options.libtorch}",
               "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Wconversion -Werror", *defines,
               *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{p}=ON" for p in without), fails=fails, env=environment)


def build_and_run(folder, program):
    run("cmake", "--build", folder)
    tests = run("ctest", "--test-dir", folder, "-N")
    if "Total Tests: 1\n" not in tests:
        sys.exit(f"Tessera brought tests of its own:\n{tests}")
    said = run(folder / "program")
    if said != output[program]:
        sys.exit(f"{program} says {said!r} instead of {output[program]!r}")


def check_headers(prefix):
    floors = {"comm": ["comm"], "inspect": ["inspect"], "torch": ["tensor"], "tessera": ["nn", "file", "tessera.hpp"]}
    left_out = {name for floor, names in floors.items() if floor not in have for name in names}
    ours = {h.relative_to(source / "include") for h in (source / "include").rglob("*") if h.suffix in (".hpp", ".inc")}
    floor_of = {h: h.stem if h.parts[1] == "generated" else h.parts[1] for h in ours}
    ours = {h for h in ours if floor_of[h] not in left_out and ("nccl" in have or h.parts[1:3] != ("comm", "nccl"))}
    theirs = {h.relative_to(prefix / "include") for h in (prefix / "include").rglob("*")
              if not h.is_dir()}
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
        text = configure(folder / str(count), "-DPROGRAM=core", installed, *defines, without=without, fails=True)
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
        text = configure(folder / "optional", "-DPROGRAM=core", installed, "-DCOMPONENTS=core", "-DOPTIONAL=torch;comm", without=["LibTorch"])
        if not ("-- core: TRUE\n" in text and "-- torch: FALSE\n" in text and "-- comm: TRUE\n" in text):
            sys.exit(f"optional components are not told apart:\n{text}")
    else:
        refused("-DCOMPONENTS=torch", says=["was left out when this Tessera was installed", "TESSERA_TORCH"])
    refused("-DCOMPONENTS=core;gpu", says=["Tessera has no component gpu", "core, comm, nccl, torch, tessera, inspect and compiled"])
    refused("-DVERSION=9.0", says=["9.0"])

    # As a subdirectory it says the same.
    text = configure(folder / "subdirectory", f"-DTESSERA_SOURCE={source}", "-DPROGRAM=core", without=["fmt"], fails=True)
    for words in ["needs fmt, which was not found: install libfmt-dev", "-DTESSERA_COMM=OFF"]:
        if words not in " ".join(text.split()):
            sys.exit(f"{words!r} is not in\n{text}")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        kind, _, program = options.case.partition(".")
        prefix = folder / "prefix"
        if kind != "subdirectory":
            run("cmake", "--install", options.build, "--prefix", prefix)
        if kind == "headers":
            check_headers(prefix)
        elif kind == "mixed":
            check_mixed(prefix, folder)
        elif kind == "refusals":
            check_refusals(prefix, folder)
        else:
            without = [p for p in packages if p not in needs[program]]
            if kind == "package":
                everything = program == "tessera"  # which is also what is meant when nothing is named
                found = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCOMPONENTS={'' if everything else program}", "-DVERSION=" + version()]
            else:
                found = [f"-DTESSERA_SOURCE={source}", f"-DTESSERA_COMM={'OFF' if program == 'core' else 'ON'}",
                         f"-DTESSERA_MPI={'ON' if 'mpi' in have else 'OFF'}",
                         f"-DTESSERA_TORCH={'ON' if program in ('torch', 'tessera') else 'OFF'}"]
            configure(folder / "build", f"-DPROGRAM={program}", *found, without=without)
            build_and_run(folder / "build", program)


def check_mixed(prefix, folder):
    for second, fits in [("comm", False), ("compiled", True)]:
        build = folder / "build"  # one for both, as only the second file differs
        configure(build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DPROGRAM=mixed", f"-DSECOND={second}")
        text = run("cmake", "--build", build, fails=not fits)
        if not fits and "tessera_program_with_and_without_TESSERA_COMPILED" not in text:
            sys.exit(f"files of two forms are refused in other words:\n{text}")


def version():
    """Major and minor version of the sources."""
    text = (source / "include/tessera/version.hpp").read_text()
    return ".".join(text.split(f"version_{part} = ")[1].split(";")[0] for part in ("major", "minor"))


main()
