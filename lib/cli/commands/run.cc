#include <memory>

#include "cli/commands/commands.h"
#include "cli/federation/federation.h"
#include "cli/input.h"

namespace fl::cli {
namespace {

base::Status Run(const RunOptions& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const spec::ParseResult objects,
                      ReadObjects(context, options.files, spec::AgentKeys::kMade));
  FL_RETURN_IF_ERROR(spec::ToStatus(objects.problems));
  if (options.clients_per_process < 1) {
    return base::InvalidArgument("--clients-per-process must be at least 1");
  }
  RunOptions chosen = options;
  if (!context.global.registry.empty()) chosen.registry = context.global.registry;
  FL_ASSIGN_OR_RETURN(const Plan plan, MakePlan(objects, chosen));
  return RunFederation(context, plan, chosen);
}

}  // namespace

Command RunCommand() {
  auto options = std::make_shared<RunOptions>();
  return {
      .name = "run",
      .summary = "Train a model here: the aggregator and every agent as processes of this machine",
      .description =
          "Takes the same files as a cluster. Each FederatedClient becomes an agent with its own\n"
          "dataset; the aggregator, a private CA and all keys are made as needed (none of them\n"
          "has to have a publicKey). Every version ends up in the registry. Ctrl-C stops cleanly,\n"
          "and the same command goes on; a job that has succeeded is not run again. A trainer\n"
          "with a command is run as that command. Relative file: URIs start at the folder of the\n"
          "YAML file.",
      .examples = {{"The demo", "fl run -f manifests/examples/digits"},
                   {"Ten agents on parts of one file",
                    "fl run -f model.yaml -f job.yaml --clients 10 --dataset file:train.csv "
                    "--partition dirichlet=0.5 --test-dataset file:test.csv"},
                   {"A trainer of your own, by name", "fl run -f . --trainers trainers.yaml"}},
      .flags = {FilenameFlag(&options->files),
                {.names = "--state-dir",
                 .value = "DIR",
                 .help = "Where keys, journals and logs are kept between runs",
                 .to = &options->state_dir,
                 .completes = Completes::kFolder},
                {.names = "--trainers",
                 .value = "FILE",
                 .help = "What trainers by name run: NAME: {command: [...], worker: true}",
                 .to = &options->trainers_file,
                 .completes = Completes::kFile},
                {.names = "--clients",
                 .value = "N",
                 .help = "Instead of the files' clients: N agents on parts of --dataset",
                 .to = &options->clients},
                {.names = "--dataset",
                 .value = "URI",
                 .help = "The data that --clients split, e.g. file:train.csv",
                 .to = &options->dataset},
                {.names = "--partition",
                 .value = "HOW",
                 .help = "iid, shards=K or dirichlet=A",
                 .to = &options->partition},
                {.names = "--test-dataset",
                 .value = "URI",
                 .help = "Data on which the aggregator evaluates each version",
                 .to = &options->test_dataset},
                {.names = "--clients-per-process",
                 .value = "M",
                 .help = "How many agents share a process",
                 .to = &options->clients_per_process}},
      .uses_target = true,
      .interruptible = true,
      .run = [options](Context& context) { return Run(*options, context); }};
}

}  // namespace fl::cli
