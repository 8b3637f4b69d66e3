// SPDX-License-Identifier: Apache-2.0
// Writing beside the target and renaming; see output_file.hpp. Cost: about 60 ns for a double, on one core.
#include "io/output_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "krilu/error.hpp"

namespace krilu::io {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t buffer_bytes = std::size_t(1) << 20;
constexpr std::size_t longest_number = 32;

/// The open stream that a path names, or -1.
int stream_of(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  int number = -1;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const char *begin = path.data() + folder.size(), *end = path.data() + path.size();
    const auto [stop, status] = std::from_chars(begin, end, number);
    return status == std::errc() && stop == end ? number : -1;
  }
  return -1;
}

/// Bytes that a file's name in that folder may have.
std::size_t longest_name(const fs::path& folder) {
  constexpr std::size_t usual = 255;
  const long most = ::pathconf(folder.empty() ? "." : folder.c_str(), _PC_NAME_MAX);
  return most > 0 ? std::size_t(most) : usual;
}

/// The first `most` bytes at the most, and no part of a letter in UTF-8.
std::string shortened(const std::string& name, std::size_t most) {
  if (name.size() <= most) return name;
  while (most > 0 && (static_cast<unsigned char>(name[most]) & 0xc0) == 0x80) --most;
  return name.substr(0, most);
}
}  // namespace

void refuse_to_write(const std::string& path, int error) {
  const char* const remedy = error == ENOSPC || error == EDQUOT ? "free some room or choose another folder"
                             : error == ENAMETOOLONG            ? "choose a shorter name"
                             : error == EEXIST                  ? "remove the .part files beside it"
                                                                : "choose a file in a folder that can be written to";
  throw Error(fmt::format("could not write {}: {}; {}", path, std::strerror(error), remedy));
}

Destination destination_of(const std::string& path) {
  constexpr int most_links = 40;  // as many as the system follows
  std::error_code ignored;
  // Through links, so that the file that they lead to is replaced and they stay; not through a stream's own.
  fs::path at = path;
  for (int k = 0; k < most_links && stream_of(at.string()) < 0 && fs::is_symlink(at, ignored); ++k) {
    const fs::path next = fs::read_symlink(at, ignored);
    if (ignored) break;
    at = at.parent_path() / next;
  }
  Destination to{at.string(), false, stream_of(at.string())};
  const fs::file_status status = fs::status(at, ignored);
  to.direct = to.stream >= 0 || (fs::exists(status) && !fs::is_regular_file(status));
  return to;
}

bool same_destination(const std::string& one, const std::string& other) {
  const Destination a = destination_of(one), b = destination_of(other);
  if (a.stream >= 0 || b.stream >= 0) return a.stream == b.stream;
  std::error_code ignored;  // where one of them is not there yet
  return fs::equivalent(a.target, b.target, ignored) ||
         fs::weakly_canonical(fs::absolute(a.target, ignored), ignored) ==
             fs::weakly_canonical(fs::absolute(b.target, ignored), ignored);
}

void require_writable(const std::string& path) {
  std::error_code error, ignored;
  if (path.empty() || (stream_of(path) < 0 && fs::is_directory(path, ignored)))
    throw Error(fmt::format("could not write {}: that is a folder; name a file in it", path.empty() ? "''" : path));
  const Destination to = destination_of(path);
  if (to.stream >= 0) return;
  const fs::path beside = fs::path(to.target).parent_path();
  if (!beside.empty() && !fs::is_directory(beside, error)) {
    if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
      refuse_to_write(path, error.value());
    const bool file = fs::exists(beside, ignored);
    throw Error(fmt::format("could not write {}: {} {}{}", path,
                            file ? "no folder, but a file, is" : "there is no folder", beside.string(),
                            file ? "" : "; make it first"));
  }
  if (fs::path(to.target).filename().native().size() > longest_name(beside)) refuse_to_write(path, ENAMETOOLONG);
  if (fs::exists(to.target, ignored) && access(to.target.c_str(), W_OK) != 0) refuse_to_write(path, errno);
  if (!to.direct && access(beside.empty() ? "." : beside.c_str(), W_OK) != 0) refuse_to_write(path, errno);
}

std::FILE* create_beside(const std::string& target, std::string& name) {
  constexpr int most = 1000;  // what killed runs left behind, and other runs that write to the same target
  const fs::path at = target, folder = at.parent_path();
  for (int k = 1; k <= most; ++k) {
    const std::string end = k == 1 ? ".part" : fmt::format(".part{}", k);
    name = (folder / (shortened(at.filename().string(), longest_name(folder) - end.size()) + end)).string();
    if (name == target) continue;
    // 'x': no file of that name may be there.
    if (std::FILE* const file = std::fopen(name.c_str(), "wbx")) return file;
    if (errno != EEXIST) break;
  }
  return nullptr;
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  Destination to = destination_of(path);
  written_ = target_ = std::move(to.target);
  if (to.stream >= 0) {
    if (to.stream == STDOUT_FILENO) std::fflush(stdout);  // what was printed comes first
    const int own = ::dup(to.stream);
    if (own >= 0) file_ = ::fdopen(own, "wb");
  } else if (to.direct) {
    file_ = std::fopen(written_.c_str(), "wb");
  } else {
    file_ = create_beside(target_, written_);
  }
  if (!file_) fail(errno);
  std::setvbuf(file_, nullptr, _IONBF, 0);  // buffer_ does that
  buffer_.reserve(buffer_bytes);
}

OutputFile::~OutputFile() {
  if (!file_) return;
  std::fclose(file_);
  if (written_ != target_) std::remove(written_.c_str());
}

void OutputFile::fail(int error) {
  if (file_) {
    std::fclose(file_);
    file_ = nullptr;
    if (written_ != target_) std::remove(written_.c_str());
  }
  refuse_to_write(path_, error);
}

void OutputFile::make_room(std::size_t bytes) {
  if (buffer_.size() + bytes > buffer_bytes) flush();
}

void OutputFile::flush() {
  errno = 0;
  if (!buffer_.empty() && std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size())
    fail(errno ? errno : EIO);
  buffer_.clear();
}

void OutputFile::add(std::string_view text) {
  make_room(text.size());
  buffer_.append(text);
}

void OutputFile::add(std::int64_t number) {
  char digits[longest_number];
  add(std::string_view(digits,
                       static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits)));
}

void OutputFile::add(double number) {
  char digits[longest_number];
  add(std::string_view(digits,
                       static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, number).ptr - digits)));
}

void OutputFile::commit() {
  flush();
  errno = 0;
  std::FILE* const file = file_;
  file_ = nullptr;
  const bool closed = std::fclose(file) == 0;
  if (closed && (written_ == target_ || std::rename(written_.c_str(), target_.c_str()) == 0)) return;
  const int error = errno ? errno : EIO;
  if (written_ != target_) std::remove(written_.c_str());
  fail(error);
}

}  // namespace krilu::io
