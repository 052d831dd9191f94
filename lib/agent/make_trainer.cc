#include <utility>

#include "agent/task_runner.h"
#include "trainer/builtin.h"
#include "trainer/process_trainer.h"

namespace fl::agent {

using base::Result;

Result<std::unique_ptr<trainer::Trainer>> MakeTrainer(const std::string& name,
                                                      const TrainerConfig* config,
                                                      const base::Path& log_file) {
  if (config == nullptr) return trainer::MakeBuiltin(name);
  FL_ASSIGN_OR_RETURN(
      std::unique_ptr<trainer::ProcessTrainer> made,
      trainer::ProcessTrainer::Create({.command = config->command,
                                       .worker = config->worker,
                                       .env = config->env,
                                       .working_directory = config->working_directory,
                                       .log_file = log_file,
                                       .time_limit = config->time_limit}));
  return std::unique_ptr<trainer::Trainer>(std::move(made));
}

}  // namespace fl::agent
