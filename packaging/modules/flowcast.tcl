#%Module1.0
# Environment Modules: put this file at MODULEPATH/flowcast/0.3.0. FLOWCAST_ROOT is the folder into which the tarball was unpacked.
proc ModulesHelp { } {
    puts stderr "Flowcast measures a network, fits a model to it, records or reads MPI programs, predicts how long their"
    puts stderr "communication takes, places ranks and schedules messages over several networks. First step: flowcast demo"
}
module-whatis "Flowcast 0.3.0: communication performance of clusters"
set root [expr {[info exists ::env(FLOWCAST_ROOT)] ? $::env(FLOWCAST_ROOT) : "/opt/flowcast/0.3.0"}]
prepend-path PATH $root/bin
prepend-path MANPATH $root/share/man
