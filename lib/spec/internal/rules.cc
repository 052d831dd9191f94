#include "spec/internal/rules.h"

#include <limits>

#include "spec/algorithms.h"
#include "spec/internal/path.h"

namespace fl::spec::internal {
namespace {

constexpr int64_t kMaxParameters = 10'000'000'000;
constexpr size_t kMaxConfigBytes = 64 << 10;
constexpr size_t kMaxAnnotationBytes = 256 << 10;

void CheckAnnotations(const ObjectMeta& metadata, RuleReport& report) {
  size_t bytes = 0;
  for (const auto& [key, value] : metadata.annotations) bytes += key.size() + value.size();
  if (bytes > kMaxAnnotationBytes) {
    report("metadata.annotations", "must have at most " + std::to_string(kMaxAnnotationBytes) +
                                       " bytes in all, not " + std::to_string(bytes));
  }
}

void CheckBuiltinModel(const BuiltinModel& model, RuleReport& report) {
  const std::string path = "spec.initial.builtin.layers";
  const size_t layers = model.layers.size();
  if (model.architecture == Architecture::kSoftmax && layers != 2 && layers != 0) {
    report(path,
           "must have two entries for softmax, inputs and classes, not " + std::to_string(layers));
  } else if (layers == 1) {
    report(path, "must have at least two entries: inputs, hidden layers if any, classes");
  }
  int64_t parameters = 0;
  for (size_t i = 1; i < layers; ++i) {
    int64_t weights = 0;
    if (__builtin_mul_overflow(model.layers[i - 1], model.layers[i], &weights) ||
        __builtin_add_overflow(parameters, weights, &parameters) || parameters > kMaxParameters) {
      report(path, "must give at most " + std::to_string(kMaxParameters) +
                       " parameters: make the layers smaller");
      return;
    }
  }
}

/// `value`, if set, is a list of maps each of which has the string fields `required`.
void CheckList(const Value& value, const std::string& path,
               std::initializer_list<std::string_view> required, RuleReport& report) {
  if (value.is_null()) return;
  const Value::List* list = value.As<Value::List>();
  if (list == nullptr) {
    report(path, "must be a list, not " + std::string(Describe(value.type())));
    return;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string at = JoinIndex(path, i);
    if (!(*list)[i].is_map()) {
      report(at, "must be a map, not " + std::string(Describe((*list)[i].type())));
      continue;
    }
    for (const std::string_view name : required) {
      const Value* member = (*list)[i].Find(name);
      if (member == nullptr) {
        report(JoinKey(at, name), "is required");
      } else if (!member->is_string()) {
        report(JoinKey(at, name), "must be a string: put it in quotes");
      }
    }
  }
}

void CheckMap(const Value& value, const std::string& path, RuleReport& report) {
  if (!value.is_null() && !value.is_map()) {
    report(path, "must be a map, not " + std::string(Describe(value.type())));
  }
}

void CheckPod(const PodTemplate& pod, RuleReport& report) {
  for (size_t i = 0; i < pod.env.size(); ++i) {
    const std::string path = JoinIndex("spec.pod.env", i);
    CheckMap(pod.env[i].value_from, path + ".valueFrom", report);
    if (pod.env[i].value && !pod.env[i].value_from.is_null()) {
      report(path, "must have either value or valueFrom, not both");
    }
  }
  CheckList(pod.tolerations, "spec.pod.tolerations", {}, report);
  CheckList(pod.volumes, "spec.pod.volumes", {"name"}, report);
  CheckList(pod.volume_mounts, "spec.pod.volumeMounts", {"name", "mountPath"}, report);
  CheckMap(pod.security_context, "spec.pod.securityContext", report);
}

void CheckTrainer(const TrainerSpec& trainer, RuleReport& report) {
  const bool program = trainer.image || !trainer.command.empty();
  const int ways = (trainer.builtin ? 1 : 0) + (trainer.name ? 1 : 0) + (program ? 1 : 0);
  if (ways != 1) {
    report("spec.trainer",
           std::string("must have exactly one of builtin, name, or image and command; ") +
               (ways == 0 ? "none is set" : "more than one is set"));
  }
  if (Value(trainer.config).ToJson().size() > kMaxConfigBytes) {
    report("spec.trainer.config",
           "must have at most " + std::to_string(kMaxConfigBytes) + " bytes as JSON");
  }
}

void CheckSelector(const LabelSelector& selector, RuleReport& report) {
  const auto& list = selector.match_expressions;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path =
        JoinIndex("spec.selection.clientSelector.matchExpressions", i) + ".values";
    const bool wants_values =
        list[i].op == SelectorOperator::kIn || list[i].op == SelectorOperator::kNotIn;
    if (wants_values && list[i].values.empty()) {
      report(path, "must not be empty for " + std::string(Name(list[i].op)));
    } else if (!wants_values && !list[i].values.empty()) {
      report(path, "must be left out for " + std::string(Name(list[i].op)));
    }
  }
}

void CheckSelection(const Selection& selection, RuleReport& report) {
  const auto refuse = [&report](bool is_set, std::string_view field, std::string why) {
    if (is_set) report("spec.selection." + std::string(field), std::move(why));
  };
  if (selection.policy == SelectionPolicy::kPoisson) {
    refuse(!selection.sampling_rate, "samplingRate", "is required for policy Poisson");
    refuse(!selection.population, "population",
           "is required for policy Poisson: the number of clients that are drawn from");
    refuse(selection.seed.has_value(), "seed",
           "must be left out for policy Poisson: its cohorts come from a secure generator, since a "
           "cohort that can be guessed amplifies no privacy");
    refuse(selection.clients_per_round.has_value(), "clientsPerRound",
           "must be left out for policy Poisson: samplingRate decides");
    if (selection.quorum && selection.population && *selection.quorum > *selection.population) {
      report("spec.selection.quorum", "must be at most the population, " +
                                          std::to_string(*selection.population) + ", not " +
                                          std::to_string(*selection.quorum));
    }
    return;
  }
  refuse(selection.sampling_rate.has_value(), "samplingRate",
         "must be left out for policy Random: amplification by sampling needs policy Poisson");
  if (!selection.clients_per_round) return;
  const int64_t cohort = *selection.clients_per_round;
  if (selection.quorum && *selection.quorum > cohort) {
    report("spec.selection.quorum", "must be at most clientsPerRound, " + std::to_string(cohort) +
                                        ", not " + std::to_string(*selection.quorum));
  }
  if (selection.population && *selection.population < cohort) {
    report("spec.selection.population", "must be at least clientsPerRound, " +
                                            std::to_string(cohort) + ", not " +
                                            std::to_string(*selection.population));
  }
}

void CheckConvergence(const JobSpec& job, RuleReport& report) {
  if (!job.convergence) return;
  const Convergence& convergence = *job.convergence;
  if (!convergence.target && !convergence.patience) {
    report("spec.convergence", "must have a target, or a patience, or both");
  }
  if (convergence.min_delta && !convergence.patience) {
    report("spec.convergence.minDelta", "must be left out where there is no patience");
  }
  if (job.evaluation.clients == EvaluationClients::kNone && !job.evaluation.test_dataset) {
    report("spec.convergence",
           "must have something to measure: set evaluation.testDataset, or evaluation.clients to "
           "All");
  }
}

}  // namespace

