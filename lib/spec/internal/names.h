#pragma once

/// Forms of text that Kubernetes and this project ask for. Each check gives what is wrong, as in
/// "must …", or an empty string.

#include <string>
#include <string_view>

namespace fl::spec::internal {

using TextCheck = std::string (*)(std::string_view);

std::string CheckDnsLabel(std::string_view text);      ///< RFC 1123, at most 63 characters
std::string CheckDnsSubdomain(std::string_view text);  ///< RFC 1123, at most 253 characters
std::string CheckHostname(std::string_view text);      ///< DNS name or IP address
std::string CheckLabelKey(std::string_view text);      ///< [prefix/]name
std::string CheckLabelValue(std::string_view text);
std::string CheckQuantity(std::string_view text);
std::string CheckEnvName(std::string_view text);
std::string CheckPublicKey(std::string_view text);
std::string CheckRegistryUri(std::string_view text);
std::string CheckInitialUri(std::string_view text);
std::string CheckDatasetUri(std::string_view text);
std::string CheckImage(std::string_view text);
std::string CheckBuiltinTrainer(std::string_view text);
std::string CheckAlgorithm(std::string_view text);
std::string CheckMetricName(std::string_view text);
std::string CheckNoNul(std::string_view text);

}  // namespace fl::spec::internal
