#include "base/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/encoding.h"
#include "base/file.h"
#include "base/internal/ed25519_point.h"
#include "base/internal/openssh.h"
#include "base/subprocess.h"
#include "base/testing/status_matchers.h"
#include "base/testing/temporary_directory.h"

namespace fl::base {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class KeysTest : public ::testing::Test {
 protected:
  /// Runs a program to its end and gives what it wrote to stdout.
  std::string Run(std::vector<std::string> argv) {
    Command command;
    command.argv = std::move(argv);
    command.stdout_file = File("stdout");
    command.stderr_file = File("stderr");
    EXPECT_THAT(RemoveFile(File("stdout")), IsOk());
    Result<Subprocess> child = Subprocess::Start(command);
    EXPECT_THAT(child, IsOk());
    const ExitInfo exit = child->Wait().value();
    EXPECT_EQ(exit.code, 0) << command.argv[0] << ": " << ReadFile(File("stderr")).value_or("");
    return ReadFile(File("stdout")).value_or("");
  }
  Path File(const std::string& name) const { return folder_.path() / name; }
  std::string Text(const std::string& name) { return ReadFile(File(name)).value(); }
  /// A key of ssh-keygen in the file `name` (and `name`.pub).
  void SshKeygen(const std::string& name, std::vector<std::string> options) {
    std::vector<std::string> argv = {"ssh-keygen", "-q", "-f", File(name).string()};
    argv.insert(argv.end(), options.begin(), options.end());
    Run(std::move(argv));
  }

