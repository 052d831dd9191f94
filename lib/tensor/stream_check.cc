#include "tensor/stream_check.h"

#include <algorithm>
#include <array>

#include "base/encoding.h"
#include "tensor/signature.h"

namespace fl::tensor {

using base::InvalidArgument;
using base::Status;

struct StreamValidator::State {
  Options options;
  Status error;
  std::string failed_tensor;

  std::array<uint8_t, 8> length_field{};
  std::optional<uint64_t> header_length;
  std::string header_text;
  std::optional<Header> header;

  uint64_t received = 0;             // bytes of the file
  uint64_t position = 0;             // bytes of the data section
  size_t tensor = 0;                 // the tensor at `position`
  std::array<uint8_t, 8> partial{};  // the element that a chunk's end cut in two
  size_t partial_size = 0;

  Status FeedHeader(std::span<const uint8_t>& bytes);
  Status ParseHeader();
  Status FeedData(std::span<const uint8_t> bytes);
  Status CheckElements(const TensorInfo& info, uint64_t first, std::span<const uint8_t> bytes);
};

Status StreamValidator::State::FeedHeader(std::span<const uint8_t>& bytes) {
  while (received < length_field.size() && !bytes.empty()) {
    length_field[received++] = bytes.front();
    bytes = bytes.subspan(1);
  }
  if (received < length_field.size()) return base::OkStatus();
  if (!header_length) {
    FL_ASSIGN_OR_RETURN(header_length, Header::ParseLength(length_field, options.file_size));
  }
  const size_t part =
      std::min(bytes.size(), static_cast<size_t>(*header_length) - header_text.size());
  header_text.append(base::AsText(bytes.first(part)));
  bytes = bytes.subspan(part);
  received += part;
  return header_text.size() == *header_length ? ParseHeader() : base::OkStatus();
}

Status StreamValidator::State::ParseHeader() {
  std::optional<uint64_t> data_size;
  if (options.file_size) data_size = *options.file_size - received;
  FL_ASSIGN_OR_RETURN(header, Header::Parse(header_text, data_size));
  header_text = std::string();
  if (options.model != nullptr) {
    if (std::optional<Difference> difference = FirstDifference(*options.model, *header)) {
      failed_tensor = std::move(difference->tensor);
      return InvalidArgument(std::move(difference->message));
    }
  }
  return base::OkStatus();
}

Status StreamValidator::State::FeedData(std::span<const uint8_t> bytes) {
  if (bytes.size() > header->data_size() - position) {
    return InvalidArgument("bytes follow the last tensor");
  }
  const std::vector<TensorInfo>& tensors = header->tensors();
  while (!bytes.empty()) {
    while (position == tensors[tensor].end) ++tensor;
    const TensorInfo& info = tensors[tensor];
    std::span<const uint8_t> part =
        bytes.first(std::min<uint64_t>(bytes.size(), info.end - position));
    bytes = bytes.subspan(part.size());
    uint64_t first = (position - info.begin) / ElementSize(info.dtype);
    position += part.size();
    if (!options.require_finite || !IsFloating(info.dtype)) continue;

    const size_t size = ElementSize(info.dtype);
    if (partial_size > 0) {
      while (partial_size < size && !part.empty()) {
        partial[partial_size++] = part.front();
        part = part.subspan(1);
      }
      if (partial_size < size) continue;
      FL_RETURN_IF_ERROR(CheckElements(info, first, {partial.data(), size}));
      partial_size = 0;
      ++first;
    }
    const size_t whole = part.size() / size * size;
    FL_RETURN_IF_ERROR(CheckElements(info, first, part.first(whole)));
    for (const uint8_t byte : part.subspan(whole)) partial[partial_size++] = byte;
  }
  return base::OkStatus();
}

Status StreamValidator::State::CheckElements(const TensorInfo& info, uint64_t first,
                                             std::span<const uint8_t> bytes) {
  const std::optional<size_t> index = FirstNonFinite(info.dtype, bytes);
  if (!index) return base::OkStatus();
  failed_tensor = info.name;
  return InvalidArgument("tensor " + Quote(info.name) +
                             " has a value that is not finite (NaN or infinity) at element " +
                             std::to_string(first + *index),
                         "check the training: learning rate, input, loss");
}

StreamValidator::StreamValidator(Options options) : state_(std::make_unique<State>()) {
  state_->options = options;
}
StreamValidator::~StreamValidator() = default;
StreamValidator::StreamValidator(StreamValidator&&) noexcept = default;
StreamValidator& StreamValidator::operator=(StreamValidator&&) noexcept = default;

Status StreamValidator::Feed(std::span<const uint8_t> bytes) {
  State& state = *state_;
  if (state.error.ok() && !state.header) state.error = state.FeedHeader(bytes);
  if (state.error.ok() && state.header) state.error = state.FeedData(bytes);
  return state.error;
}

Status StreamValidator::Finish() {
  State& state = *state_;
  if (!state.error.ok()) return state.error;
  if (!state.header) {
    state.error = InvalidArgument("the file ends within its header");
  } else if (state.position != state.header->data_size()) {
    state.error = InvalidArgument("the file ends after " + std::to_string(state.position) + " of " +
                                  std::to_string(state.header->data_size()) + " bytes of tensors");
  }
  return state.error;
}

const std::string& StreamValidator::failed_tensor() const { return state_->failed_tensor; }

const Header* StreamValidator::header() const {
  return state_->header ? &*state_->header : nullptr;
}

}  // namespace fl::tensor
