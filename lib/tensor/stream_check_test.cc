#include "tensor/stream_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/encoding.h"
#include "base/random.h"
#include "base/testing/status_matchers.h"
#include "tensor/signature.h"

namespace fl::tensor {
namespace {

using base::Code;
using base::IsOk;
using base::Status;
using base::StatusIs;
using ::testing::HasSubstr;

std::string FileOf(const Header& header, std::string data) {
  data.resize(header.data_size());
  return header.Serialize() + data;
}

Header MakeHeader(const std::vector<TensorSpec>& specs) {
  base::Result<Header> header = Header::Make(specs);
  FL_CHECK_MSG(header.ok(), header.status().ToString());
  return *header;
}

/// Feeds `file` in chunks of `chunk` bytes until an error.
Status FeedAll(StreamValidator& validator, std::string_view file, size_t chunk) {
  for (size_t begin = 0; begin < file.size(); begin += chunk) {
    FL_RETURN_IF_ERROR(validator.Feed(base::AsBytes(file.substr(begin, chunk))));
  }
  return validator.Finish();
}

const Header& Model() {
  static const Header header = MakeHeader({{"b", DType::kBool, {1}},
                                           {"w", DType::kF32, {2, 3}},
                                           {"e", DType::kF64, {0}},
                                           {"h", DType::kF16, {5}},
                                           {"n", DType::kI64, {}},
                                           {"d", DType::kF64, {3}}});
  return header;
}

TEST(Signature, TheFirstDifferenceIsNamed) {
  const Header model = MakeHeader({{"w1", DType::kF32, {2, 3}}, {"b", DType::kF32, {3}}});
  EXPECT_THAT(CheckSameSignature(model, model), IsOk());
  // By name: the order does not matter.
  EXPECT_THAT(
      CheckSameSignature(model, MakeHeader({{"b", DType::kF32, {3}}, {"w1", DType::kF32, {2, 3}}})),
      IsOk());
  for (const auto& [specs, tensor, message] :
       std::initializer_list<std::tuple<std::vector<TensorSpec>, std::string, std::string>>{
           {{{"w1", DType::kF32, {3, 2}}, {"b", DType::kF32, {3}}},
            "w1",
            "tensor \"w1\" has shape [3,2], the model has [2,3]"},
           {{{"w1", DType::kF32, {6}}, {"b", DType::kF32, {3}}},
            "w1",
            "tensor \"w1\" has shape [6], the model has [2,3]"},
           {{{"w1", DType::kF32, {2, 3}}}, "b", "tensor \"b\" is missing"},
           {{{"w1", DType::kF16, {2, 3}}, {"b", DType::kF32, {3}}},
            "w1",
            "tensor \"w1\" has dtype F16, the model has F32"},
           {{{"w1", DType::kF32, {2, 3}}, {"b", DType::kF32, {3}}, {"x", DType::kF32, {}}},
            "x",
            "unexpected tensor \"x\""}}) {
    const std::optional<Difference> difference = FirstDifference(model, MakeHeader(specs));
    ASSERT_TRUE(difference) << message;
    EXPECT_EQ(difference->tensor, tensor);
    EXPECT_EQ(difference->message, message);
  }
}

TEST(StreamValidator, TakesAGoodFileInChunksOfAnySize) {
  const std::string file = FileOf(Model(), "");
  for (size_t chunk = 1; chunk <= file.size(); ++chunk) {
    StreamValidator validator({.model = &Model(), .file_size = file.size()});
    EXPECT_THAT(FeedAll(validator, file, chunk), IsOk()) << chunk;
    ASSERT_NE(validator.header(), nullptr);
    EXPECT_EQ(validator.header()->tensors().size(), 6u);
  }
}

// A NaN or infinity in any element of any floating tensor is found and named, at every chunk size
// and at every alignment of the data.
TEST(StreamValidator, FindsNonFiniteValuesAcrossChunks) {
  for (size_t pad = 0; pad < 8; ++pad) {
    std::string header = Model().Serialize() + std::string(pad, ' ');
    const uint64_t length = header.size() - 8;
    std::memcpy(header.data(), &length, 8);
    for (const TensorInfo& info : Model().tensors()) {
      for (size_t element = 0; element < info.element_count(); ++element) {
        std::string data(Model().data_size(), '\0');
        const size_t size = ElementSize(info.dtype);
        if (IsFloating(info.dtype)) {
          const double value = element % 2 == 0 ? std::nan("") : -INFINITY;
          EncodeFromDouble(info.dtype, &value, 1,
                           reinterpret_cast<uint8_t*>(data.data()) + info.begin + element * size);
        } else {
          std::fill_n(data.begin() + static_cast<ptrdiff_t>(info.begin + element * size), size,
                      '\xff');
        }
        for (const size_t chunk : {size_t{1}, size_t{3}, size_t{7}, size_t{16}, size_t{4096}}) {
          StreamValidator validator({.model = &Model()});
          const Status status = FeedAll(validator, header + data, chunk);
          if (!IsFloating(info.dtype)) {
            ASSERT_THAT(status, IsOk());
            continue;
          }
          ASSERT_THAT(status, StatusIs(Code::kInvalidArgument,
                                       HasSubstr("tensor \"" + info.name +
                                                 "\" has a value that "
                                                 "is not finite (NaN or infinity) at element " +
                                                 std::to_string(element))));
          ASSERT_EQ(validator.failed_tensor(), info.name);
          StreamValidator lenient({.model = &Model(), .require_finite = false});
          ASSERT_THAT(FeedAll(lenient, header + data, chunk), IsOk());
        }
      }
    }
  }
}

TEST(StreamValidator, RefusesAnotherSignatureBeforeAnyData) {
  const Header other = MakeHeader({{"w", DType::kF32, {3, 2}}});
  const Header model = MakeHeader({{"w", DType::kF32, {2, 3}}});
  StreamValidator validator({.model = &model});
  const std::string header = other.Serialize();
  EXPECT_THAT(validator.Feed(base::AsBytes(header).first(header.size() - 1)), IsOk());
  EXPECT_THAT(validator.Feed(base::AsBytes(header).last(1)),
              StatusIs(Code::kInvalidArgument,
                       HasSubstr("tensor \"w\" has shape [3,2], the model has [2,3]")));
  EXPECT_EQ(validator.failed_tensor(), "w");
  // The error stays.
  EXPECT_THAT(validator.Feed({}), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(validator.Finish(), StatusIs(Code::kInvalidArgument));
}

TEST(StreamValidator, RefusesFilesCutOffOrTooLong) {
  const std::string file = FileOf(Model(), "");
  for (size_t size = 0; size < file.size(); ++size) {
    StreamValidator validator({.model = &Model()});
    EXPECT_THAT(FeedAll(validator, std::string_view(file).substr(0, size), 5),
                StatusIs(Code::kInvalidArgument, HasSubstr("the file ends")));
  }
  StreamValidator validator({.model = &Model()});
  EXPECT_THAT(FeedAll(validator, file + "x", file.size()),
              StatusIs(Code::kInvalidArgument, HasSubstr("bytes follow")));
  // With the size announced it is known from the header.
  StreamValidator sized({.model = &Model(), .file_size = file.size() + 1});
  EXPECT_THAT(sized.Feed(base::AsBytes(Model().Serialize())),
              StatusIs(Code::kInvalidArgument, HasSubstr("1 bytes follow the last tensor")));
}

TEST(StreamValidator, B32_RefusesLengthsBeforeHoldingAnything) {
  for (const uint64_t length : {uint64_t{1} << 63, UINT64_MAX, uint64_t{0}, uint64_t{1000}}) {
    std::array<uint8_t, 8> field{};
    std::memcpy(field.data(), &length, 8);
    StreamValidator validator({.file_size = 1000});
    EXPECT_THAT(validator.Feed(field),
                StatusIs(Code::kInvalidArgument, HasSubstr("header length")));
  }
}

TEST(StreamValidator, B18_SizesPast32BitsAreCountedRight) {
  // 2³¹ + 8 bytes in one tensor, then one more value: sizes are 64-bit throughout, and nothing is
  // held, so that the same chunk can stand for all of them.
  const uint64_t count = (uint64_t{1} << 29) + 2;
  const Header model = MakeHeader({{"large", DType::kF32, {count}}, {"last", DType::kF32, {1}}});
  const std::vector<uint8_t> chunk(size_t{8} << 20);
  const auto feed = [&](StreamValidator& validator) {
    FL_RETURN_IF_ERROR(validator.Feed(base::AsBytes(model.Serialize())));
    for (uint64_t left = count * 4; left > 0;) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(left, chunk.size()));
      FL_RETURN_IF_ERROR(validator.Feed(std::span(chunk).first(size)));
      left -= size;
    }
    return base::OkStatus();
  };
  StreamValidator good({.model = &model, .file_size = model.file_size(), .require_finite = false});
  ASSERT_THAT(feed(good), IsOk());
  EXPECT_THAT(good.Finish(),
              StatusIs(Code::kInvalidArgument, HasSubstr("2147483656 of 2147483660")));
  StreamValidator bad({.model = &model});
  ASSERT_THAT(feed(bad), IsOk());
  const std::vector<uint8_t> infinity = {0, 0, 0x80, 0x7f};
  EXPECT_THAT(bad.Feed(infinity), StatusIs(Code::kInvalidArgument, HasSubstr("tensor \"last\"")));
}

TEST(StreamValidator, AnEmptyModelIsFine) {
  const Header empty;
  StreamValidator validator({.model = &empty});
  EXPECT_THAT(FeedAll(validator, MakeHeader({}).Serialize(), 1), IsOk());
}

}  // namespace
}  // namespace fl::tensor
