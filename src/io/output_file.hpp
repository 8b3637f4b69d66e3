// SPDX-License-Identifier: Apache-2.0
// OutputFile: a text file that appears whole or not at all. It is written as TARGET.part in the target's folder, or as
// .part2, .part3, ... where there is a file of that name, and renamed at the end; anything that fails before removes it
// and is a krilu::Error with the system's reason. Devices and pipes are written directly; standard output ("-" or
// /dev/stdout) and other open streams go on where they are.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace krilu::io {

/// Where what is written for a path goes.
struct Destination {
  std::string target;   // where links lead, whether there is a file or not
  bool direct = false;  // not beside it and renamed: a device, a pipe, a stream
  int stream = -1;      // the open one that it is: "-", /dev/stdout, /dev/stderr, /dev/fd/N
};
Destination destination_of(const std::string& path);
/// Whether what is written for one path would replace, or be mixed with, what is written for the other.
bool same_destination(const std::string& one, const std::string& other);

/// Throws krilu::Error where a file of that name could not be written: there is no such folder, the name is a folder's
/// or too long, or folder or file are not ours to write to. To be asked before work whose answer goes there; nothing is
/// opened.
void require_writable(const std::string& path);

/// Throws the krilu::Error of a file that could not be written, `error` being the system's errno, with what to do.
[[noreturn]] void refuse_to_write(const std::string& path, int error);

/// A new file in the target's folder, open for writing, for what is to get the target's name; `name` becomes its own.
/// Null, and errno, where the system makes none.
std::FILE* create_beside(const std::string& target, std::string& name);

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
  std::string written_;  // target_, or the file beside it
  std::FILE* file_ = nullptr;
  std::string buffer_;
};

}  // namespace krilu::io
