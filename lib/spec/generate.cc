#include "spec/generate.h"

#include "spec/parse.h"

namespace fl::spec {
namespace {

/// A scalar for the right side of "key: ".
std::string Scalar(std::string_view text) {
  std::string yaml = Value(text).ToYaml();
  yaml.pop_back();  // the line break
  return yaml;
}

std::string Header(std::string_view kind, const std::string& name) {
  return "apiVersion: " + std::string(kApiVersion) + "\nkind: " + std::string(kind) +
         "\nmetadata:\n  name: " + Scalar(name) + "\n";
}

/// The text, if it is one valid object.
base::Result<std::string> Checked(std::string text) {
  const ParseResult result = ParseYaml(text, "");
  Problems problems = result.problems;
  for (Problem& problem : problems) problem.line = 0;  // of a text that nobody has seen
  FL_RETURN_IF_ERROR(ToStatus(problems));
  return text;
}

}  // namespace

base::Result<std::string> GenerateJob(const GenerateJobOptions& options) {
  const bool builtin = options.trainer == "mlp" || options.trainer == "softmax";
  std::string text = Header(FederatedLearningJob::kKind, options.name);
  text += "spec:\n  modelRef:\n    name: " + Scalar(options.model) + "\n";
  text += "  rounds: " + std::to_string(options.rounds) + "\n";
  text += "  trainer:\n";
  if (builtin) {
    text += "    builtin: " + Scalar(options.trainer) +
            R"(          # or `name: my-trainer` (looked up at each agent), or `image` and `command`
    config:               # handed to the trainer as it stands
      learningRate: 0.05
      localEpochs: 1
      batchSize: 10
)";
  } else {
    text += "    name: " + Scalar(options.trainer) +
            R"(      # each agent's own configuration says what to run
    # config:             # handed to the trainer as it stands
    #   learningRate: 0.05
)";
  }
  text += R"(  selection:
    # clientSelector:     # left out: every client
    #   matchLabels: {region: eu}
    policy: Random        # or Poisson, with samplingRate and population, for differential privacy
)";
  if (options.clients_per_round) {
    text += "    clientsPerRound: " + std::to_string(*options.clients_per_round) + "\n";
  } else {
    text += "    # clientsPerRound: 10 # left out: all that match\n";
  }
  text +=
      R"(    # quorum: 8           # updates that a round needs; left out: all that were selected
    # seed: 7             # the same cohorts again
  roundPolicy:
    deadlineSeconds: 600  # a round closes then, with what has arrived
    onMissedQuorum: Retry # or Fail
    maxRetries: 3
  aggregation:
)";
  text += "    algorithm: " + Scalar(options.algorithm) + "\n";
  text += R"(    # parameters:         # decimals in quotes
    #   serverLearningRate: "1.0"
  evaluation:
)";
  if (options.test_dataset) {
    text += "    testDataset: " + Scalar(*options.test_dataset) + "\n";
  } else {
    text +=
        R"(    clients: All          # each client evaluates each new version on its own data; or None
    # testDataset: "file:///data/test.csv"   # evaluated by the aggregator
)";
  }
  text += R"(  # convergence:          # stop early
  #   metric: accuracy
  #   mode: Max
  #   target: "0.97"
  #   patience: 5         # rounds without a gain of more than minDelta
  #   minDelta: "0.001"
  # privacy:
  #   secureAggregation:
  #     protocol: SecAggPlus
  #   differentialPrivacy:
  #     mechanism: Central
  #     clipNorm: "1.0"
  #     noiseMultiplier: "1.1"
  #     epsilon: "8"      # the job ends before it spends more
  #     delta: "1e-5"
  # ttlSecondsAfterFinished: 86400
)";
  return Checked(std::move(text));
}

base::Result<std::string> GenerateModel(const GenerateModelOptions& options) {
  std::string text = Header(FederatedModel::kKind, options.name) + "spec:\n";
  if (options.registry) {
    text += "  registry:\n    uri: " + Scalar(*options.registry) + "\n";
  } else {
    text +=
        R"(  # registry:             # left out: ./fl-registry, or the aggregator's volume in a cluster
  #   uri: "s3://models/prod"   # file:// s3:// oci://
  #   credentialsSecretRef: {name: registry-credentials}
)";
  }
  text += "  initial:                # version 0\n";
  if (options.initial) {
    text += "    uri: " + Scalar(*options.initial) + "\n";
  } else {
    text += R"(    builtin:              # or `uri: "file:model-v0.safetensors"`
      architecture: mlp
      layers: [64, 32, 10]   # inputs, hidden layers, classes
      seed: 1
)";
  }
  text += R"(  # privacyBudget:        # over all jobs of this model
  #   epsilon: "8"
  #   delta: "1e-5"
  # retention:
  #   keepLast: 10        # left out: every version is kept
  # promotion:
  #   policy: Manual      # or Automatic, on convergence
  #   metric: accuracy
  #   atLeast: "0.95"
  # version: 12           # pins this version; left out: the promoted one, else the latest
  # aggregator:           # in a cluster only
  #   service:
  #     type: ClusterIP   # or NodePort, LoadBalancer
  #     hostnames: [fl.example.org]
  #   storage: {size: 10Gi}
)";
  return Checked(std::move(text));
}

base::Result<std::string> GenerateClient(const GenerateClientOptions& options) {
  std::string text = Header(FederatedClient::kKind, options.name);
  text += "  # labels: {region: eu}  # what a job's clientSelector looks at\nspec:\n";
  if (options.public_key) {
    text += "  type: Agent             # fl-agentd runs beside the data and dials in\n";
    text += "  publicKey: " + Scalar(*options.public_key) + "\n";
  } else {
    text +=
        R"(  type: Pod               # the operator runs a pod for each job; or Agent, with publicKey
  pod:
)";
    text += "    image: " + Scalar(options.image) + "\n";
    text += R"(    # command: [python3, train.py]   # left out: the image's own
    # env:
    #   - {name: LOG_LEVEL, value: info}
    # resources:
    #   requests: {cpu: "1", memory: 1Gi}
    # volumes:
    #   - {name: data, persistentVolumeClaim: {claimName: training-data}}
    # volumeMounts:
    #   - {name: data, mountPath: /data, readOnly: true}
)";
  }
  text += "  dataset:\n    uri: " + Scalar(options.dataset) + "\n";
  text += "  # fenced: true          # takes part in no round\n";
  return Checked(std::move(text));
}

}  // namespace fl::spec
