#include "tensor/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/encoding.h"
#include "base/random.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::tensor {
namespace {

using base::Code;
using base::IsOk;
using base::StatusIs;
using ::testing::HasSubstr;

/// A file with this header text, as it is, and data after it.
std::string FileOf(std::string_view json, std::string_view data = "") {
  uint64_t length = json.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + std::string(json) + std::string(data);
}

class SafetensorsTest : public ::testing::Test {
 protected:
  base::Result<SafetensorsFile> Open(const std::string& content) {
    const base::Path path = folder_ / "file.safetensors";
    FL_RETURN_IF_ERROR(base::WriteFileAtomically(path, content));
    return SafetensorsFile::Open(path);
  }
  base::TemporaryDirectory folder_;
};

TEST_F(SafetensorsTest, ReadsNamesDtypesShapesAndData) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  std::string data(reinterpret_cast<const char*>(values), sizeof(values));
  data += "\x01";
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file,
                       Open(FileOf(R"({"flag":{"dtype":"BOOL","shape":[1],"data_offsets":[24,25]},)"
                                   R"("w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}  )",
                                   data)));
  ASSERT_EQ(file.header().tensors().size(), 2u);
  EXPECT_EQ(file.header().tensors()[0].name, "w");  // in the order of the data
  EXPECT_EQ(file.header().tensors()[1].name, "flag");
  const TensorInfo* w = file.header().Find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(w->element_count(), 6u);
  EXPECT_EQ(file.header().Find("v"), nullptr);
  EXPECT_THAT(file.ReadFloats("w"), base::IsOkAndHolds(std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(file.ReadFloats("v"),
              StatusIs(Code::kNotFound, HasSubstr("tensor \"v\" is missing")));
  EXPECT_THAT(file.ReadFloats("flag"), StatusIs(Code::kInvalidArgument, HasSubstr("BOOL")));
}

TEST_F(SafetensorsTest, B29_DuplicateNamesAndBadMetadataAreNamed) {
  const std::string tensor = R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})";
  EXPECT_THAT(Open(FileOf(R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", "1234")),
              StatusIs(Code::kInvalidArgument, HasSubstr("duplicate key \"a\"")));
  EXPECT_THAT(Open(FileOf(R"({"__metadata__":{"k":"1","k":"2"}})")),
              StatusIs(Code::kInvalidArgument, HasSubstr("duplicate key \"k\"")));
  EXPECT_THAT(Open(FileOf(R"({"__metadata__":{},"__metadata__":{}})")),
              StatusIs(Code::kInvalidArgument, HasSubstr("duplicate key \"__metadata__\"")));
  EXPECT_THAT(Open(FileOf(R"({"a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                          "1234")),
              StatusIs(Code::kInvalidArgument, HasSubstr("tensor \"a\" names dtype twice")));
  for (const std::string value : {"1", "null", "true", "1.5", "-1", "[]", "{}", R"(["a"])"}) {
    EXPECT_THAT(
        Open(FileOf(R"({"__metadata__":{"n":)" + value + "}}")),
        StatusIs(Code::kInvalidArgument, HasSubstr("__metadata__ must hold strings: \"n\" is ")))
        << value;
    if (value == "{}") continue;
    EXPECT_THAT(
        Open(FileOf(R"({"__metadata__":)" + value + "}")),
        StatusIs(Code::kInvalidArgument, HasSubstr("__metadata__ must be a map of strings")))
        << value;
  }
}

TEST_F(SafetensorsTest, B29_MetadataOnlyAndEmptyMetadataAreRead) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<uint8_t> bytes,
      base::HexDecode("1a000000000000007b225f5f6d657461646174615f5f223a7b226b223a2276227d7d"));
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file, Open(std::string(base::AsText(bytes))));
  EXPECT_TRUE(file.header().tensors().empty());
  EXPECT_EQ(file.header().metadata(), (Header::Metadata{{"k", "v"}}));

  const base::Path copy = folder_ / "copy.safetensors";
  ASSERT_THAT(WriteSafetensors(copy, {}, file.header().metadata()), IsOk());
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile again, SafetensorsFile::Open(copy));
  EXPECT_TRUE(again.header().tensors().empty());
  EXPECT_EQ(again.header().metadata(), file.header().metadata());

  EXPECT_THAT(Open(FileOf(R"({"__metadata__":{}})")), IsOk());
  EXPECT_THAT(Open(FileOf("{}")), IsOk());
}

