import EventLogConformance
import Foundation
import ReelCore
import ReelLog
import ReelSQLite
import TestSupport
import Testing

/// Tests a log that has no space on the disk, or no file descriptors.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ScarcityTests {
    /// Mounts a tmpfs of `kilobytes` KiB on a new folder and calls `body` with it. Skips the test if the user may not
    /// mount one.
    private func withSmallDisk(_ kilobytes: Int, _ body: (String) async throws -> Void) async throws {
        try await withFolder { folder in
            guard mount("reel-test", folder, "tmpfs", 0, "size=\(kilobytes)k") == 0 else {
                let reason = String(cString: strerror(errno))
                print("SKIPPED: no small disk can be mounted here (\(reason)); run as root to test a full disk")
                return
            }
            defer { umount2(folder, Int32(MNT_DETACH)) }
            try await body(folder)
        }
    }

    @Test("a full disk fails appends cleanly, nothing half, and they go on when there is room")
    func fullDisk() async throws {
        try await withSmallDisk(512) { folder in
            let path = folder + "/log.db"
            let ballast = folder + "/ballast"
            try Data(count: 128 << 10).write(to: URL(fileURLWithPath: ballast))
            let log = try SQLiteLog(path: path, partitions: 1, checkpointFrames: 4)
            defer { log.close() }
            let sink = CollectingSink()
            _ = log.tail(0, from: 0, to: sink)
            let group = (0..<10).map { LogAppend("s", "\($0) " + String(repeating: "x", count: 900)) }
            var acked: [Seq] = []
            var failure: LogError?
            while failure == nil, acked.count < 10_000 {
                do {
                    acked += try await log.append(group)
                } catch let error as LogError {
                    failure = error
                }
            }
            #expect(failure?.code == .logUnavailable)
            #expect(failure?.message.contains("room") == true)
            #expect(try log.bounds(0).last == acked.last)
            // A second append fails too, and the log is still readable.
            await #expect(throws: LogError.self) { try await log.append(group) }
            #expect(try log.read(0, from: 0, to: largestInteger, bytes: 1 << 24).seen.map(\.seq) == acked)

            try FileManager.default.removeItem(atPath: ballast)
            acked += try await log.append(group)
            #expect(acked == Array(0..<Seq(acked.count)))
            try await eventually("the tail goes on") { sink.count == acked.count }
            #expect(sink.records.map(\.seq) == acked)
            log.close()
            #expect(try Connection(path: path, mode: .readOnly).text("PRAGMA integrity_check") == "ok")
        }
    }

    @Test("a disk that can only be read is named, and what to do") func readOnlyDisk() async throws {
        try await withSmallDisk(20_000) { folder in
            let path = folder + "/log.db"
            try SQLiteLog(path: path, partitions: 1).close()
            try #require(mount("reel-test", folder, "tmpfs", UInt(MS_REMOUNT | MS_RDONLY), nil) == 0)
            let error = #expect(throws: LogError.self) { try SQLiteLogStore(path: path).current() }
            #expect(error?.message.contains("copy the file") == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("this user must be able") == false)
            #expect(error?.isLasting == true)
        }
    }

    @Test("too few file descriptors are named") func descriptors() async throws {
        try await withFolder { folder in
            try SQLiteLog(path: folder + "/log.db").close()
            var failed = 0
            for limit in 5..<18 {
                let process = try WriterProcess(folder, name: "n\(limit)", count: 1, descriptors: limit)
                try await eventually("its end") { !process.isRunning }
                let lines = try process.lines
                if lines.last == "done" { continue }
                failed += 1
                #expect(lines.last?.contains("descriptors") == true, "\(lines)")
            }
            #expect(failed > 3)
        }
    }
}
