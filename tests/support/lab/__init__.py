"""Real hosts on this machine: sshd in namespaces, with their own file systems."""