TEST_F(SafetensorsTest, B30_ScalarsAndEmptyTensorsAreRead) {
  const float value = 1.5f;
  const std::string file_bytes =
      FileOf(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
             R"("e":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]}})",
             {reinterpret_cast<const char*>(&value), 4});
  ASSERT_EQ(file_bytes.size(), 120u);
  ASSERT_EQ(base::Digest::Of(file_bytes).Hex(),
            "22f028af94923d8a761ec950cbfa04d9a85c82819db19996928f18aafdb9f58f");
  ASSERT_OK_AND_ASSIGN(const SafetensorsFile file, Open(file_bytes));
  EXPECT_THAT(file.ReadFloats("a"), base::IsOkAndHolds(std::vector<float>{1.5f}));
  EXPECT_THAT(file.ReadFloats("e"), base::IsOkAndHolds(std::vector<float>{}));
  // A dimension of 0 makes the others harmless, in any place.
  EXPECT_THAT(
      Open(FileOf(
          R"({"e":{"dtype":"F64","shape":[9223372036854775808,4,0],"data_offsets":[0,0]}})")),
      IsOk());
  // Several empty tensors may stand at one place, also between others.
  EXPECT_THAT(Open(FileOf(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                          R"("e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
                          R"("f":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},)"
                          R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                          "xy")),
              IsOk());
  EXPECT_THAT(Open(FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,0]}})")),
              StatusIs(Code::kInvalidArgument, HasSubstr("needs 4 bytes")));
}

struct BadHeader {
  std::string json;
  std::string data;
  std::string message;
};

TEST_F(SafetensorsTest, B31_RangesThatDoNotFitAreRefused) {
  const std::vector<BadHeader> cases = {
      {R"({"w":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", "1234",
       "tensor \"w\" of dtype F32 and shape [1000,1000] needs 4000000 bytes, its data_offsets "
       "[0,4] hold 4"},
      {R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "",
       "tensor \"w\" with shape [4294967296,4294967296] is larger than 64 bits can count"},
      {R"({"w":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})", "",
       "larger than 64 bits"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[2,1]}})", "12", "run backwards"},
      {R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "12",
       "tensor \"w\" ends at byte 4 of a data section of 2"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       "123", "a gap of 1 bytes in the data section before tensor \"b\""},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12", "a gap of 1 bytes"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       "123", "tensor \"b\" overlaps"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "123",
       "2 bytes follow the last tensor"},
      {R"({})", "1", "1 bytes follow the last tensor"},
  };
  for (const BadHeader& bad : cases) {
    EXPECT_THAT(Open(FileOf(bad.json, bad.data)),
                StatusIs(Code::kInvalidArgument, HasSubstr(bad.message)))
        << bad.json;
  }
}

TEST_F(SafetensorsTest, B31_NumbersThatAreNotNonNegativeIntegersAreRefused) {
  for (const std::string number :
       {"-1", "1.0", "1e0", "-0", "18446744073709551616", "\"1\"", "null", "[1]", "{}", "true"}) {
    for (const std::string& json :
         {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,)" + number + "]}}",
          R"({"w":{"dtype":"U8","shape":[)" + number + R"(],"data_offsets":[0,1]}})"}) {
      EXPECT_THAT(Open(FileOf(json, "1")),
                  StatusIs(Code::kInvalidArgument, HasSubstr("tensor \"w\" must have ")))
          << json;
    }
  }
}

