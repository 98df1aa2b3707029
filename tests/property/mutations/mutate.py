#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts each fault of mutations.txt into a copy of the runtime, builds it, and
expects that a test fails. Prints the faults that no test noticed; the exit code
is not 0 when there is one, or when a fault does not apply any more.

  mutate.py SOURCE WORK [--only TEXT]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
COPIED = ["CMakeLists.txt", "CMakePresets.json", "runtime", "tests"]
TARGETS = ["pagoda-runtime-tests", "pagoda-cache-property", "fake_kernels"]


def read_mutations(path):
    result, now = [], None
    for line in path.read_text().splitlines():
        if line.startswith("@ "):
            now = {"name": line[2:], "file": None, "old": [], "new": []}
            result.append(now)
        elif now is None or line.startswith("#") or not line:
            continue
        elif line.startswith("<"):
            now["old"].append(line[2:])
        elif line.startswith(">"):
            if line[2:]:
                now["new"].append(line[2:])
        else:
            now["file"] = line
    return result


def run(command, timeout=None, **kwargs):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout,
                              text=True, **kwargs)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "timed out")


def build(work):
    return run(["cmake", "--build", work / "build", "--target"] + TARGETS)


def noticed(work):
    """The name of the program that fails, or None."""
    bin = work / "build" / "bin"
    tests = run([bin / "pagoda-runtime-tests", "--gtest_brief=1",
                 "--gtest_fail_fast"], timeout=120)
    if tests.returncode:
        failed = [l for l in tests.stdout.splitlines() if "FAILED" in l]
        return "unit tests: " + (failed[0][13:].split(" (")[0] if failed
                                 else f"exit {tests.returncode}")
    env = dict(os.environ, PAGODA_PROPERTY_CASES="40",
               RC_PARAMS="seed=1 noshrink=1")
    if run([bin / "pagoda-cache-property"], timeout=300, env=env).returncode:
        return "property test"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--only", default="", help="part of a fault's name")
    args = parser.parse_args()
    tree = args.work / "source"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in COPIED:
        # Copies are new files: what an earlier run built is out of date.
        if (args.source / name).is_dir():
            shutil.copytree(args.source / name, tree / name,
                            copy_function=shutil.copy)
        else:
            shutil.copy(args.source / name, tree / name)
    configure = ["cmake", "-S", tree, "-B", args.work / "build", "--preset",
                 "default", "-DPAGODA_RUNTIME_ONLY=ON",
                 "-DPAGODA_BUILD_BENCH=OFF", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
    if ccache := shutil.which("ccache"):
        configure.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}")
    configured = run(configure)
    built = build(args.work) if configured.returncode == 0 else configured
    if built.returncode or noticed(args.work):
        sys.exit("the runtime without a fault does not pass its tests:\n"
                 + built.stdout[-2000:])
    bad = []
    mutations = [m for m in read_mutations(HERE / "mutations.txt")
                 if args.only in m["name"]]
    for m in mutations:
        path = tree / m["file"]
        text = path.read_text()
        old, new = "\n".join(m["old"]), "\n".join(m["new"])
        if text.count(old) != 1:
            print(f"DOES NOT APPLY ({text.count(old)} places)  {m['name']}",
                  flush=True)
            bad.append(m["name"])
            continue
        path.write_text(text.replace(old, new))
        built = build(args.work)
        if built.returncode:
            print(f"DOES NOT BUILD  {m['name']}\n{built.stdout[-1500:]}",
                  flush=True)
            bad.append(m["name"])
        else:
            who = noticed(args.work)
            print(f"{'noticed' if who else 'SURVIVED'}  {m['name']}"
                  + (f"  [{who}]" if who else ""), flush=True)
            if not who:
                bad.append(m["name"])
        path.write_text(text)
    print(f"{len(mutations) - len(bad)} of {len(mutations)} faults noticed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
