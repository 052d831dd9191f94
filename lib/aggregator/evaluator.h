#pragma once

/// Evaluation on a job's test dataset, at the aggregator.

#include <map>
#include <string>

#include "aggregator/engine.h"
#include "base/file.h"
#include "trainer/process_trainer.h"

namespace fl::aggregator {

/// Programs that may evaluate here, by the name that jobs use: the aggregator's own configuration,
/// never from the wire.
using EvaluationPrograms = std::map<std::string, trainer::ProcessTrainerOptions>;

/// Reads the file that `--trainers` names, YAML or JSON, the same that agents take: `NAME:
/// {command:
/// [...], worker: bool, timeoutSeconds: N, env: {...}, workingDirectory: PATH}`, or that below
/// `trainers`. Relative paths start at the file's folder. kInvalidArgument names the line or field.
base::Result<EvaluationPrograms> ReadEvaluationPrograms(const base::Path& path);

/// Built-in trainers are evaluated in this process, others by their program. `work_dir` takes task
/// files and logs; relative file: URIs start at `data_dir`.
Evaluator MakeEvaluator(EvaluationPrograms programs, base::Path work_dir, base::Path data_dir);

}  // namespace fl::aggregator
