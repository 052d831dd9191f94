// Aggregating updates from mapped files, all checks included, against a plain in-memory loop
// `y += a*x` over the same number of F32 values in the same run.
//
//   bench_aggregate [--clients 100] [--params 10000000] [--repeat 3] [--threads 2]
//                   [--algorithm FedAvg] [--dtype F32] [--folder DIR]
//
// Prints one JSON line. Rates are bytes of updates per second: `axpy_gbps` of the plain loop on one
// core, `one_thread_gbps` of ours on one, `threads_gbps` on --threads; `ratio` is the second over
// the first, at least 0.4 being asked for, and `cpu_ratio` the same by processor time, which other
// programs on the machine disturb less. `same_bits` says that one thread, several, and the
// updates in another order gave the same file. Exit status 1 where they did not.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "strategy/aggregate/aggregate.h"

namespace {

using fl::base::Path;
using fl::strategy::AggregateReport;
using fl::strategy::AggregateRequest;
using fl::tensor::DType;

struct Flags {
  int clients = 100;
  uint64_t params = 10'000'000;
  int repeat = 3;
  int threads = 2;
  std::string algorithm = "FedAvg";
  std::string dtype = "F32";
  std::string folder = std::filesystem::temp_directory_path();
};

void Usage() {
  std::fprintf(stderr,
               "usage: bench_aggregate [--clients N] [--params N] [--repeat N] [--threads N] "
               "[--algorithm NAME] [--dtype F16|BF16|F32|F64] [--folder DIR]\n");
  std::exit(4);
}

Flags ParseFlags(int count, char** arguments) {
  Flags flags;
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    if (i + 1 == count) Usage();
    const std::string value = arguments[i + 1];
    if (name == "--clients") {
      flags.clients = std::atoi(value.c_str());
    } else if (name == "--params") {
      flags.params = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--repeat") {
      flags.repeat = std::atoi(value.c_str());
    } else if (name == "--threads") {
      flags.threads = std::atoi(value.c_str());
    } else if (name == "--algorithm") {
      flags.algorithm = value;
    } else if (name == "--dtype") {
      flags.dtype = value;
    } else if (name == "--folder") {
      flags.folder = value;
    } else {
      Usage();
    }
  }
  if (flags.clients < 1 || flags.params < 1 || flags.repeat < 1 || flags.threads < 1) Usage();
  return flags;
}

template <typename T>
T Must(fl::base::Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "bench_aggregate: %s\n", result.status().ToString().c_str());
  std::exit(1);
}

/// The best of several runs, by the wall clock and by the processor's time for this process.
struct Seconds {
  double wall = std::numeric_limits<double>::infinity();
  double cpu = std::numeric_limits<double>::infinity();
};

double ProcessorSeconds() {
  timespec time;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <typename Body>
Seconds BestSeconds(int repeat, Body body) {
  Seconds best;
  for (int i = 0; i < repeat; ++i) {
    const double cpu = ProcessorSeconds();
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    best.wall = std::min(best.wall, wall.count());
    best.cpu = std::min(best.cpu, ProcessorSeconds() - cpu);
  }
  return best;
}

/// The plain loop, as a compiler makes it at its best for this processor.
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((optimize("O3"), target_clones("avx2", "default")))
#endif
void Axpy(float a, const float* __restrict x, float* __restrict y, size_t count) {
  for (size_t i = 0; i < count; ++i) y[i] += a * x[i];
}

/// Seconds for `clients` times y += a*x over `params` values, each x in memory of its own (as many
/// as fit 8 GB).
Seconds AxpySeconds(const Flags& flags) {
  const size_t params = flags.params;
  const size_t distinct =
      std::clamp<size_t>((size_t{8} << 30) / (4 * params), 1, static_cast<size_t>(flags.clients));
  std::vector<std::vector<float>> x(distinct, std::vector<float>(params));
  for (auto& values : x) {
    for (size_t i = 0; i < params; ++i) values[i] = static_cast<float>(i % 1013) * 1e-3f;
  }
  std::vector<float> y(params);
  const Seconds seconds = BestSeconds(flags.repeat, [&] {
    for (int k = 0; k < flags.clients; ++k) {
      Axpy(1e-2f, x[static_cast<size_t>(k) % distinct].data(), y.data(), params);
    }
  });
  if (y[params / 2] < 0) std::puts("");  // the loop is not for nothing
  return seconds;
}

std::vector<fl::tensor::TensorSpec> ModelSpecs(const Flags& flags) {
  const auto dtype = fl::tensor::DTypeFromName(flags.dtype);
  if (!dtype || !fl::tensor::IsFloating(*dtype)) Usage();
  // A large matrix and a bias, so that tiles end at odd places.
  const uint64_t bias = std::min<uint64_t>(flags.params - 1, 1001);
  return {{"weight", *dtype, {flags.params - bias}}, {"bias", *dtype, {bias}}};
}

void WriteModel(const Path& path, const Flags& flags, uint64_t seed) {
  const auto specs = ModelSpecs(flags);
  auto writer = Must(fl::tensor::SafetensorsWriter::Create(path, specs));
  fl::base::SeededRandom random({seed});
  std::vector<double> values(1 << 16);
  for (double& value : values) value = random.Normal();
  std::vector<uint8_t> bytes(values.size() * 8);
  const size_t size = fl::tensor::ElementSize(specs[0].dtype);
  for (uint64_t written = 0; written < flags.params; written += values.size()) {
    fl::tensor::EncodeFromDouble(specs[0].dtype, values.data(), values.size(), bytes.data());
    const uint64_t count = std::min<uint64_t>(values.size(), flags.params - written);
    const auto status = writer.Append({bytes.data(), static_cast<size_t>(count * size)});
    if (!status.ok()) Must(fl::base::Result<int>(status));
    values[random.Below(values.size())] = random.Normal();
  }
  Must(std::move(writer).Commit(false));
}

}  // namespace

