"""`mngr tmr` and `mngr demo`: their commands, options and output."""
