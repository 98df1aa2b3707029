#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes one rule of the importer at a time and expects that a test fails.

  mutate.py SOURCE BUILD WORK [--only TEXT] [--list]

The changes are those of mutations.txt, and two kinds that are read off the
tables of families: a rule of a row dropped (so that the plain one holds), and a
value that the row holds for an absent key changed. Neither SOURCE nor BUILD is
written to: the changed file is compiled into WORK and linked before the library
with the others. Prints the changes that no test noticed; the exit code is not 0
when there is one, or when a change does not apply any more.
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TEST = "bin/pagoda-import-tests"
TABLES = ["compiler/import/Families.cpp", "compiler/import/GptFamilies.cpp",
          "compiler/import/HybridFamilies.cpp"]


def listed(path):
    """The changes of mutations.txt: name, file, text, new text."""
    result, now = [], None
    for line in path.read_text().splitlines():
        if line.startswith("@ "):
            now = {"name": line[2:], "file": None, "old": [], "new": []}
            result.append(now)
        elif now is None or line.startswith("#") or not line:
            continue
        elif line[0] in "<>":
            now["old" if line[0] == "<" else "new"].append(line[2:])
        else:
            now["file"] = line
    return [(m["name"], m["file"], "\n".join(m["old"]), "\n".join(m["new"]))
            for m in result]


def rows(text):
    """Where each row of a table begins and ends, and the types it is for."""
    starts = [m.start() for m in re.finditer(r"^    \{\.name", text, re.M)]
    for begin, end in zip(starts, starts[1:] + [len(text)]):
        types = re.search(r"\.modelTypes =\s*((?:\"[^\"]*\"\s*)+)",
                          text[begin:end])
        yield begin, end, "".join(re.findall(r'"([^"]*)"', types.group(1)))


def tabled(source):
    """Changes of single entries of the tables: name, file, whole new text."""
    for file in TABLES:
        text = (source / file).read_text()
        for begin, end, types in rows(text):
            row = text[begin:end]
            who = types.split()[0]

            def change(what, at, length, new):
                place = begin + at
                return (f"{who}: {what}", file,
                        text[:place] + new + text[place + length:])

            for m in re.finditer(
                    r",\s*\.(layerTypes|heads|scale|rope|alibi|sinks) = "
                    r"[\w:]+", row):
                yield change(f"plain {m.group(1)}", m.start(), len(m.group()),
                             "")
            for m in re.finditer(r'"(\w+)":(\d+)(\.\d+)?', row):
                # The hidden size says nothing where the head dim is given.
                if m.group(1) == "hidden_size" and '"head_dim"' in row:
                    continue
                yield change(f"another {m.group(1)}", m.start(2),
                             len(m.group(2)), str(int(m.group(2)) + 1))
            for m in re.finditer(r'"(\w+)":(true|false)', row):
                yield change(f"another {m.group(1)}", m.start(2),
                             len(m.group(2)),
                             "false" if m.group(2) == "true" else "true")


class Builder:
    """Compiles a changed file as BUILD would, and links the tests with it."""

    def __init__(self, root, build, work):
        self.root, self.build, self.work = root, build, work
        done = subprocess.run(["ninja", "-C", build, "-t", "commands", TEST],
                              capture_output=True, text=True, check=True)
        self.commands = done.stdout.splitlines()
        self.header = self.precompile()

    def shell(self, command):
        return subprocess.run(command, cwd=self.build, shell=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def compile(self, file, input, output, extra):
        """Runs the command for `file` on another one, without optimization. A
        rule that nothing uses any more is no reason not to build."""
        command = next(c for c in self.commands if c.endswith("/" + file))
        words = shlex.split(command)
        if words[0].endswith("ccache"):
            words = words[1:]
        words[words.index("-o") + 1] = str(output)
        words[words.index("-MF") + 1] = str(output) + ".d"
        # The build's precompiled header is of another level of optimization.
        while "-Xclang" in words:
            at = words.index("-Xclang")
            del words[at:at + 2]
        words = [w for w in words[:-1] if w not in ("-Werror", "-O3", "-c")]
        return self.shell(shlex.join(
            words + ["-O0", "-w"] + extra + ["-c", str(input)]))

    def precompile(self):
        """The headers of the importer, which take most of the time. With clang
        only; none where that fails."""
        self.work.mkdir(parents=True, exist_ok=True)
        output = self.work / "Families.pch"
        done = self.compile(TABLES[0], self.root / "compiler/import/Families.h",
                            output, ["-x", "c++-header"])
        return [] if done.returncode else ["-include-pch", str(output)]

    def test(self, file, text):
        """None where no test fails, else what was noticed."""
        changed = self.work / file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(text)
        object = str(changed.with_suffix(".o"))
        built = self.compile(file, changed, object, self.header)
        if built.returncode:
            return "does not build:\n" + built.stdout[-1500:]
        link = self.commands[-1].split(" && ")[1]
        program = str(self.work / "tests")
        link = link.replace(" -o " + TEST, " -o " + program)
        link = link.replace(" lib/libPagodaImport.a",
                            " " + object + " lib/libPagodaImport.a")
        linked = self.shell(link)
        if linked.returncode:
            return "does not link:\n" + linked.stdout[-1500:]
        try:
            run = subprocess.run([program, "--gtest_brief=1",
                                  "--gtest_fail_fast"], capture_output=True,
                                 text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "does not end"
        if run.returncode == 0:
            return None
        failed = re.findall(r"\[  FAILED  \] (\S+)", run.stdout)
        return failed[0] if failed else f"exit {run.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("source", "build", "work"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--only", default="", help="part of a change's name")
    parser.add_argument("--skip", type=int, default=0,
                        help="changes to leave out at the beginning")
    parser.add_argument("--list", action="store_true", help="only print names")
    args = parser.parse_args()
    bad, changes = [], []
    for name, file, old, new in listed(HERE / "mutations.txt"):
        text = (args.source / file).read_text()
        if text.count(old) != 1:
            print(f"DOES NOT APPLY ({text.count(old)} places)  {name}")
            bad.append(name)
        else:
            changes.append((name, file, text.replace(old, new)))
    changes += tabled(args.source)
    changes = [c for c in changes if args.only in c[0]][args.skip:]
    if args.list:
        print("\n".join(c[0] for c in changes))
        return
    builder = Builder(args.source.resolve(), args.build.resolve(),
                      args.work.resolve())
    plain = builder.test(TABLES[0], (args.source / TABLES[0]).read_text())
    if plain:
        sys.exit("without a change: " + plain)
    for name, file, text in changes:
        noticed = builder.test(file, text)
        if noticed and noticed.startswith("does not"):
            print(f"{noticed}\n  {name}", flush=True)
            bad.append(name)
        elif noticed:
            print(f"noticed   {name}  [{noticed}]", flush=True)
        else:
            print(f"SURVIVED  {name}", flush=True)
            bad.append(name)
    print(f"{len(changes) - len(bad)} of {len(changes)} changes noticed")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
