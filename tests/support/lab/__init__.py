"""Real hosts on this machine: sshd in namespaces, with file systems of their own."""
