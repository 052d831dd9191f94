#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/blob_cache.h"
#include "agent/config.h"
#include "agent/seams.h"
#include "agent/session.h"
#include "agent/update_sender.h"
#include "base/file.h"
#include "base/status.h"
#include "trainer/trainer.h"
#include "wire/task.h"

namespace fl::agent {

/// OK where `task` promises what `floors` demand; else kPermissionDenied that says which demand it
/// does not meet.
base::Status CheckFloors(const Floors& floors, const wire::Task& task);

/// Does the tasks of one client, start to end: model, training or evaluation, delivery. Keeps its
/// trainers, so that a worker stays alive and a dataset in memory from one round to the next. One
/// thread.
class TaskRunner {
 public:
  /// Makes the trainer called `name`; `config` is null for a built-in one. `log_file` takes the
  /// output of a program.
  using TrainerFactory = std::function<base::Result<std::unique_ptr<trainer::Trainer>>(
      const std::string& name, const TrainerConfig* config, const base::Path& log_file)>;

  struct Options {
    ClientConfig client;
    TrainerConfigs trainers;
    Floors require;
    base::Path folder;  ///< of this client alone; made where it is missing
  };

  /// The references outlive the runner.
  static base::Result<std::unique_ptr<TaskRunner>> Create(Options options, Session& session,
                                                          BlobCache& blobs, Seams seams,
                                                          TrainerFactory make_trainer);

  /// Does `task`, which was received at `received` (its deadline counts from there). True where the
  /// aggregator knows the outcome: accepted, late, or told of the failure. False where it could not
  /// be told, or the task was called off. All that went wrong is logged.
  bool Run(const wire::Task& task, base::Instant received, const TaskStop& stop);

 private:
  TaskRunner(Options options, Session& session, BlobCache& blobs, Seams seams,
             TrainerFactory make_trainer);
  base::Result<Delivery> Do(const wire::Task& task, base::Instant received, const TaskStop& stop);
  base::Result<Delivery> Train(const wire::Task& task, base::Instant received,
                               const TaskStop& stop);
  base::Result<Delivery> Evaluate(const wire::Task& task, base::Instant received,
                                  const TaskStop& stop);
  base::Result<trainer::TaskResult> RunTrainer(const wire::Task& task, base::Instant received,
                                               const TaskStop& stop);
  base::Result<BlobCache::Lease> FetchModel(const wire::Task& task, const TaskStop& stop);
  base::Result<trainer::Trainer*> FindTrainer(const wire::Task& task);
  base::Digest CauseOf(const wire::Task& task) const;
  base::Status Forget() const;
  /// Files and folders whose places are nobody's business but this machine's.
  std::vector<base::Path> LocalPaths() const;

  const Options options_;
  const base::Path weights_;
  const base::Path result_;
  const base::Path finished_;
  Session& session_;
  BlobCache& blobs_;
  const Seams seams_;
  UpdateSender sender_;
  const TrainerFactory make_trainer_;
  std::map<std::string, std::unique_ptr<trainer::Trainer>> trainers_;
};

/// The factory for real use: programs by trainer::ProcessTrainer, the others by
/// trainer::MakeBuiltin.
base::Result<std::unique_ptr<trainer::Trainer>> MakeTrainer(const std::string& name,
                                                            const TrainerConfig* config,
                                                            const base::Path& log_file);

}  // namespace fl::agent
