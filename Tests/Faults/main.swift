import Foundation

// `reel` sets these for its own process too. An event loop does not change its process.
signal(SIGPIPE, SIG_IGN)
setenv("UV_THREADPOOL_SIZE", "16", 0)
exit(await FaultTable.main())
