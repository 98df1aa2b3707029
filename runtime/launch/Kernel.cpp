//===- Kernel.cpp - Generated kernels, found and checked ------------------===//
//
// Part of Pagoda, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dynamic loader, the list of fields that each role depends on, and the
// choice among the variants of a kernel.
//
//===----------------------------------------------------------------------===//

#include "pagoda/Kernel.h"

#include <algorithm>
#include <bit>
#include <dlfcn.h>
#include <string_view>
#include <utility>

using namespace pagoda;

KernelSpec KernelSpec::of(const pagoda_kernel_info &info) {
  KernelSpec spec;
  spec.qHeads = info.q_heads;
  spec.kvHeads = info.kv_heads;
  spec.headDim = info.head_dim;
  spec.vHeadDim = info.v_head_dim;
  spec.blockSize = info.block_size;
  spec.layout = info.layout;
  spec.qType = info.q_dtype;
  spec.kType = info.k_dtype;
  spec.vType = info.v_dtype;
  spec.oType = info.o_dtype;
  spec.features = info.features;
  spec.modsHash = info.mods_hash;
  if (info.role == PAGODA_ROLE_APPEND) {
    spec.rotaryDim = info.rotary_dim;
    spec.ropeInterleaved = info.rope_interleaved;
  }
  return spec;
}

KvFormat KernelSpec::format() const {
  KvFormat format;
  format.kvHeads = kvHeads;
  format.headDim = headDim;
  format.vHeadDim = vHeadDim;
  format.blockSize = blockSize;
  format.layout = layout;
  format.kType = kType;
  format.vType = vType;
  return format;
}

uint64_t pagoda::hostCpuFeatures() {
  uint64_t features = 0;
#if defined(__x86_64__)
  auto add = [&](bool has, uint64_t bit) { features |= has ? bit : 0; };
  __builtin_cpu_init();
  add(__builtin_cpu_supports("avx2"), PAGODA_CPU_AVX2);
  add(__builtin_cpu_supports("fma"), PAGODA_CPU_FMA);
  add(__builtin_cpu_supports("f16c"), PAGODA_CPU_F16C);
  add(__builtin_cpu_supports("avx512f"), PAGODA_CPU_AVX512F);
  add(__builtin_cpu_supports("avx512bw"), PAGODA_CPU_AVX512BW);
  add(__builtin_cpu_supports("avx512dq"), PAGODA_CPU_AVX512DQ);
  add(__builtin_cpu_supports("avx512vl"), PAGODA_CPU_AVX512VL);
  add(__builtin_cpu_supports("avx512bf16"), PAGODA_CPU_AVX512_BF16);
#elif defined(__aarch64__)
  features |= PAGODA_CPU_NEON;
#endif
  return features;
}

static std::string bitNames(uint64_t bits, std::span<const char *const> names) {
  std::string text;
  for (size_t i = 0; i != names.size(); ++i)
    if (bits >> i & 1)
      text += (text.empty() ? "" : ", ") + std::string(names[i]);
  if (bits >> names.size())
    text += (text.empty() ? "" : ", ") + std::string("unknown bits");
  return text.empty() ? "none" : text;
}

std::string pagoda::cpuFeatureNames(uint64_t features) {
  static const char *const names[] = {"avx2",     "fma",        "f16c",
                                      "avx512f",  "avx512bw",   "avx512dq",
                                      "avx512vl", "avx512bf16", "neon"};
  return bitNames(features, names);
}

std::string pagoda::featureNames(uint32_t features) {
  static const char *const names[] = {"causal",    "window", "softcap",
                                      "alibi",     "sinks",  "chunk",
                                      "prefix_lm", "custom"};
  return bitNames(features, names);
}

const char *pagoda::roleName(int32_t role) {
  static const char *const names[] = {"attention", "merge", "append", "copy"};
  return role >= 0 && role <= PAGODA_ROLE_COPY ? names[role] : "unknown role";
}

