import Foundation
import ReelLab
import TestSupport
import Testing

/// Tests foreign clients against a whole node. If one is not installed, its test prints that and passes.
@Suite(.timeLimit(.minutes(20))) struct OtherPeoplesClientTests {
    @Test("python websockets speaks the protocol") func pythonWebsocketsSpeaksThe() async throws {
        guard try await Shell.has("python3 -c 'import websockets'", "websockets of Python: pip install websockets")
        else {
            return
        }
        let folder = try TemporaryFolder(prefix: "reel-python-")
        let node = try NodeProcess.serve(in: folder)
        let script = """
            import asyncio, json, uuid, websockets

            async def main():
                url = "ws://127.0.0.1:\(node.port)/v1/socket"
                async with websockets.connect(url, subprotocols=["reel.v1"]) as reader, \\
                        websockets.connect(url, subprotocols=["reel.v1"]) as writer:
                    async def say(s, **frame):
                        await s.send(json.dumps(frame))
                    async def hear(s, kind):
                        while True:
                            frame = json.loads(await asyncio.wait_for(s.recv(), 100))
                            if frame["t"] == kind:
                                return frame
                            assert frame["t"] in ("events", "upto", "ack"), frame
                    for s in (reader, writer):
                        await say(s, t="hello", client="python/1")
                        welcome = await hear(s, "welcome")
                        assert welcome["limits"]["frame"] >= 65536, welcome
                    epoch = welcome["epoch"]
                    await say(reader, t="subscribe", stream="todo", after=-1, ref="here")
                    subscribed = await hear(reader, "subscribed")
                    assert subscribed["ref"] == "here" and subscribed["after"] == -1, subscribed

                    site = str(uuid.uuid4())
                    await say(writer, t="publish", stream="todo", events=[
                        {"type": "insert", "site": site, "op": op, "model": "task", "id": str(op),
                         "fields": {"title": "Milk é \\U0001F95B", "n": 1.0}} for op in range(16)])
                    acked = {}
                    while len(acked) < 16:
                        acked.update({a["op"]: a["seq"] for a in (await hear(writer, "ack"))["acks"]})
                    assert sorted(acked) == list(range(16)), acked

                    proven, events = -1, []
                    while proven < acked[15]:
                        frame = await hear(reader, "events")
                        assert frame["from"] == proven + 1, frame
                        proven, events = frame["to"], events + frame["events"]
                    assert [e["op"] for e in events] == list(range(16)), events
                    assert all(e["seq"] == acked[e["op"]] and e["site"] == site for e in events), events
                    assert events[0]["fields"] == {"title": "Milk é \\U0001F95B", "n": 1}, events[0]
                    assert all(e["base"] < e["seq"] and e["at"] > 0 for e in events), events

                    await say(reader, t="fetch", stream="todo", epoch=epoch, ranges=[[10, 12], [14, 14]], ref=7)
                    fetched = []
                    while len(fetched) < 4:
                        frame = await hear(reader, "events")
                        if frame.get("ref") == 7:
                            fetched += frame["events"]
                    assert [e["seq"] for e in fetched] == [10, 11, 12, 14], fetched
                    assert fetched[0] == events[10], fetched[0]

                    await say(writer, t="publish", stream="todo", events=[
                        {"type": "insert", "site": site, "op": 0, "model": "task", "id": "0",
                         "fields": {"title": "Milk é \\U0001F95B", "n": 1.0}}])
                    again = (await hear(writer, "ack"))["acks"]
                    assert [(a["site"], a["op"]) for a in again] == [(site, 0)], again
                    await say(reader, t="fetch", stream="todo", epoch=epoch, ranges=[[again[0]["seq"]] * 2], ref=9)
                    frame = await hear(reader, "events")
                    while frame.get("ref") != 9:
                        frame = await hear(reader, "events")
                    assert frame["events"][0]["fields"] == events[0]["fields"], frame

                    await say(writer, t="publish", stream="todo", events=[
                        {"type": "update", "site": site, "op": 99, "model": "task", "id": "0", "seq": 1}], ref=8)
                    nack = await hear(writer, "nack")
                    assert nack["code"] == "bad_event" and nack["op"] == 99 and nack["ref"] == 8, nack
                    await say(reader, t="unsubscribe", stream="todo")
                    await hear(reader, "unsubscribed")
                print("fine")

            asyncio.run(main())
            """
        try script.write(toFile: folder.path + "/client.py", atomically: true, encoding: .utf8)
        let run = try await Shell.output("python3 '\(folder.path)/client.py'")
        #expect(run == "fine\n")
    }

    @Test("curl reads and writes") func curlReadsAndWrites() async throws {
        guard try await Shell.has("curl --version", "curl: apt-get install curl") else { return }
        let folder = try TemporaryFolder(prefix: "reel-curl-")
        // With one loop, a connection can read every event that another connection has got an ack for.
        let node = try NodeProcess(["serve", "--data", folder.path + "/data", "--loops", "1"], in: folder)
        let stream = node.url + "/v1/streams/todo"
        let site = "00000000-0000-4000-8000-000000000001"
        func event(_ op: Int) -> String {
            EventText.sent("insert", site, op, #""model":"a/b","id":"\#(op)","fields":{"n":\#(op)}"#).text
        }

        let posted = try await curl(["-d", "{\"events\":[\(event(0)),\(event(1))]}", stream + "/events"])
        let epoch = try #require(posted["epoch"] as? String)
        let acks = try #require(posted["acks"] as? [[String: Any]])
        #expect(acks.map { $0["seq"] as? Int } == [0, 1])
        let third = try await curl(["-d", "{\"events\":[\(event(2))]}", stream + "/events"])
        #expect((third["acks"] as? [[String: Any]])?.first?["seq"] as? Int == 2)
        _ = try await node.snapshot(of: "todo", upTo: 2)

        let events = try await curl([stream + "/events?after=0&epoch=\(epoch)"])
        #expect((events["events"] as? [[String: Any]])?.map { $0["seq"] as? Int } == [1, 2])
        #expect(events["from"] as? Int == 1 && events["to"] as? Int == 2)
        let limited = try await curl([stream + "/events?limit=1"])
        #expect(limited["to"] as? Int == 0 && limited["head"] as? Int == 2)

        let head = try await curl([stream + "/head"])
        #expect(head["first"] as? Int == 0 && head["head"] as? Int == 2 && head["epoch"] as? String == epoch)

        let object = try await curl([stream + "/objects/a%2Fb/1"])
        #expect(object["object"] as? [String] == ["a/b", "1"])
        #expect((object["fields"] as? [String: [Int]]) == ["n": [1, 1]])
        #expect(try await curl([stream + "/objects?model=a/b&id=2"])["seq"] as? Int == 2)
        #expect(try await status([stream + "/objects/a%2Fb/9"]) == "404")

        let lines = try await Shell.output("\(Self.patientCurl) \(stream)/snapshot").split(separator: "\n")
        #expect(lines.count == 6, "a head, a site, three objects, an end")
        #expect(lines.last?.contains(#""count":4"#) == true)
        let etag = try await Shell.output("curl -sS -o /dev/null -D - \(stream)/snapshot | grep -i '^etag'")
        #expect(etag.contains("\"\(epoch):2\""))
        let delta = try await Shell.output("\(Self.patientCurl) '\(stream)/delta?after=1&epoch=\(epoch)'").split(
            separator: "\n"
        )
        #expect(delta.count == 4, "a head, the site, the object, an end")

        try await eventually("it has announced itself") {
            let cluster = try await curl([node.url + "/v1/cluster"])
            #expect(cluster["epoch"] as? String == epoch && cluster["partitions"] as? Int == 4)
            return (cluster["nodes"] as? [[String: Any]])?.isEmpty == false
        }
        #expect(try await status([stream + "/events", "-X", "PUT"]) == "405")
        #expect(try await status([stream + "/events", "-d", "x", "-H", "content-type: text/plain"]) == "415")
    }

    // MARK: Requests

    /// Repeats a request, with a message, if the node is too slow on a busy machine.
    private static let patientCurl = "curl -sS --fail --retry 20 --retry-delay 1"

    private func curl(_ words: [String]) async throws -> [String: Any] {
        let quoted = words.map { "'\($0)'" }.joined(separator: " ")
        let answer = try await Shell.output("\(Self.patientCurl) -H 'content-type: application/json' \(quoted)")
        return try #require(try JSONSerialization.jsonObject(with: Data(answer.utf8)) as? [String: Any], "\(answer)")
    }

    private func status(_ words: [String]) async throws -> String {
        let quoted = words.map { "'\($0)'" }.joined(separator: " ")
        return try await Shell.output("curl -sS -o /dev/null -w '%{http_code}' \(quoted)")
    }
}
