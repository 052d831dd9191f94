#include "tensor/internal/header_parser.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

namespace fl::tensor::internal {
namespace {

using base::InvalidArgument;
using base::Status;

constexpr std::string_view kMetadataName = "__metadata__";

/// Takes the parser's events one by one; the format has only four levels, so that neither depth nor
/// repetition can make it hold more than the header says.
class Handler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  ParsedHeader Take() && { return std::move(header_); }
  const Status& error() const { return error_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return Unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Unexpected("a number that is not a 64-bit integer");
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    switch (place_) {
      case Place::kShapeItem:
        current_.shape.push_back(value);
        return true;
      case Place::kOffsetItem:
        offsets_.push_back(value);
        return offsets_.size() <= 2 || Unexpected("more than two numbers");
      default:
        return Unexpected("a number");
    }
  }

  bool string(string_t& value) override {
    switch (place_) {
      case Place::kMetadataValue:
        header_.metadata.emplace(std::move(metadata_key_), std::move(value));
        place_ = Place::kMetadataKey;
        return true;
      case Place::kDTypeValue: {
        const std::optional<DType> dtype = DTypeFromName(value);
        if (!dtype) return Fail("has dtype " + Quote(value) + ", which is not known");
        current_.dtype = *dtype;
        place_ = Place::kFieldKey;
        return true;
      }
      default:
        return Unexpected("a string");
    }
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTensorKey;
        return true;
      case Place::kTensorValue:
        place_ = Place::kFieldKey;
        return true;
      case Place::kMetadataStart:
        place_ = Place::kMetadataKey;
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool key(string_t& key) override {
    switch (place_) {
      case Place::kTensorKey:
        if (!seen_.insert(key).second) {
          error_ = InvalidArgument("duplicate key " + Quote(key) + " in the header");
          return false;
        }
        if (key == kMetadataName) {
          place_ = Place::kMetadataStart;
        } else {
          current_ = TensorInfo{};
          current_.name = std::move(key);
          offsets_.clear();
          fields_ = 0;
          place_ = Place::kTensorValue;
        }
        return true;
      case Place::kMetadataKey:
        if (header_.metadata.contains(key)) {
          error_ = InvalidArgument("duplicate key " + Quote(key) + " in __metadata__");
          return false;
        }
        metadata_key_ = std::move(key);
        place_ = Place::kMetadataValue;
        return true;
      case Place::kFieldKey:
        if (key == "dtype") return Field(kDType, key, Place::kDTypeValue);
        if (key == "shape") return Field(kShape, key, Place::kShapeStart);
        if (key == "data_offsets") return Field(kOffsets, key, Place::kOffsetStart);
        return Fail("has the unknown field " + Quote(key));
      default:
        return Unexpected("a key");
    }
  }

  bool end_object() override {
    switch (place_) {
      case Place::kFieldKey:
        if (fields_ != (kDType | kShape | kOffsets)) {
          return Fail("lacks one of dtype, shape and data_offsets");
        }
        current_.begin = offsets_[0];
        current_.end = offsets_[1];
        header_.tensors.push_back(std::move(current_));
        place_ = Place::kTensorKey;
        return true;
      case Place::kMetadataKey:
        place_ = Place::kTensorKey;
        return true;
      default:
        place_ = Place::kEnd;
        return true;
    }
  }

  bool start_array(size_t) override {
    switch (place_) {
      case Place::kShapeStart:
        place_ = Place::kShapeItem;
        return true;
      case Place::kOffsetStart:
        place_ = Place::kOffsetItem;
        return true;
      default:
        return Unexpected("an array");
    }
  }

  bool end_array() override {
    if (place_ == Place::kOffsetItem && offsets_.size() != 2) {
      return Fail("must have two data_offsets");
    }
    place_ = Place::kFieldKey;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    error_ = InvalidArgument("the header is not valid JSON at byte " + std::to_string(position) +
                             " (" + error.what() + ")");
    return false;
  }

 private:
  enum class Place {
    kStart,
    kTensorKey,
    kTensorValue,
    kFieldKey,
    kDTypeValue,
    kShapeStart,
    kShapeItem,
    kOffsetStart,
    kOffsetItem,
    kMetadataStart,
    kMetadataKey,
    kMetadataValue,
    kEnd,
  };
  enum FieldBit : unsigned { kDType = 1, kShape = 2, kOffsets = 4 };

  bool Fail(const std::string& problem) {
    error_ = InvalidArgument("tensor " + Quote(current_.name) + " " + problem);
    return false;
  }

  bool Field(FieldBit bit, const std::string& name, Place next) {
    if ((fields_ & bit) != 0) return Fail("names " + name + " twice");
    fields_ |= bit;
    place_ = next;
    return true;
  }

  bool Unexpected(const std::string& what) {
    switch (place_) {
      case Place::kMetadataStart:
        error_ = InvalidArgument("__metadata__ must be a map of strings, not " + what);
        return false;
      case Place::kMetadataValue:
        error_ = InvalidArgument("__metadata__ must hold strings: " + Quote(metadata_key_) +
                                 " is " + what);
        return false;
      case Place::kTensorValue:
        return Fail("must be an object with dtype, shape and data_offsets, not " + what);
      case Place::kDTypeValue:
        return Fail("must have a string as dtype, not " + what);
      case Place::kShapeStart:
      case Place::kShapeItem:
        return Fail("must have a list of non-negative integers as shape, not " + what);
      case Place::kOffsetStart:
      case Place::kOffsetItem:
        return Fail("must have two non-negative integers as data_offsets, not " + what);
      default:
        error_ = InvalidArgument("the header must be one JSON object, not " + what);
        return false;
    }
  }

  ParsedHeader header_;
  Status error_;
  Place place_ = Place::kStart;
  std::unordered_set<std::string> seen_;
  std::string metadata_key_;
  TensorInfo current_;
  std::vector<uint64_t> offsets_;
  unsigned fields_ = 0;
};

}  // namespace

base::Result<ParsedHeader> ParseHeaderJson(std::string_view json) {
  if (!json.starts_with('{')) {
    return InvalidArgument("the header does not start with '{'",
                           "is this a safetensors file, and whole?");
  }
  // The JSON library takes a zero byte for the end of the text.
  if (json.find('\0') != std::string_view::npos) {
    return InvalidArgument("the header holds a zero byte");
  }
  Handler handler;
  bool parsed = false;
  try {
    parsed = nlohmann::json::sax_parse(json, &handler);
  } catch (const std::exception& error) {
    return InvalidArgument(std::string("the header cannot be read: ") + error.what());
  }
  if (!parsed) {
    return handler.error().ok() ? InvalidArgument("the header is not valid JSON") : handler.error();
  }
  return std::move(handler).Take();
}

}  // namespace fl::tensor::internal
