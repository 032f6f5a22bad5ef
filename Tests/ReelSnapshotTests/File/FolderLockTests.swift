import Foundation
import ReelCore
import Synchronization
import Testing

@testable import ReelSnapshot

/// Tests the lock of a folder, which only one process holds.
@Suite(.timeLimit(.minutes(5))) struct FolderLockTests {
    @Test("a caller that the lock refuses closes its descriptor once") func refusedClosesOnce() throws {
        let folder = try Folder()
        let lock = try FolderLock(folder: folder.path)
        // A descriptor that is closed twice may belong to another thread by then, such as this one.
        let state = Mutex((isOver: false, opened: 0, lost: 0))
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            while !state.withLock({ $0.isOver }) {
                let descriptor = open("/dev/null", O_RDONLY)
                let isLost = descriptor >= 0 && close(descriptor) != 0
                state.withLock { ($0.opened, $0.lost) = ($0.opened + 1, $0.lost + (isLost ? 1 : 0)) }
            }
            done.signal()
        }
        while state.withLock({ $0.opened < 50_000 }) {
            if (try? FolderLock(folder: folder.path)) != nil { Issue.record("two have it") }
        }
        state.withLock { $0.isOver = true }
        done.wait()
        #expect(state.withLock { $0.lost } == 0)
        lock.release()
        _ = try FolderLock(folder: folder.path)
    }

    @Test("a folder lock makes private folders and leaves existing folders unchanged") func makesPrivateFolders() throws
    {
        let folder = try Folder()
        #expect(chmod(folder.path, 0o755) == 0)
        let lock = try FolderLock(folder: folder.path + "/a/b")
        try EpochFolders.make(Epoch(1), in: folder.path + "/a/b")
        for (made, mode) in [("", 0o755), ("/a", 0o700), ("/a/b", 0o700), ("/a/b/\(Epoch(1))", 0o700)] {
            var status = stat()
            #expect(stat(folder.path + made, &status) == 0 && status.st_mode & 0o777 == mode, "\(made)")
        }
        lock.release()
    }
}
