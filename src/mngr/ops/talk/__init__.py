"""Messages, replies, permission questions and transcripts."""
