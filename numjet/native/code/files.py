"""`cpu.link.folder.Folder.read` of files that are as they should be: what was opened is looked at
as there (docs/security.md). Whatever else there is, Python finds and says.

Other threads run Python while the system opens and reads.
"""

from __future__ import annotations

from numjet.cpu.builder.records import NULL, Array, Int, Int8, Pointer, Static, native, stack
from numjet.cpu.link.folder import DIRECTORY, NO_LINK, OTHERS, READING
from numjet.native.objects import Bytes, Object, Tuple, is_a
from numjet.native.tables import FileContext, Files, FileStatus

# AT_FDCWD; AT_EMPTY_PATH and STATX_BASIC_STATS; words of `struct statx`.
HERE = -100
ITSELF, BASIC, STATUS = 0x1000, 0x7FF, 32
# Of a file's mode what kind it is: S_IFMT, S_IFDIR, S_IFREG.
KIND, FOLDER, REGULAR = 0xF000, 0x4000, 0x8000

files = Static(Files, "files", exported=True)


@native
def opened(
    c: FileContext, parent: Int, name: Pointer, flags: Int, kind: Int, status: FileStatus
) -> Int:
    """The descriptor of what has this name, of a kind, that belongs to this user or the system's
    and that nobody else may write; its status is left. -1 for anything else."""
    found = c.openat(parent, name, flags)
    if found < 0:
        return -1
    nothing = stack(Int8)
    nothing[0] = 0
    if c.statx(found, nothing, ITSELF, BASIC, status) == 0:
        mine = status.user == 0 or status.user == c.geteuid()
        if mine and status.mode & OTHERS == 0 and status.mode & KIND == kind:
            return found
    c.close(found)
    return -1


@native
def entry(c: FileContext, path: Pointer, name: Array[Int8], status: FileStatus) -> Int:
    """The descriptor of a file in the directory's folder of its first two letters; -1: see
    `opened`."""
    first = stack(Int8, 3)
    first[0] = name[0]
    first[1] = name[1]
    first[2] = 0
    root = opened(c, HERE, path, DIRECTORY, FOLDER, status)
    if root < 0:
        return -1
    folder = opened(c, root, first, DIRECTORY | NO_LINK, FOLDER, status)
    c.close(root)
    if folder < 0:
        return -1
    found = opened(c, folder, name, READING, REGULAR, status)
    c.close(folder)
    return found


@native
def content(c: FileContext, file: Int, size: Int) -> Object:
    """The bytes of an open file; NULL where there are fewer, or no memory (no exception is set)."""
    made = c.PyBytes_FromStringAndSize(NULL, size)
    if made == NULL:
        c.PyErr_Clear()
        return NULL
    thread = c.PyEval_SaveThread()
    count = c.read(file, Bytes(made).text, size)
    c.PyEval_RestoreThread(thread)
    if count != size:
        c.Py_DecRef(made)
        return NULL
    return made


@native
def is_name(c: FileContext, x: Object, least: Int) -> bool:
    """Whether this is a name for the system: bytes, so many at least, and none of them zero."""
    if not is_a(x, c.bytes) or Bytes(x).size < least:
        return False
    for k in range(Bytes(x).size):
        if Bytes(x).text[k] == 0:
            return False
    return True


@native(exported=True)
def read_file(self: Object, given: Array[Object], n: Int) -> Object:
    """METH_FASTCALL: (the directory, the file's name, the most bytes that it may have) -> (its
    content, the second in which it was written), or None: Python has to look."""
    c = files.context
    answer = c.none
    if n == 3 and is_name(c, given[0], 1) and is_name(c, given[1], 3):
        most = c.PyLong_AsLong(given[2])
        if most < 0:  # also how an error shows
            c.PyErr_Clear()
        status = FileStatus(stack(Int, STATUS))
        thread = c.PyEval_SaveThread()
        file = entry(c, Bytes(given[0]).text, Bytes(given[1]).text, status)
        c.PyEval_RestoreThread(thread)
        if file >= 0:
            found: Object = NULL
            if status.size <= most:
                found = content(c, file, status.size)
            c.close(file)
            if found != NULL:
                return pair(c, found, c.PyLong_FromLongLong(status.written))
    c.Py_IncRef(answer)
    return answer


@native
def pair(c: FileContext, first: Object, second: Object) -> Object:
    """A tuple of two objects, which are taken over; NULL with an exception set."""
    made: Object = NULL
    if second != NULL:
        made = c.PyTuple_New(2)
    if made == NULL:
        c.Py_DecRef(first)
        if second != NULL:
            c.Py_DecRef(second)
        return NULL
    items = Tuple(made).items
    items[0] = first
    items[1] = second
    return made
