import Foundation
import Testing

@testable import ReelNet

/// Tests foreign clients against a live server. If a client is not installed, its test prints that and passes.
@Suite struct OtherPeoplesClientsTests {
    @Test("curl reads posts and waits for continue") func curlReadsPostsAnd() throws {
        guard isThere("curl --version", "curl: apt-get install curl") else { return }
        let server = try EchoServer()
        let url = "http://\(server.address)"
        #expect(try shell("curl -sS --fail -d hello \(url)/echo") == "hello")
        #expect(try shell("curl -sS --fail '\(url)/stream?bytes=3000000' | wc -c").trimmed == "3000000")
        #expect(
            try shell("head -c 900000 /dev/zero | curl -sS --fail --data-binary @- \(url)/echo | wc -c").trimmed
                == "900000"
        )
        // curl waits up to 600 s for `100 Continue`, because a busy server may be late.
        let waiting = "curl -sS --expect100-timeout 600"
        #expect(try shell("\(waiting) -H 'Expect: 100-continue' -d hi -v \(url)/echo 2>&1").contains("100 Continue"))
        #expect(try shell("curl -sS -H 'Transfer-Encoding: chunked' -d chunks \(url)/echo") == "chunks")
        #expect(try shell("curl -sS -I '\(url)/echo'").contains("HTTP/1.1 200 OK"))
        #expect(
            try shell(
                "head -c 2000000 /dev/zero | \(waiting) -o /dev/null -w '%{http_code}' --data-binary @- \(url)/echo"
            )
                == "413"
        )
        #expect(
            try shell("curl -sS -o /dev/null -w '%{num_connects} ' \(url)/echo -o /dev/null \(url)/later") == "1 0 "
        )
    }

    @Test("python websockets talks") func pythonWebsocketsTalks() throws {
        guard isThere("python3 -c 'import websockets'", "websockets of Python: pip install websockets") else { return }
        let server = try EchoServer()
        let script = """
            import asyncio, websockets
            patient = {"open_timeout": 600, "close_timeout": 600, "ping_interval": None}
            async def main():
                url = "ws://\(server.address)/ws"
                async with websockets.connect(url, subprotocols=["reel.v1"], max_size=None, **patient) as s:
                    assert s.subprotocol == "reel.v1", s.subprotocol
                    for size in (0, 1, 125, 126, 65535, 65536, 3000000):
                        await s.send("é" * size)
                        assert await s.recv() == "é" * size, size
                    await s.send(["frag", "ment", "ed"])
                    assert await s.recv() == "fragmented"
                    await s.send(b"bytes")
                    assert await s.recv() == b"bytes"
                    await (await s.ping())
                assert s.close_code == 1000, s.close_code
                try:
                    await websockets.connect("ws://\(server.address)/refused", **patient)
                except websockets.InvalidStatus as e:
                    assert e.response.status_code == 404, e
                print("fine")
            asyncio.run(main())
            """
        #expect(try python(script) == "fine\n")
    }

    @Test("kosoku finds no fault in the server") func kosokuFindsNoFault() throws {
        guard isThere("python3 -c 'import kosoku'", "kosoku of Python: pip install kosoku") else { return }
        let server = try EchoServer()
        let script = """
            import asyncio, kosoku
            async def main():
                try:
                    results = await kosoku.run_fuzzingclient(
                        "ws://\(server.address)", exclude_cases=["12.*", "13.*", "9.*"], concurrency=4)
                    print(len(results), "cases")
                except kosoku.FailureError as e:
                    print(e)
            asyncio.run(main())
            """
        let answer = try python(script)
        // A failure prints other words; a busy interpreter may add a warning.
        #expect(answer.contains(" cases\n"), "\(answer)")
    }

    private func isThere(_ command: String, _ name: String) -> Bool {
        if (try? shell(command + " >/dev/null 2>&1 && echo yes")) == "yes\n" { return true }
        print("NOT TESTED: found no \(name)")
        return false
    }

    private func python(_ script: String) throws -> String {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("reel-\(UUID().uuidString).py")
        try script.write(to: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(at: file) }
        return try shell("timeout 600 python3 '\(file.path)' 2>&1")
    }

    private func shell(_ command: String) throws -> String {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: output, as: UTF8.self)
    }
}

extension String {
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