TEST_F(SafetensorsTest, FormsThatAreNotTheFormatAreRefused) {
  const std::string ok = R"("dtype":"U8","shape":[0],"data_offsets":[0,0])";
  for (const auto& [json, message] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"({"w":{"dtype":"U9","shape":[0],"data_offsets":[0,0]}})", "dtype \"U9\""},
           {R"({"w":{"dtype":8,"shape":[0],"data_offsets":[0,0]}})", "string as dtype"},
           {R"({"w":{"shape":[0],"data_offsets":[0,0]}})", "lacks one of"},
           {R"({"w":{"dtype":"U8","shape":[0]}})", "lacks one of"},
           {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0]}})", "two data_offsets"},
           {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})", "more than two"},
           {R"({"w":{"dtype":"U8","shape":{},"data_offsets":[0,0]}})", "as shape, not an object"},
           {R"({"w":{)" + ok + R"(,"x":1}})", "unknown field \"x\""},
           {R"({"w":[]})", "must be an object"},
           {R"({"w":null})", "must be an object"},
           {R"({"w":{)" + ok + "}", "not valid JSON"},
           {R"({"w":{)" + ok + "},}", "not valid JSON"},
           {R"({"w":{)" + ok + "}}{}", "not valid JSON"},
           {"{\"\xff\":{" + ok + "}}", "not valid JSON"},
           {"[]", "does not start with '{'"},
           {" {}", "does not start with '{'"},
           {"\xef\xbb\xbf{}", "does not start with '{'"},
           {std::string("{}\0{", 4), "zero byte"},
           {"{\"a\":" + std::string(100'000, '['), "must be an object"},
           {"{\"a\":{\"shape\":" + std::string(100'000, '['), "not an array"},
       }) {
    EXPECT_THAT(Open(FileOf(json)), StatusIs(Code::kInvalidArgument, HasSubstr(message)))
        << json.substr(0, 200);
  }
}

TEST_F(SafetensorsTest, B32_DataAtAnOddAddressLoads) {
  const float value = 1.25f;
  const std::string data(reinterpret_cast<const char*>(&value), 4);
  for (size_t pad = 0; pad < 8; ++pad) {
    ASSERT_OK_AND_ASSIGN(const SafetensorsFile file,
                         Open(FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})" +
                                         std::string(pad, ' '),
                                     data)));
    EXPECT_THAT(file.ReadFloats("a"), base::IsOkAndHolds(std::vector<float>{value}));
  }
}

