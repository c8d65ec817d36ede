"""The result that an agent reports: `outcome.json`, and the script `publish` that writes it.

`mngr tmr` and `mngr tutorial` give the script to their agents; other agents have none. The
codec that reads the file also reads the journals of `mngr tmr`.
"""
