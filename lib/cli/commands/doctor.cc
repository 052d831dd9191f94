#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "base/version.h"
#include "cli/commands/commands.h"
#include "cli/input.h"
#include "cli/internal/aggregator_client.h"
#include "cli/output.h"
#include "cli/target.h"
#include "registry/open.h"
#include "transport/certificates.h"
#include "transport/client.h"
#include "wire/paths.h"
#include "wire/status.h"

namespace fl::cli {
namespace {

enum class Verdict { kOk, kWarning, kFailed };

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;
  std::string message;
  std::string advice;
};
using Findings = std::vector<Finding>;

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warn";
    case Verdict::kFailed:
      return "fail";
  }
  return "";
}

Finding FromStatus(std::string subject, const base::Status& status, const std::string& advice) {
  return {Verdict::kFailed, std::move(subject), status.message(),
          status.hint().empty() ? advice : status.hint()};
}

void CheckPrograms(const Context& context, Findings* findings) {
  for (const char* program : {"fl-aggregatord", "fl-agentd"}) {
    const base::Path path = context.program_directory / program;
    if (::access(path.c_str(), X_OK) == 0) {
      findings->push_back({Verdict::kOk, program, path.string(), ""});
    } else {
      findings->push_back({Verdict::kFailed, program,
                           "not found in " + context.program_directory.string(),
                           "install it beside fl"});
    }
  }
}

void CheckProcessor(Findings* findings) {
  std::string features;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2")) features += " avx2";
  if (__builtin_cpu_supports("fma")) features += " fma";
  if (__builtin_cpu_supports("avx512f")) features += " avx512f";
#endif
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  findings->push_back({Verdict::kOk, "processor",
                       base::Count(processors, "core") + (features.empty() ? "" : "," + features),
                       ""});
}

void CheckDisk(const std::string& subject, const base::Path& path, Findings* findings) {
  constexpr uint64_t kEnough = 1'000'000'000;
  const base::Result<uint64_t> free = base::FreeSpace(path);
  if (!free.ok()) {
    findings->push_back(FromStatus(subject, free.status(), "check the folder"));
  } else if (*free < kEnough) {
    findings->push_back({Verdict::kWarning, subject,
                         FormatBytes(*free) + " free at " + path.string(),
                         "updates and versions need room: free some"});
  } else {
    findings->push_back(
        {Verdict::kOk, subject, FormatBytes(*free) + " free at " + path.string(), ""});
  }
}

void CheckTls(const Context& context, Findings* findings) {
  if (context.global.ca_file.empty()) {
    const auto client = transport::MakeCurlClient({});
    findings->push_back(client.ok()
                            ? Finding{Verdict::kOk, "TLS", "the system's authorities", ""}
                            : FromStatus("TLS", client.status(), "install ca-certificates"));
    return;
  }
  const base::Result<std::string> pem = base::ReadFile(context.global.ca_file);
  if (!pem.ok()) {
    findings->push_back(FromStatus("TLS", pem.status(), "check --ca-file"));
    return;
  }
  const base::Result<transport::CertificateInfo> info = transport::InspectCertificate(*pem);
  if (!info.ok()) {
    findings->push_back(FromStatus("TLS", info.status(), "--ca-file must hold certificates, PEM"));
    return;
  }
  const base::Time now = context.clock->Now();
  const std::string until = base::FormatTime(info->not_after).substr(0, 10);
  const std::string name = "\"" + info->common_name + "\" of " + context.global.ca_file;
  if (now > info->not_after || now < info->not_before) {
    findings->push_back({Verdict::kFailed, "TLS", name + " is not valid now (until " + until + ")",
                         "get a new one, or set the clock"});
  } else if (info->not_after - now < 14 * transport::kDay) {
    findings->push_back({Verdict::kWarning, "TLS", name + " ends on " + until, "get a new one"});
  } else {
    findings->push_back({Verdict::kOk, "TLS", name + ", until " + until, ""});
  }
}

void CheckClock(const Context& context, Findings* findings) {
  // Certificates and records are dated: a clock that was never set breaks both.
  constexpr base::Time kBuilt = base::Time(std::chrono::sys_days(std::chrono::year{2024} / 1 / 1));
  const base::Time now = context.clock->Now();
  findings->push_back(now > kBuilt ? Finding{Verdict::kOk, "clock", base::FormatTime(now), ""}
                                   : Finding{Verdict::kFailed, "clock",
                                             base::FormatTime(now) + " is in the past",
                                             "set the clock, e.g. timedatectl set-ntp true"});
}

void CheckRegistry(const std::string& uri, Findings* findings) {
  const auto models = registry::ListModels(uri);
  if (!models.ok()) {
    findings->push_back(FromStatus("registry", models.status(),
                                   "check the address; fl run and fl models import make one"));
    return;
  }
  findings->push_back({Verdict::kOk, "registry",
                       uri + ": " + base::Count(static_cast<int64_t>(models->size()), "model"),
                       ""});
  for (const base::ModelName& model : *models) {
    const auto store = registry::OpenStore(uri, model);
    if (!store.ok()) continue;
    const base::Path folder((*store)->Name());
    if (::access(folder.c_str(), W_OK) != 0) {
      findings->push_back({Verdict::kWarning, "registry",
                           folder.string() + " cannot be written by you",
                           "reading works; rollback and promote need an owner of the folder"});
    }
  }
  std::string path = uri;
  for (const std::string_view prefix : {"file://", "file:"}) {
    if (path.starts_with(prefix)) {
      path = path.substr(prefix.size());
      break;
    }
  }
  CheckDisk("registry", path, findings);
}