TEST_F(SafetensorsTest, B32_BadLengthsAreRefused) {
  const std::string whole =
      FileOf(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");
  for (const uint64_t length :
       {uint64_t{1} << 63, uint64_t{whole.size()}, uint64_t{whole.size() - 8 + 1}, uint64_t{0},
        uint64_t{1}, UINT64_MAX, kMaxHeaderBytes + 1, UINT64_MAX - 7}) {
    std::string content = whole;
    std::memcpy(content.data(), &length, 8);
    EXPECT_THAT(Open(content), StatusIs(Code::kInvalidArgument, HasSubstr("header length")))
        << length;
  }
  for (size_t size = 0; size < 8; ++size) {
    EXPECT_THAT(Open(whole.substr(0, size)),
                StatusIs(Code::kInvalidArgument, HasSubstr("no header length")));
  }
  // Cut anywhere, a file is refused, with its path.
  for (size_t size = 8; size < whole.size(); ++size) {
    EXPECT_THAT(Open(whole.substr(0, size)),
                StatusIs(Code::kInvalidArgument, HasSubstr("file.safetensors: ")));
  }
  EXPECT_THAT(SafetensorsFile::Open(folder_ / "none"), StatusIs(Code::kNotFound));
  EXPECT_THAT(SafetensorsFile::Open(folder_.path()), StatusIs(Code::kInvalidArgument));
}

TEST_F(SafetensorsTest, LengthsAreBoundedWithoutTheFileToo) {
  std::array<uint8_t, 8> field{};
  const uint64_t length = kMaxHeaderBytes;
  std::memcpy(field.data(), &length, 8);
  EXPECT_THAT(Header::ParseLength(field), base::IsOkAndHolds(kMaxHeaderBytes));
  EXPECT_THAT(Header::ParseLength(field, 1000), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(Header::ParseLength(field, 7), StatusIs(Code::kInvalidArgument));
}

TEST_F(SafetensorsTest, WritesOneCanonicalForm) {
  const base::Path path = folder_ / "out.safetensors";
  const std::vector<float> values = {1, 2, 3};
  const std::vector<Tensor> tensors = {
      Tensor::FromFloats("b", {3}, values),
      Tensor::FromFloats("a \"quoted\" \xc3\xa9", {}, std::span(values).first(1)),
      {{"e", DType::kI64, {0, 2}}, {}}};
  ASSERT_OK_AND_ASSIGN(const FileSummary summary,
                       WriteSafetensors(path, tensors, {{"z", "1"}, {"a", "2"}}));
  ASSERT_OK_AND_ASSIGN(const std::string content, base::ReadFile(path));
  std::string json =
      R"({"__metadata__":{"a":"2","z":"1"},"b":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
      R"("a \"quoted\" é":{"dtype":"F32","shape":[],"data_offsets":[12,16]},)"
      R"("e":{"dtype":"I64","shape":[0,2],"data_offsets":[16,16]}})";
  while (json.size() % 8 != 0) json += ' ';
  EXPECT_EQ(content, FileOf(json, std::string(base::AsText(tensors[0].bytes)) +
                                      std::string(base::AsText(tensors[1].bytes))));
  EXPECT_EQ(summary.digest, base::Digest::Of(content));
  EXPECT_EQ(summary.size, content.size());

  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> again, ReadSafetensors(path));
  ASSERT_EQ(again.size(), 3u);
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].spec.name, tensors[i].spec.name);
    EXPECT_EQ(again[i].spec.shape, tensors[i].spec.shape);
    EXPECT_EQ(again[i].bytes, tensors[i].bytes);
  }
}

