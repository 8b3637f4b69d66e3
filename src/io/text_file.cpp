// SPDX-License-Identifier: Apache-2.0
// Mapping, reading and inflating of files; see text_file.hpp. gzip: RFC 1952, by zlib, of one or many members.
// Cost: inflating takes about 3 ns a byte on one core and memory for the whole text.
#include "io/text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "krilu/error.hpp"

#if defined(KRILU_HAS_ZLIB)
#include <zlib.h>
#endif

namespace krilu::io {

namespace {

[[noreturn]] void cannot_read(const std::string& path, int error) {
  throw Error(fmt::format("could not read {}: {}", path, std::strerror(error)));
}

struct Descriptor {
  int file;
  ~Descriptor() {
    if (file >= 0) ::close(file);
  }
};

bool is_gzip(std::string_view bytes) { return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

}  // namespace

TextFile::TextFile(const std::string& path) {
  const Descriptor d{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (d.file < 0) cannot_read(path, errno);
  try {
    map_or_read(path, d.file);
    if (is_gzip(text_)) inflate(path);
  } catch (...) {
    release();  // no destructor runs for an object that was never made
    throw;
  }
}

void TextFile::release() noexcept {
  if (mapped_) ::munmap(mapped_, mapped_bytes_);
  mapped_ = nullptr;
  Buffer<char>().swap(owned_);
  text_ = {};
}

void TextFile::map_or_read(const std::string& path, int file) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0) cannot_read(path, errno);
  if (S_ISDIR(facts.st_mode)) throw Error(fmt::format("could not read {}: it is a folder; name a file in it", path));
  if (S_ISREG(facts.st_mode) && facts.st_size > 0) {
    const std::size_t bytes = static_cast<std::size_t>(facts.st_size);
    void* p = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (p != MAP_FAILED) {
      ::madvise(p, bytes, MADV_WILLNEED);
      mapped_ = p;
      mapped_bytes_ = bytes;
      text_ = {static_cast<const char*>(p), bytes};
      return;
    }
  }
  // Pipes, and file systems that do not map.
  std::size_t used = 0;
  for (;;) {
    if (used == owned_.size()) owned_.resize(std::max<std::size_t>(1 << 20, 2 * used));
    const ssize_t got = ::read(file, owned_.data() + used, owned_.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path, errno);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text_ = {owned_.data(), used};
}

#if defined(KRILU_HAS_ZLIB)

void TextFile::inflate(const std::string& path) {
  // The last four bytes of gzip give the text's length modulo 2^32. They are a first guess only, and held to what
  // deflate can reach at all (1032 to 1), so that a damaged file asks for no more than an honest one could.
  constexpr std::size_t largest_ratio = 1032, step = std::size_t(1) << 30, smallest_member = 18;
  std::size_t guess = 0;
  if (text_.size() >= smallest_member) {
    for (std::size_t i = 0; i < 4; ++i)
      guess |= std::size_t(static_cast<unsigned char>(text_[text_.size() - 4 + i])) << 8 * i;
  }
  Buffer<char> out(std::min(std::max(guess, text_.size()), text_.size() * largest_ratio) + 1);

  z_stream z{};
  if (inflateInit2(&z, 15 + 16) != Z_OK) throw std::bad_alloc();
  struct End {
    z_stream& z;
    ~End() { inflateEnd(&z); }
  } end{z};

  const char* in = text_.data();
  std::size_t left = text_.size(), used = 0;
  for (;;) {
    if (used == out.size()) out.resize(2 * out.size());
    const std::size_t give = std::min(left, step), room = std::min(out.size() - used, step);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in));
    z.avail_in = static_cast<uInt>(give);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    z.avail_out = static_cast<uInt>(room);
    const int state = ::inflate(&z, Z_NO_FLUSH);
    in += give - z.avail_in;
    left -= give - z.avail_in;
    used += room - z.avail_out;
    if (state == Z_STREAM_END) {
      // Another member may follow, as pigz and bgzip write them; zeros that fill up a tape block may, too.
      if (is_gzip({in, left})) {
        inflateReset(&z);
        continue;
      }
      if (std::any_of(in, in + left, [](char c) { return c != 0; }))
        throw Error(
            fmt::format("could not read {}: there is something else behind the gzip data, at byte {}; "
                        "fetch or compress the file again",
                        path, text_.size() - left));
      break;
    }
    if (left == 0 && (state == Z_BUF_ERROR || (state == Z_OK && z.avail_out != 0)))
      throw Error(
          fmt::format("could not read {}: the gzip data ends too early, after {} bytes; the file is cut short, "
                      "fetch or compress it again",
                      path, text_.size()));
    if (state == Z_MEM_ERROR) throw std::bad_alloc();
    if (state != Z_OK && state != Z_BUF_ERROR)
      throw Error(
          fmt::format("could not read {}: the gzip data is damaged near byte {} ({}); fetch or compress the "
                      "file again",
                      path, text_.size() - left, z.msg ? z.msg : "no details"));
  }
  release();
  owned_ = std::move(out);
  text_ = {owned_.data(), used};
}

#else

void TextFile::inflate(const std::string& path) {
  throw Error(
      fmt::format("could not read {}: it is compressed by gzip and this krilu was built without zlib; "
                  "unpack it first with gunzip",
                  path));
}

#endif

std::string short_name(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  for (const std::string_view ending : {".gz", ".mtx"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

}  // namespace krilu::io
