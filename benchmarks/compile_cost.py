#!/usr/bin/env python3
"""What the library costs the compiler: one JSON line a figure. User seconds are medians over alternating runs."""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
compilers = [c for c in ("g++", shutil.which("clang++-14") or shutil.which("clang++")) if c]
missed = False


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def peak(command):
    """The most memory that a command held, in MiB."""
    ran = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(ran.pid, 0)
    ran.returncode = os.waitstatus_to_exitcode(status)
    if ran.returncode:
        raise subprocess.CalledProcessError(ran.returncode, command)
    return used.ru_maxrss / 1024


def medians(commands, rounds):
    """The median cost of each command, measured in turns so that the machine's moods fall on all alike."""
    times = [[] for _ in commands]
    for _ in range(rounds):
        for i, command in enumerate(commands):
            times[i].append(cpu(command))
    return [statistics.median(t) for t in times]


def report(name, ratio, bar, **more):
    global missed
    ok = bar is None or ratio <= bar
    missed = missed or not ok
    print(json.dumps({"name": name, "ratio": round(ratio, 3), "bar": bar, "ok": ok, **more}), flush=True)


network = """#include <tessera/network.hpp>
namespace ts = tessera;
struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
struct batch : ts::dyn {};
using grid = ts::mesh<row, col>;
using image = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using net = ts::sequential_type<ts::tensor<image, ts::shape<batch, ts::dim<6>, ts::dim<8>, ts::dim<8>>>,
  %s ts::nn::relu>;
static_assert(ts::TensorType<net::output>);
"""
conv = "ts::nn::conv<%d, ts::kernel<3, 3>, ts::padding<1, 1>>, ts::nn::relu,"
alike = network % (conv % 6 * 100)
different = network % "".join(conv % (c + 1) for c in range(100))
budget = network % "".join(conv % (c + 1) for c in range(200)) + "static_assert(ts::traffic<net, ts::bind<batch>(4)>().forward.bytes > 0);"

cube = """#include <tessera/core.hpp>
namespace ts = tessera;
struct x : ts::axis<%d> {};
struct y : ts::axis<%d> {};
struct z : ts::axis<%d> {};
using grid = ts::mesh<x, y, z>;
using volume = ts::shape_of<1001, 1001, 1001>;
using from = ts::tensor<ts::partition<grid, ts::blocks<x>, ts::blocks<y>, ts::blocks<z>>, volume>;
using to = ts::tensor<ts::partition<grid, ts::blocks<x>, ts::blocks<y, z>, ts::whole>, volume>;
static_assert(ts::primitive<from, to>::plan().steps.count == 1);
"""

with tempfile.TemporaryDirectory() as folder:
    def source(name, text):
        path = pathlib.Path(folder) / f"{name}.cpp"
        path.write_text(text)
        return str(path)

    def compile_only(compiler, path, *more):
        return [compiler, "-std=c++20", "-fsyntax-only", f"-I{root}/include", *more, path]

    standard = source("standard", "".join(f"#include <{header}>\n" for header in ("vector", "string", "functional", "algorithm")))
    core, layers = source("core", "#include <tessera/core.hpp>\n"), source("layers", "#include <tessera/network.hpp>\n")
    bare, same, distinct = source("bare", network % ""), source("alike", alike), source("different", different)
    small, large = source("small", cube % (2, 2, 2)), source("large", cube % (256, 256, 256))
    for compiler in compilers:
        kind = "clang" if "clang" in compiler else "g++"
        theirs, ours, with_layers = medians([compile_only(compiler, f) for f in (standard, core, layers)], 11)
        report(f"compile.core_over_vector_string_functional_algorithm.{kind}", ours / theirs, 0.33, seconds=[round(ours, 3), round(theirs, 3)])
        report(f"compile.network_over_the_same.{kind}", with_layers / theirs, 0.5, seconds=[round(with_layers, 3), round(theirs, 3)])
        base, repeated, all_new = medians([compile_only(compiler, f) for f in (bare, same, distinct)], 5)
        report(f"compile.200_layers.{kind}", repeated - base, 0.2, unit="user seconds over the same file without them")
        report(f"compile.200_layers_all_different.{kind}", all_new - base, None, unit="user seconds over the same file without them")
        bound = compile_only(compiler, source("budget", budget))
        report(f"compile.budget_of_200_convolutions_all_different.{kind}", medians([bound], 3)[0], 4, unit="user seconds")
        report(f"compile.peak_memory_of_the_budget.{kind}", peak(bound), 500, unit="MiB")
        two, many = medians([compile_only(compiler, f) for f in (small, large)], 5)
        report(f"compile.workers_256^3_over_2^3.{kind}", many / two, None, seconds=[round(two, 3), round(many, 3)])
        before, after = peak(compile_only(compiler, core)), peak(compile_only(compiler, large))
        report(f"compile.peak_memory_256^3_over_core.{kind}", after / before, None, mebibytes=[round(before), round(after)])
        if kind == "clang":
            def instantiations(path):
                out = pathlib.Path(folder) / "trace.o"
                subprocess.run([compiler, "-std=c++20", "-c", "-ftime-trace", "-ftime-trace-granularity=0", f"-I{root}/include",
                                path, "-o", str(out)], check=True)
                trace = json.loads(out.with_suffix(".json").read_text())
                return sum(e["name"].startswith("Instantiate") for e in trace["traceEvents"])
            few, most = instantiations(small), instantiations(large)
            report("compile.instantiations_256^3_over_2^3", most / few, 1.0, counts=[few, most])

    torch = os.environ.get("TESSERA_LIBTORCH", "")
    for place in (pathlib.Path(torch), pathlib.Path(torch) / "torch"):
        if torch and (place / "include/ATen/ATen.h").exists():
            mpi = subprocess.run(["mpicxx", "--showme:compile"], capture_output=True, text=True).stdout.split() if shutil.which("mpicxx") else []
            flags = ["-isystem", str(place / "include"), "-isystem", str(place / "include/torch/csrc/api/include"), "-DFMT_HEADER_ONLY",
                     *(["-DTESSERA_HAS_MPI=1", "-DOMPI_SKIP_MPICXX", *mpi] if mpi else [])]
            needed = source("needed", "#include <ATen/ATen.h>\n#include <torch/csrc/autograd/custom_function.h>\n")
            whole = source("whole", "#include <tessera/tessera.hpp>\n")
            without, with_it = medians([compile_only("g++", f, *flags) for f in (needed, whole)], 3)
            report("compile.tessera_over_libtorch.g++", with_it / without, 1.3, seconds=[round(without, 2), round(with_it, 2)])
            break
    else:
        print("benchmarks/compile_cost.py: TESSERA_LIBTORCH is not set, so tessera.hpp is not measured", file=sys.stderr)

sys.exit(missed)