int main(int count, char** arguments) {
  const Flags flags = ParseFlags(count, arguments);
  const Seconds axpy = AxpySeconds(flags);

  std::string name = (Path(flags.folder) / "fl-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    std::perror("mkdtemp");
    return 1;
  }
  const Path folder = name;
  const auto rule = Must(fl::strategy::MakeRule({flags.algorithm, {}}));
  std::vector<fl::tensor::SafetensorsFile> files;
  for (int k = 0; k <= flags.clients; ++k) {
    const Path path = folder / ("client" + std::to_string(k));
    WriteModel(path, flags, static_cast<uint64_t>(k));
    files.push_back(Must(fl::tensor::SafetensorsFile::Open(path)));
  }
  AggregateRequest request;
  request.global = &files.back();
  request.output = folder / "output";
  request.state_output = folder / "state";
  request.durable = false;
  for (int k = 0; k < flags.clients; ++k) {
    request.updates.push_back({fl::base::ClientName("client-" + std::to_string(k)),
                               static_cast<double>(1 + k % 17), 1 + k % 5,
                               &files[static_cast<size_t>(k)]});
  }
  std::vector<fl::base::Digest> digests;
  const auto seconds = [&](int repeat, fl::base::ThreadPool* pool) {
    request.pool = pool;
    AggregateReport report;
    const Seconds best = BestSeconds(repeat, [&] {
      // Mapped anew, so that every run pays for its page tables.
      std::vector<fl::tensor::SafetensorsFile> mapped;
      AggregateRequest fresh = request;
      for (auto& update : fresh.updates) {
        mapped.push_back(Must(fl::tensor::SafetensorsFile::Open(update.tensors->path())));
      }
      for (size_t k = 0; k < mapped.size(); ++k) fresh.updates[k].tensors = &mapped[k];
      const auto status = fl::strategy::Aggregate(rule, fresh, report);
      if (!status.ok()) Must(fl::base::Result<int>(status));
      digests.push_back(report.output.digest);
    });
    return best;
  };
  const Seconds one_thread = seconds(flags.repeat, nullptr);
  // The caller works too: a pool of N − 1 makes N threads.
  fl::base::ThreadPool pool(std::max(1, flags.threads - 1));
  const Seconds threads = seconds(flags.repeat, flags.threads > 1 ? &pool : nullptr);
  fl::base::SeededRandom random({1});
  random.Shuffle(request.updates);
  seconds(1, &pool);

  const bool same_bits = std::all_of(digests.begin(), digests.end(),
                                     [&](const auto& digest) { return digest == digests[0]; });
  std::filesystem::remove_all(folder);
  const double values = static_cast<double>(flags.clients) * static_cast<double>(flags.params);
  const double size = static_cast<double>(fl::tensor::ElementSize(ModelSpecs(flags)[0].dtype));
  std::printf(
      "{\"bench\":\"aggregate\",\"algorithm\":\"%s\",\"dtype\":\"%s\",\"clients\":%d,"
      "\"params\":%llu,\"axpy_gbps\":%.2f,\"one_thread_gbps\":%.2f,\"threads\":%d,"
      "\"threads_gbps\":%.2f,\"ratio\":%.3f,\"cpu_ratio\":%.3f,\"limit\":0.4,\"same_bits\":%s}\n",
      flags.algorithm.c_str(), flags.dtype.c_str(), flags.clients,
      static_cast<unsigned long long>(flags.params), values * 4e-9 / axpy.wall,
      values * size * 1e-9 / one_thread.wall, flags.threads, values * size * 1e-9 / threads.wall,
      axpy.wall / one_thread.wall, axpy.cpu / one_thread.cpu, same_bits ? "true" : "false");
  return same_bits ? 0 : 1;
}
