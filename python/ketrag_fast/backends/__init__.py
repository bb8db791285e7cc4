"""What can be swapped: readers of files now; embedders and language models when there are two of each."""
