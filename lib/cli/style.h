#pragma once

/// Colours and icons, for people at a terminal.

#include <string>
#include <string_view>

namespace fl::cli {

enum class Ink { kPlain, kBold, kDim, kRed, kGreen, kYellow, kCyan };
enum class Icon { kDone, kFailed, kRunning, kWaiting, kPaused, kWarning };

/// How one stream is written to. A plain value.
struct Style {
  bool color = false;    ///< ANSI colours
  bool unicode = false;  ///< icons and lines outside ASCII

  /// `text` in that colour, where there are colours.
  std::string Paint(Ink ink, std::string_view text) const;
  /// "✔" or "+", in the icon's colour.
  std::string Draw(Icon icon) const;
  /// The pieces of a tree: "├─ ", "└─ ", "│  ", "   ".
  std::string_view Branch(bool last) const;
  std::string_view Trunk(bool last) const;
};

/// Columns that `text` takes on a terminal: UTF-8 characters, without colour codes. (No wide or
/// combining characters are printed by us.)
size_t DisplayWidth(std::string_view text);

/// The first `width` columns of `text`, colour codes kept whole.
std::string Clip(std::string_view text, size_t width);

}  // namespace fl::cli
