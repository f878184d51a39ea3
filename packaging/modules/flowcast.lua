-- Lmod: put this file at MODULEPATH/flowcast/0.3.0.lua. FLOWCAST_ROOT is the folder into which the tarball was unpacked.
help([[Flowcast measures a network, fits a model to it, records or reads MPI programs, predicts how long their communication
takes, places ranks and schedules messages over several networks. First step: flowcast demo]])
whatis("Name: Flowcast")
whatis("Version: 0.3.0")
whatis("Description: communication performance of clusters")
whatis("URL: https://github.com/flowcast/flowcast")
local root = os.getenv("FLOWCAST_ROOT") or "/opt/flowcast/0.3.0"
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
