#include "cli/style.h"

namespace fl::cli {
namespace {

std::string_view Code(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kBold:
      return "\033[1m";
    case Ink::kDim:
      return "\033[2m";
    case Ink::kRed:
      return "\033[31m";
    case Ink::kGreen:
      return "\033[32m";
    case Ink::kYellow:
      return "\033[33m";
    case Ink::kCyan:
      return "\033[36m";
  }
  return "";
}

}  // namespace

std::string Style::Paint(Ink ink, std::string_view text) const {
  if (!color || ink == Ink::kPlain || text.empty()) return std::string(text);
  return std::string(Code(ink)) + std::string(text) + "\033[0m";
}

std::string Style::Draw(Icon icon) const {
  switch (icon) {
    case Icon::kDone:
      return Paint(Ink::kGreen, unicode ? "✔" : "+");
    case Icon::kFailed:
      return Paint(Ink::kRed, unicode ? "✘" : "x");
    case Icon::kRunning:
      return Paint(Ink::kCyan, unicode ? "●" : "*");
    case Icon::kWaiting:
      return Paint(Ink::kDim, unicode ? "○" : ".");
    case Icon::kPaused:
      return Paint(Ink::kYellow, unicode ? "‖" : "=");
    case Icon::kWarning:
      return Paint(Ink::kYellow, unicode ? "▲" : "!");
  }
  return "";
}

std::string_view Style::Branch(bool last) const {
  if (unicode) return last ? "└─ " : "├─ ";
  return last ? "`- " : "|- ";
}

std::string_view Style::Trunk(bool last) const {
  if (last) return "   ";
  return unicode ? "│  " : "|  ";
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  bool in_code = false;
  for (const char c : text) {
    if (in_code) {
      in_code = c != 'm';
    } else if (c == '\033') {
      in_code = true;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string Clip(std::string_view text, size_t width) {
  std::string clipped;
  size_t column = 0;
  bool in_code = false;
  for (const char c : text) {
    const bool code = in_code || c == '\033';
    in_code = code && c != 'm';
    if (!code && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++column;
    // Codes behind the edge still go out: one of them ends the colour.
    if (code || column <= width) clipped += c;
  }
  return clipped;
}

}  // namespace fl::cli