TEST_F(SafetensorsTest, WhatCannotBeWrittenIsRefused) {
  const base::Path path = folder_ / "out.safetensors";
  const auto create = [&](const std::vector<TensorSpec>& specs, Header::Metadata metadata = {}) {
    return SafetensorsWriter::Create(path, specs, std::move(metadata)).status();
  };
  EXPECT_THAT(create({{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("two tensors are named \"a\"")));
  EXPECT_THAT(create({{"__metadata__", DType::kU8, {1}}}), StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(create({{"\xff", DType::kU8, {1}}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("UTF-8")));
  EXPECT_THAT(create({}, {{"k", "\xff"}}), StatusIs(Code::kInvalidArgument, HasSubstr("UTF-8")));
  EXPECT_THAT(create({{"a", DType::kF64, {uint64_t{1} << 61}}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("64 bits")));
  EXPECT_THAT(
      create({{"a", DType::kU8, {uint64_t{1} << 63}}, {"b", DType::kU8, {uint64_t{1} << 63}}}),
      StatusIs(Code::kInvalidArgument, HasSubstr("64 bits")));
  EXPECT_THAT(WriteSafetensors(path, {{{"a", DType::kF32, {2}}, {1, 2, 3}}}),
              StatusIs(Code::kInvalidArgument, HasSubstr("needs 8 bytes, not 3")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SafetensorsTest, AnUnfinishedFileLeavesNothing) {
  const base::Path path = folder_ / "out.safetensors";
  ASSERT_THAT(base::WriteFileAtomically(path, "old"), IsOk());
  {
    ASSERT_OK_AND_ASSIGN(SafetensorsWriter writer,
                         SafetensorsWriter::Create(path, {{"a", DType::kU8, {4}}}));
    const std::vector<uint8_t> three(3), two(2);
    EXPECT_THAT(writer.Append(three), IsOk());
    EXPECT_THAT(writer.Append(two), StatusIs(Code::kInvalidArgument, HasSubstr("more bytes")));
    EXPECT_THAT(std::move(writer).Commit(),
                StatusIs(Code::kInvalidArgument, HasSubstr("only 3 of 4 bytes")));
  }
  EXPECT_THAT(base::ReadFile(path), base::IsOkAndHolds("old"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

// In any order of the pieces, the file and its digest are the same.
TEST_F(SafetensorsTest, PiecesMayComeInAnyOrder) {
  base::SeededRandom random({3});
  std::vector<uint8_t> data(1000);
  random.Fill(data);
  std::optional<base::Digest> expected;
  for (int run = 0; run < 20; ++run) {
    std::vector<std::pair<size_t, size_t>> pieces;
    for (size_t begin = 0; begin < data.size();) {
      const size_t end = std::min(data.size(), begin + 1 + random.Below(200));
      pieces.emplace_back(begin, end);
      begin = end;
    }
    if (run > 0) random.Shuffle(pieces);
    const base::Path path = folder_ / "out.safetensors";
    ASSERT_OK_AND_ASSIGN(SafetensorsWriter writer,
                         SafetensorsWriter::Create(path, {{"a", DType::kU8, {1000}}}));
    for (const auto& [begin, end] : pieces) {
      ASSERT_THAT(writer.WriteAt(begin, std::span(data).subspan(begin, end - begin)), IsOk());
    }
    ASSERT_OK_AND_ASSIGN(const FileSummary summary, std::move(writer).Commit(false));
    if (!expected) expected = summary.digest;
    EXPECT_EQ(summary.digest, *expected);
    EXPECT_THAT(base::ReadFile(path), IsOk());
    EXPECT_EQ(base::Digest::Of(*base::ReadFile(path)), *expected);
  }
}

// What Make and Serialize write, Parse reads back, whatever the names and shapes.
TEST_F(SafetensorsTest, RandomHeadersRoundTrip) {
  base::SeededRandom random({5});
  for (int run = 0; run < 200; ++run) {
    std::vector<TensorSpec> specs(random.Below(12));
    for (size_t i = 0; i < specs.size(); ++i) {
      specs[i].name = std::string(random.Below(4), static_cast<char>(random.Below(128))) + "é" +
                      std::to_string(i);
      specs[i].dtype = static_cast<DType>(random.Below(15));
      specs[i].shape.resize(random.Below(4));
      for (uint64_t& dimension : specs[i].shape) dimension = random.Below(5);
    }
    ASSERT_OK_AND_ASSIGN(const Header header, Header::Make(specs, {{"run", "\n\"\x01"}}));
    const std::string text = header.Serialize();
    EXPECT_EQ(text.size() % 8, 0u);
    EXPECT_EQ(text.size(), header.data_offset());
    ASSERT_OK_AND_ASSIGN(const Header again,
                         Header::Parse(std::string_view(text).substr(8), header.data_size()));
    EXPECT_EQ(again.Serialize(), text);
    EXPECT_EQ(again.file_size(), header.file_size());
  }
}

TEST(Quote, EscapesAndCuts) {
  EXPECT_EQ(Quote("w1"), "\"w1\"");
  EXPECT_EQ(Quote("a\n\"\\"), "\"a\\x0a\\\"\\\\\"");
  EXPECT_EQ(Quote(std::string(200, 'a')), "\"" + std::string(120, 'a') + "\"… (200 bytes)");
  // Not in the middle of a character.
  EXPECT_EQ(Quote("a" + std::string(119, 'b') + "é"),
            "\"a" + std::string(119, 'b') + "\"… (122 bytes)");
  EXPECT_EQ(Quote(std::string(119, 'b') + "éé"), "\"" + std::string(119, 'b') + "\"… (123 bytes)");
}

}  // namespace
}  // namespace fl::tensor
