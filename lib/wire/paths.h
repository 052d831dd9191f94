#pragma once

/// Paths and header names of the protocol between agents, aggregator and tools. Names of clients,
/// jobs and models are DNS labels, which need no escaping.

#include <string>
#include <string_view>

#include "base/digest.h"
#include "base/ids.h"

namespace fl::wire {

/// The session of an agent: "Authorization: Bearer TOKEN".
inline constexpr std::string_view kAuthorization = "Authorization";
/// The administrator's token; a header of its own, since proxies take Authorization for themselves.
inline constexpr std::string_view kAdminToken = "Fl-Admin-Token";
/// Samples an update was trained on; a whole number of at least 0. Required, but where the task has
/// sendMetrics: false, which takes neither it nor the two that follow.
inline constexpr std::string_view kSamples = "Fl-Samples";
/// Local optimiser steps behind an update; a whole number of at least 1.
inline constexpr std::string_view kSteps = "Fl-Steps";
/// Training metrics of an update, a JSON object of numbers.
inline constexpr std::string_view kTrainMetrics = "Fl-Metrics";
/// Which attempt of the round an update belongs to; 0 where absent.
inline constexpr std::string_view kAttempt = "Fl-Attempt";
/// In the 204 to a poll that named its current task: "none" where the client has no task any more.
inline constexpr std::string_view kTaskState = "Fl-Task";
inline constexpr std::string_view kTaskNone = "none";
/// In a 401: "superseded" where a newer session of the same client ended this one.
inline constexpr std::string_view kSessionState = "Fl-Session";
inline constexpr std::string_view kSessionSuperseded = "superseded";
/// RFC 9530.
inline constexpr std::string_view kReprDigest = "Repr-Digest";

inline constexpr std::string_view kSafetensorsType = "application/vnd.safetensors";
inline constexpr std::string_view kJsonType = "application/json";

inline constexpr std::string_view kAgentsPath = "/v1/agents";
inline constexpr std::string_view kStatusPath = "/v1/status";
inline constexpr std::string_view kJobsPath = "/v1/jobs";
inline constexpr std::string_view kClientsPath = "/v1/clients";
inline constexpr std::string_view kModelsPath = "/v1/models";

std::string TaskPath(const base::ClientName& client);
std::string JobPath(const base::JobName& job);
/// `action`: pause, resume, abort or retry.
std::string JobActionPath(const base::JobName& job, std::string_view action);
std::string JobRoundsPath(const base::JobName& job);
std::string JobEventsPath(const base::JobName& job);
std::string BlobPath(const base::JobName& job, const base::Digest& digest);
std::string UpdatePath(const base::JobName& job, base::RoundNumber round,
                       const base::ClientName& client);
std::string EvaluationPath(const base::JobName& job, base::RoundNumber round,
                           const base::ClientName& client);
std::string FailurePath(const base::JobName& job, base::RoundNumber round,
                        const base::ClientName& client);
std::string ModelPath(const base::ModelName& model);
std::string ModelVersionsPath(const base::ModelName& model);
std::string ModelPinPath(const base::ModelName& model);
std::string JoinTokenPath(const base::ClientName& client);

}  // namespace fl::wire
