#include "spec/types.h"

namespace fl::spec {

std::string_view KindOf(const Object& object) {
  return std::visit([](const auto& each) { return each.kKind; }, object);
}

const ObjectMeta& MetadataOf(const Object& object) {
  return std::visit([](const auto& each) -> const ObjectMeta& { return each.metadata; }, object);
}

}  // namespace fl::spec
