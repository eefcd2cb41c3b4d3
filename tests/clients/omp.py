"""What a person saw in omp: the files of pi, with a title before the header that is rewritten in
place."""
from pi import sessions

__all__ = ["sessions"]
