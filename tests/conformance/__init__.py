"""The client protocol as executable text: transcripts, and what is needed to play them."""
