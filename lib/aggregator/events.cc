#include "aggregator/events.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace fl::aggregator {
namespace {

using nlohmann::json;

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

json WriteBody(const EventBody& body) {
  return std::visit(
      Overloaded{
          [](const JobConfigured& e) {
            return json{{"type", "job-configured"},
                        {"object", e.object},
                        {"configDigest", e.config_digest.ToString()},
                        {"seed", e.seed}};
          },
          [](const JobStarted& e) {
            return json{{"type", "job-started"}, {"baseVersion", e.base_version.value()}};
          },
          [](const RoundStarted& e) {
            json cohort = json::array();
            for (const base::ClientName& client : e.cohort) cohort.push_back(client.str());
            return json{{"type", "round-started"},
                        {"round", e.round.value()},
                        {"attempt", e.attempt},
                        {"cohort", std::move(cohort)},
                        {"from", e.from.value()}};
          },
          [](const UpdateAccepted& e) {
            json object{{"type", "update-accepted"},
                        {"client", e.client.str()},
                        {"digest", e.digest.ToString()},
                        {"size", e.size},
                        {"steps", e.steps},
                        {"metrics", e.metrics}};
            if (e.samples) object["samples"] = *e.samples;
            return object;
          },
          [](const ClientFailed& e) {
            return json{
                {"type", "client-failed"}, {"client", e.client.str()}, {"reason", e.reason}};
          },
          [](const RoundClosed& e) { return json{{"type", "round-closed"}, {"reason", e.reason}}; },
          [](const RoundMissed& e) { return json{{"type", "round-missed"}, {"reason", e.reason}}; },
          [](const RoundAggregated& e) {
            json object{{"type", "aggregated"},
                        {"weights", e.weights.ToString()},
                        {"weightsSize", e.weights_size},
                        {"contributors", e.contributors},
                        {"trainMetrics", e.train_metrics}};
            if (e.state) {
              object["state"] = e.state->ToString();
              object["stateSize"] = e.state_size;
            }
            return object;
          },
          [](const RoundEvaluated& e) {
            return json{{"type", "evaluated"}, {"metrics", e.metrics}, {"message", e.message}};
          },
          [](const RoundPublished& e) {
            return json{{"type", "published"}, {"version", e.version.value()}};
          },
          [](const JobFinished& e) {
            return json{{"type", "job-finished"},
                        {"succeeded", e.succeeded},
                        {"reason", e.reason},
                        {"message", e.message}};
          },
      },
      body);
}

/// Adds to JsonReader what events need.
class EventReader : public base::JsonReader {
 public:
  using base::JsonReader::JsonReader;

  base::Digest TakeDigest(std::string_view key) {
    std::string text;
    Required(key, &text);
    if (!status().ok()) return {};
    const base::Result<base::Digest> digest = base::Digest::Parse(text);
    if (!digest.ok()) Fail(digest.status());
    return digest.value_or(base::Digest());
  }
  int64_t TakeInt(std::string_view key) {
    int64_t value = 0;
    Required(key, &value);
    return value;
  }
  std::string TakeString(std::string_view key) {
    std::string value;
    Required(key, &value);
    return value;
  }
};

using BodyReader = EventBody (*)(EventReader&);

EventBody ReadConfigured(EventReader& r) {
  JobConfigured e;
  e.object = r.TakeString("object");
  e.config_digest = r.TakeDigest("configDigest");
  r.Required("seed", &e.seed);
  return e;
}
EventBody ReadStarted(EventReader& r) {
  return JobStarted{base::VersionNumber(r.TakeInt("baseVersion"))};
}
EventBody ReadRoundStarted(EventReader& r) {
  RoundStarted e;
  e.round = base::RoundNumber(r.TakeInt("round"));
  e.attempt = r.TakeInt("attempt");
  e.from = base::VersionNumber(r.TakeInt("from"));
  std::vector<std::string> cohort;
  r.Required("cohort", &cohort);
  for (std::string& name : cohort) e.cohort.emplace_back(std::move(name));
  return e;
}
EventBody ReadUpdate(EventReader& r) {
  UpdateAccepted e;
  e.client = base::ClientName(r.TakeString("client"));
  e.digest = r.TakeDigest("digest");
  r.Required("size", &e.size);
  r.Optional("samples", &e.samples);
  e.steps = r.TakeInt("steps");
  r.Required("metrics", &e.metrics);
  return e;
}
EventBody ReadFailed(EventReader& r) {
  return ClientFailed{base::ClientName(r.TakeString("client")), r.TakeString("reason")};
}
EventBody ReadClosed(EventReader& r) { return RoundClosed{r.TakeString("reason")}; }
EventBody ReadMissed(EventReader& r) { return RoundMissed{r.TakeString("reason")}; }
EventBody ReadAggregated(EventReader& r) {
  RoundAggregated e;
  e.weights = r.TakeDigest("weights");
  r.Required("weightsSize", &e.weights_size);
  e.contributors = r.TakeInt("contributors");
  r.Required("trainMetrics", &e.train_metrics);
  if (r.Has("state")) {
    e.state = r.TakeDigest("state");
    r.Required("stateSize", &e.state_size);
  }
  return e;
}
EventBody ReadEvaluated(EventReader& r) {
  RoundEvaluated e;
  r.Required("metrics", &e.metrics);
  r.Optional("message", &e.message);
  return e;
}
EventBody ReadPublished(EventReader& r) {
  return RoundPublished{base::VersionNumber(r.TakeInt("version"))};
}
EventBody ReadFinished(EventReader& r) {
  JobFinished e;
  r.Required("succeeded", &e.succeeded);
  e.reason = r.TakeString("reason");
  e.message = r.TakeString("message");
  return e;
}

const std::map<std::string_view, BodyReader>& Readers() {
  static const auto* readers = new std::map<std::string_view, BodyReader>{
      {"job-configured", ReadConfigured},  {"job-started", ReadStarted},
      {"round-started", ReadRoundStarted}, {"update-accepted", ReadUpdate},
      {"client-failed", ReadFailed},       {"round-closed", ReadClosed},
      {"round-missed", ReadMissed},        {"aggregated", ReadAggregated},
      {"evaluated", ReadEvaluated},        {"published", ReadPublished},
      {"job-finished", ReadFinished}};
  return *readers;
}

std::string MetricsText(const std::map<std::string, double>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4g", value);
    text += (text.empty() ? "" : ", ") + name + " " + number;
  }
  return text;
}

}  // namespace

