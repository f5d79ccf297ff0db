"""What a sample of chunks tells about an array before all of it is written."""