  TemporaryDirectory folder_;
};

const std::vector<std::string> kEd25519 = {"-t", "ed25519", "-N", "", "-C", "two words"};
const std::vector<std::string> kP384 = {"-t", "ecdsa", "-b", "384", "-N", ""};

/// The line of a .pub file without its comment.
std::string WithoutComment(const std::string& line) {
  const size_t second = line.find(' ', line.find(' ') + 1);
  return line.substr(0, std::min(second, line.find('\n')));
}

TEST_F(KeysTest, ReadsTheFilesOfSshKeygen) {
  for (const bool ed25519 : {true, false}) {
    const std::string name = ed25519 ? "ed" : "ec";
    SshKeygen(name, ed25519 ? kEd25519 : kP384);
    ASSERT_OK_AND_ASSIGN(const PrivateKey key, PrivateKey::Load(File(name)));
    ASSERT_OK_AND_ASSIGN(const PublicKey half, PublicKey::ParseOpenSsh(Text(name + ".pub")));
    EXPECT_EQ(key.type(), ed25519 ? KeyType::kEd25519 : KeyType::kP384);
    EXPECT_EQ(key.public_key(), half);
    EXPECT_EQ(half.ToOpenSsh(), WithoutComment(Text(name + ".pub")));
    EXPECT_THAT(Run({"ssh-keygen", "-l", "-f", File(name).string()}),
                HasSubstr(" " + half.Fingerprint() + " "));
  }
}

TEST_F(KeysTest, SshKeygenReadsOurs) {
  for (const KeyType type : {KeyType::kEd25519, KeyType::kP384}) {
    // The scalar of P-384 has a leading zero byte, or a sign bit, once in a while: both are tried.
    for (int i = 0; i < 8; ++i) {
      ASSERT_OK_AND_ASSIGN(const PrivateKey key, PrivateKey::Generate(type));
      ASSERT_THAT(WriteFileAtomically(File("ours"), key.ToOpenSshFile("a comment"), 0600), IsOk());
      EXPECT_EQ(WithoutComment(Run({"ssh-keygen", "-y", "-f", File("ours").string()})),
                key.public_key().ToOpenSsh());
      ASSERT_OK_AND_ASSIGN(const PrivateKey back, PrivateKey::Load(File("ours")));
      EXPECT_EQ(back.ToPem(), key.ToPem());
    }
  }
}

TEST_F(KeysTest, ReadsWhatOpensslAndOlderToolsWrite) {
  Run({"openssl", "genpkey", "-algorithm", "ed25519", "-out", File("a").string()});
  Run({"openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out",
       File("b").string()});
  Run({"openssl", "ecparam", "-genkey", "-name", "secp384r1", "-out", File("c").string()});
  Run({"openssl", "ec", "-in", File("c").string(), "-conv_form", "compressed", "-out",
       File("d").string()});
  SshKeygen("e", {"-t", "ecdsa", "-b", "384", "-N", "", "-m", "PEM"});
  SshKeygen("f", {"-t", "ecdsa", "-b", "384", "-N", "", "-m", "PKCS8"});
  for (const std::string name : {"a", "b", "c", "d", "e", "f"}) {
    ASSERT_OK_AND_ASSIGN(const PrivateKey key, PrivateKey::Parse(Text(name)));
    const std::string pem = Run({"openssl", "pkey", "-in", File(name).string(), "-pubout"});
    ASSERT_OK_AND_ASSIGN(const PublicKey half, PublicKey::ParsePem(pem));
    EXPECT_EQ(key.public_key(), half) << name;
    // And openssl reads ours.
    ASSERT_THAT(WriteFileAtomically(File("ours"), key.ToPem()), IsOk());
    EXPECT_THAT(key.ToPem(), StartsWith("-----BEGIN PRIVATE KEY-----\n"));
    const std::string ours = Run({"openssl", "pkey", "-in", File("ours").string(), "-pubout"});
    EXPECT_EQ(PublicKey::ParsePem(ours).value(), half) << name;
  }
}

TEST_F(KeysTest, OpensslAgreesAboutSignatures) {
  const std::string message = "challenge and exporter";
  ASSERT_THAT(WriteFileAtomically(File("message"), message), IsOk());
  for (const KeyType type : {KeyType::kEd25519, KeyType::kP384}) {
    ASSERT_OK_AND_ASSIGN(const PrivateKey key, PrivateKey::Generate(type));
    ASSERT_THAT(WriteFileAtomically(File("key"), key.ToPem()), IsOk());
    ASSERT_THAT(WriteFileAtomically(File("ours"), key.Sign(AsBytes(message))), IsOk());
    std::vector<std::string> argv = {"openssl",
                                     "pkeyutl",
                                     "-rawin",
                                     "-inkey",
                                     File("key").string(),
                                     "-in",
                                     File("message").string()};
    if (type == KeyType::kP384) argv.insert(argv.end(), {"-digest", "sha384"});
    std::vector<std::string> verify = argv;
    verify.insert(verify.end(), {"-verify", "-sigfile", File("ours").string()});
    EXPECT_THAT(Run(verify), HasSubstr("Verified Successfully"));
    std::vector<std::string> sign = argv;
    sign.insert(sign.end(), {"-sign", "-out", File("theirs").string()});
    Run(sign);
    EXPECT_THAT(key.public_key().Verify(AsBytes(message), AsBytes(Text("theirs"))), IsOk());
  }
}

TEST_F(KeysTest, VerifyRefusesEverythingElse) {
  for (const KeyType type : {KeyType::kEd25519, KeyType::kP384}) {
    ASSERT_OK_AND_ASSIGN(const PrivateKey key, PrivateKey::Generate(type));
    ASSERT_OK_AND_ASSIGN(const PrivateKey other, PrivateKey::Generate(type));
    const std::string good = key.Sign(AsBytes("message"));
    EXPECT_THAT(key.public_key().Verify(AsBytes("message"), AsBytes(good)), IsOk());
    EXPECT_THAT(key.public_key().Verify(AsBytes("massage"), AsBytes(good)),
                StatusIs(Code::kPermissionDenied, HasSubstr(key.public_key().Fingerprint())));
    EXPECT_THAT(other.public_key().Verify(AsBytes("message"), AsBytes(good)), Not(IsOk()));
    EXPECT_THAT(key.public_key().Verify(AsBytes("message"), {}), Not(IsOk()));
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      EXPECT_THAT(key.public_key().Verify(AsBytes("message"), AsBytes(bad)), Not(IsOk())) << i;
    }
    EXPECT_THAT(key.public_key().Verify(AsBytes("message"), AsBytes(good + "x")), Not(IsOk()));
  }
}

