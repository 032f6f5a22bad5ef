import FailingCalls
import Glibc

// The functions of the C library with which the client itself removes its files, without SQLite. The linker prefers the
// functions of the program to those of the library.

@_cdecl("unlink")
func unlinkOrEnd(_ path: UnsafePointer<CChar>) -> Int32 {
    FailingCalls.ifWhole { unlinkat(AT_FDCWD, path, 0) }
}

@_cdecl("truncate")
func truncateOrEnd(_ path: UnsafePointer<CChar>, _ size: off_t) -> Int32 {
    FailingCalls.ifWhole {
        let descriptor = open(path, O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        defer { close(descriptor) }
        return ftruncate(descriptor, size)
    }
}
