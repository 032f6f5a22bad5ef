#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Returns the descriptor of a new stream socket; −1: there is none. Programs that the test starts do not get it.
///
/// Modules that use a C library whose header includes the system's socket header call this function. There the compiler
/// finds `SOCK_STREAM` in either of two modules, depending on the order of the files, and may then refuse it.
package func streamSocket(_ family: Int32 = AF_INET) -> Int32 {
    #if canImport(Glibc)
    socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    #else
    socket(family, SOCK_STREAM, 0)
    #endif
}
