//===- Driver.h - From a specification to artifacts -------------*- C++ -*-===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler's front door, for tools: specification and machine in, kernels
// out, as an artifact (object code and its description) or in process. Each
// arrow of the path config -> attention IR -> tiled IR -> target IR -> artifact
// is one function in Driver.cpp. No MLIR type appears here, so that a tool that
// includes this header compiles fast.
//
//===----------------------------------------------------------------------===//

#ifndef PAGODA_COMPILER_DRIVER_H
#define PAGODA_COMPILER_DRIVER_H

#include "compiler/import/AttentionSpec.h"
#include "compiler/import/AuxTensor.h"
#include "compiler/tiling/Machine.h"
#include "compiler/tiling/SramFit.h"
#include "runtime/include/pagoda/kernel_abi.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pagoda {

/// The levels a kernel passes through; each can be printed.
enum class Stage { Attention, Tiled, Fragments, Target, Llvm, Asm, Ptx };

/// Parses "attention", "tiled", "fragments", "target", "llvm", "asm" or "ptx".
llvm::Expected<Stage> parseStage(llvm::StringRef text);

/// Schedules that are settled, from the tuning database or by a tuner, instead
/// of what the formula chooses: one kernel each, prefill and decode first.
struct KernelSchedules {
  std::string machine; ///< its name
  std::string spec;    ///< the AttentionSpec's name
  std::vector<Schedule> schedules;
};

struct CompileOptions {
  Machine machine = Machine::host();
  /// CPUs of the same architecture that the library has variants for, too; the
  /// runtime takes the best one that the machine at hand can run.
  std::vector<Machine> variants;
  /// Overrides of the chosen schedules, "key=value" each, applied to every
  /// kernel that has the key. Checked against the machine like any schedule.
  std::vector<std::string> schedule;
  /// At most one for each machine and specification; overrides do not touch
  /// them. Checked against the machine, too.
  std::vector<KernelSchedules> settled;
  /// More than 1, on a CPU: a second decode kernel, for up to so many query
  /// tokens of a sequence, as speculative decoding checks at once.
  int64_t decodeTokens = 1;
  /// Prefix of the kernels' names.
  std::string name = "attention";
  /// Text of a file of mask and score functions (import/Mods.h), for every
  /// specification; empty: none. `modsFile` names it in diagnostics.
  std::string mods, modsFile = "mods";
  /// For an NVIDIA machine: host code for runtime/emulator instead of PTX. The
  /// entry of such a kernel is `void (*)(const void *args)`, one CUDA thread.
  bool emulate = false;
  /// Only the kernels that write the cache, append and copy: for caches and
  /// callers that have their attention from elsewhere.
  bool cacheOnly = false;
};

/// Wall time of one phase, milliseconds.
using PhaseTimings = std::vector<std::pair<std::string, double>>;

/// What one GPU kernel takes of a multiprocessor, by ptxas.
struct KernelResources {
  std::string name;
  int64_t registers = 0;   ///< per thread
  int64_t stackBytes = 0;  ///< local memory per thread
  int64_t spillStores = 0; ///< bytes
  int64_t spillLoads = 0;  ///< bytes
  int64_t sharedBytes = 0; ///< static shared memory
  /// Blocks that a multiprocessor holds at once; 0 until assemble() knows.
  int64_t blocks = 0;
};

/// Human-readable description of one kernel of an artifact.
struct KernelSummary {
  std::string name;     ///< unique in the library
  std::string spec;     ///< name of the AttentionSpec it belongs to
  std::string role;     ///< "prefill", "decode", "merge", "append", "copy"
  std::string target;   ///< name of the machine
  std::string schedule; ///< the schedule attribute, as text
  std::string reason;   ///< why this tile, one line
  int64_t qTile = 0;    ///< packed rows per item
  int64_t kvTile = 0;
  int64_t scratchBytes = 0;
  /// How the tile was chosen; merge kernels have none.
  std::optional<TileCandidate> tile;
  pagoda_kernel_info info{};                ///< without its pointers
  std::optional<KernelResources> resources; ///< where ptxas has been asked
};

/// Compiled code that can be written out.
struct Artifact {
  std::string target; ///< names of the machines, separated by commas
  std::string object; ///< ELF relocatable, for CPU targets
  std::string ptx;    ///< for NVIDIA targets
  std::string cubin;  ///< the same, assembled, where ptxas was found
  std::vector<KernelSummary> kernels;
  uint64_t modsHash = 0;      ///< of the user's functions; 0: none
  std::vector<AuxTensor> aux; ///< that they read
  PhaseTimings timings;
};

/// Whether one library can hold kernels of all machines of `options`.
llvm::Error checkTargets(const CompileOptions &options);

/// Compiles the kernels of all `specs` into one artifact.
llvm::Expected<Artifact> compile(const std::vector<AttentionSpec> &specs,
                                 const CompileOptions &options);

/// Assembles the PTX of an artifact for `machine`: sets its cubin and the
/// kernels' resources. Does nothing where there is no PTX or no ptxas (on PATH,
/// or in /usr/local/cuda/bin).
llvm::Error assemble(Artifact &artifact, const Machine &machine);

/// compile() without the code: all that is known once kernels are lowered to
/// the target's ops.
llvm::Expected<Artifact> describe(const std::vector<AttentionSpec> &specs,
                                  const CompileOptions &options);

/// Whether code for `machine` can read and write elements of `type`: by
/// instructions, not by calls into a library that kernels do not have.
bool convertsType(const Machine &machine, DType type);

/// The text of one level for `specs`; of `options.machine` only.
llvm::Expected<std::string> printStage(const std::vector<AttentionSpec> &specs,
                                       const CompileOptions &options,
                                       Stage stage);

/// Kernels compiled into this process through ORC. The code lives as long as
/// the object.
class JitLibrary {
public:
  static llvm::Expected<std::unique_ptr<JitLibrary>>
  compile(const std::vector<AttentionSpec> &specs,
          const CompileOptions &options);
  ~JitLibrary();

  const pagoda_library_info *info() const { return library; }
  const std::vector<KernelSummary> &kernels() const { return summaries; }
  const PhaseTimings &timings() const { return phaseTimings; }

private:
  JitLibrary();
  struct Impl;
  std::unique_ptr<Impl> impl;
  const pagoda_library_info *library = nullptr;
  std::vector<KernelSummary> summaries;
  PhaseTimings phaseTimings;
};

} // namespace pagoda

#endif // PAGODA_COMPILER_DRIVER_H
