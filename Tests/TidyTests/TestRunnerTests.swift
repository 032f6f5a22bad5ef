import Foundation
import Testing

/// Tests the script `Tests/run` with a program in place of `swift` that prints given lines.
@Suite struct TestRunnerTests {
    /// The output and the exit code of one call of `swift test`.
    private struct Call {
        var lines: [String]
        var code = 0
    }

    /// The result of the script.
    private struct Result {
        var code: Int32
        var lines: [Substring]
        var log: String
        /// The arguments of each call of `swift`.
        var calls: [Substring]
    }

    /// Runs the script in a folder of its own.
    private func run(_ words: String..., calls: [Call]) throws -> Result {
        let files = FileManager.default
        let folder = files.temporaryDirectory.appending(path: "reel-runner-\(UUID().uuidString)")
        defer { try? files.removeItem(at: folder) }
        try files.createDirectory(at: folder.appending(path: "Tests"), withIntermediateDirectories: true)
        try files.copyItem(at: Repository.top.appending(path: "Tests/run"), to: folder.appending(path: "Tests/run"))
        for (number, call) in calls.enumerated() {
            let text = call.lines.map { $0 + "\n" }.joined()
            try Data(text.utf8).write(to: folder.appending(path: "\(number + 1).out"))
            try Data("\(call.code)".utf8).write(to: folder.appending(path: "\(number + 1).code"))
        }
        let swift = """
            #!/bin/bash
            cd "${0%/*}"
            echo "$*" >> calls
            number=$(wc -l < calls)
            cat $number.out
            exit $(cat $number.code)
            """
        try Data(swift.utf8).write(to: folder.appending(path: "swift"))
        try files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.appending(path: "swift").path)

        let process = Process()
        let output = folder.appending(path: "output")
        try Data().write(to: output)
        process.executableURL = folder.appending(path: "Tests/run")
        process.arguments = words
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = process.standardOutput
        var environment = ProcessInfo.processInfo.environment
        environment["PATH"] = "\(folder.path):\(environment["PATH"] ?? "")"
        process.environment = environment
        try process.run()
        process.waitUntilExit()
        func text(_ name: String) -> String {
            (try? String(contentsOf: folder.appending(path: name), encoding: .utf8)) ?? ""
        }
        return Result(
            code: process.terminationStatus,
            lines: text("output").split(separator: "\n"),
            log: text(".build/tests.log"),
            calls: text("calls").split(separator: "\n")
        )
    }

    private let good = [
        "◇ Test run started.", #"✔ Test "a" passed after 0.1 seconds."#, #"➜ Test "b" skipped: "REEL_X is unset""#,
        "✔ Test run with 2 tests in 1 suite passed after 0.2 seconds.",
    ]
    private let bad = [
        "◇ Test run started.", #"✘ Test "c" recorded an issue at C.swift:1:2: 1 == 2"#, "REEL_SEED=42",
        #"✘ Test "c" failed after 0.1 seconds with 1 issue."#, #"✔ Test "d" passed after 0.1 seconds."#,
        "✘ Test run with 2 tests in 1 suite failed after 0.2 seconds with 1 issue.",
    ]

    @Test("after a failure all suites run, and the last lines have the failure and the total")
    func failure() throws {
        let result = try run(calls: [Call(lines: bad, code: 1), Call(lines: good), Call(lines: good)])
        #expect(result.code == 1 && result.calls.count == 3)
        #expect(result.lines.last == "in all 4 tests ran, 1 failed, 2 were skipped")
        let again = result.lines.lastIndex { $0.contains("C.swift:1:2") } ?? 0
        #expect(again > result.lines.lastIndex { $0.hasPrefix("✔ Test run") } ?? 0)
        #expect(result.lines.contains("REEL_SEED=42"))
        #expect(result.log.contains("C.swift:1:2") && result.log.ranges(of: "Test run started").count == 3)
    }

    @Test("each suite is in one of the three runs") func parts() throws {
        let result = try run(calls: [Call(lines: good), Call(lines: good), Call(lines: good)])
        #expect(result.code == 0 && result.lines.last == "in all 3 tests ran, 0 failed, 3 were skipped")
        let filters = result.calls.map { $0.replacing("test --disable-xctest ", with: "") }
        #expect(filters[2] == "\(filters[0]) \(filters[1])".replacing("--filter", with: "--skip"))
    }

    @Test("a crash counts the tests that ended, and a build that fails ends the script") func noEnd() throws {
        let crash = try run("--filter", "x", calls: [Call(lines: Array(bad.dropLast()), code: 1)])
        #expect(crash.code == 1 && crash.lines.last == "in all 2 tests ran, 1 failed, 0 were skipped")
        let build = try run(calls: [Call(lines: ["error: no such module"], code: 1)])
        #expect(build.code == 1 && build.calls.count == 1)
        #expect(build.lines.last == "in all 0 tests ran, 0 failed, 0 were skipped")
    }

    @Test("the script fails if no test has the name") func noTest() throws {
        let none = ["◇ Test run started.", "✔ Test run with 0 tests in 0 suites passed after 0.001 seconds."]
        let result = try run("--filter", "x", calls: [Call(lines: none)])
        #expect(result.code == 1 && result.calls == ["test --disable-xctest --filter x"])
        #expect(result.lines.contains("found no test of that name: --filter x"))
    }

    @Test("the tests that lack a program are counted at the end, with the command that installs it")
    func missingPrograms() throws {
        let curl = "NOT TESTED: found no curl: apt-get install curl"
        let lines = [
            curl, curl, #"➜ Test "e" skipped: "haproxy is missing: apt-get install haproxy""#,
            #"➜ Test "f" skipped: "KAFKA_HOME names no Kafka: nothing was tested""#, good[0], good[1], good[3],
        ]
        let result = try run("--filter", "x", calls: [Call(lines: lines)])
        #expect(result.code == 0)
        let told = try #require(result.lines.lastIndex { $0.hasPrefix("NOT TESTED: 3 tests") })
        let reasons = result.lines[told...].map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(reasons.contains("2 found no curl: apt-get install curl"))
        #expect(reasons.contains("1 haproxy is missing: apt-get install haproxy"))
        #expect(!reasons.contains { $0.contains("KAFKA_HOME") })
        #expect(result.lines.contains { $0.hasPrefix("NOT RUN for want of KAFKA_HOME: 1 tests") })
    }
}
