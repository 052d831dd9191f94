#include "registry/record.h"

#include <nlohmann/json.hpp>

#include "registry/internal/stored_json.h"

namespace fl::registry {

std::string FormatRecord(const Record& record) {
  return "{\"seq\":" + std::to_string(record.sequence) + ",\"prev\":\"" +
         record.previous.ToString() + "\",\"time\":\"" + base::FormatTime(record.time) +
         "\",\"type\":" + base::DumpJson(nlohmann::json(record.type)) + ",\"data\":" + record.data +
         "}";
}

base::Result<Record> ParseRecord(std::string_view line) {
  FL_ASSIGN_OR_RETURN(const nlohmann::json value, internal::ParseStored(line, "record"));
  internal::StoredFields fields(value, "record");
  Record record;
  record.sequence = fields.Count("seq");
  record.previous = fields.Digest("prev");
  record.time = fields.Time("time");
  record.type = fields.String("type");
  record.data = base::DumpJson(fields.Object("data"));
  FL_RETURN_IF_ERROR(fields.status());
  record.hash = base::Digest::Of(line);
  return record;
}

}  // namespace fl::registry
