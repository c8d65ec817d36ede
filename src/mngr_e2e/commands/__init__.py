"""Running a command: its process, its terminal, its recording, and the end of all its children."""
