"""claim.py LIBRARY STORE SESSION: claims a session until standard input ends.
Prints a line when it has it."""
import ctypes
import sys


class Slice(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint64)]


def main():
    library = ctypes.CDLL(sys.argv[1])
    store = ctypes.c_void_p()
    session = ctypes.c_void_p()
    name = sys.argv[3].encode()
    library.wal_session_open.argtypes = [ctypes.c_void_p, Slice,
                                         ctypes.c_void_p, ctypes.c_void_p]
    library.wal_session_claim.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    assert library.wal_open(sys.argv[2].encode(), None, ctypes.byref(store),
                            None) == 0
    assert library.wal_session_open(store, Slice(name, len(name)),
                                    ctypes.addressof(session), None) == 0
    assert library.wal_session_claim(session, None) == 0
    print("claimed", flush=True)
    sys.stdin.read()


main()