// RFC 8032, section 7.1, test 3.
TEST_F(KeysTest, SignsAsTheRfcSays) {
  internal::RawKey raw;
  const auto text = [](std::string_view hex) {
    const std::vector<uint8_t> bytes = HexDecode(hex).value();
    return std::string(bytes.begin(), bytes.end());
  };
  raw.private_bytes = text("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7");
  raw.public_bytes = text("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
  ASSERT_OK_AND_ASSIGN(const PrivateKey key,
                       PrivateKey::Parse(internal::EncodePrivateFile(raw, "")));
  EXPECT_EQ(HexEncode(AsBytes(key.Sign(AsBytes(text("af82"))))),
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a");
}

TEST_F(KeysTest, OtherKindsAreNamedAndTheHintSaysWhatToDo) {
  SshKeygen("rsa", {"-t", "rsa", "-b", "2048", "-N", ""});
  SshKeygen("p256", {"-t", "ecdsa", "-b", "256", "-N", ""});
  SshKeygen("p521", {"-t", "ecdsa", "-b", "521", "-N", "", "-m", "PKCS8"});
  SshKeygen("locked", {"-t", "ed25519", "-N", "passphrase"});
  SshKeygen("lockedpem", {"-t", "ecdsa", "-b", "384", "-N", "passphrase", "-m", "PEM"});
  Run({"openssl", "genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:word", "-out",
       File("lockedp8").string()});
  SshKeygen("ed", kEd25519);

  const struct {
    std::string file, message, hint;
  } cases[] = {
      {"rsa", "\"ssh-rsa\" is not taken", "ssh-keygen -t ed25519"},
      {"p256", "\"ecdsa-sha2-nistp256\" is not taken", "ssh-keygen -t ed25519"},
      {"p521", "EC on the curve secp521r1", "ssh-keygen -t ed25519"},
      {"locked", "encrypted with a passphrase", "ssh-keygen -p -N ''"},
      {"lockedpem", "encrypted with a passphrase", "openssl pkey"},
      {"lockedp8", "encrypted with a passphrase", "openssl pkey"},
      {"ed.pub", "public half", "ssh-keygen"},
  };
  for (const auto& [file, message, hint] : cases) {
    const Result<PrivateKey> key = PrivateKey::Parse(Text(file));
    EXPECT_THAT(key, StatusIs(Code::kInvalidArgument, HasSubstr(message))) << file;
    EXPECT_THAT(key.status().hint(), HasSubstr(hint)) << file;
  }
  EXPECT_THAT(PublicKey::ParseOpenSsh(Text("rsa.pub")),
              StatusIs(Code::kInvalidArgument, HasSubstr("ssh-rsa")));
  for (const std::string text : {"", "\n", "ssh-ed25519", "ssh-ed25519 ", "ssh-ed25519 AAAA",
                                 "ssh-ed25519 !", "hello world", "-----BEGIN PRIVATE KEY-----"}) {
    EXPECT_THAT(PublicKey::ParseOpenSsh(text), StatusIs(Code::kInvalidArgument, HasSubstr("")));
    EXPECT_THAT(PublicKey::ParsePem(text), StatusIs(Code::kInvalidArgument, HasSubstr("")));
    EXPECT_THAT(PrivateKey::Parse(text), StatusIs(Code::kInvalidArgument, HasSubstr("")));
  }
}

TEST_F(KeysTest, DamagedFilesAreRefusedWhereverTheDamageIs) {
  for (const KeyType type : {KeyType::kEd25519, KeyType::kP384}) {
    ASSERT_OK_AND_ASSIGN(const PrivateKey key, PrivateKey::Generate(type));
    const std::string file = key.ToOpenSshFile("c");
    std::string base64 = file.substr(file.find('\n') + 1);
    base64.resize(base64.find('-'));
    std::erase(base64, '\n');
    const std::vector<uint8_t> bytes = Base64Decode(base64).value();
    const auto wrap = [](std::span<const uint8_t> damaged) {
      return "-----BEGIN OPENSSH PRIVATE KEY-----\n" + Base64Encode(damaged) +
             "\n-----END OPENSSH PRIVATE KEY-----\n";
    };
    ASSERT_THAT(PrivateKey::Parse(wrap(bytes)), IsOk());
    int accepted = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_THAT(PrivateKey::Parse(wrap(std::span(bytes).first(i))), Not(IsOk())) << i;
      std::vector<uint8_t> flipped = bytes;
      flipped[i] ^= 0x10;
      const Result<PrivateKey> read = PrivateKey::Parse(wrap(flipped));
      if (!read.ok()) continue;
      ++accepted;
      EXPECT_EQ(read->ToPem(), key.ToPem()) << i;
    }
    EXPECT_LE(accepted, 1);  // the comment
  }
}

TEST_F(KeysTest, PointsOffTheCurveAndOfSmallOrderAreRefused) {
  ASSERT_OK_AND_ASSIGN(const PrivateKey key, PrivateKey::Generate(KeyType::kP384));
  const std::string line = key.public_key().ToOpenSsh();
  std::vector<uint8_t> blob = Base64Decode(line.substr(line.find(' ') + 1)).value();
  blob.back() ^= 1;
  EXPECT_THAT(PublicKey::ParseOpenSsh("ecdsa-sha2-nistp384 " + Base64Encode(blob)),
              StatusIs(Code::kInvalidArgument, HasSubstr("not a point on its curve")));

  const std::string_view bad[] = {
      // y = 2 has no x; y = p and p + 1 are 0 and 1 written wrongly; then the points of small
      // order.
      "0200000000000000000000000000000000000000000000000000000000000000",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0000000000000000000000000000000000000000000000000000000000000080",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
  };
  for (const std::string_view hex : bad) {
    internal::RawKey raw;
    const std::vector<uint8_t> bytes = HexDecode(hex).value();
    raw.public_bytes.assign(bytes.begin(), bytes.end());
    EXPECT_THAT(PublicKey::ParseOpenSsh("ssh-ed25519 " +
                                        Base64Encode(AsBytes(internal::EncodePublicBlob(raw)))),
                StatusIs(Code::kInvalidArgument, HasSubstr("not a point on its curve")))
        << hex;
  }
  int squares = 0;
  for (int i = 0; i < 64; ++i) {  // every key made is accepted, about half of all bytes are
    ASSERT_OK_AND_ASSIGN(const PrivateKey one, PrivateKey::Generate(KeyType::kEd25519));
    EXPECT_THAT(PublicKey::ParseOpenSsh(one.public_key().ToOpenSsh()), IsOk());
    const std::vector<uint8_t> bytes(32, static_cast<uint8_t>(i + 2));
    squares += internal::IsEd25519PublicKey(bytes) ? 1 : 0;
  }
  EXPECT_GT(squares, 10);
  EXPECT_LT(squares, 54);
}

TEST_F(KeysTest, LoadRefusesAFileThatOthersCanRead) {
  SshKeygen("key", kEd25519);
  ASSERT_EQ(::chmod(File("key").c_str(), 0644), 0);
  const Result<PrivateKey> open = PrivateKey::Load(File("key"));
  EXPECT_THAT(open, StatusIs(Code::kPermissionDenied, HasSubstr("open to other users")));
  EXPECT_THAT(open.status().hint(), HasSubstr("chmod 600 " + File("key").string()));
  ASSERT_EQ(::chmod(File("key").c_str(), 0440), 0);
  EXPECT_THAT(PrivateKey::Load(File("key")), IsOk());
  EXPECT_THAT(PrivateKey::Load(File("none")), StatusIs(Code::kNotFound, HasSubstr("none")));
}

TEST_F(KeysTest, HalvesThatDoNotBelongTogetherAreRefused) {
  SshKeygen("one", kP384);
  SshKeygen("two", kP384);
  const auto raw = [&](const std::string& name) {
    return internal::DecodePrivateFile(Text(name)).value();
  };
  internal::RawKey mixed = raw("one");
  mixed.public_bytes = raw("two").public_bytes;
  EXPECT_THAT(PrivateKey::Parse(internal::EncodePrivateFile(mixed, "")),
              StatusIs(Code::kInvalidArgument, HasSubstr("do not belong together")));
}

}  // namespace
}  // namespace fl::base
