# Copyright the Flowcast developers
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Flowcast(Package):
    """Communication performance of clusters: measures a network, fits a model, records or reads MPI programs, predicts how long
    their communication takes, places ranks and schedules messages over several networks."""

    homepage = "https://github.com/flowcast/flowcast"
    url = "https://github.com/flowcast/flowcast/releases/download/v0.3.0/flowcast-0.3.0-vendored.tar.xz"
    git = "https://github.com/flowcast/flowcast.git"

    license("Apache-2.0 OR MIT")

    # SHA256SUMS of the release has the checksum.
    version("0.3.0")
    version("main", branch="main")

    variant("openmpi", default=False, description="The component of Open MPI 4.1 and 5.0 that uses several networks")
    variant("python", default=False, description="The Python package flowcast-hpc")

    depends_on("c", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("openmpi@4.1,5.0", type="run", when="+openmpi")

    with when("+python"):
        extends("python@3.10:")
        depends_on("py-pip", type="build")
        depends_on("py-maturin@1.9:1", type="build")

    def install(self, spec, prefix):
        cargo = Executable("cargo")
        # A branch has no crates beside it: its build needs network.
        cargo("install", "--locked", "--root", prefix, "--path", join_path("crates", "flowcast-cli"), "-j", str(make_jobs))
        flowcast = Executable(prefix.bin.flowcast)
        flowcast("man", prefix.share.man.man1)
        if "+openmpi" in spec:
            cargo("xtask", "install-openmpi", "--prefix", prefix.lib.openmpi)
        if "+python" in spec:
            Executable("python3")("-m", "pip", "install", "--no-deps", "--no-build-isolation", f"--prefix={prefix}", "./python")

    def setup_run_environment(self, env):
        if self.spec.satisfies("+openmpi"):
            # Without the second folder, Open MPI 4.1 finds none of its own components.
            env.set("OMPI_MCA_mca_base_component_path", f"{self.prefix.lib.openmpi}:SYS_DEFAULT")

    def test_demo(self):
        """measures this machine, predicts a program on it and writes a report"""
        flowcast = which(self.prefix.bin.flowcast, required=True)
        flowcast("demo", "--report", "demo.html")