std::optional<int64_t> SmallestCohort(const Selection& selection) {
  return selection.quorum ? selection.quorum : selection.clients_per_round;
}

void CheckModelRules(const FederatedModel& model, RuleReport report) {
  CheckAnnotations(model.metadata, report);
  const InitialModel& initial = model.spec.initial;
  if (initial.uri.has_value() == initial.builtin.has_value()) {
    report("spec.initial", std::string("must have exactly one of uri and builtin; ") +
                               (initial.uri ? "both are set" : "none is set"));
  }
  if (initial.builtin) CheckBuiltinModel(*initial.builtin, report);

  const Promotion& promotion = model.spec.promotion;
  if (promotion.metric.has_value() != promotion.at_least.has_value()) {
    report("spec.promotion", "must have both metric and atLeast, or neither");
  }
  CheckMap(promotion.target, "spec.promotion.target", report);
  if (promotion.target.is_map()) {
    for (const std::string_view name : {"kind", "name"}) {
      const Value* member = promotion.target.Find(name);
      if (member == nullptr || !member->is_string()) {
        report(JoinKey("spec.promotion.target", name),
               member == nullptr ? "is required" : "must be a string: put it in quotes");
      }
    }
  }
}

void CheckClientRules(const FederatedClient& client, AgentKeys keys, RuleReport report) {
  CheckAnnotations(client.metadata, report);
  const ClientSpec& spec = client.spec;
  if (spec.type == ClientType::kAgent) {
    if (!spec.public_key && keys == AgentKeys::kGiven) {
      report("spec.publicKey",
             "is required for type Agent: the key by which the agent is known (`fl keys generate` "
             "makes one)");
    }
    if (spec.pod) report("spec.pod", "must be left out for type Agent: the agent runs elsewhere");
  }
  if (spec.pod) CheckPod(*spec.pod, report);
}

void CheckJobRules(const JobSpec& job, RuleReport report) {
  CheckTrainer(job.trainer, report);
  CheckSelector(job.selection.client_selector, report);
  CheckSelection(job.selection, report);
  CheckConvergence(job, report);
}

}  // namespace fl::spec::internal
