"""Messages, replies, permission requests and transcripts."""