std::string pagoda::mismatch(const pagoda_kernel_info &kernel,
                             const KernelSpec &spec) {
  std::string text;
  auto differ = [&](const char *field, const std::string &has,
                    const std::string &wanted) {
    if (has != wanted)
      text += (text.empty() ? "" : "\n") + std::string(field) +
              ": kernel has " + has + ", caller has " + wanted;
  };
  auto number = [&](const char *field, int64_t has, int64_t wanted) {
    differ(field, std::to_string(has), std::to_string(wanted));
  };
  auto type = [&](const char *field, int32_t has, int32_t wanted) {
    differ(field, dtypeName(has), dtypeName(wanted));
  };
  bool attention = kernel.role == PAGODA_ROLE_ATTENTION;
  bool merge = kernel.role == PAGODA_ROLE_MERGE;
  bool append = kernel.role == PAGODA_ROLE_APPEND;
  // A merge kernel sees partial states and the output, and no cache.
  if (attention || merge) {
    number("q_heads", kernel.q_heads, spec.qHeads);
    type("o_dtype", kernel.o_dtype, spec.oType);
    differ("features", featureNames(kernel.features),
           featureNames(spec.features));
    number("mods_hash", static_cast<int64_t>(kernel.mods_hash),
           static_cast<int64_t>(spec.modsHash));
  }
  if (attention || append) // k_new and v_new are of q's type
    type("q_dtype", kernel.q_dtype, spec.qType);
  number("v_head_dim", kernel.v_head_dim, spec.vHeadDim);
  if (merge)
    return text;
  number("kv_heads", kernel.kv_heads, spec.kvHeads);
  number("head_dim", kernel.head_dim, spec.headDim);
  number("block_size", kernel.block_size, spec.blockSize);
  differ("layout", layoutName(kernel.layout), layoutName(spec.layout));
  type("k_dtype", kernel.k_dtype, spec.kType);
  type("v_dtype", kernel.v_dtype, spec.vType);
  if (append && spec.rotaryDim >= 0)
    number("rotary_dim", kernel.rotary_dim, spec.rotaryDim);
  if (append && spec.ropeInterleaved >= 0)
    number("rope_interleaved", kernel.rope_interleaved, spec.ropeInterleaved);
  return text;
}

void pagoda::checkCompatible(const pagoda_kernel_info &kernel,
                             const KvFormat &format) {
  if (kernel.role == PAGODA_ROLE_MERGE)
    return;
  KernelSpec cache = KernelSpec::of(kernel);
  cache.kvHeads = format.kvHeads;
  cache.headDim = format.headDim;
  cache.vHeadDim = format.vHeadDim;
  cache.blockSize = format.blockSize;
  cache.layout = format.layout;
  cache.kType = format.kType;
  cache.vType = format.vType;
  std::string text = mismatch(kernel, cache);
  if (!text.empty())
    throw Error(ErrorCode::Mismatch, std::string("kernel ") + kernel.name +
                                         " does not fit the cache:\n" + text);
}

KernelLibrary::KernelLibrary(void *handle, const pagoda_library_info *info,
                             std::string name)
    : Handle(handle), Info(info), Name(std::move(name)) {}

KernelLibrary::KernelLibrary(KernelLibrary &&other) noexcept
    : Handle(std::exchange(other.Handle, nullptr)), Image(other.Image),
      Info(other.Info), Name(std::move(other.Name)) {}

KernelLibrary &KernelLibrary::operator=(KernelLibrary &&other) noexcept {
  std::swap(Handle, other.Handle);
  std::swap(Image, other.Image);
  std::swap(Info, other.Info);
  std::swap(Name, other.Name);
  return *this;
}

KernelLibrary::~KernelLibrary() {
  if (Handle)
    dlclose(Handle);
}

