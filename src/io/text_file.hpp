// SPDX-License-Identifier: Apache-2.0
// TextFile: a whole file as text in memory. Plain files are mapped, which costs no memory of this process; files that
// open with gzip's magic bytes are inflated by zlib, whatever their name; pipes are read to their end.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "krilu/buffer.hpp"

namespace krilu::io {

class TextFile {
 public:
  /// Throws krilu::Error where the file cannot be read, or is gzip that is cut short or damaged.
  explicit TextFile(const std::string& path);
  ~TextFile() { release(); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  std::string_view text() const { return text_; }

  /// Gives the memory back before the object ends; text() is empty from then on.
  void release() noexcept;

 private:
  void map_or_read(const std::string& path, int file);
  void inflate(const std::string& path);

  std::string_view text_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  Buffer<char> owned_;
};

/// File name without folder, .gz and .mtx.
std::string short_name(const std::string& path);

}  // namespace krilu::io
