// SPDX-License-Identifier: Apache-2.0
#include "exec/cache_size.hpp"

#if defined(KRILU_HAS_HWLOC)
#include <hwloc.h>
#endif
#include <unistd.h>

namespace krilu::exec {

namespace {

std::size_t look() {
  std::size_t bytes = 0;
#if defined(KRILU_HAS_HWLOC)
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) == 0) {
    if (hwloc_topology_load(topology) == 0)
      if (hwloc_obj_t cache = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L2CACHE, 0)) {
        const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE);
        bytes = cache->attr->cache.size / std::size_t(cores > 1 ? cores : 1);
      }
    hwloc_topology_destroy(topology);
  }
#endif
#if defined(_SC_LEVEL2_CACHE_SIZE)
  if (bytes == 0)
    if (const long size = sysconf(_SC_LEVEL2_CACHE_SIZE); size > 0) bytes = std::size_t(size);
#endif
  return bytes ? bytes : std::size_t(1) << 20;
}

}  // namespace

std::size_t second_level_cache() {
  static const std::size_t bytes = look();
  return bytes;
}

}  // namespace krilu::exec
