import Glibc

// Who writes into a pipe that nobody reads is told so, and ends in the same way in all commands.
signal(SIGPIPE, SIG_IGN)
// Reads of a log block for long and must not occupy all threads of libuv's pool, which has four by default. libuv reads
// the variable when the pool starts; an operator's own value stays.
setenv("UV_THREADPOOL_SIZE", "16", 0)
let code = await CommandLineTool.run()
fflush(nil)
// Not `exit`: it would tear libraries down while other threads still run in them.
_exit(code.rawValue)