KernelLibrary KernelLibrary::open(const std::string &path) {
  // A name without a slash would be looked up in the system's folders.
  std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    throw Error(ErrorCode::BadLibrary,
                "library " + path +
                    ": cannot be opened: " + (why ? why : "unknown reason"));
  }
  KernelLibrary guard(handle, nullptr, path);
  auto *info = static_cast<const pagoda_library_info *>(
      dlsym(handle, PAGODA_LIBRARY_SYMBOL));
  if (!info)
    throw Error(ErrorCode::BadLibrary,
                "library " + path + ": expected the symbol " +
                    PAGODA_LIBRARY_SYMBOL + ", got a library without it");
  KernelLibrary checked = wrap(info, path);
  checked.Image = static_cast<const pagoda_device_image *>(
      dlsym(handle, PAGODA_IMAGE_SYMBOL));
  if (checked.Image && checked.Image->abi_version != PAGODA_ABI_VERSION)
    throw Error(ErrorCode::BadLibrary,
                "library " + path + ": image: abi version: kernels have " +
                    std::to_string(checked.Image->abi_version) +
                    ", runtime has " + std::to_string(PAGODA_ABI_VERSION));
  std::swap(checked.Handle, guard.Handle);
  return checked;
}

KernelLibrary KernelLibrary::wrap(const pagoda_library_info *info,
                                  const std::string &name) {
  auto fail = [&](const std::string &text) {
    throw Error(ErrorCode::BadLibrary, "library " + name + ": " + text);
  };
  auto version = [&](const std::string &what, uint32_t got) {
    if (got != PAGODA_ABI_VERSION)
      fail(what + ": abi version: kernels have " + std::to_string(got) +
           ", runtime has " + std::to_string(PAGODA_ABI_VERSION));
  };
  if (!info)
    fail("expected a library, got null");
  version("library", info->abi_version);
  if (info->kernel_count && !info->kernels)
    fail("kernels: expected " + std::to_string(info->kernel_count) +
         ", got null");
  for (uint32_t i = 0; i != info->kernel_count; ++i) {
    const pagoda_kernel_info &kernel = info->kernels[i];
    std::string what = "kernel " + std::to_string(i);
    version(what, kernel.abi_version);
    if (kernel.struct_size != sizeof(pagoda_kernel_info))
      fail(what + ": kernel info: kernels have " +
           std::to_string(kernel.struct_size) + " bytes, runtime has " +
           std::to_string(sizeof(pagoda_kernel_info)));
    if (!kernel.name)
      fail(what + ": name: expected a text, got null");
    if (kernel.role != PAGODA_ROLE_ATTENTION)
      continue;
    if (kernel.max_rows < 1 || kernel.heads_per_item < 1 ||
        kernel.kv_tile < 1 || kernel.kv_heads < 1 ||
        kernel.kv_heads % kernel.heads_per_item != 0 ||
        kernel.q_heads % kernel.kv_heads != 0)
      fail(what + " (" + kernel.name +
           "): expected max_rows, heads_per_item, kv_tile and head counts "
           "that are positive and divide, got " +
           std::to_string(kernel.max_rows) + ", " +
           std::to_string(kernel.heads_per_item) + ", " +
           std::to_string(kernel.kv_tile) + ", " +
           std::to_string(kernel.q_heads) + " over " +
           std::to_string(kernel.kv_heads));
  }
  return KernelLibrary(nullptr, info, name);
}

const pagoda_kernel_info *KernelLibrary::find(const std::string &name) const {
  for (const pagoda_kernel_info &kernel : kernels())
    if (name == kernel.name)
      return &kernel;
  return nullptr;
}

/// Whether \p kernel uses more of the machine than \p best.
static bool better(const pagoda_kernel_info &kernel,
                   const pagoda_kernel_info *best) {
  return !best ||
         std::popcount(kernel.cpu_features) > std::popcount(best->cpu_features);
}