void CheckAggregator(const Context& context, const std::string& url, Findings* findings) {
  base::Result<internal::AggregatorClient> client =
      internal::AggregatorClient::Create(context, url);
  if (!client.ok()) {
    findings->push_back(FromStatus("aggregator", client.status(), "check the flags"));
    return;
  }
  const base::Result<std::string> answer = client->Call("GET", std::string(wire::kStatusPath));
  if (!answer.ok()) {
    findings->push_back(FromStatus("aggregator", answer.status(), "check address and network"));
    return;
  }
  const base::Result<wire::AggregatorStatus> status = wire::AggregatorStatusFromJson(*answer);
  if (!status.ok()) {
    findings->push_back(
        FromStatus("aggregator", status.status(), url + " is something else than an aggregator"));
    return;
  }
  findings->push_back({Verdict::kOk, "aggregator",
                       status->software + ", model " +
                           (status->model.empty() ? "none yet" : "\"" + status->model + "\"") +
                           ", " + std::to_string(status->connected) + "/" +
                           base::Count(status->clients, "client") + " connected",
                       ""});
  const base::Status admin =
      client->Call("GET", std::string(wire::kClientsPath) + "?objects=1").status();
  findings->push_back(admin.ok() ? Finding{Verdict::kOk, "token", "accepted", ""}
                                 : FromStatus("token", admin, "give the administrator's token"));
  if (const std::optional<base::Duration> ahead = client->ClockDifference()) {
    constexpr base::Duration kTolerated = std::chrono::seconds(30);
    const bool close = std::chrono::abs(*ahead) <= kTolerated;
    findings->push_back(
        {close ? Verdict::kOk : Verdict::kWarning, "clocks",
         close ? "ours and the aggregator's agree"
               : "the aggregator's differs by " + base::FormatDuration(std::chrono::abs(*ahead)),
         close ? "" : "set both, e.g. timedatectl set-ntp true"});
  }
}

base::Status Doctor(const std::string& output, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(output));
  Findings findings;
  findings.push_back({Verdict::kOk, "fl", std::string(base::kVersion), ""});
  CheckPrograms(context, &findings);
  CheckProcessor(&findings);
  CheckClock(context, &findings);
  CheckTls(context, &findings);
  std::error_code error;
  CheckDisk("disk", std::filesystem::current_path(error), &findings);
  const std::string url = context.global.aggregator.empty()
                              ? context.Environment("FL_AGGREGATOR").value_or("")
                              : context.global.aggregator;
  const std::string uri = context.global.registry.empty()
                              ? context.Environment("FL_REGISTRY").value_or("")
                              : context.global.registry;
  if (!url.empty()) CheckAggregator(context, url, &findings);
  if (!uri.empty()) CheckRegistry(uri, &findings);

  const Style style = context.OutStyle();
  Document document;
  spec::Value::List items;
  int64_t failures = 0;
  for (const Finding& finding : findings) {
    const Ink ink = finding.verdict == Verdict::kOk        ? Ink::kGreen
                    : finding.verdict == Verdict::kWarning ? Ink::kYellow
                                                           : Ink::kRed;
    std::string verdict(Name(finding.verdict));
    verdict.resize(4, ' ');
    document.text += style.Paint(ink, verdict) + "  " + finding.subject + ": " + finding.message +
                     (finding.advice.empty() ? "" : "; " + finding.advice) + "\n";
    items.emplace_back(spec::Value::Map{{"advice", finding.advice},
                                        {"message", finding.message},
                                        {"subject", finding.subject},
                                        {"verdict", Name(finding.verdict)}});
    document.names.push_back(finding.subject);
    if (finding.verdict == Verdict::kFailed) ++failures;
  }
  document.data = spec::Value::Map{{"checks", std::move(items)}, {"ok", failures == 0}};
  FL_RETURN_IF_ERROR(format.Print(context, document));
  if (failures == 0) return base::OkStatus();
  return base::FailedPrecondition(base::Count(failures, "check") + " failed");
}

}  // namespace

Command DoctorCommand() {
  auto output = std::make_shared<std::string>("table");
  return {.name = "doctor",
          .summary = "Check this installation, and what the flags point at",
          .description = "Each line is ok, warn or fail, with what to do. Exits 1 if any failed.",
          .examples = {{"This machine", "fl doctor"},
                       {"An aggregator too: reachable, token accepted, clocks agree",
                        "fl doctor --aggregator https://localhost:8443 --ca-file ca.crt "
                        "--token-file admin.token"}},
          .flags = {OutputFlag(output.get())},
          .uses_target = true,
          .interruptible = true,
          .run = [output](Context& context) { return Doctor(*output, context); }};
}

}  // namespace fl::cli
