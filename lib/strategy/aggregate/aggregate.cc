#include "strategy/aggregate/aggregate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "strategy/internal/state_file.h"
#include "strategy/internal/tile_pass.h"
#include "tensor/signature.h"

namespace fl::strategy {

using base::FailedPrecondition;
using base::InvalidArgument;
using base::Result;
using base::Status;
using tensor::Quote;

namespace {

/// More updates than this need a tree of aggregators.
constexpr size_t kMaxUpdates = size_t{1} << 20;

using Rejected = AggregateReport::Rejected;

std::string NumberToString(double value) {
  std::array<char, 32> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

Status CheckRequest(const Rule& rule, const AggregateRequest& request) {
  if (request.updates.empty()) return FailedPrecondition("there are no updates to aggregate");
  if (request.updates.size() > kMaxUpdates) {
    return InvalidArgument(std::to_string(request.updates.size()) +
                           " updates are more than one aggregation takes (" +
                           std::to_string(kMaxUpdates) + ")");
  }
  if (rule.needs_global() && request.global == nullptr) {
    return InvalidArgument(rule.name() + " starts from the global model, and none is given",
                           "give the model that the clients started from");
  }
  return base::OkStatus();
}

/// The updates by client id. kInvalidArgument for two of one client.
Result<std::vector<Update>> SortedUpdates(const AggregateRequest& request) {
  std::vector<Update> updates = request.updates;
  std::sort(updates.begin(), updates.end(),
            [](const Update& a, const Update& b) { return a.client < b.client; });
  for (size_t i = 1; i < updates.size(); ++i) {
    if (updates[i].client == updates[i - 1].client) {
      return InvalidArgument("there are two updates of client " + Quote(updates[i].client.str()));
    }
  }
  return updates;
}

/// Names, dtypes and shapes as text, whatever the order of the tensors.
std::string SignatureText(const tensor::Header& header) {
  std::map<std::string_view, const tensor::TensorInfo*> sorted;
  for (const tensor::TensorInfo& info : header.tensors()) sorted[info.name] = &info;
  std::string text;
  for (const auto& [name, info] : sorted) {
    text += std::to_string(name.size()) + ":" + std::string(name) +
            std::string(tensor::Name(info->dtype)) + tensor::ShapeToString(info->shape);
  }
  return text;
}

/// The header of the first update, by client id, that has what most updates have.
Result<const tensor::Header*> MajorityHeader(const std::vector<Update>& updates) {
  struct Group {
    const tensor::Header* header = nullptr;
    size_t size = 0;
  };
  std::map<std::string, Group> groups;
  for (const Update& update : updates) {
    Group& group = groups[SignatureText(update.tensors->header())];
    if (group.header == nullptr) group.header = &update.tensors->header();
    ++group.size;
  }
  Group largest;
  bool tie = false;
  for (const auto& [text, group] : groups) {
    tie = group.size == largest.size || (tie && group.size < largest.size);
    if (group.size > largest.size) largest = group;
  }
  if (tie) {
    return InvalidArgument("the updates differ in their tensors, and no kind is in the majority (" +
                               std::to_string(largest.size) + " of " +
                               std::to_string(updates.size()) + " each)",
                           "give the global model, so that it is known which are right");
  }
  return largest.header;
}

/// The first value of `file` that is not finite.
std::optional<Rejected> FindNonFinite(const tensor::SafetensorsFile& file) {
  constexpr size_t kChunk = size_t{1} << 20;
  for (const tensor::TensorInfo& info : file.header().tensors()) {
    if (!tensor::IsFloating(info.dtype)) continue;
    const std::span<const uint8_t> data = file.Data(info);
    for (size_t begin = 0; begin < data.size(); begin += kChunk) {
      const auto chunk = data.subspan(begin, std::min(kChunk, data.size() - begin));
      if (const auto index = tensor::FirstNonFinite(info.dtype, chunk)) {
        const uint64_t element = begin / tensor::ElementSize(info.dtype) + *index;
        return Rejected{{},
                        info.name,
                        "tensor " + Quote(info.name) +
                            " has a value that is not finite (NaN or infinity) at element " +
                            std::to_string(element)};
      }
    }
  }
  return std::nullopt;
}

/// Moves the updates with values that are not finite from `updates` to `rejected`.
void RejectNonFinite(base::ThreadPool* pool, std::vector<Update>& updates,
                     std::vector<Rejected>& rejected) {
  std::vector<std::optional<Rejected>> found(updates.size());
  base::ThreadPool::ParallelFor(pool, updates.size(), [&](size_t i) {
    found[i] = FindNonFinite(*updates[i].tensors);
    if (found[i]) found[i]->client = updates[i].client;
  });
  std::vector<Update> kept;
  for (size_t i = 0; i < updates.size(); ++i) {
    if (found[i]) {
      rejected.push_back(*std::move(found[i]));
    } else {
      kept.push_back(std::move(updates[i]));
    }
  }
  updates = std::move(kept);
}

/// Why a pass found a value that is not finite, all updates being finite.
Status ExplainFault(const Rule& rule, const AggregateRequest& request,
                    const internal::PassFault& fault) {
  if (request.global != nullptr) {
    if (const auto found = FindNonFinite(*request.global)) {
      return FailedPrecondition("the global model: " + found->reason,
                                "go back to a version that is whole");
    }
  }
  if (request.state != nullptr) {
    if (const auto found = FindNonFinite(*request.state)) {
      return FailedPrecondition("the state: " + found->reason, "start without a state");
    }
  }
  return FailedPrecondition("the " + rule.name() + " step leaves the range of " +
                                std::string(tensor::Name(fault.dtype)) + " in tensor " +
                                Quote(fault.tensor),
                            "lower serverLearningRate, or look for updates far from the rest");
}

void SortByClient(AggregateReport& report) {
  const auto by_client = [](const auto& a, const auto& b) { return a.client < b.client; };
  std::sort(report.accepted.begin(), report.accepted.end(), by_client);
  std::sort(report.rejected.begin(), report.rejected.end(), by_client);
}

/// Runs passes until one meets finite updates only: the updates are checked by the sums that are
/// made of them, and looked at one by one only where a sum is not finite.
Result<internal::PassFiles> RunPasses(internal::PassInput input, const AggregateRequest& request,
                                      std::vector<Update>& weighted,
                                      std::vector<Rejected>& rejected) {
  while (!weighted.empty()) {
    input.updates = weighted;
    std::optional<internal::PassFault> fault;
    Result<internal::PassFiles> files = internal::TilePass(input).Run(request, fault);
    if (files.ok() || !fault) return files;
    const size_t before = weighted.size();
    RejectNonFinite(request.pool, weighted, rejected);
    if (weighted.size() == before) return ExplainFault(*input.rule, request, *fault);
  }
  return FailedPrecondition("no update with a weight is left");
}

Status AllRejected(size_t updates) {
  return FailedPrecondition(base::AllOf(static_cast<int64_t>(updates), "update") +
                            (updates == 1 ? " was" : " were") + " rejected");
}

Status AggregateSorted(const Rule& rule, const AggregateRequest& request,
                       const std::vector<Update>& updates, AggregateReport& report) {
  const tensor::Header* reference = nullptr;
  if (request.global != nullptr) {
    reference = &request.global->header();
  } else {
    FL_ASSIGN_OR_RETURN(reference, MajorityHeader(updates));
  }
  internal::PassInput input;
  input.rule = &rule;
  input.reference = reference;
  input.global = request.global;
  if (rule.keeps_state() && request.state != nullptr) {
    FL_ASSIGN_OR_RETURN(const int64_t steps,
                        internal::CheckState(rule, *reference, *request.state));
    input.state = request.state;
    input.step = steps + 1;
  }

  std::vector<Update> weighted;
  std::vector<Update> weightless;
  for (const Update& update : updates) {
    if (std::optional<Rejected> rejected = CheckUpdate(rule, *reference, update)) {
      report.rejected.push_back(*std::move(rejected));
    } else {
      (update.weight > 0 ? weighted : weightless).push_back(update);
    }
  }
  RejectNonFinite(request.pool, weightless, report.rejected);
  for (const Update& update : weightless) report.accepted.push_back({update.client, 0});
  if (weighted.empty() && !weightless.empty()) {
    return FailedPrecondition("the weights of all updates are 0, so that there is no mean",
                              "check that the clients have data and report their samples");
  }
  if (weighted.empty()) {
    return AllRejected(updates.size());
  }

  Result<internal::PassFiles> files = RunPasses(input, request, weighted, report.rejected);
  for (const Update& update : weighted) {
    report.accepted.push_back({update.client, update.weight});
    report.total_weight += update.weight;
  }
  if (weighted.empty() && weightless.empty()) {
    return AllRejected(updates.size());
  }
  if (!files.ok()) return files.status();
  if (files->state) {
    FL_ASSIGN_OR_RETURN(report.state, std::move(*files->state).Commit(request.durable));
  }
  FL_ASSIGN_OR_RETURN(report.output, std::move(files->output).Commit(request.durable));
  return base::OkStatus();
}

}  // namespace

std::optional<Rejected> CheckUpdate(const Rule& rule, const tensor::Header& global,
                                    const Update& update) {
  const std::string weight = "its weight is " + NumberToString(update.weight);
  if (!std::isfinite(update.weight) || update.weight < 0) {
    return Rejected{update.client, "", weight + ", not a number of samples"};
  }
  if (update.weight > 0 && (update.weight < kMinWeight || update.weight > kMaxWeight)) {
    return Rejected{update.client, "",
                    weight + ", not 0 and not between " + NumberToString(kMinWeight) + " and " +
                        NumberToString(kMaxWeight)};
  }
  if (rule.normalizes_steps() && update.weight > 0 && update.steps < 1) {
    return Rejected{update.client, "",
                    "its number of local steps is " + std::to_string(update.steps) + ", and " +
                        rule.name() + " needs 1 or more"};
  }
  if (auto difference = tensor::FirstDifference(global, update.tensors->header())) {
    return Rejected{update.client, std::move(difference->tensor), std::move(difference->message)};
  }
  return std::nullopt;
}

Status Aggregate(const Rule& rule, const AggregateRequest& request, AggregateReport& report) {
  report = {};
  FL_RETURN_IF_ERROR(CheckRequest(rule, request));
  FL_ASSIGN_OR_RETURN(const std::vector<Update> updates, SortedUpdates(request));
  const Status status = AggregateSorted(rule, request, updates, report);
  SortByClient(report);
  return status;
}

}  // namespace fl::strategy