KernelSet KernelLibrary::select(const KernelSpec &spec,
                                uint64_t cpuFeatures) const {
  return select(spec, /*forGpu=*/false, cpuFeatures);
}

KernelSet KernelLibrary::selectForGpu(const KernelSpec &spec) const {
  return select(spec, /*forGpu=*/true, hostCpuFeatures());
}

/// Kernels for a GPU are functions of an image, not of the library.
static bool isForGpu(const pagoda_kernel_info &kernel) {
  return kernel.target &&
         std::string_view(kernel.target).starts_with("nvidia:");
}

/// Which of two rotations a caller means is not to be guessed: the wrong one is
/// a wrong answer.
static void checkSameRotation(const pagoda_kernel_info &kernel,
                              const pagoda_kernel_info *other) {
  auto text = [](const pagoda_kernel_info &k) {
    return std::string(k.name) + " rotates " + std::to_string(k.rotary_dim) +
           (k.rope_interleaved ? " dims, interleaved" : " dims");
  };
  if (other && (other->rotary_dim != kernel.rotary_dim ||
                other->rope_interleaved != kernel.rope_interleaved))
    throw Error(ErrorCode::Mismatch,
                "rotary_dim: expected a value, as append kernels differ: " +
                    text(*other) + ", " + text(kernel));
}

KernelSet KernelLibrary::select(const KernelSpec &spec, bool forGpu,
                                uint64_t cpuFeatures) const {
  KernelSet set;
  std::string nearest;
  size_t nearestLines = SIZE_MAX;
  for (const pagoda_kernel_info &kernel : kernels()) {
    if (forGpu ? !isForGpu(kernel) : !kernel.entry)
      continue;
    std::string why = mismatch(kernel, spec);
    if (uint64_t lacking = kernel.cpu_features & ~cpuFeatures)
      why += (why.empty() ? "" : "\n") + std::string("cpu features: kernel ") +
             "needs " + cpuFeatureNames(kernel.cpu_features) +
             ", machine lacks " + cpuFeatureNames(lacking);
    if (!why.empty()) {
      size_t lines = std::count(why.begin(), why.end(), '\n');
      if (kernel.role == PAGODA_ROLE_ATTENTION && lines < nearestLines) {
        nearestLines = lines;
        nearest = std::string("; nearest is ") + kernel.name + ":\n" + why;
      }
      continue;
    }
    auto take = [&](const pagoda_kernel_info *&best) {
      if (better(kernel, best))
        best = &kernel;
    };
    switch (kernel.role) {
    case PAGODA_ROLE_ATTENTION: {
      auto at = std::lower_bound(
          set.attention.begin(), set.attention.end(), kernel.max_rows,
          [](auto *k, int32_t rows) { return k->max_rows < rows; });
      if (at != set.attention.end() && (*at)->max_rows == kernel.max_rows)
        take(*at);
      else
        set.attention.insert(at, &kernel);
      break;
    }
    case PAGODA_ROLE_MERGE:
      take(set.merge);
      break;
    case PAGODA_ROLE_APPEND:
      checkSameRotation(kernel, set.append);
      take(set.append);
      break;
    case PAGODA_ROLE_COPY:
      take(set.copy);
      break;
    }
  }
  // Variants may differ in max_rows: a plan that chose among them by rows would
  // mix in kernels that use less of the machine.
  const pagoda_kernel_info *best = nullptr;
  for (const pagoda_kernel_info *kernel : set.attention)
    if (better(*kernel, best))
      best = kernel;
  std::erase_if(set.attention,
                [&](auto *kernel) { return better(*best, kernel); });
  if (set.attention.empty())
    throw Error(ErrorCode::Mismatch,
                "library " + Name +
                    ": no attention kernel fits the caller on this machine" +
                    (nearest.empty() ? std::string("; it has none for a ") +
                                           (forGpu ? "gpu" : "cpu")
                                     : nearest));
  return set;
}
