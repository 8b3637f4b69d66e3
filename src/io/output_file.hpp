// SPDX-License-Identifier: Apache-2.0
// OutputFile: a text file that appears whole or not at all. It is written as TARGET.part in the target's folder and
// renamed at the end; anything that fails before removes it and is a krilu::Error with the system's reason. Devices
// and pipes, such as /dev/stdout, are written directly.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace krilu::io {

/// Throws krilu::Error where a file of that name could not be written: there is no such folder, or it or the file is not
/// ours to write to, or the name is a folder's. To be asked before work whose answer goes there; nothing is opened.
void require_writable(const std::string& path);

class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void add(std::string_view text);
  void add(std::int64_t number);
  /// The shortest text that reads back as the same double: at most 17 significant digits.
  void add(double number);

  /// Writes what is left and gives the file its name.
  void commit();

 private:
  void make_room(std::size_t bytes);
  void flush();
  [[noreturn]] void fail(int error);

  std::string path_;     // as the caller named it
  std::string target_;   // where links lead
  std::string written_;  // target_ or target_.part
  std::FILE* file_ = nullptr;
  std::string buffer_;
};

}  // namespace krilu::io
