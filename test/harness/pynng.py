"""The part of the package pynng that docs/local-analytics.md uses, on libnng by ctypes: tests run the page's script without that package."""
import ctypes

lib = ctypes.CDLL("libnng.so.1")
lib.nng_strerror.restype = ctypes.c_char_p
NNG_FLAG_ALLOC, NNG_FLAG_NONBLOCK = 1, 2


class Socket(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32)]


lib.nng_dial.argtypes = [Socket, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]
lib.nng_recv.argtypes = [Socket, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_int]
lib.nng_send.argtypes = [Socket, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
lib.nng_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def check(error):
    if error != 0:
        raise OSError(lib.nng_strerror(error).decode())


class Pair0:
    def __init__(self, dial, block_on_dial=True):
        self.socket = Socket()
        check(lib.nng_pair0_open(ctypes.byref(self.socket)))
        check(lib.nng_dial(self.socket, dial.encode(), None, 0 if block_on_dial else NNG_FLAG_NONBLOCK))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lib.nng_close(self.socket)

    def recv(self):
        body, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(lib.nng_recv(self.socket, ctypes.byref(body), ctypes.byref(size), NNG_FLAG_ALLOC))
        data = ctypes.string_at(body, size.value)
        lib.nng_free(body, size.value)
        return data

    def send(self, data):
        check(lib.nng_send(self.socket, data, len(data), 0))
