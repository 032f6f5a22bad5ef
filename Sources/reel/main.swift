import Glibc

// Who writes into a pipe that nobody reads is told so, and ends in the same way in all commands.
signal(SIGPIPE, SIG_IGN)
let code = await CommandLineTool.run()
fflush(nil)
// Not `exit`: it would tear libraries down while other threads still run in them.
_exit(code.rawValue)
