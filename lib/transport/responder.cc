#include "transport/responder.h"

#include <utility>

namespace fl::transport {
namespace {

void AnswerForgotten(std::shared_ptr<AnswerSlot> slot) {
  if (slot == nullptr) return;
  slot->Answer(ErrorResponse(base::Internal("the request was dropped without an answer")));
}

}  // namespace

Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) AnswerForgotten(std::exchange(slot_, std::move(other.slot_)));
  return *this;
}

Responder::~Responder() { AnswerForgotten(std::move(slot_)); }

void Responder::Send(Response response) && {
  const std::shared_ptr<AnswerSlot> slot = std::move(slot_);
  if (slot != nullptr) slot->Answer(std::move(response));
}

}  // namespace fl::transport
