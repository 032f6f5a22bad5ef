import Glibc

// A write into a pipe without a reader then fails with EPIPE, which all commands handle in the same way.
signal(SIGPIPE, SIG_IGN)
// Reads of a log can block for long. They must not occupy all threads of libuv's pool, which has four by default. libuv
// reads the variable when the pool starts. A value that the operator has set stays.
setenv("UV_THREADPOOL_SIZE", "16", 0)
let code = await CommandLineTool.run()
fflush(nil)
// Not `exit`: it would run the destructors of libraries while other threads still run in them.
_exit(code.rawValue)
