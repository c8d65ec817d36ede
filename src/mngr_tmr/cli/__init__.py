"""`mngr tmr` and `mngr demo`: their verbs, options and lines on a terminal."""
