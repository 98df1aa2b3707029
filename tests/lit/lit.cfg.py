# How lit runs the tests of this folder.
import os
import shutil

import lit.formats

config.name = "pagoda"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)

# The tools by name: pagoda-opt and pagoda, FileCheck and not.
config.environment["PATH"] = os.pathsep.join(
    [config.pagoda_bin, config.llvm_tools, config.environment.get("PATH", "")]
)
# What a user has tuned must not change what a test sees.
config.environment["PAGODA_DB"] = "none"
config.substitutions += [
    ("%build", config.pagoda_build),
    ("%source", config.pagoda_source),
    ("%lib", config.pagoda_lib),
    ("%readelf", config.readelf),
    ("%cc", config.cc),
]

# A test says `REQUIRES: runtime` (and so on) for parts that a build may leave out.
if os.path.exists(os.path.join(config.pagoda_bin, "pagoda")):
    config.available_features.add("cli")
if os.path.exists(os.path.join(config.pagoda_lib, "libpagoda_runtime.so")):
    config.available_features.add("runtime")
if os.path.exists(os.path.join(config.pagoda_lib, "libpagoda_emulator.so")):
    config.available_features.add("emulator")
if os.path.exists("/usr/local/cuda/bin/ptxas") or shutil.which("ptxas"):
    config.available_features.add("ptxas")
if os.path.exists(os.path.join(config.llvm_tools, "clang-format")):
    config.available_features.add("clang-format")
if config.readelf and not config.readelf.endswith("NOTFOUND"):
    config.available_features.add("readelf")
if os.path.exists(os.path.join(config.pagoda_build, "build.ninja")):
    config.available_features.add("ninja")
