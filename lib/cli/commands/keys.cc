#include "base/keys.h"

#include <memory>

#include "cli/commands/commands.h"
#include "cli/input.h"
#include "cli/output.h"

namespace fl::cli {
namespace {

struct GenerateOptions {
  std::string type = "p384";
  std::string format = "pkcs8";
  std::string out;
  bool force = false;
};

base::Status Generate(const GenerateOptions& options, Context& context) {
  const base::KeyType type =
      options.type == "ed25519" ? base::KeyType::kEd25519 : base::KeyType::kP384;
  std::error_code ignored;
  if (!options.out.empty() && !options.force &&
      std::filesystem::exists(std::filesystem::symlink_status(options.out, ignored))) {
    return base::InvalidArgument(options.out + " exists already",
                                 "choose another name, or lose the old key with --force");
  }
  FL_ASSIGN_OR_RETURN(const base::PrivateKey key, base::PrivateKey::Generate(type));
  const std::string text = options.format == "openssh" ? key.ToOpenSshFile() : key.ToPem();
  const std::string public_line = key.public_key().ToOpenSsh();
  if (options.out.empty()) {
    context.out << text;
    context.err << public_line << "\n";
    return base::OkStatus();
  }
  constexpr int kOwnerOnly = 0600;
  FL_RETURN_IF_ERROR(base::WriteFileAtomically(options.out, text, kOwnerOnly));
  context.out << public_line << "\n";
  return base::OkStatus();
}

Command GenerateKeyCommand() {
  auto options = std::make_shared<GenerateOptions>();
  return {
      .name = "generate",
      .summary = "Make the private key of a client",
      .description =
          "With --out the private key goes to that file, which only its owner can read, and the\n"
          "public key to standard output: it is what spec.publicKey of the FederatedClient takes.\n"
          "Without --out the private key goes to standard output, the public key to standard "
          "error.",
      .examples = {{"A key for a hospital", "fl keys generate --out hospital-a.key"},
                   {"An Ed25519 key that ssh-keygen reads",
                    "fl keys generate --type ed25519 --format openssh --out id_ed25519"}},
      .flags = {{.names = "--type",
                 .value = "TYPE",
                 .help = "p384 or ed25519",
                 .to = &options->type,
                 .choices = {"p384", "ed25519"}},
                {.names = "--format",
                 .value = "FORMAT",
                 .help = "pkcs8 or openssh",
                 .to = &options->format,
                 .choices = {"pkcs8", "openssh"}},
                {.names = "--out",
                 .value = "FILE",
                 .help = "Where the private key goes",
                 .to = &options->out,
                 .completes = Completes::kFile},
                {.names = "--force", .help = "Replace a file that exists", .to = &options->force}},
      .run = [options](Context& context) { return Generate(*options, context); }};
}

struct ShowOptions {
  std::string file;
  std::string output = "table";
};

base::Result<base::PublicKey> ReadPublicKey(Context& context, const std::string& file) {
  constexpr uint64_t kLimit = 64 << 10;
  FL_ASSIGN_OR_RETURN(const std::string text, ReadInput(context, file, kLimit));
  base::Result<base::PublicKey> key = base::InvalidArgument("no key");
  if (text.find("PRIVATE KEY") != std::string::npos) {
    const base::Result<base::PrivateKey> private_key = base::PrivateKey::Parse(text);
    if (!private_key.ok()) return private_key.status().WithContext(file);
    return private_key->public_key();
  }
  key = text.find("BEGIN PUBLIC KEY") != std::string::npos
            ? base::PublicKey::ParsePem(text)
            : base::PublicKey::ParseOpenSsh(text.substr(0, text.find('\n')));
  if (!key.ok()) return key.status().WithContext(file);
  return key;
}

base::Status Show(const ShowOptions& options, Context& context) {
  FL_ASSIGN_OR_RETURN(const OutputFormat format, OutputFormat::Parse(options.output));
  FL_ASSIGN_OR_RETURN(const base::PublicKey key, ReadPublicKey(context, options.file));
  const std::string type = key.type() == base::KeyType::kEd25519 ? "ed25519" : "p384";
  Document document;
  document.data = spec::Value::Map{
      {"fingerprint", key.Fingerprint()}, {"publicKey", key.ToOpenSsh()}, {"type", type}};
  document.text = key.ToOpenSsh() + "\n";
  if (format.kind() == OutputFormat::Kind::kWide) {
    document.text = "type:        " + type + "\nfingerprint: " + key.Fingerprint() +
                    "\npublic key:  " + key.ToOpenSsh() + "\n";
  }
  document.names = {key.Fingerprint()};
  return format.Print(context, document);
}

Command ShowKeyCommand() {
  auto options = std::make_shared<ShowOptions>();
  return {.name = "show",
          .summary = "Print the public half of a key",
          .description =
              "Reads private and public keys: PKCS8, SEC1 and OpenSSH files, PEM, and\n"
              "lines as in authorized_keys. Prints the line that spec.publicKey takes.",
          .examples = {{"For the FederatedClient", "fl keys show hospital-a.key"},
                       {"Type and fingerprint too", "fl keys show hospital-a.key -o wide"}},
          .flags = {OutputFlag(&options->output)},
          .arguments = {{.names = "FILE",
                         .help = "A key file; - for standard input",
                         .to = &options->file,
                         .required = true,
                         .completes = Completes::kFile}},
          .run = [options](Context& context) { return Show(*options, context); }};
}

}  // namespace

Command KeysCommand() {
  return {.name = "keys",
          .summary = "Make and show the keys of clients",
          .examples = {{"A key for a client", "fl keys generate --out hospital-a.key"}},
          .commands = {GenerateKeyCommand(), ShowKeyCommand()}};
}

}  // namespace fl::cli