bool NeedsSync(const EventBody& body) {
  return !std::holds_alternative<UpdateAccepted>(body) &&
         !std::holds_alternative<ClientFailed>(body);
}

std::string ToJson(const Event& event) {
  json object = WriteBody(event.body);
  object["time"] = base::FormatTime(event.time);
  return base::DumpJson(object);
}

base::Result<Event> EventFromJson(std::string_view text) {
  FL_ASSIGN_OR_RETURN(const json object, base::ParseJson(text, "journal event"));
  EventReader reader(object, "journal event");
  const std::string type = reader.TakeString("type");
  const std::string time = reader.TakeString("time");
  FL_RETURN_IF_ERROR(reader.status());
  const auto found = Readers().find(type);
  if (found == Readers().end()) {
    return base::DataLoss("journal event: unknown type \"" + type + "\"",
                          "the journal was written by a newer version of this program");
  }
  Event event;
  FL_ASSIGN_OR_RETURN(event.time, base::ParseTime(time));
  event.body = found->second(reader);
  FL_RETURN_IF_ERROR(reader.status());
  return event;
}

EventLine Describe(const EventBody& body) {
  return std::visit(
      Overloaded{
          [](const JobConfigured&) { return EventLine{"info", "job configured"}; },
          [](const JobStarted& e) {
            return EventLine{"info",
                             "job started from version " + std::to_string(e.base_version.value())};
          },
          [](const RoundStarted& e) {
            std::string text = "round " + std::to_string(e.round.value()) + " started with " +
                               base::Count(static_cast<int64_t>(e.cohort.size()), "client");
            if (e.attempt > 0) text += ", retry " + std::to_string(e.attempt);
            return EventLine{"info", std::move(text)};
          },
          [](const UpdateAccepted& e) {
            std::string text = "update from client \"" + e.client.str() + "\" accepted";
            if (e.samples) text += " (" + base::Count(*e.samples, "sample") + ")";
            return EventLine{"info", std::move(text)};
          },
          [](const ClientFailed& e) {
            return EventLine{"warning", "client \"" + e.client.str() + "\" failed: " + e.reason};
          },
          [](const RoundClosed& e) { return EventLine{"info", "round closed: " + e.reason}; },
          [](const RoundMissed& e) { return EventLine{"warning", "round missed: " + e.reason}; },
          [](const RoundAggregated& e) {
            return EventLine{"info", "aggregated " + base::Count(e.contributors, "update")};
          },
          [](const RoundEvaluated& e) {
            std::string text = "evaluated: " + MetricsText(e.metrics);
            if (!e.message.empty()) text += "; " + e.message;
            return EventLine{e.message.empty() ? "info" : "warning", std::move(text)};
          },
          [](const RoundPublished& e) {
            return EventLine{"info", "published version " + std::to_string(e.version.value())};
          },
          [](const JobFinished& e) {
            return EventLine{e.succeeded ? "info" : "error",
                             std::string(e.succeeded ? "job succeeded" : "job failed") + " (" +
                                 e.reason + "): " + e.message};
          },
      },
      body);
}

}  // namespace fl::aggregator
