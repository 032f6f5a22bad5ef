import Foundation

// As `reel` has it: a loop changes neither for its process.
signal(SIGPIPE, SIG_IGN)
setenv("UV_THREADPOOL_SIZE", "16", 0)
exit(await FaultTable.main())
