# SPDX-License-Identifier: Apache-2.0
# What tests tell Open MPI's processes by their environment: root may start them, and more of them than there are cores;
# they talk through memory or TCP, so that none looks for faster networks first; one that mpirun has not started stands
# alone, without a daemon. A process starts in a third of the time for it. What is left of a job after a rank has failed
# gets no second to end by itself: nobody may need it. And each test has a folder for what mpirun leaves while it runs:
# in the one that all share, an mpirun that ends removes the folder in which another begins.
import functools
import os
import tempfile


@functools.cache
def folder():
    """Removed when the test ends."""
    return tempfile.TemporaryDirectory(prefix="krilu-mpi-")


def environment(**more):
    return dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_pml="ob1", OMPI_MCA_btl="self,vader,tcp",
                OMPI_MCA_ess_singleton_isolated="1", OMPI_MCA_odls_base_sigkill_timeout="0",
                OMPI_MCA_orte_tmpdir_base=folder().name, **more)
