#pragma once

/// What a trainer is asked to do and what it answers: the contract of the FL_TASK file, which is
/// written down for authors of trainers in README.md. Values; any thread.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/ids.h"
#include "base/status.h"

namespace fl::trainer {

enum class TaskKind { kTrain, kEvaluate };

/// One task of one client in one round.
struct Task {
  TaskKind kind = TaskKind::kTrain;
  base::JobName job;
  base::RoundNumber round;
  int64_t attempt = 0;
  base::ClientName client;
  uint32_t seed = 0;          ///< see TaskSeed
  std::string config = "{}";  ///< the job's trainer config, a JSON object
  double mu = 0;              ///< weight of FedProx's proximal term; 0 for none
  base::Path model;           ///< the global weights
  base::Path output;          ///< where the trained weights go; empty for kEvaluate
  base::Path result;          ///< where the TaskResult goes
  std::string dataset;        ///< URI, as in DatasetSpec for the built-in trainers
};

/// The JSON of the FL_TASK file.
std::string ToJson(const Task& task);
/// The inverse. kInvalidArgument names the field. Unknown fields are ignored, so that a newer agent
/// can talk to an older trainer.
base::Result<Task> TaskFromJson(std::string_view json);

/// The seed of a client's task: the same for every attempt of a round, so that a repeated round
/// comes out the same. 32 bits, because numpy and scikit-learn take no more.
uint32_t TaskSeed(uint64_t job_seed, base::RoundNumber round, const base::ClientName& client);

/// What a trainer reports besides weights.
struct TaskResult {
  int64_t num_samples = 0;                ///< samples trained or evaluated on; ≥ 0
  int64_t num_steps = 0;                  ///< optimiser steps (FedNova's tau); ≥ 0
  std::map<std::string, double> metrics;  ///< finite

  friend bool operator==(const TaskResult&, const TaskResult&) = default;
};

std::string ToJson(const TaskResult& result);
/// Reads a result. kInvalidArgument where it is not a JSON object, `num_samples` is missing, a
/// count is negative, fractional or above 2^53, a metric is not a finite number, or there are more
/// than 1000 metrics or a name longer than 253 bytes. The message names the field.
base::Result<TaskResult> TaskResultFromJson(std::string_view json);
/// The same from a file of at most 1 MiB. kNotFound, kOutOfRange, kInvalidArgument.
base::Result<TaskResult> ReadTaskResult(const base::Path& path);

}  // namespace fl::trainer
